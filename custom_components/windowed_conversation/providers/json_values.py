"""Values in a server's JSON, which nobody has checked: each may be of any type, or be missing.

What an answer needs is read so that another type is an error, and what is only for the record so that it says nothing.
"""

from typing import Any

from ..window.figures import is_figure


def text_of(value: object) -> str:
    """Return a text, empty for null; raises `TypeError` for anything else."""
    if isinstance(value, str):
        return value
    if value is not None:
        raise TypeError("not a text")
    return ""


def member(value: object, name: str) -> Any:
    """Return a member of an object, None where there is no such member or no object."""
    return value.get(name) if isinstance(value, dict) else None


def tokens_of(figures: object, name: str) -> int:
    """Return a figure; what is none counts as 0, for a figure must not cost the answer."""
    value = member(figures, name)
    return value if is_figure(value) else 0
