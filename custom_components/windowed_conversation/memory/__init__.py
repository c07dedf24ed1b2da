"""Memory: `core` stores and finds facts and past turns, `turn` uses them for an input, `bridge` for Home Assistant."""
