"""The forms of an account, its options and its agents: steps, fields, sections and suggested names.

`config_flow` at the top of the package, which Home Assistant looks for, leads to them.
"""
