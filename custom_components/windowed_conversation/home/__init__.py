"""The home in a request: `core` has the text of its states, history and overview, `bridge` reads them."""
