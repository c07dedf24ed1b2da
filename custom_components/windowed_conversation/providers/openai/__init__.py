"""OpenAI's two formats, Chat Completions and Responses, for OpenAI, Azure and compatible servers.

Clients, encoding of requests, decoding of streams, and errors.
"""
