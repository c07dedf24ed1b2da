"""Recorded answers of real servers, read both by the providers and by a reader that shares no code with them."""
