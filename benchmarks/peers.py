"""The libraries that the window is compared with, each used in a few lines as its documentation recommends.

Each is imported only when it is constructed, so that a library that is not installed is skipped. Libraries with a
budget of tokens count with the cheap counter; libraries with a limit on messages get the limit that fills the same
budget.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
import json
from types import SimpleNamespace
from typing import Any, Protocol, override

from benchmarks.reference import to_chat_message
from benchmarks.workload import (
    MESSAGE_OVERHEAD_TOKENS,
    MESSAGES_PER_TURN,
    SYSTEM_TOKENS,
    TOKENS_PER_TURN,
    TOOL_NAME,
    Turn,
    WorkloadMessage,
    estimate_tokens,
)

_TRIM_SHARE = 0.25


class Contender(Protocol):
    """A conversation that is managed by the window or by another library."""

    def append_turn(self, turn: Turn) -> None:
        """Append the messages of a turn, in the library's own format."""
        ...

    def get_messages(self) -> Sequence[Any]:
        """Return the messages to send now, in the library's own format and within the budget."""
        ...


@dataclass(frozen=True, slots=True)
class PeerLibrary:
    """A library and how to use it; `budget_unit` is the unit of its budget.

    If it is `is_pure`, `Contender.append_turn` only extends a list and `Contender.get_messages` does all the work on
    the complete list, so it has to be called only in those turns that are measured. `uses_database` is true if it
    stores messages in a database.
    """

    name: str
    package: str
    budget_unit: str
    create_contender: Callable[[str, int], Contender]
    is_pure: bool = False
    uses_database: bool = False

    @property
    def version(self) -> str | None:
        """The installed version, or None if it is not installed."""
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return None


def _calculate_message_limit(budget: int) -> int:
    return round((budget - SYSTEM_TOKENS) / TOKENS_PER_TURN * MESSAGES_PER_TURN)


