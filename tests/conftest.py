"""Imported first: the pytest plugin of Home Assistant brings a `custom_components` package of its own."""

import custom_components.windowed_conversation  # noqa: F401
