"""References for the window in plain Python: the minimum of correct work, and the method of most agents.

The check for correct requests is independent of both.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from benchmarks.workload import (
    MESSAGE_OVERHEAD_TOKENS,
    TOOL_NAME,
    WorkloadMessage,
    estimate_message_tokens,
    estimate_tokens,
)

type ChatMessage = dict[str, Any]


def to_chat_message(said: WorkloadMessage) -> ChatMessage:
    """Return a message of the workload in the Chat Completions format."""
    if said.role == "tool":
        return {"role": "tool", "tool_call_id": said.call_id, "content": said.text}
    if not said.call_id:
        return {"role": said.role, "content": said.text}
    function = {"name": TOOL_NAME, "arguments": said.arguments}
    call = {"type": "function", "id": said.call_id, "function": function}
    return {"role": said.role, "content": None, "tool_calls": [call]}


class ReferenceWindow:
    """The shortest correct window: evicts whole exchanges in blocks, counts once, keeps the system prompt.

    It has no tags, checks or statistics. The token budget covers everything that is sent; a trim frees a share of the
    budget that remains after the system prompt.
    """

    def __init__(self, system: str, budget: int, share: float) -> None:
        self.messages_to_send: list[ChatMessage] = [{"role": "system", "content": system}]
        self._tokens = MESSAGE_OVERHEAD_TOKENS + estimate_tokens(system)
        self._budget = budget
        self._trim_target = budget - share * (budget - self._tokens)
        # The number of messages and tokens of each exchange, oldest first.
        self._exchange_sizes: deque[list[int]] = deque()

    def append(self, said: WorkloadMessage) -> None:
        """Append a message, and evict the oldest exchanges if the budget is exceeded."""
        if said.role == "user":
            self._exchange_sizes.append([0, 0])
        tokens = estimate_message_tokens(said)
        newest = self._exchange_sizes[-1]
        newest[0] += 1
        newest[1] += tokens
        self._tokens += tokens
        self.messages_to_send.append(to_chat_message(said))
        if self._tokens > self._budget:
            self._trim()

    def _trim(self) -> None:
        gone = 0
        while self._tokens > self._trim_target and len(self._exchange_sizes) > 1:
            messages, tokens = self._exchange_sizes.popleft()
            gone += messages
            self._tokens -= tokens
        del self.messages_to_send[1 : 1 + gone]

    def messages(self) -> list[ChatMessage]:
        """Return the messages to send now."""
        return self.messages_to_send.copy()


class MessageFifo:
    """The window of most agents: after each message, it removes the oldest ones until the rest fits the budget."""

    def __init__(self, system: str, budget: int) -> None:
        self._system = {"role": "system", "content": system}
        self._tokens = MESSAGE_OVERHEAD_TOKENS + estimate_tokens(system)
        self._budget = budget
        self._remaining: deque[tuple[ChatMessage, int]] = deque()

    def append(self, said: WorkloadMessage) -> None:
        """Append a message, and remove the oldest messages if the budget is exceeded."""
        tokens = estimate_message_tokens(said)
        self._remaining.append((to_chat_message(said), tokens))
        self._tokens += tokens
        while self._tokens > self._budget and len(self._remaining) > 1:
            self._tokens -= self._remaining.popleft()[1]

    def messages(self) -> list[ChatMessage]:
        """Return the messages to send now."""
        return [self._system, *(message for message, _ in self._remaining)]


def count_chat_tokens(message: ChatMessage) -> int:
    """Return the tokens of a Chat Completions message, as counted by the cheap counter."""
    arguments = (call["function"]["arguments"] for call in message.get("tool_calls", ()))
    return MESSAGE_OVERHEAD_TOKENS + estimate_tokens(message["content"] or "") + sum(map(estimate_tokens, arguments))


def find_defects(request: Sequence[ChatMessage], newest: WorkloadMessage, budget: int) -> set[str]:
    """Return the defects of a request in which every tool call should already have its result."""
    found = set[str]()
    if [message["role"] for message in request[:2]] != ["system", "user"]:
        found.add("does not begin with the system message and a user's")
    called = [call["id"] for message in request for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in request if message["role"] == "tool"]
    if called != answered:
        found.add("calls without results, or results without calls")
    if request[-1] != to_chat_message(newest):
        found.add("does not end with the newest message")
    if sum(map(count_chat_tokens, request)) > budget:
        found.add("over the budget")
    return found
