"""The note that replaces an image or a file that a model cannot see."""

# Without it a model answers as if nothing had been shown, or pretends to have seen it. An image is called a file, so
# that a model which sees images does not think of the one beside it. A window counts far more for the attachment.
UNSEEN = "[The user has attached a file here that you cannot see.]"


def with_notes(content: str, unseen: int) -> str:
    """Return a user's text followed by a note for each attachment that was removed."""
    return "\n\n".join(filter(None, (content, *(UNSEEN for _ in range(unseen)))))
