"""Wire formats, one folder for each vendor: a request in, a stream of our events or one of our errors out.

At the top of the folder: what they share, such as the streaming skeleton, events, errors, profiles and prices.
"""
