"""References for the window in plain Python: the minimum of correct work, and the method of most agents.

The check for correct requests is independent of both.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from benchmarks.workload import MESSAGE_OVERHEAD, TOOL_NAME, Said, cheap_count, cheap_tokens

type ChatMessage = dict[str, Any]


def chat_message(said: Said) -> ChatMessage:
    """Return a message of the workload in the Chat Completions format."""
    if said.role == "tool":
        return {"role": "tool", "tool_call_id": said.call_id, "content": said.text}
    if not said.call_id:
        return {"role": said.role, "content": said.text}
    function = {"name": TOOL_NAME, "arguments": said.arguments}
    call = {"type": "function", "id": said.call_id, "function": function}
    return {"role": said.role, "content": None, "tool_calls": [call]}


class Reference:
    """The shortest correct window: evicts whole exchanges in blocks, counts once, keeps the system prompt.

    It has no tags, checks or statistics. The token budget covers everything that is sent; a trim frees a share of the
    budget that remains after the system prompt.
    """

    def __init__(self, system: str, budget: int, share: float) -> None:
        self.sent: list[ChatMessage] = [{"role": "system", "content": system}]
        self._tokens = MESSAGE_OVERHEAD + cheap_count(system)
        self._budget = budget
        self._low_water = budget - share * (budget - self._tokens)
        # The number of messages and tokens of each exchange, oldest first.
        self._exchanges: deque[list[int]] = deque()

    def append(self, said: Said) -> None:
        """Append a message, and evict the oldest exchanges if the budget is exceeded."""
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
        """Return the messages to send now."""
        return self.sent.copy()


class MessageFifo:
    """The window of most agents: after each message, it removes the oldest ones until the rest fits the budget."""

    def __init__(self, system: str, budget: int) -> None:
        self._system = {"role": "system", "content": system}
        self._tokens = MESSAGE_OVERHEAD + cheap_count(system)
        self._budget = budget
        self._kept: deque[tuple[ChatMessage, int]] = deque()

    def append(self, said: Said) -> None:
        """Append a message, and remove the oldest messages if the budget is exceeded."""
        tokens = cheap_tokens(said)
        self._kept.append((chat_message(said), tokens))
        self._tokens += tokens
        while self._tokens > self._budget and len(self._kept) > 1:
            self._tokens -= self._kept.popleft()[1]

    def messages(self) -> list[ChatMessage]:
        """Return the messages to send now."""
        return [self._system, *(message for message, _ in self._kept)]


def chat_tokens(message: ChatMessage) -> int:
    """Return the tokens of a Chat Completions message, as counted by the cheap counter."""
    arguments = (call["function"]["arguments"] for call in message.get("tool_calls", ()))
    return MESSAGE_OVERHEAD + cheap_count(message["content"] or "") + sum(map(cheap_count, arguments))


def defects(request: Sequence[ChatMessage], newest: Said, budget: int) -> set[str]:
    """Return the defects of a request in which every tool call should already have its result."""
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
