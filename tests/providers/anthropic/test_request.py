"""Tests for the parts of a request other than its messages: limits, thinking, tools, and prompt cache marks."""

from dataclasses import replace
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.anthropic.encoding import (
    describe_cache_breakpoints,
    encode_count_request,
    encode_request,
)
from custom_components.windowed_conversation.providers.events import ModelSettings, Request, ToolSchema
from custom_components.windowed_conversation.providers.models import (
    Caching,
    Effort,
    ModelProfile,
    ReasoningStyle,
    Vendor,
    find_profile,
)
from custom_components.windowed_conversation.window import Message, NativeData, ToolCall

from .conftest import LIGHT, MODEL, native
from .sdk_types import parse_with_sdk_types

ADAPTIVE = ModelProfile(reasoning=ReasoningStyle.ADAPTIVE, caching=Caching.BREAKPOINTS)
BUDGET = ModelProfile(reasoning=ReasoningStyle.BUDGET, caching=Caching.BREAKPOINTS)
MARK = {"type": "ephemeral"}
SYSTEM = Message.system("You are a voice assistant.")
HELLO = Message.user("hello")
CLOCK = ToolSchema("llm__GetDateTime", "", {})
HIGH = ModelSettings(effort=Effort.HIGH)
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "EqQB"}


def request(*messages: Message, **fields: Any) -> Request:
    return Request(MODEL, messages or (SYSTEM, HELLO), **fields)


def body(*messages: Message, **fields: Any) -> dict[str, Any]:
    encoded = encode_request(request(*messages, **fields))
    # Newer versions of the SDK have no parameter for it.
    known = {name: value for name, value in encoded.items() if name != "temperature"}
    assert parse_with_sdk_types(known) == known
    return encoded


def loop(residue: NativeData | None) -> tuple[Message, ...]:
    """Return a tool loop that has not ended."""
    return (
        SYSTEM,
        HELLO,
        Message.assistant(tool_calls=(ToolCall("toolu_1", "a", {}),), native=residue),
        Message.tool("toolu_1", "a", "{}"),
    )


@pytest.mark.parametrize(
    ("wanted", "most", "limit"),
    [(None, None, 4096), (None, 1000, 1000), (500, None, 500), (500, 8000, 500), (90_000, 64_000, 64_000)],
)
def test_reply_has_a_limit(wanted: int | None, most: int | None, limit: int) -> None:
    assert body(max_answer_tokens=wanted, profile=ModelProfile(output_tokens=most))["max_tokens"] == limit


@pytest.mark.parametrize("effort", [Effort.LOW, Effort.MEDIUM, Effort.HIGH])
def test_adaptive_model_is_told_an_effort(effort: Effort) -> None:
    sent = body(settings=ModelSettings(effort=effort), profile=ADAPTIVE)

    assert sent["thinking"] == {"type": "adaptive"}
    assert sent["output_config"] == {"effort": effort.value}


@pytest.mark.parametrize(
    ("effort", "max_answer_tokens", "budget"),
    [
        (Effort.MINIMAL, 8000, 1024),
        (Effort.LOW, 3000, 1024),
        (Effort.LOW, 8000, 2000),
        (Effort.MEDIUM, 8000, 4000),
        (Effort.HIGH, 8000, 6000),
        (Effort.HIGH, 1366, 1024),
    ],
)
def test_model_with_a_budget_is_told_a_part_of_the_reply(effort: Effort, max_answer_tokens: int, budget: int) -> None:
    sent = body(settings=ModelSettings(effort=effort), max_answer_tokens=max_answer_tokens, profile=BUDGET)

    assert sent["thinking"] == {"type": "enabled", "budget_tokens": budget}
    assert "output_config" not in sent


@pytest.mark.parametrize(
    ("effort", "profile"),
    [
        (None, ADAPTIVE),
        (None, BUDGET),
        (Effort.NONE, ADAPTIVE),
        (Effort.NONE, BUDGET),
        (Effort.MINIMAL, find_profile(Vendor.ANTHROPIC, "claude-haiku-4-5")),
        (Effort.MINIMAL, find_profile(Vendor.ANTHROPIC, "claude-opus-5")),
        *(
            (Effort.HIGH, ModelProfile(reasoning=style))
            for style in (ReasoningStyle.NONE, ReasoningStyle.EFFORT, ReasoningStyle.LEVEL)
        ),
        # The limit leaves no room for the smallest budget.
        (Effort.HIGH, replace(BUDGET, output_tokens=1300)),
    ],
)
def test_model_is_not_asked_to_think(effort: Effort | None, profile: ModelProfile) -> None:
    sent = body(settings=ModelSettings(effort=effort), profile=profile, max_answer_tokens=8000)

    assert not {"thinking", "output_config"} & sent.keys()


