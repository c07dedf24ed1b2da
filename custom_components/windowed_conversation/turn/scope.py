"""Which window an input belongs to: what counts as the conversation, and whose it is. Pure decisions."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from .errors import IdTooLong

# Stands in no user's id.
_SEPARATOR = "\x1f"

# The greatest length of an id from outside, in characters: it is kept in files, states and events.
LONGEST_ID = 255


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
        """Return a text that no other key has: the last separator stands before the user, if there is any."""
        if self.user is None and _SEPARATOR not in self.conversation:
            return self.conversation
        return f"{self.conversation}{_SEPARATOR}{self.user or ''}"

    @classmethod
    def parse(cls, key: str) -> Self:
        """Return what `str` was made of."""
        conversation, separator, user = key.rpartition(_SEPARATOR)
        return cls(conversation, user or None) if separator else cls(key)


@dataclass(frozen=True, slots=True)
class Access:
    """What of memory may enter a window: the home's, that of a person, if any, and of theirs what is private."""

    person: str | None
    private: bool


def memory_access(key: WindowKey, speaker: str | None) -> Access:
    """Return what may enter a window when this user speaks; None is an unknown speaker.

    What is private enters only the window that the speaker alone owns. Windows that people share, an agent's one window
    for example, have no owner. In another person's window a speaker has nothing.
    """
    if key.user is None:
        return Access(speaker, private=False)
    return Access(speaker, private=True) if speaker == key.user else Access(None, private=False)


def check_id(conversation: str) -> None:
    """Raise `IdTooLong` if the id of a conversation is longer than any needs to be."""
    if len(conversation) > LONGEST_ID:
        raise IdTooLong(f"more than {LONGEST_ID} characters")


def window_key(scope: Scope, conversation_id: str, *, device: str | None, user: str | None) -> WindowKey:
    """Return the key of an input's window; without a device or a user the conversation's own id counts.

    Raises `IdTooLong`.
    """
    match scope:
        case Scope.AGENT:
            key = WindowKey("agent")
        case Scope.DEVICE if device:
            key = WindowKey(f"device:{device}", user)
        case Scope.USER if user:
            key = WindowKey("user", user)
        case _:
            key = WindowKey(conversation_id, user)
    check_id(key.conversation)
    return key
