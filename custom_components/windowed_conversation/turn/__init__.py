"""Process one input from start to end: choose a route, build the prompt, run the tool loop, enforce the timeouts.

Imports neither Home Assistant nor an SDK: the caller passes them in through the protocols and callbacks of this folder.
"""
