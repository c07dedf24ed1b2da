"""The state of a conversation with memory: a question that waits for a yes, and the facts that were just named."""

from collections.abc import Callable
from dataclasses import dataclass, field
import time

from ..memory import Memory
from .remember_requests import MemoryReply
from .speaker import Speaker

# How long a question waits for its answer, in seconds: as long as a session of Home Assistant's.
_PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """The last answer of memory in a conversation, and its listener.

    `then` is done if they agree, `named` are the ids of the facts in it, and `forgets` whether it was about something
    to forget.
    """

    then: Callable[[Memory], MemoryReply] | None
    named: tuple[int, ...]
    forgets: bool
    listener: tuple[str | None, str | None]
    at: float = field(default_factory=time.monotonic)

    @property
    def is_recent(self) -> bool:
        """Whether it still waits."""
        return time.monotonic() - self.at <= _PATIENCE


class MemoryDialog:
    """The last answers of memory, by conversation, as one input sees them: only that of its own conversation.

    A reply other than a yes leaves everything as it is.
    """

    def __init__(self, answers: dict[str, LastAnswer], key: str, speaker: Speaker) -> None:
        """Take the last answer of a conversation, and drop those that nobody has replied to."""
        last = answers.pop(key, None)
        for each in [each for each, answer in answers.items() if not answer.is_recent]:
            del answers[each]
        self._answers = answers
        self._key = key
        self._listener = (speaker.person, speaker.device)
        is_theirs = last is not None and last.is_recent and last.listener == self._listener
        self.last = last if is_theirs and last else LastAnswer(None, (), forgets=False, listener=self._listener)

    def put(self, reply: MemoryReply, *, forgets: bool) -> None:
        """Keep an answer for the next input."""
        self._answers[self._key] = LastAnswer(reply.then, reply.named, forgets, self._listener)
