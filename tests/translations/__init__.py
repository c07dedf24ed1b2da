"""The terms of Home Assistant and the exceptions of each language, and the checks of translations with them."""
