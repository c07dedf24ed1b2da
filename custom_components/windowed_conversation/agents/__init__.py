"""An agent at run time: its configuration, what outlives a reload, what follows an answer, and what is shown of it."""
