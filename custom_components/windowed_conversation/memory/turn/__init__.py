"""Memory in a turn: its speaker, recall, and requests to remember and to forget; imports no Home Assistant."""