@pytest.mark.parametrize("profile", [ADAPTIVE, BUDGET])
@pytest.mark.parametrize("residue", [None, native(THOUGHT, model="claude-opus-5"), native(THOUGHT, provider="gemini")])
def test_tool_loop_that_another_model_began_is_not_thought_over(
    residue: NativeData | None, profile: ModelProfile
) -> None:
    assert "thinking" not in body(*loop(residue), settings=HIGH, profile=profile)


@pytest.mark.parametrize(
    ("residue", "profile", "thinks"),
    [
        (native(THOUGHT, {"type": "tool_use"}), ADAPTIVE, True),
        (native(THOUGHT, {"type": "tool_use"}), BUDGET, True),
        (native(), ADAPTIVE, True),
        (native(), BUDGET, False),
        (native({"type": "text"}, THOUGHT), BUDGET, False),
    ],
)
def test_own_tool_loop_is_thought_over_as_it_began(residue: NativeData, profile: ModelProfile, thinks: bool) -> None:
    assert ("thinking" in body(*loop(residue), settings=HIGH, profile=profile)) is thinks


def test_tool_loop_of_an_earlier_turn_does_not_matter() -> None:
    sent = body(*loop(None), Message.assistant("done"), HELLO, settings=HIGH, profile=BUDGET)

    assert "thinking" in sent


@pytest.mark.parametrize(
    ("residue", "profile", "thinks"),
    [(native(THOUGHT), BUDGET, True), (native(), BUDGET, False), (None, BUDGET, False), (None, ADAPTIVE, True)],
)
def test_newest_answer_of_a_tool_loop_is_to_begin_with_a_thought_where_there_is_a_budget(
    residue: NativeData | None, profile: ModelProfile, thinks: bool
) -> None:
    further = (
        Message.assistant(tool_calls=(ToolCall("toolu_2", "a", {}),), native=residue),
        Message.tool("toolu_2", "a", "{}"),
    )

    assert ("thinking" in body(*loop(native(THOUGHT)), *further, settings=HIGH, profile=profile)) is thinks


@pytest.mark.parametrize(
    ("settings", "sampling"),
    [
        (ModelSettings(), {}),
        (ModelSettings(temperature=0.3), {"temperature": 0.3}),
        (ModelSettings(temperature=1.7), {"temperature": 1.0}),
    ],
)
def test_temperature_is_at_most_the_largest_accepted(settings: ModelSettings, sampling: dict[str, float]) -> None:
    sent = body(settings=settings)

    assert {name: value for name, value in sent.items() if name == "temperature"} == sampling


@pytest.mark.parametrize(
    ("effort", "profile"), [(None, ModelProfile(sampling=False)), (Effort.LOW, ADAPTIVE), (Effort.LOW, BUDGET)]
)
def test_model_that_thinks_or_takes_no_sampling_gets_no_temperature(
    effort: Effort | None, profile: ModelProfile
) -> None:
    sent = body(settings=ModelSettings(effort=effort, temperature=0.3), profile=profile, max_answer_tokens=8000)

    assert "temperature" not in sent


def test_tools_keep_their_order() -> None:
    assert [tool["name"] for tool in body(tools=(CLOCK, LIGHT))["tools"]] == [CLOCK.name, LIGHT.name]


def test_request_without_tools_names_none() -> None:
    assert not {"tools", "tool_choice"} & body().keys()


def test_request_without_tools_declares_those_of_the_history_and_forbids_them() -> None:
    calls = (ToolCall("toolu_1", "b", {"x": 1}), ToolCall("toolu_2", "a", {}), ToolCall("toolu_3", "b", {}))
    results = tuple(Message.tool(call.id, call.name, "{}") for call in calls)
    sent = body(SYSTEM, HELLO, Message.assistant(tool_calls=calls), *results, tools=())

    assert sent["tools"] == [
        {"name": name, "description": "", "input_schema": {"type": "object", "properties": {}}} for name in ("a", "b")
    ]
    assert sent["tool_choice"] == {"type": "none"}


def test_offered_tools_may_be_called() -> None:
    assert "tool_choice" not in body(*loop(None), tools=(LIGHT,))


