"""OpenAI's two formats, Chat Completions and Responses, for OpenAI, Azure and compatible servers."""
