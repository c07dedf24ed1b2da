"""OpenAI's two formats, Chat Completions and Responses, for OpenAI, Azure and compatible servers.

Contains the clients, request encoding, stream decoding, and error mapping.
"""
