"""What a translation is checked against: Home Assistant's terms, and the exceptions of each language."""