def _run_coroutine[T](coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never suspends, without the overhead of an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise RuntimeError("it waits after all")


class _LangChainHistory:
    """LangChain's trim_messages on the complete history, as documented."""

    def __init__(self, system: str, budget: int) -> None:
        messages = import_module("langchain_core.messages")
        self._ai_message, self._human_message, self._tool_message = (
            messages.AIMessage,
            messages.HumanMessage,
            messages.ToolMessage,
        )
        self._trim_messages = messages.trim_messages
        self._budget = budget
        self.history: list[Any] = [messages.SystemMessage(system)]

    def append_turn(self, turn: Turn) -> None:
        self.history.extend(map(self._convert_message, turn))

    def get_messages(self) -> Sequence[Any]:
        trimmed: list[Any] = self._trim_messages(
            self.history,
            max_tokens=self._budget,
            token_counter=_count_langchain_tokens,
            strategy="last",
            include_system=True,
            start_on="human",
        )
        return trimmed

    def _convert_message(self, said: WorkloadMessage) -> Any:
        if said.role == "user":
            return self._human_message(said.text)
        if said.role == "tool":
            return self._tool_message(said.text, tool_call_id=said.call_id)
        if not said.call_id:
            return self._ai_message(said.text)
        return self._ai_message(
            "", tool_calls=[{"id": said.call_id, "name": TOOL_NAME, "args": json.loads(said.arguments)}]
        )


class _LangChainTrimmed(_LangChainHistory):
    """LangChain's trim_messages on the result of the previous call."""

    @override
    def get_messages(self) -> Sequence[Any]:
        trimmed = super().get_messages()
        self.history = list(trimmed)
        return trimmed


def _count_langchain_tokens(messages: Sequence[Any]) -> int:
    return sum(MESSAGE_OVERHEAD_TOKENS + estimate_tokens(message.content) for message in messages)


class _LangChainSummary(_LangChainHistory):
    """LangChain's SummarizationMiddleware, with a model that answers immediately; it keeps half of the budget."""

    def __init__(self, system: str, budget: int) -> None:
        super().__init__(system, budget)
        models = import_module("langchain_core.language_models.fake_chat_models")
        self._system = self.history.pop()
        self._middleware = import_module("langchain.agents.middleware").SummarizationMiddleware(
            model=models.FakeListChatModel(responses=["what was said before " * 20]),
            trigger=("tokens", budget - SYSTEM_TOKENS),
            keep=("tokens", (budget - SYSTEM_TOKENS) // 2),
            token_counter=_count_langchain_tokens,
        )

    @override
    def get_messages(self) -> Sequence[Any]:
        update = self._middleware.before_model({"messages": self.history}, None)
        if update:
            self.history = update["messages"][1:]
        return [self._system, *self.history]


class _LlamaIndex:
    """LlamaIndex's `Memory` with its in-memory database; it flushes a quarter of the budget at a time."""

    def __init__(self, system: str, budget: int) -> None:
        self._message_class = import_module("llama_index.core.llms").ChatMessage
        self._system = self._message_class(role="system", content=system)
        self._loop = asyncio.new_event_loop()
        self._memory = import_module("llama_index.core.memory").Memory.from_defaults(
            token_limit=budget - SYSTEM_TOKENS,
            chat_history_token_ratio=1.0,
            token_flush_size=int(_TRIM_SHARE * (budget - SYSTEM_TOKENS)),
            tokenizer_fn=lambda text: range(estimate_tokens(text)),
        )

    def append_turn(self, turn: Turn) -> None:
        self._loop.run_until_complete(self._put_turn(turn))

    async def _put_turn(self, turn: Turn) -> None:
        for said in turn:
            await self._memory.aput(self._convert_message(said))

    def get_messages(self) -> Sequence[Any]:
        return [self._system, *self._loop.run_until_complete(self._memory.aget())]

    def _convert_message(self, said: WorkloadMessage) -> Any:
        chat = to_chat_message(said)
        more = {key: chat[key] for key in ("tool_calls", "tool_call_id") if key in chat}
        return self._message_class(role=said.role, content=said.text, additional_kwargs=more)


class _SemanticKernel:
    """Semantic Kernel's ChatHistoryTruncationReducer, with a threshold of a quarter."""

    def __init__(self, system: str, budget: int) -> None:
        self._contents = import_module("semantic_kernel.contents")
        most = _calculate_message_limit(budget)
        threshold = int(_TRIM_SHARE * most)
        self._history = self._contents.ChatHistoryTruncationReducer(
            target_count=most - threshold, threshold_count=threshold, system_message=system
        )

    def append_turn(self, turn: Turn) -> None:
        for said in turn:
            self._history.add_message(self._convert_message(said))

    def get_messages(self) -> Sequence[Any]:
        _run_coroutine(self._history.reduce())
        return list(self._history.messages)

    def _convert_message(self, said: WorkloadMessage) -> Any:
        contents = self._contents
        if not said.call_id:
            return contents.ChatMessageContent(role=said.role, content=said.text)
        if said.role == "tool":
            item = contents.FunctionResultContent(id=said.call_id, name=TOOL_NAME, result=said.text)
        else:
            item = contents.FunctionCallContent(id=said.call_id, name=TOOL_NAME, arguments=said.arguments)
        return contents.ChatMessageContent(role=said.role, items=[item])


class _PydanticAi:
    """SlidingWindowProcessor of summarization-pydantic-ai as history processor; keeps 75 % of the budget."""

    def __init__(self, system: str, budget: int) -> None:
        self._messages = import_module("pydantic_ai.messages")
        self._request_class, self._response_class = self._messages.ModelRequest, self._messages.ModelResponse
        self._processor = import_module("pydantic_ai_summarization").SlidingWindowProcessor(
            trigger=("tokens", budget),
            keep=("tokens", int((1 - _TRIM_SHARE) * budget)),
            keep_head=("messages", 1),
            token_counter=_count_pydantic_tokens,
        )
        self.history: list[Any] = [self._request_class(parts=[self._messages.SystemPromptPart(system)])]

    def append_turn(self, turn: Turn) -> None:
        self.history.extend(map(self._convert_message, turn))

    def get_messages(self) -> Sequence[Any]:
        self.history = _run_coroutine(self._processor(self.history))
        return list(self.history)

    def _convert_message(self, said: WorkloadMessage) -> Any:
        messages = self._messages
        if said.role == "user":
            return self._request_class(parts=[messages.UserPromptPart(said.text)])
        if said.role == "tool":
            return self._request_class(parts=[messages.ToolReturnPart(TOOL_NAME, said.text, said.call_id)])
        if not said.call_id:
            return self._response_class(parts=[messages.TextPart(said.text)])
        return self._response_class(parts=[messages.ToolCallPart(TOOL_NAME, said.arguments, said.call_id)])


def _count_pydantic_tokens(messages: Sequence[Any]) -> int:
    return sum(
        MESSAGE_OVERHEAD_TOKENS + estimate_tokens(part.args if part.part_kind == "tool-call" else part.content)
        for message in messages
        for part in message.parts
    )


class _OpenAiAgents:
    """SQLiteSession of OpenAI Agents with an in-memory database; returns the newest items."""

    def __init__(self, system: str, budget: int) -> None:
        self._session = import_module("agents").SQLiteSession("conversation")
        self._system = {"role": "system", "content": system}
        self._message_limit = _calculate_message_limit(budget)
        self._loop = asyncio.new_event_loop()

    def append_turn(self, turn: Turn) -> None:
        self._loop.run_until_complete(self._session.add_items([_convert_openai_item(said) for said in turn]))

    def get_messages(self) -> Sequence[Any]:
        return [self._system, *self._loop.run_until_complete(self._session.get_items(self._message_limit))]


def _convert_openai_item(said: WorkloadMessage) -> dict[str, str]:
    if said.role == "tool":
        return {"type": "function_call_output", "call_id": said.call_id, "output": said.text}
    if not said.call_id:
        return {"role": said.role, "content": said.text}
    return {"type": "function_call", "call_id": said.call_id, "name": TOOL_NAME, "arguments": said.arguments}


class _Strands:
    """SlidingWindowConversationManager of Strands; the agent holds the system prompt outside of the message list."""

    def __init__(self, system: str, budget: int) -> None:
        managers = import_module("strands.agent.conversation_manager")
        self._manager = managers.SlidingWindowConversationManager(window_size=_calculate_message_limit(budget))
        self._agent = SimpleNamespace(messages=[], system_prompt=system)

    def append_turn(self, turn: Turn) -> None:
        self._agent.messages.extend(map(_convert_strands_message, turn))

    def get_messages(self) -> Sequence[Any]:
        self._manager.apply_management(self._agent)
        return list(self._agent.messages)


def _convert_strands_message(said: WorkloadMessage) -> dict[str, Any]:
    if not said.call_id:
        return {"role": said.role, "content": [{"text": said.text}]}
    if said.role == "tool":
        result = {"toolUseId": said.call_id, "status": "success", "content": [{"text": said.text}]}
        return {"role": "user", "content": [{"toolResult": result}]}
    use = {"toolUseId": said.call_id, "name": TOOL_NAME, "input": json.loads(said.arguments)}
    return {"role": "assistant", "content": [{"toolUse": use}]}


PEER_LIBRARIES = (
    PeerLibrary("strands SlidingWindow", "strands-agents", "messages", _Strands),
    PeerLibrary("semantic-kernel Truncation, threshold 25 %", "semantic-kernel", "messages", _SemanticKernel),
    PeerLibrary("langchain SummarizationMiddleware, stub model", "langchain", "tokens", _LangChainSummary),
    PeerLibrary("pydantic-ai SlidingWindowProcessor, keep 75 %", "summarization-pydantic-ai", "tokens", _PydanticAi),
    PeerLibrary("langchain-core trim_messages, state trimmed", "langchain-core", "tokens", _LangChainTrimmed),
    PeerLibrary(
        "openai-agents SQLiteSession in memory", "openai-agents", "messages", _OpenAiAgents, uses_database=True
    ),
    PeerLibrary(
        "langchain-core trim_messages, as documented", "langchain-core", "tokens", _LangChainHistory, is_pure=True
    ),
    PeerLibrary("llama-index Memory, flush 25 %", "llama-index-core", "tokens", _LlamaIndex, uses_database=True),
)
