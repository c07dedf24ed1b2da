"""The record of what was said, and what is recalled from it. SQLite and a stemmer, and no Home Assistant."""
