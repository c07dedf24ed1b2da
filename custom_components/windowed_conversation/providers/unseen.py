"""What a model is told in the place of an image or a file that it cannot see.

Which model sees what is in its profile, and which kinds a format knows is the format's.
"""

# Without it a model answers as if nothing had been shown, or pretends to have seen it. An image is called a file, so
# that a model which sees images does not think of the one beside it. A window counts far more for the attachment.
UNSEEN = "[The user has attached a file here that you cannot see.]"


def with_notes(content: str, unseen: int) -> str:
    """Return a user's words with a note behind them for each attachment that is left out."""
    return "\n\n".join(filter(None, (content, *(UNSEEN for _ in range(unseen)))))
