"""An agent at run time: its configuration, what outlives a reload, and what follows an answer.

Here the settings of Home Assistant become objects, and what a turn did becomes statistics, costs and issues.
"""
