"""The runtime of an agent: its configuration, the state that outlives a reload, and the steps after a turn."""
