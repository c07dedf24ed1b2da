"""Recorded answers of real servers, read twice: by our providers and by a reader that shares nothing with them."""
