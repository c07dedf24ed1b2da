"""An agent at run time: its configuration, its state that outlives a reload, and the steps after a turn."""
