"""Anthropic's Messages format, for Anthropic and compatible servers.

Clients, encoding of requests, decoding of streams, and errors.
"""
