"""One input from start to end: choose a route, build the prompt, run the tool loop, keep deadlines.

Knows no Home Assistant and no SDK: they come in through the protocols in `ports`.
"""
