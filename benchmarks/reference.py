"""References for the window in plain Python: one that does as little work as is correct, and a usual one.

And the check of a correct request, written apart from both of them.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from benchmarks.workload import MESSAGE_OVERHEAD, TOOL_NAME, Said, cheap_count, cheap_tokens

type ChatMessage = dict[str, Any]


def chat_message(said: Said) -> ChatMessage:
    """Return a message in the form of Chat Completions."""
    if said.role == "tool":
        return {"role": "tool", "tool_call_id": said.call_id, "content": said.text}
    if not said.call_id:
        return {"role": said.role, "content": said.text}
    function = {"name": TOOL_NAME, "arguments": said.arguments}
    call = {"type": "function", "id": said.call_id, "function": function}
    return {"role": said.role, "content": None, "tool_calls": [call]}


class Reference:
    """The shortest correct window: whole exchanges in blocks, counted once, system kept; no tags, checks or figures.

    The budget is of everything that is sent, in tokens; a trim frees a share of what the system prompt leaves of it.
    """

    def __init__(self, system: str, budget: int, share: float) -> None:
        self.sent: list[ChatMessage] = [{"role": "system", "content": system}]
        self._tokens = MESSAGE_OVERHEAD + cheap_count(system)
        self._budget = budget
        self._low_water = budget - share * (budget - self._tokens)
        # How many messages and tokens each exchange has, oldest first.
        self._exchanges: deque[list[int]] = deque()

    def append(self, said: Said) -> None:
        """Take a message in, and let the oldest exchanges go when it is one too many."""
        if said.role == "user":
            self._exchanges.append([0, 0])
        tokens = cheap_tokens(said)
        newest = self._exchanges[-1]
        newest[0] += 1
        newest[1] += tokens
        self._tokens += tokens
        self.sent.append(chat_message(said))
        if self._tokens > self._budget:
            self._trim()

    def _trim(self) -> None:
        gone = 0
        while self._tokens > self._low_water and len(self._exchanges) > 1:
            messages, tokens = self._exchanges.popleft()
            gone += messages
            self._tokens -= tokens
        del self.sent[1 : 1 + gone]

    def messages(self) -> list[ChatMessage]:
        """Return the messages that are sent now."""
        return self.sent.copy()


class MessageFifo:
    """The way of most agents: after each message the oldest ones go, one by one, until the rest fits the budget."""

    def __init__(self, system: str, budget: int) -> None:
        self._system = {"role": "system", "content": system}
        self._tokens = MESSAGE_OVERHEAD + cheap_count(system)
        self._budget = budget
        self._kept: deque[tuple[ChatMessage, int]] = deque()

    def append(self, said: Said) -> None:
        """Take a message in, and let the oldest messages go."""
        tokens = cheap_tokens(said)
        self._kept.append((chat_message(said), tokens))
        self._tokens += tokens
        while self._tokens > self._budget and len(self._kept) > 1:
            self._tokens -= self._kept.popleft()[1]

    def messages(self) -> list[ChatMessage]:
        """Return the messages that are sent now."""
        return [self._system, *(message for message, _ in self._kept)]


def chat_tokens(message: ChatMessage) -> int:
    """Return the cost of a message in the form of Chat Completions, in tokens, by the cheap counter."""
    arguments = (call["function"]["arguments"] for call in message.get("tool_calls", ()))
    return MESSAGE_OVERHEAD + cheap_count(message["content"] or "") + sum(map(cheap_count, arguments))


def defects(request: Sequence[ChatMessage], newest: Said, budget: int) -> set[str]:
    """Return the defects of a request in which every call should have its result by now."""
    found = set[str]()
    if [message["role"] for message in request[:2]] != ["system", "user"]:
        found.add("does not begin with the system message and a user's")
    called = [call["id"] for message in request for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in request if message["role"] == "tool"]
    if called != answered:
        found.add("calls without results, or results without calls")
    if request[-1] != chat_message(newest):
        found.add("does not end with the newest message")
    if sum(map(chat_tokens, request)) > budget:
        found.add("over the budget")
    return found
