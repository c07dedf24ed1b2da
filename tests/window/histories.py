"""Random conversations for tests of the window, and an independent check that a request is valid."""

from collections.abc import Iterator
from itertools import count

from hypothesis import strategies as st

from custom_components.windowed_conversation.window import (
    Message,
    Role,
    ToolCall,
    Window,
    WindowPolicy,
)


class LengthCounter:
    """Counts one token per character, so that tests can add up by hand, and records the number of `count` calls."""

    def __init__(self) -> None:
        self.asked = 0

    def count(self, text: str) -> int:
        self.asked += 1
        return len(text)


type Exchange = tuple[Message, ...]
type Tagged = tuple[Exchange, frozenset[str]]

_ids = count()

texts = st.integers(0, 60).map("x".__mul__)
long_texts = st.sampled_from([0, 20, 60, 150, 200, 400, 900]).map("x".__mul__)
budgets, shares, max_tool_turns = st.integers(1, 800), st.none() | st.floats(0, 0.9), st.integers(1, 3)
keeping = st.builds(WindowPolicy, budgets, shares, st.just("keep"))
stubbing = st.builds(WindowPolicy, budgets, shares)
stubbing_late = st.builds(WindowPolicy, budgets, shares, max_tool_turns=max_tool_turns)
all_policies = keeping | stubbing | stubbing_late
capping = st.builds(
    WindowPolicy,
    budgets,
    shares,
    st.sampled_from(["stub", "keep"]),
    st.none() | max_tool_turns,
    result_cap_tokens=st.sampled_from([100, 300, 4000]),
    summarize=st.booleans(),
)
tag_sets = st.frozensets(st.sampled_from(["important", "ephemeral", "route:model", "context:lights", "input"]))


def calls(amount: int) -> tuple[ToolCall, ...]:
    """Return this many tool calls, with ids that were not used before."""
    return tuple(ToolCall(f"call-{next(_ids)}", "turn_on", {"area": "kitchen"}) for _ in range(amount))


def results(called: tuple[ToolCall, ...], text: str) -> tuple[Message, ...]:
    """Return a result message for each call."""
    return tuple(Message.tool(call.id, call.name, text) for call in called)


@st.composite
def exchanges(
    draw: st.DrawFn, answers: st.SearchStrategy[str] = long_texts, fewest_rounds: int = 0, most_rounds: int = 2
) -> Exchange:
    """Draw an exchange: a question, rounds of tool calls with their results in any order, and an answer."""
    messages = [Message.user(draw(texts))]
    for amount in draw(st.lists(st.integers(1, 3), min_size=fewest_rounds, max_size=most_rounds)):
        called = calls(amount)
        messages.append(Message.assistant(draw(texts), tool_calls=called))
        messages.extend(draw(st.permutations(results(called, draw(answers)))))
    messages.append(Message.assistant(draw(texts)))
    return tuple(messages)


histories = st.lists(exchanges(), min_size=1, max_size=12)
short_histories = st.lists(exchanges(most_rounds=1), min_size=1, max_size=12)
tool_loops = exchanges(fewest_rounds=2, most_rounds=8)
tagged_histories = st.lists(st.tuples(exchanges(), tag_sets), min_size=1, max_size=12)


def create_window(policy: WindowPolicy, system: str = "") -> Window:
    """Return an empty window that counts characters and whose clock never advances."""
    window = Window("conversation", policy, LengthCounter(), clock=lambda: 1_000.0)
    window.set_system_prompt(system)
    return window


def steps(window: Window, history: list[Exchange]) -> Iterator[None]:
    """Add a history to the window, and yield whenever a request could be sent: every call has its result."""
    for question, *others in history:
        window.open(question.content)
        yield
        unanswered = 0
        for message in others:
            window.add(message)
            unanswered += len(message.tool_calls) - (message.role == Role.TOOL)
            yield from (() if unanswered else (None,))
        window.close()
        yield


def play(window: Window, history: list[Exchange]) -> None:
    """Add a complete history to the window."""
    for _ in steps(window, history):
        pass


def played(history: list[Exchange], policy: WindowPolicy, system: str = "") -> Window:
    """Return a window to which a history was added message by message."""
    window = create_window(policy, system)
    play(window, history)
    return window


def recorded(history: list[Tagged], policy: WindowPolicy) -> Window:
    """Return a window with recorded exchanges and their tags."""
    window = create_window(policy)
    for exchange, tagged in history:
        window.add_exchange(exchange, tagged)
    return window


def cost(messages: tuple[Message, ...]) -> int:
    """Return the cost of messages, with one token per character, counted independently of the window."""
    return sum(
        4
        + len(
            "\n".join(
                part
                for part in (
                    message.name or "",
                    message.content,
                    *(f'{call.name}\n{{"area":"kitchen"}}' for call in message.tool_calls),
                )
                if part
            )
        )
        + 8 * len(message.tool_calls)
        for message in messages
    )


def without_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages of a request without the system message."""
    return tuple(message for message in messages if message.role != Role.SYSTEM)


def said(messages: tuple[Message, ...]) -> list[tuple[object, ...]]:
    """Return the parts of messages that are sent to a provider, without the window's own fields."""
    return [(m.role, m.content, m.tool_calls, m.tool_call_id, m.name) for m in messages]


def keep_stable_prefix(messages: tuple[Message, ...], policy: WindowPolicy) -> tuple[Message, ...]:
    """Return the part of a request that is unchanged after its newest exchange is closed and stubs replace results."""
    stays = messages
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role == Role.TOOL and policy.tool_results == "stub" and policy.max_tool_turns is None:
            stays = messages[:place]
        if messages[place].role == Role.USER:
            break
    return stays


def by_exchange(messages: tuple[Message, ...]) -> list[list[Message]]:
    """Return the messages of a request without the system message, split before each user message."""
    split: list[list[Message]] = []
    for message in without_system(messages):
        if message.role == Role.USER or not split:
            split.append([])
        split[-1].append(message)
    return split


def defects(messages: tuple[Message, ...]) -> list[str]:
    """Return the reasons why a provider would refuse these messages."""
    found = [f"system at {place}" for place, message in enumerate(messages) if place and message.role == Role.SYSTEM]
    history = without_system(messages)
    if history and history[0].role != Role.USER:
        found.append(f"begins with {history[0].role}")
    unanswered: set[str] = set()
    for message in history:
        if message.role == Role.TOOL:
            if message.tool_call_id not in unanswered:
                found.append(f"result without its call: {message.tool_call_id}")
            unanswered.discard(str(message.tool_call_id))
        elif unanswered:
            found.append(f"calls without their results: {unanswered}")
            unanswered.clear()
        unanswered.update(call.id for call in message.tool_calls)
    return found + [f"calls without their results: {unanswered}"] * bool(unanswered)
