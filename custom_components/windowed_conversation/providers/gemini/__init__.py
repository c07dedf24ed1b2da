"""Google's Gemini format, `generateContent`.

Clients, encoding of requests, decoding of streams, and errors.
"""
