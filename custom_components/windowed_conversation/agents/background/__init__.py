"""Requests to an agent's model outside of turns: summaries, search words, AI tasks, and the token count."""
