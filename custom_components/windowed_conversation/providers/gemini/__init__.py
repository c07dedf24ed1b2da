"""Google's Gemini format, `generateContent`.

Contains the clients, request encoding, stream decoding, and error mapping.
"""
