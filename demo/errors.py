"""The error that the demo shows to the user when it cannot continue."""


class DemoError(Exception):
    """An error with a one-sentence message for the user: the problem and its remedy."""
