"""Home Assistant's types and ours: each module translates one thing, in both directions where there are two."""
