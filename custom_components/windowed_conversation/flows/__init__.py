"""The forms of an account, its options and its agents: steps, fields, sections and suggested names.

Home Assistant enters through `config_flow` at the top of the package.
"""
