"""One input from start to end: choose a route, write the prompt, run the tool loop, keep deadlines.

Knows no Home Assistant and no SDK: what it needs of them comes in through the protocols in `ports`.
"""
