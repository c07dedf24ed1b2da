"""Tests of a conversation in a real LangGraph with routing, checkpoints in memory and in a file, and a restart."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages, messages_to_dict
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import MemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
import pytest

from custom_components.windowed_conversation.window import Message, ToolCall, Window, WindowPolicy
from custom_components.windowed_conversation.window.codecs import CodecError
from examples.window_interop import from_langgraph_state, to_langgraph_state
from tests.window.conversations import NULLS, with_call
from tests.window.histories import LengthCounter, create_window, said

POLICY = WindowPolicy(history_tokens=400)
THREAD: RunnableConfig = {"configurable": {"thread_id": "conversation"}}


class State(TypedDict, total=False):
    """The state of the graph: our conversation, and the input to be answered."""

    messages: Annotated[list[BaseMessage], add_messages]
    window: dict[str, Any]
    text: str
    route: str


def read(state: Mapping[str, Any]) -> Window:
    return from_langgraph_state(state, POLICY, LengthCounter(), clock=lambda: 1_000.0)


def route(state: State) -> State:
    return {"route": "local" if state["text"].startswith("turn") else "model"}


def answer_locally(state: State) -> dict[str, Any]:
    window = read(state)
    called = (ToolCall("call", "turn_on", {"name": "kitchen", "brightness": 0.5}),)
    messages = (Message.assistant(tool_calls=called), Message.tool("call", "turn_on", "{}"), Message.assistant("Done."))
    window.add_exchange((Message.user(state["text"]), *messages), {"route:local"})
    return to_langgraph_state(window)


def answer_by_model(state: State) -> dict[str, Any]:
    window = read(state)
    window.add_exchange((Message.user(state["text"]), Message.assistant("x" * 60)), {"route:model", "important"})
    return to_langgraph_state(window)


def compiled(saver: BaseCheckpointSaver) -> CompiledStateGraph[Any, Any, Any, Any]:
    graph = StateGraph(State)
    graph.add_node("route", route)
    graph.add_node("local", answer_locally)
    graph.add_node("model", answer_by_model)
    graph.add_edge(START, "route")
    graph.add_conditional_edges("route", lambda state: state["route"], ["local", "model"])
    graph.add_edge("local", END)
    graph.add_edge("model", END)
    return graph.compile(checkpointer=saver)


def begun() -> dict[str, Any]:
    """Return the state of a conversation without exchanges."""
    window = Window("conversation", POLICY, LengthCounter(), clock=lambda: 1_000.0)
    window.set_system_prompt("obey")
    return to_langgraph_state(window)


def without_graph(*texts: str) -> Window:
    """Return the window that results from the same inputs without LangGraph."""
    state = begun()
    for text in texts:
        answer = answer_locally if route({"text": text})["route"] == "local" else answer_by_model
        state = answer(cast("State", {**state, "text": text}))
    return read(state)


def in_memory(_folder: Path) -> Callable[[], AbstractContextManager[BaseCheckpointSaver]]:
    """Return a function that always opens the same checkpoints in memory."""
    saver = MemorySaver()
    return lambda: nullcontext(saver)


def in_a_file(folder: Path) -> Callable[[], AbstractContextManager[BaseCheckpointSaver]]:
    """Return a function that opens a file of checkpoints with a new connection each time."""
    return lambda: SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite"))


@pytest.mark.parametrize("checkpoints", [in_memory, in_a_file])
def test_conversation_goes_on_after_a_restart_as_if_there_had_been_none(checkpoints, tmp_path: Path) -> None:
    opened = checkpoints(tmp_path)
    with opened() as saver:
        graph = compiled(saver)
        graph.invoke({**begun(), "text": "turn on the light"}, THREAD)
        graph.invoke({"text": "how are you?"}, THREAD)
    with opened() as saver:
        graph = compiled(saver)
        resumed = read(graph.get_state(THREAD).values)
        graph.invoke({"text": "turn it on again"}, THREAD)
        end = read(graph.get_state(THREAD).values)

    expected = without_graph("turn on the light", "how are you?")
    assert resumed.messages() == expected.messages()
    assert resumed.stats() == expected.stats()
    assert end.snapshot() == without_graph("turn on the light", "how are you?", "turn it on again").snapshot()


def test_graph_routes_to_where_the_state_says() -> None:
    graph = compiled(MemorySaver())

    local = graph.invoke({**begun(), "text": "turn on the light"}, THREAD)
    model = graph.invoke({"text": "how are you?"}, THREAD)

    assert [local["route"], model["route"]] == ["local", "model"]
    assert read(model).stats().tag_distribution["route:local"] == 1
    assert read(model).stats().tag_distribution["route:model"] == 1


def test_what_the_window_evicted_stays_evicted_although_the_graph_keeps_it() -> None:
    graph = compiled(MemorySaver())
    texts = [f"tell me number {number}" for number in range(8)]

    state = graph.invoke({**begun(), "text": texts[0]}, THREAD)
    for text in texts[1:]:
        state = graph.invoke({"text": text}, THREAD)

    window = read(state)
    assert window.stats().evicted_exchanges > 0
    assert len(state["messages"]) > len(window.messages())
    assert window.snapshot() == without_graph(*texts).snapshot()


def test_system_prompt_may_come_after_the_first_answer() -> None:
    graph = compiled(MemorySaver())
    nothing = Window("conversation", POLICY, LengthCounter())
    window = read(graph.invoke({**to_langgraph_state(nothing), "text": "turn on the light"}, THREAD))

    window.set_system_prompt("obey")
    state = graph.invoke({**to_langgraph_state(window), "text": "how are you?"}, THREAD)

    assert read(state).messages()[0].content == "obey"
    assert read(state).snapshot() == without_graph("turn on the light", "how are you?").snapshot()


def test_every_form_of_langchain_says_the_same() -> None:
    window = without_graph("turn on the light", "how are you?")
    state = to_langgraph_state(window)
    messages = convert_to_messages(state["messages"])

    assert read({**state, "messages": messages}).snapshot() == window.snapshot()
    assert read({**state, "messages": messages_to_dict(messages)}).snapshot() == window.snapshot()


def test_messages_that_a_graph_made_itself_are_read() -> None:
    call = {"id": "1", "name": "time", "args": {}, "type": "tool_call"}
    messages = convert_to_messages(
        [
            HumanMessage("what time is it?"),
            AIMessage("", tool_calls=[call]),
            {"role": "tool", "content": "noon", "tool_call_id": "1", "name": "time"},
            AIMessage([{"type": "text", "text": "It is noon."}]),
        ]
    )

    window = from_langgraph_state({"messages": messages}, POLICY, LengthCounter(), conversation_id="theirs")

    assert said(window.messages()) == said(
        (
            Message.user("what time is it?"),
            Message.assistant(tool_calls=(ToolCall("1", "time", {}),)),
            Message.tool("1", "time", "noon"),
            Message.assistant("It is noon."),
        )
    )


def test_messages_that_a_graph_added_are_counted_and_tagged() -> None:
    messages = [{"type": "human", "content": "hello"}, {"type": "ai", "data": {"content": "hi", "tool_calls": []}}]

    window = from_langgraph_state(
        {"messages": messages}, WindowPolicy(), LengthCounter(), conversation_id="theirs", clock=lambda: 1_000.0
    )

    assert window.conversation_id == "theirs"
    assert window.messages() == (
        Message.user("hello", tags=frozenset({"input"}), created=1_000.0, tokens=9),
        Message.assistant("hi", tags=frozenset({"output"}), created=1_000.0, tokens=6),
    )


def test_message_has_the_same_id_after_a_trim() -> None:
    window = create_window(WindowPolicy(history_tokens=60, trim_share=0))
    for _ in range(2):
        window.add_exchange((Message.user("x" * 10), Message.assistant("y" * 10)))
    before = to_langgraph_state(window)["messages"]
    window.add_exchange((Message.user("x" * 10), Message.assistant("y" * 10)))

    assert to_langgraph_state(window)["messages"][:2] == before[2:]


def test_numbers_that_json_has_not_are_null_in_a_graphs_state() -> None:
    state = to_langgraph_state(with_call({}))
    state["messages"][1]["tool_calls"][0]["args"] = {"level": float("inf"), "other": [float("nan"), -float("inf"), 2]}

    (exchange,) = from_langgraph_state(state, WindowPolicy(), LengthCounter()).exchanges()

    assert exchange.messages[1].tool_calls[0].arguments == NULLS


def make_state(*messages: Any) -> dict[str, Any]:
    return to_langgraph_state(create_window(WindowPolicy())) | {"messages": list(messages)}


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"messages": []},
        {"messages": "hi", "window": {"conversation_id": "a", "evicted": {}}},
        make_state("hi"),
        make_state({"role": "user"}, {"role": "narrator", "content": ""}),
        make_state({"role": "assistant", "content": "hi"}),
        make_state({"role": "user", "content": "hi"}, {"role": "system", "content": "obey"}),
        make_state({"role": "system", "content": "a"}, {"role": "system", "content": "b"}),
        make_state({"role": "user", "content": ""}, {"role": "tool", "content": "", "tool_call_id": "1"}),
        make_state({"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [{"id": "1", "name": "f"}]}),
        make_state(
            {"role": "user", "content": "a"},
            {"role": "assistant", "tool_calls": [{"id": "1", "name": "f", "args": {"a": {1}}}]},
        ),
        make_state(
            {"role": "user", "content": "a"},
            {"role": "assistant", "tool_calls": [{"id": "1", "name": "f", "args": {"a": ["\ud800"]}}]},
            {"role": "tool", "content": "", "tool_call_id": "1"},
        ),
    ],
    ids=ascii,
)
def test_malformed_state_is_refused(state: Any) -> None:
    with pytest.raises(CodecError):
        from_langgraph_state(state, POLICY, LengthCounter())
