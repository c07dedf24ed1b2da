"""No covers, only the constant that the project changes."""

COVER_INSTANT = False
