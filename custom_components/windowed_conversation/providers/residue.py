"""The owner of a message's residue: only the provider and the model that left it can use it."""

from typing import Any

from ..window import Message


def residue_of(message: Message | None, provider: str, model: str) -> Any:
    """Return the residue that this provider's model left on a message, or None."""
    native = message.native if message else None
    return native.value if native and (native.provider, native.model) == (provider, model) else None
