"""The states, the history and the overview of the home as text; imports no Home Assistant."""