def marked(sent: dict[str, Any]) -> list[Any]:
    """Return an identifier of each marked block: the name of a tool, else the text or the id of a result."""
    blocks = [*sent.get("tools", ()), *sent.get("system", ()), *(b for m in sent["messages"] for b in m["content"])]
    bearers = [block for block in blocks if "cache_control" in block]
    assert all(block["cache_control"] == MARK for block in bearers)
    return [block.get("name") or block.get("text") or block.get("tool_use_id") for block in bearers]


def test_conversation_is_marked_at_tools_system_history_and_end() -> None:
    asked = request(
        SYSTEM, HELLO, Message.assistant("Hello!"), Message.user("light"), tools=(CLOCK, LIGHT), profile=ADAPTIVE
    )

    assert marked(encode_request(asked)) == [LIGHT.name, SYSTEM.content, "Hello!", "light"]
    assert describe_cache_breakpoints(asked) == {
        "cache_control": MARK,
        "breakpoints": ["tools", "system", "history", "newest"],
    }


def test_tool_loop_is_marked_at_its_newest_result() -> None:
    messages = (
        SYSTEM,
        HELLO,
        Message.assistant("Hello!"),
        Message.user("light"),
        Message.assistant(tool_calls=(ToolCall("toolu_1", "a", {}), ToolCall("toolu_2", "a", {}))),
        Message.tool("toolu_1", "a", "{}"),
        Message.tool("toolu_2", "a", "{}"),
    )

    assert marked(body(*messages, tools=(LIGHT,), profile=ADAPTIVE)) == [
        LIGHT.name,
        SYSTEM.content,
        "Hello!",
        "toolu_2",
    ]


def test_request_in_which_no_call_may_be_made_is_marked_before_its_messages() -> None:
    asked = request(*loop(None), tools=(CLOCK, LIGHT), profile=ADAPTIVE, may_call=False)

    assert marked(encode_request(asked)) == [LIGHT.name, SYSTEM.content]
    assert describe_cache_breakpoints(asked)["breakpoints"] == ["tools", "system"]


def test_model_that_must_call_a_tool_does_not_think_and_is_marked_before_its_messages() -> None:
    asked = request(tools=(CLOCK, LIGHT), profile=ADAPTIVE, settings=HIGH, requires_call=True)

    sent = encode_request(asked)

    assert "thinking" not in sent
    assert marked(sent) == [LIGHT.name, SYSTEM.content]


def test_agent_without_tools_is_marked_in_its_history_whatever_may_be_called() -> None:
    allowed = request(*loop(None), tools=(), profile=ADAPTIVE)

    assert encode_request(replace(allowed, may_call=False)) == encode_request(allowed)


def test_question_in_one_message_with_results_is_marked_at_both() -> None:
    sent = body(*loop(None), Message.user("and now?"), tools=(LIGHT,), profile=ADAPTIVE)

    assert marked(sent) == [LIGHT.name, SYSTEM.content, "toolu_1", "and now?"]


def test_first_question_is_the_only_mark_among_messages() -> None:
    asked = request(profile=ADAPTIVE)

    assert marked(encode_request(asked)) == [SYSTEM.content, "hello"]
    assert describe_cache_breakpoints(asked)["breakpoints"] == ["system", "newest"]


@pytest.mark.parametrize("caching", sorted(set(Caching) - {Caching.BREAKPOINTS}))
def test_model_without_breakpoints_is_sent_none(caching: Caching) -> None:
    asked = request(SYSTEM, HELLO, tools=(LIGHT,), profile=ModelProfile(caching=caching))

    assert marked(encode_request(asked)) == []
    assert describe_cache_breakpoints(asked) == {}


def test_marks_change_nothing_else() -> None:
    messages = (*loop(native(THOUGHT)), Message.assistant("done"), Message.user("bye"))
    plain = request(*messages, tools=(LIGHT,))

    with_marks = encode_request(replace(plain, profile=ModelProfile(caching=Caching.BREAKPOINTS)))

    assert unmarked(with_marks) == encode_request(plain)


def unmarked(value: Any) -> Any:
    """Return a JSON value without its cache marks."""
    if isinstance(value, dict):
        return {key: unmarked(member) for key, member in value.items() if key != "cache_control"}
    return [unmarked(member) for member in value] if isinstance(value, list) else value


def test_counted_is_what_the_model_reads() -> None:
    asked = request(
        SYSTEM, HELLO, tools=(LIGHT,), profile=ADAPTIVE, settings=ModelSettings(effort=Effort.LOW, temperature=0.1)
    )
    whole = unmarked(encode_request(asked))

    assert encode_count_request(asked) == {name: whole[name] for name in whole.keys() - {"max_tokens", "temperature"}}
