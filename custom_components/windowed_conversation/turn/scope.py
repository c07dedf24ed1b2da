"""The window of an input: the conversation, and its owner. Pure decisions."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from .errors import IdTooLong

# No user's id contains this character.
_SEPARATOR = "\x1f"

# The greatest length of an id from outside, in characters: it is kept in files, states and events.
LONGEST_ID = 255


class Scope(StrEnum):
    """The scope of one conversation; an option of the agent."""

    CONVERSATION = "conversation"
    DEVICE = "device"
    USER = "user"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class WindowKey:
    """The name of a conversation and the user who owns it. Another user with the same name gets another window.

    `user` is None for satellites and automations, which act for no user, and for the agent's one shared window.
    """

    conversation: str
    user: str | None = None

    def __str__(self) -> str:
        """Return a unique text for the key: the last separator stands before the user, if there is one."""
        if self.user is None and _SEPARATOR not in self.conversation:
            return self.conversation
        return f"{self.conversation}{_SEPARATOR}{self.user or ''}"

    @classmethod
    def parse(cls, key: str) -> Self:
        """Return the key that `str` was applied to."""
        conversation, separator, user = key.rpartition(_SEPARATOR)
        return cls(conversation, user or None) if separator else cls(key)


@dataclass(frozen=True, slots=True)
class Access:
    """The memory that may enter a window: the home's, a person's, if any, and whether that includes private facts."""

    person: str | None
    private: bool


def memory_access(key: WindowKey, speaker: str | None) -> Access:
    """Return the memory access of a window when this user speaks. None is an unknown speaker.

    Private things enter only a window that the speaker alone owns. Shared windows, for example an agent's only window,
    have no owner. In another person's window, a speaker has access to nothing.
    """
    if key.user is None:
        return Access(speaker, private=False)
    return Access(speaker, private=True) if speaker == key.user else Access(None, private=False)


def check_id(conversation: str) -> None:
    """Raise `IdTooLong` if the id of a conversation is too long."""
    if len(conversation) > LONGEST_ID:
        raise IdTooLong(f"more than {LONGEST_ID} characters")


def window_key(
    scope: Scope, conversation_id: str, *, device: str | None, user: str | None, owner: str | None = None
) -> WindowKey:
    """Return the key of an input's window; without a device or a user, that of the conversation id.

    A device's owner has its windows, and they stay apart from those that the owner has as a user. Raises `IdTooLong`.
    """
    match scope:
        case Scope.AGENT:
            key = WindowKey("agent")
        case Scope.DEVICE if device:
            key = WindowKey(f"device:{device}", owner or user)
        case Scope.USER if user and not owner:
            key = WindowKey("user", user)
        case _:
            key = WindowKey(conversation_id, owner or user)
    check_id(key.conversation)
    return key
