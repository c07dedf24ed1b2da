"""Anthropic's Messages format, for Anthropic and compatible servers."""
