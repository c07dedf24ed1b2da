"""Who may see a row: its owner, or everybody if it belongs to the home.

An unknown speaker owns nothing and sees only what belongs to the home. A shared window gets no private facts, and
nothing from a person's turns and episodes.
"""

from .records import Kind

_OWN = {"fact": "(:private OR NOT {row}.private)", "episode": ":private", "turn": ":private"}


def visible(kind: Kind, row: str) -> str:
    """Return the SQL condition on a row of a table. Its parameters are `person`, a label, and `private`."""
    return f"({row}.person IS NULL OR ({row}.person = :person AND {_OWN[kind].format(row=row)}))"
