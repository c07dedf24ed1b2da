"""Google's Gemini format, "generateContent"."""
