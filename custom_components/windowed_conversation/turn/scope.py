"""Which window an input belongs to: what counts as the conversation, and whose it is. Pure decisions."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

# Stands in no id that Home Assistant makes or that a person types.
_SEPARATOR = "\x1f"


class Scope(StrEnum):
    """What counts as the conversation: an agent's option."""

    CONVERSATION = "conversation"
    DEVICE = "device"
    USER = "user"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class WindowKey:
    """The name of a conversation, and the user whose it is: another user who gives the same name gets another window.

    `user` is None for satellites and automations, which act for nobody, and where all share the agent's one window.
    """

    conversation: str
    user: str | None = None

    def __str__(self) -> str:
        return self.conversation if self.user is None else f"{self.conversation}{_SEPARATOR}{self.user}"

    @classmethod
    def parse(cls, key: str) -> Self:
        """Return what `str` was made of."""
        conversation, _, user = key.partition(_SEPARATOR)
        return cls(conversation, user or None)


def window_key(scope: Scope, conversation_id: str, *, device: str | None, user: str | None) -> WindowKey:
    """Return the key of an input's window; without a device or a user the conversation's own id counts."""
    match scope:
        case Scope.AGENT:
            return WindowKey("agent")
        case Scope.DEVICE if device:
            return WindowKey(f"device:{device}", user)
        case Scope.USER if user:
            return WindowKey("user", user)
        case _:
            return WindowKey(conversation_id, user)
