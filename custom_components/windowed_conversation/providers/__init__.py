"""Wire formats, one folder for each vendor: a request in, a stream of our events or one of our errors out.

The modules at the top are shared: the streaming skeleton, events, errors, model profiles and prices.
"""
