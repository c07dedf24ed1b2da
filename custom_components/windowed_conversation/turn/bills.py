"""Bills of requests that extend each other: they show when a server leaves the oldest messages unread.

Ollama and others answer a request that is longer than their context as if it were whole. They keep the system prompt
and the newest messages: https://github.com/ollama/ollama/blob/main/server/prompt.go. So the bill stops growing, or
jumps about below the size, while the requests grow.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from ..providers import Request, ToolSchema, Usage, messages_tokens
from ..window import GREATEST_FACTOR, LEAST_FACTOR, Message, Role, estimate_request, frame_tokens
from .context import said_in

# How many requests are compared with the next one: several conversations take turns.
_MOST = 32

# No model that answers has a smaller context, in tokens. Servers that count only the tokens outside their cache have
# bills this small.
_LEAST_SIZE = 1000

# How much has to be added before a bill can be too small, in tokens of our count. Less may be lost in the
# chat template around the newest message.
_LEAST_ADDED = 64

# How many steps in a row a server's bills have to make sense before a small one is believed.
_CONSISTENT = 2

# The share of an earlier bill below which no server cuts: it leaves out only as much as it has to.
_LEAST_LEFT = 0.5


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request that was billed: its messages and tools, the billed input in tokens, and who answered.

    `marks` stand for the messages, which do not stay here: forgotten messages would stay, too. `is_question`: whether
    it ends with the user's words, and `last_tokens` is the size of its last message, with the live context that no
    later turn sends.
    """

    messages: tuple[Message, ...]
    marks: tuple[int, ...]
    is_question: bool
    last_tokens: int
    tools: tuple[ToolSchema, ...]
    billed: int
    server: str

    @classmethod
    def of(cls, request: Request, usage: Usage, server: str) -> Self | None:
        """Return the request, or None if its bill cannot be compared.

        Context that a provider has cleared on request, and requests that forbid calls, are billed in ways of their own.
        """
        unclear = not usage.input or usage.cleared or (request.tools and not request.may_call)
        if unclear or not server:
            return None
        messages = request.messages
        is_question = any(each.role is Role.USER for each in messages[-1:])
        last_tokens, marks = messages_tokens(messages[-1:]), tuple(map(_mark, messages))
        return cls(messages, marks, is_question, last_tokens, request.tools, usage.input, server)

    def added_to(self, earlier: Self) -> Sequence[Message] | None:
        """Return the messages by which this extends an earlier request, or None if the two cannot be compared.

        Compared are the first requests of two turns, and those of one turn. The other requests of a turn
        look different in the next one: results become stubs, and templates leave reasoning out.
        """
        begun = len(earlier.marks)
        added = self.messages[begun:]
        is_same = (earlier.server, earlier.tools) == (self.server, self.tools)
        if not added or not is_same or self.marks[:begun] != earlier.marks:
            return None
        is_comparable = (earlier.is_question and self.is_question) or all(each.role is not Role.USER for each in added)
        return added if is_comparable and not any(each.attachments for each in added) else None

    @property
    def least_read(self) -> int:
        """The part that every server reads, by the estimate: system prompt, tools and the newest message."""
        kept = [each for each in self.messages if each.role is Role.SYSTEM]
        return estimate_request([*kept, self.messages[-1]], (tool.text for tool in self.tools)).texts


class Bills:
    """The newest bills of one model. No bill counts before the server's counting has made sense."""

    def __init__(self) -> None:
        self._recent: deque[_Sent] = deque(maxlen=_MOST)
        # How many steps in a row made sense.
        self._consistent = 0
        # Whether the model was ever billed for calls and results: not every chat template has them.
        self._bills_rounds = False

    def take(self, request: Request, usage: Usage, server: str) -> int | None:
        """Take in the bill of a request. Return the size that it shows if the server read only part of it.

        That is the greatest of these bills, in tokens. The answer is not part of it, as some servers forget the
        beginning while they answer.
        """
        sent = _Sent.of(request, usage, server)
        if sent is None:
            return None
        steps = [_Step(each, sent, added) for each in self._recent if (added := sent.added_to(each)) is not None]
        self._recent.append(replace(sent, messages=()))
        if not steps:
            return None
        is_cut = any(step.is_short and (self._bills_rounds or not step.is_round) for step in steps)
        newest = steps[-1]
        if not newest.makes_sense(is_cut=is_cut):
            self._consistent = 0
            return None
        self._consistent += 1
        self._bills_rounds |= newest.is_round and newest.has_grown
        if not is_cut or self._consistent <= _CONSISTENT:
            return None
        return max(sent.billed, *(step.earlier.billed for step in steps))


@dataclass(frozen=True, slots=True)
class _Step:
    """A request that extends an earlier one by some messages."""

    earlier: _Sent
    newer: _Sent
    added: Sequence[Message]

    @property
    def is_round(self) -> bool:
        """Whether this is a step in a tool loop."""
        return not self.newer.is_question

    @property
    def grown(self) -> int:
        """By how many tokens the bill has grown."""
        return self.newer.billed - self.earlier.billed

    @property
    def has_grown(self) -> bool:
        """Whether the bill has grown by at least the tokens that any model needs for the added messages."""
        return 0 < LEAST_FACTOR * self._least <= self.grown

    @property
    def is_short(self) -> bool:
        """Whether the bill has grown by far less than any model needs for the added messages."""
        return self._least >= _LEAST_ADDED and self.grown < LEAST_FACTOR * self._least / 2

    @property
    def _least(self) -> int:
        """The tokens of the added messages that every template has: of ended turns only the spoken ones."""
        is_said = [not each.tool_calls and each.role is not Role.TOOL for each in self.added]
        shown = [each for each, said in zip(self.added, is_said, strict=True) if said or self.is_round]
        return sum(map(_text_tokens, shown)) - self._removed

    @property
    def _removed(self) -> int:
        """The tokens of the live context that the earlier request had and the newer one has not."""
        last = len(self.earlier.marks) - 1
        return self.earlier.last_tokens - messages_tokens(self.newer.messages[last : last + 1])

    def makes_sense(self, *, is_cut: bool) -> bool:
        """Return whether the bill is that of a server that counts all that it reads."""
        if is_cut or self.grown <= 0:
            return self.newer.billed >= max(
                _LEAST_SIZE, _LEAST_LEFT * self.earlier.billed, LEAST_FACTOR * self.newer.least_read
            )
        return self.grown <= GREATEST_FACTOR * messages_tokens(self.added) + _LEAST_ADDED


def _text_tokens(message: Message) -> int:
    """Return the tokens of a message's text by the window's count, without residue and frame."""
    return messages_tokens([message]) - frame_tokens(message)


def _mark(message: Message) -> int:
    """Return a number that differs between any two messages of a conversation, for as long as the process runs."""
    calls = tuple([(call.id, call.name) for call in message.tool_calls])
    content = said_in(message.content) if message.role is Role.USER else message.content
    return hash((message.role, content, message.created, calls, message.tool_call_id))
