"""The answers that an agent has promised and not delivered yet."""

from collections.abc import Callable
from typing import Any

from ..store import do_nothing

_MAX_LOST_ANSWERS = 20


class PromisedAnswers:
    """The answers that an agent has promised and not delivered yet, which are stored.

    `conversations` has the ids of their conversations, by the ids of the promises. Those that are stored at the
    start were lost, because Home Assistant was stopped.
    """

    def __init__(self) -> None:
        self.save_soon: Callable[[], None] = do_nothing
        self.conversations: dict[str, str] = {}
        self._lost: list[str] = []

    def add(self, promise_id: str, conversation_id: str) -> None:
        """Add an answer that was promised."""
        self.conversations[promise_id] = conversation_id
        self.save_soon()

    def remove(self, promise_id: str) -> None:
        """Remove an answer that was delivered, or will not be."""
        self.conversations.pop(promise_id, None)
        self.save_soon()

    def take_lost(self) -> list[str]:
        """Return the conversations whose answers were lost, and forget them."""
        lost, self._lost = self._lost, []
        return lost

    def as_dict(self) -> dict[str, str]:
        """Return the promised answers to store."""
        return dict(self.conversations)

    def restore(self, stored: Any) -> None:
        """Take the stored answers as lost. Data of another form is ignored."""
        values = stored.values() if isinstance(stored, dict) else ()
        self._lost = [each for each in values if isinstance(each, str)][:_MAX_LOST_ANSWERS]
