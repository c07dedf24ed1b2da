"""The page: its websocket commands, and the registration of its files."""
