"""The home as Home Assistant has it: the states of exposed entities, the tools for them, and the overview."""
