"""Tests for the work that runs after the answer: it delays no answer, and none of it is lost."""

import asyncio
from collections.abc import Callable
import logging

from homeassistant.components import conversation
from homeassistant.core import Context, Event, HomeAssistant, callback
from homeassistant.helpers import issue_registry as ir
import pytest

from custom_components.windowed_conversation.agents import after_turn, conversation_turn, local_intents
from custom_components.windowed_conversation.agents.after_turn import STEPS, STEPS_AFTER_INTERRUPTION
from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.agents.conversation_turn import ConversationTurn
from demo.model_server import ModelServer

from .actions import act
from .conftest import AGENT, SayAtOnce, SayFn, SetUpFn, get_speech, until

SECRET = "the pelican is my secret word"
COMMAND = "turn on kitchen light"


def names(steps: tuple[Callable[..., None], ...]) -> list[str]:
    return [step.__name__ for step in steps]


def test_steps_run_in_this_order() -> None:
    """Counting is first, recording precedes pricing, and memory precedes the summary."""
    assert names(STEPS) == [
        "read_window",
        "count_turn",
        "update_health",
        "fire_events",
        "update_issues",
        "notify_servers",
        "log_error",
        "log_turn",
        "async_record_turn",
        "look_up_cost",
        "extend_privacy",
        "store_in_memory",
        "start_summary",
        "schedule_search_words",
    ]


def test_interrupted_turn_is_only_counted_recorded_and_priced() -> None:
    assert names(STEPS_AFTER_INTERRUPTION) == [
        "read_window",
        "count_turn",
        "log_turn",
        "async_record_turn",
        "look_up_cost",
    ]


async def test_local_turn_builds_nothing_of_a_request(
    entry, say: SayFn, get_agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[str] = []
    for name in ("Question", "TurnContext", "InputStamp", "build_turn_memory_tools", "async_get_tools"):
        monkeypatch.setattr(conversation_turn, name, lambda *_, name=name, **__: parts.append(name))
    turns: list[ConversationTurn] = []
    monkeypatch.setattr(after_turn, "STEPS", (*STEPS, lambda _agent, turn: turns.append(turn)))

    assert "Turned on" in get_speech(await say(COMMAND))

    await until(lambda: bool(turns))
    assert (parts, turns[0].live_context, turns[0].state.attempts) == ([], None, [])


async def test_turn_that_comes_at_once_knows_the_one_before(
    entry, say_at_once: SayAtOnce, model_server: ModelServer
) -> None:
    await say_at_once(COMMAND)
    await say_at_once("my name is Ada")

    assert model_server.requests[-1].body["messages"][1]["content"] == COMMAND


async def test_action_that_comes_at_once_sees_the_turn(home: HomeAssistant, entry, say_at_once: SayAtOnce) -> None:
    await say_at_once(COMMAND)

    assert (await act(home, "get_conversation", conversation_id="mine"))["messages"][0]["content"] == COMMAND


async def test_turn_of_the_last_moment_is_counted_when_its_account_is_unloaded(
    home: HomeAssistant, entry, say_at_once: SayAtOnce, figure
) -> None:
    await say_at_once(COMMAND)
    agent = next(iter(entry.runtime_data.agents.values()))

    await home.config_entries.async_unload(entry.entry_id)

    assert agent.statistics.totals.turns_local == 1


async def test_exchange_that_cannot_be_kept_is_answered_and_logged_without_its_text(
    entry, say_at_once: SayAtOnce, get_agent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail_conversion(*_: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(local_intents, "convert_contents", fail_conversion)
    caplog.set_level(logging.INFO)

    assert "Turned on" in get_speech(await say_at_once(COMMAND))
    assert get_agent(entry).statistics.totals.turns_local == 0
    get_agent(entry).notify_listeners()

    assert get_agent(entry).windows.loaded_windows() == {}
    assert get_agent(entry).statistics.totals.turns_local == 1
    assert caplog.text.count("A step after a turn failed: RuntimeError") == 1
    assert "pelican" not in caplog.text


async def test_issue_of_a_turn_may_begin_another_turn_and_both_are_counted(
    home: HomeAssistant, set_up: SetUpFn, say_at_once: SayAtOnce, figure
) -> None:
    await set_up(options={"history_tokens": 200}, routing="model_only")

    @callback
    def on_report(_event: Event[ir.EventIssueRegistryUpdatedData]) -> None:
        answer = conversation.async_converse(home, "hello", "another", Context(), "en", AGENT)
        home.async_create_task(answer, "answer")

    home.bus.async_listen_once(ir.EVENT_REPAIRS_ISSUE_REGISTRY_UPDATED, on_report)
    await say_at_once("tell me " + "a word " * 300)

    await until(lambda: figure("turns_model") == "2")
    assert figure("active_conversations") == "2"


async def test_step_that_fails_stops_no_other_and_is_logged_once_without_its_text(
    *,
    entry,
    say: SayFn,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    subtests: pytest.Subtests,
) -> None:
    calls: list[str] = []

    def fail(_agent: Agent, _turn: ConversationTurn) -> None:
        raise RuntimeError(SECRET)

    def make_step(step: Callable[..., None]) -> Callable[..., None]:
        def run(agent: Agent, turn: ConversationTurn) -> None:
            step(agent, turn)
            calls.append(step.__name__)

        return run

    caplog.set_level(logging.INFO)
    for number, name in enumerate(names(STEPS)):
        with subtests.test(name):
            others = [make_step(step) for step in STEPS]
            monkeypatch.setattr(after_turn, "STEPS", (*others[:number], fail, *others[number + 1 :]))
            caplog.clear()
            calls.clear()

            await say(COMMAND, name)

            assert calls == [other for other in names(STEPS) if other != name]
            assert caplog.text.count("failed: RuntimeError") == 1
            assert "A step after a turn failed: RuntimeError" in caplog.text
            assert "pelican" not in caplog.text


async def test_sensor_that_fails_stops_no_other_and_is_logged_once_without_its_text(
    entry, say_at_once: SayAtOnce, get_agent, figure, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError(SECRET)

    get_agent(entry)._listeners.insert(0, fail)
    await say_at_once(COMMAND)
    get_agent(entry).notify_listeners()

    assert int(figure("window_tokens")) > 0
    assert caplog.text.count("A listener of an agent failed: RuntimeError") == 1
    assert "pelican" not in caplog.text


async def test_reload_in_the_middle_of_a_turn_loses_none_of_its_tokens(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer, figure
) -> None:
    model_server.change(delay=0.02)
    turn = asyncio.create_task(say("tell me a story in 10 words"))
    await until(lambda: bool(model_server.requests))

    await home.config_entries.async_reload(entry.entry_id)
    await turn

    await until(lambda: figure("turns_model") == "1")
    usage = model_server.requests[0].usage
    assert (figure("input_tokens"), figure("output_tokens")) == (str(usage["prompt"]), str(usage["completion"]))
