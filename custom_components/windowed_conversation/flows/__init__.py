"""Forms of an account, its options and its agents: flow steps, fields, sections and suggested names.

Home Assistant loads them through `config_flow.py` at the top level of the package.
"""
