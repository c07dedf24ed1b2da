"""Anthropic's Messages format, for Anthropic and compatible servers.

Contains the clients, request encoding, stream decoding, and error mapping.
"""
