"""The common parts of the encoders of all formats: the system prompt, attachments, fields, and residue."""

from collections.abc import Iterable
from typing import Any

from ..window import Attachment, Message, Role

# The note that replaces an image or a file that a model cannot see. Without it a model answers as if nothing had been
# shown, or pretends to have seen it. An image is called a file, so that a model which sees images does not think of the
# one beside it. A window counts far more for the attachment.
UNSEEN = "[The user has attached a file here that you cannot see.]"


def with_notes(content: str, unseen: int) -> str:
    """Return a user's text followed by a note for each attachment that was removed."""
    return "\n\n".join(filter(None, (content, *(UNSEEN for _ in range(unseen)))))


def mime_type_of(attachment: Attachment) -> str:
    """Return an attachment's MIME type by its registered name."""
    return "image/jpeg" if attachment.mime_type == "image/jpg" else attachment.mime_type


def system_prompt(messages: Iterable[Message]) -> str:
    """Return the system messages as one text, empty if there are none."""
    return "\n\n".join(each.content for each in messages if each.role is Role.SYSTEM and each.content.strip())


def without_none(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def residue_of(message: Message | None, provider: str, model: str) -> Any:
    """Return the residue that this provider's model left on a message, or None: no other can use it."""
    native = message.native if message else None
    return native.value if native and (native.provider, native.model) == (provider, model) else None
