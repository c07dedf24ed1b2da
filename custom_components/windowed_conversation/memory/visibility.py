"""Who may see a row: its owner, or everyone if it is the home's.

An unknown speaker owns nothing and sees only the home's rows. A window that people share gets no private facts, and
nothing from a person's turns and episodes.
"""

from .records import Kind

_OWN = {"fact": "(:private OR NOT {row}.private)", "episode": ":private", "turn": ":private"}


def visible(kind: Kind, row: str) -> str:
    """Return the condition on a row of a table, under the parameters `person`, a label, and `private`."""
    return f"({row}.person IS NULL OR ({row}.person = :person AND {_OWN[kind].format(row=row)}))"
