"""Tests for learning from conversations: the proof of quotes, the owners of facts, and attacks."""
