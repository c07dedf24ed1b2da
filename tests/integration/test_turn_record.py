"""Tests for the record of turns: its content at each record level, and after something was forgotten."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from homeassistant.components.conversation.trace import async_get_traces
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import async_capture_events

from custom_components.windowed_conversation.bridge.turn_report import EVENT_TURN
from custom_components.windowed_conversation.const import (
    CONF_FALLBACK_AGENTS,
    CONF_HISTORY_TOKENS,
    CONF_MEMORY,
    CONF_PROVIDER,
    CONF_RECORD,
    CONF_ROUTING,
    CONF_SUMMARIZE,
    DOMAIN,
    PROVIDER_NONE,
    RecordLevel,
)
from custom_components.windowed_conversation.record import (
    RecordedTurns,
    TurnListQuery,
    TurnRecord,
    calculate_fingerprint,
)
from demo.model_server import ModelServer, call, words

from .actions import act
from .conftest import AGENT, SayAtOnce, SayFn, SetUpFn, flush_store, until
from .more_agents import add_agent
from .remembered import memory_of, recorded_turns

SECRET = "pelican"

type Turns = Callable[[], Awaitable[list[TurnRecord]]]


@pytest.fixture
def turns(home: HomeAssistant) -> Turns:
    """Return a function that writes the queue to disk and returns the turns in the record."""

    async def turns() -> list[TurnRecord]:
        await flush_store(home)
        return await recorded_turns(home)

    return turns


@pytest.fixture
async def whole(set_up: SetUpFn) -> Any:
    """Return an account whose agent records turns completely."""
    return await set_up(**{CONF_RECORD: RecordLevel.FULL})


async def test_a_turn_of_the_model_leaves_its_figures(
    set_up: SetUpFn, say: SayFn, turns: Turns, model_server: ModelServer, get_agent: Any
) -> None:
    entry = await set_up(**{CONF_ROUTING: "model_only"})

    await say("switch on the kitchen light")

    (turn,) = await turns()
    agent, (first, second) = get_agent(entry), turn["attempts"]
    assert (turn["agent"], turn["entity_id"], turn["conversation_id"]) == (agent.id, AGENT, "test")
    assert (turn["route"], turn["outcome"], turn["error"], turn["answered_by"]) == ("model", "answered", None, agent.id)
    assert (turn["has_text"], "said" in turn, turn["tools"]) == (False, False, ["intent__HassTurnOn"])
    assert (first["tools"], first["finish"]) == (["intent__HassTurnOn"], "tool_calls")
    assert (second["tools"], second["finish"]) == ([], "stop")
    assert first["usage"] is not None
    assert first["usage"]["input"] == model_server.requests[0].usage["prompt"]
    assert turn["usage"]["input"] == sum(request.usage["prompt"] for request in model_server.requests)
    assert turn["requests"] == 2
    assert first["prompt"] == calculate_fingerprint(model_server.requests[0].body["messages"][0]["content"])
    assert (first["tool_list"], "sent" in first) == (second["tool_list"], False)
    assert 0 <= first["began"] <= second["began"] <= turn["duration"]


async def test_tool_call_that_failed_is_a_figure_of_the_turn_its_event_its_trace_and_a_total(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, turns: Turns, model_server: ModelServer, figure: Any
) -> None:
    await set_up(**{CONF_ROUTING: "model_only"})
    events = async_capture_events(home, EVENT_TURN)
    model_server.script(call("HassTurnOn", name="no such light"), words("I found no such light."))

    await say("switch on the light that is not there")
    await say("switch on the kitchen light")

    failed, done = await turns()
    assert (failed["outcome"], failed["tools"], failed["failed_tool_calls"]) == ("answered", ["intent__HassTurnOn"], 1)
    assert (done["tools"], done["failed_tool_calls"]) == (["intent__HassTurnOn"], 0)
    assert [(each.data["tool_calls"], each.data["failed_tool_calls"]) for each in events] == [(1, 1), (1, 0)]
    traced = [event.data or {} for trace in async_get_traces()[-2:] for event in trace._events]
    assert [each["failed_tool_calls"] for each in traced if "failed_tool_calls" in each] == [1, 0]
    assert (figure("tool_calls"), figure("failed_tool_calls")) == ("2", "1")


async def test_figures_hold_no_word(home: HomeAssistant, entry: Any, say: SayFn, turns: Turns) -> None:
    await say(f"tell me about the {SECRET}")

    await turns()
    lines: list[str] = []
    lines = await memory_of(home).async_read(
        lambda memory: list(RecordedTurns(memory.database).export(TurnListQuery())), lines
    )
    assert len(lines) == 1
    assert SECRET not in lines[0]


async def test_whole_turn_has_what_was_said_sent_and_done(
    set_up: SetUpFn, say: SayFn, turns: Turns, model_server: ModelServer
) -> None:
    await set_up(**{CONF_RECORD: RecordLevel.FULL, CONF_ROUTING: "model_only"})
    await say("my name is Ada")
    await say("switch on the kitchen light")

    _, turn = await turns()
    assert turn["said"] == "switch on the kitchen light"
    assert turn["answer"].strip()
    (called,) = turn["tool_calls"]
    assert (called["name"], called["arguments"]) == ("intent__HassTurnOn", {"name": "kitchen light"})
    assert called["result"] == model_server.requests[-1].body["messages"][-1]["content"]
    for attempt, sent in zip(turn["attempts"], model_server.requests[-2:], strict=True):
        system, *messages = sent.body["messages"]
        assert attempt["sent"]["system"] == system["content"]
        assert [each.get("content", "") for each in attempt["sent"]["messages"]] == [
            message.get("content") or "" for message in messages
        ]
        assert [each["name"] for each in attempt["sent"]["tools"]] == [
            each["function"]["name"] for each in sent.body["tools"]
        ]


async def test_local_turn_has_its_answer_and_costs_nothing(whole: Any, say: SayFn, turns: Turns) -> None:
    await say("turn on the kitchen light")

    (turn,) = await turns()
    assert (turn["route"], turn["outcome"], turn["attempts"], turn["cost"]) == ("local", "answered", [], "0")
    assert (turn["said"], turn["answer"]) == ("turn on the kitchen light", "Turned on the switch")


async def test_intent_of_a_local_turn_is_in_the_record_but_is_no_tool_call_of_a_model(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, turns: Turns, figure: Any
) -> None:
    await set_up()
    events = async_capture_events(home, EVENT_TURN)

    await say("turn on the kitchen light")
    await say("remember that the bins go out on Friday")

    done, remembered = await turns()
    assert (done["tools"], remembered["tools"]) == (["HassTurnOn"], [])
    assert (done["failed_tool_calls"], done["requests"], done["cost"]) == (0, 0, "0")
    assert [each.data["tool_calls"] for each in events] == [0, 0]
    assert figure("tool_calls") == "0"


@pytest.mark.parametrize(
    ("agent", "ends"), [({CONF_MEMORY: "off"}, ["answered"]), ({CONF_RECORD: RecordLevel.OFF}, [])]
)
async def test_record_depends_on_its_level_and_not_on_memory(
    set_up: SetUpFn, say: SayFn, turns: Turns, agent: dict[str, Any], ends: list[str]
) -> None:
    await set_up(**agent)

    await say("hello there")

    assert [turn["outcome"] for turn in await turns()] == ends


async def test_account_without_a_model_is_recorded(set_up: SetUpFn, say: SayFn, turns: Turns) -> None:
    await set_up(account={CONF_PROVIDER: PROVIDER_NONE})

    await say("turn on the kitchen light")
    await say("why is the sky blue?")

    assert [(turn["route"], turn["outcome"], turn["error"]) for turn in await turns()] == [
        ("local", "answered", None),
        ("local", "error", "local_answer_failed"),
    ]


async def test_failure_says_which_error_it_was(entry: Any, say: SayFn, turns: Turns, model_server: ModelServer) -> None:
    model_server.fault("500", 1)

    await say(f"hello {SECRET}")

    (turn,) = await turns()
    assert (turn["outcome"], turn["error"], turn["answered_by"]) == ("error", "unavailable", None)
    assert turn["message"]
    assert SECRET not in turn["message"]
    assert [(attempt["outcome"], attempt["error"], attempt["usage"]) for attempt in turn["attempts"]] == [
        ("error", "unavailable", None)
    ]


async def test_cancelled_turn_is_recorded(
    entry: Any, say_at_once: SayAtOnce, turns: Turns, model_server: ModelServer, get_agent: Any
) -> None:
    model_server.fault("no_answer", 1)
    turn = asyncio.create_task(say_at_once("hello there"))
    await until(lambda: bool(model_server.requests))

    turn.cancel()
    await asyncio.wait([turn])
    get_agent(entry).notify_listeners()

    (recorded,) = await turns()
    assert (recorded["outcome"], recorded["error"]) == ("cancelled", None)
    assert [(attempt["outcome"], attempt["error"]) for attempt in recorded["attempts"]] == [("cancelled", None)]


async def test_fallback_names_both_agents(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, turns: Turns, model_server: ModelServer
) -> None:
    entry = await set_up(**{CONF_FALLBACK_AGENTS: ["conversation.grace"]})
    grace = await add_agent(home, entry)
    model_server.fault("503", 1)

    await say("hello there")

    (turn,) = await turns()
    assert (turn["route"], turn["outcome"], turn["answered_by"]) == ("fallback", "answered", grace)
    assert turn["failures"] == [{"agent": turn["agent"], "error": "unavailable"}]
    assert [(attempt["agent"], attempt["outcome"]) for attempt in turn["attempts"]] == [
        (turn["agent"], "error"),
        (grace, "answered"),
    ]


async def test_summary_is_recorded_by_itself(
    set_up: SetUpFn, say: SayFn, turns: Turns, model_server: ModelServer, home: HomeAssistant
) -> None:
    await set_up(
        options={CONF_HISTORY_TOKENS: 300, CONF_SUMMARIZE: True},
        **{CONF_RECORD: RecordLevel.FULL, CONF_ROUTING: "model_only", CONF_MEMORY: "off"},
    )
    for _ in range(6):
        await say("tell me a story in 60 words")
        await home.async_block_till_done(wait_background_tasks=True)

    found = await turns()
    summary = next(turn for turn in found if turn["route"] == "summary")
    before = next(turn for turn in found if turn["turn_id"] == summary["summarizes_turn"])
    assert (summary["reason"], summary["outcome"]) == ("trim", "answered")
    assert summary["conversation_id"] == before["conversation_id"]
    assert [attempt["purpose"] for attempt in summary["attempts"]] == ["summary"]
    assert summary["answer"]


async def test_words_go_when_something_is_forgotten_that_was_told_before(
    home: HomeAssistant, whole: Any, say: SayFn, turns: Turns, store_path: Path
) -> None:
    await say(f"remember that the wifi password is {SECRET}")
    await say("hello there")
    assert SECRET in str(await turns())

    await say(f"forget that the wifi password is {SECRET}")

    found = await turns()
    assert {turn["has_text"] for turn in found} == {False}
    assert SECRET not in str(found)
    assert not await home.async_add_executor_job(_is_in_files, store_path, SECRET)


async def test_words_of_a_turn_that_failed_go_also_if_nothing_of_it_was_ever_remembered(
    *, home: HomeAssistant, whole: Any, say: SayFn, turns: Turns, model_server: ModelServer, store_path: Path
) -> None:
    model_server.fault("401", 1)
    await say(f"consider that the wifi password is {SECRET}")
    assert SECRET in (await turns())[0]["said"]

    await act(home, "forget", query=f"the wifi password is {SECRET}")

    assert not (await turns())[0]["has_text"]
    assert not await home.async_add_executor_job(_is_in_files, store_path, SECRET)


async def test_debug_log_has_a_line_for_each_turn_with_its_window_and_for_each_request_without_words(
    entry: Any, say: SayFn, get_agent: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger=f"custom_components.{DOMAIN}")

    await say(f"switch on the kitchen light, {SECRET}", "mine")

    (window,) = get_agent(entry).windows.loaded_windows().values()
    tokens = window.stats().current_tokens
    share = f"{tokens:,}/8,000 tokens ({round(100 * tokens / 8000)} %)"
    assert f"Window: mine, {len(window.messages()) - 1} messages, {share}" in caplog.text
    lines = [line for line in caplog.messages if line.startswith(("Turn ", "Request "))]
    assert [line.split(" ")[0] for line in lines] == ["Turn", "Request", "Request"]
    assert SECRET not in " ".join(lines)


def _is_in_files(path: Path, text: str) -> bool:
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
    assert files
    return any(text.encode() in file.read_bytes() for file in files)


async def test_waterfall_shows_where_the_time_of_a_turn_went(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    turns = async_capture_events(home, EVENT_TURN)
    model_server.change(latency=0.2)
    model_server.script(call("HassTurnOn", name="kitchen light"), words("It is on."))

    await say("and the kitchen?")

    waterfall = turns[0].data["waterfall"]
    assert [each["step"] for each in waterfall] == ["recognition", "request", "tool", "request"]
    assert waterfall[2]["name"].endswith("HassTurnOn")
    times = [
        [each[name] for name in ("start", "first_byte", "first_token", "end") if name in each] for each in waterfall
    ]
    assert [sorted(each) for each in times] == times
    request = waterfall[1]
    assert request["first_token"] - request["start"] >= 0.2
    assert waterfall[-1]["end"] <= turns[0].data["duration"]
    await flush_store(home)
    shown = await act(home, "get_turn", turn_id=turns[0].data["turn_id"])
    assert shown["waterfall"] == waterfall


async def test_tool_that_was_not_offered_is_unknown_in_the_waterfall(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    turns = async_capture_events(home, EVENT_TURN)
    model_server.script(call(SECRET), words("It is on."))

    await say("and the kitchen?")

    assert [each["name"] for each in turns[0].data["waterfall"] if each["step"] == "tool"] == ["unknown"]
    assert SECRET not in str(turns[0].data)
