"""Tests for learning from conversations: what is proved, for whom it is stored, and what never is."""
