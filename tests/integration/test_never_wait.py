"""Tests for commands while a question waits for its model: they are carried out at once, and all stays in order."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, NamedTuple

from homeassistant.components import conversation
from homeassistant.components.intent import async_register_timer_handler
from homeassistant.components.intent.const import TIMER_DATA
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import entity_registry as er
from homeassistant.setup import async_setup_component
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_capture_events

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.agents.forgetting import async_forget_everywhere
from custom_components.windowed_conversation.agents.store import AgentStore
from custom_components.windowed_conversation.bridge import fillers
from custom_components.windowed_conversation.bridge.turn_report import EVENT_TURN
from custom_components.windowed_conversation.const import CONF_PERSISTENCE, CONF_SCOPE, Persistence
from custom_components.windowed_conversation.turn.context import extract_user_text
from custom_components.windowed_conversation.turn.routing import Scope
from custom_components.windowed_conversation.window import Window
from demo.model_server import Answer, ModelServer, words

from .conftest import AGENT, SayAtOnce, SetUpFn, get_speech, start, stop, until
from .satellite import SATELLITE, Heard, press
from .store_file import Disk
from .test_hand_over import PROMISE, Gate, answers, gate

__all__ = ["answers", "gate"]

QUESTION = "which colour is the sky?"
OTHER_QUESTION = "and the grass?"
COMMAND = "turn on kitchen light"
MEMORY_QUESTION = "what do you know about me?"


class Command(NamedTuple):
    """A sentence that needs no model, with a part of its answer."""

    sentence: str
    answer: str


COMMANDS = (
    # the pipeline of the satellite answers this itself, and our next turn adds it
    Command("open sesame", "The cave is open"),
    Command(COMMAND, "Turned on"),
    Command("set a timer for 5 minutes", "Timer"),
    Command(MEMORY_QUESTION, "don't remember anything"),
    Command("remember that the bins go out on Friday", "the bins go out on Friday"),
    Command("add milk to my shopping list", "milk"),
)

_ASK_ONESELF = {"text": OTHER_QUESTION, "agent_id": AGENT, "conversation_id": "mine"}
ACTIONS_BY_COMMAND: dict[str, list[dict[str, Any]]] = {
    "open sesame": [{"set_conversation_response": "The cave is open"}],
    "close it": [{"set_conversation_response": "Which area?"}],
    "ask yourself": [
        {"action": "conversation.process", "data": _ASK_ONESELF, "response_variable": "said"},
        {"set_conversation_response": "{{ said.response.speech.plain.speech }}"},
    ],
}


@pytest.fixture(params=Scope)
async def entry(home: HomeAssistant, shopping, set_up: SetUpFn, request: pytest.FixtureRequest) -> MockConfigEntry:
    """Return an account whose agent has one scope, in a home with a list and sentence triggers."""
    automations = [
        {"triggers": {"trigger": "conversation", "command": command}, "actions": actions}
        for command, actions in ACTIONS_BY_COMMAND.items()
    ]
    assert await async_setup_component(home, "automation", {"automation": automations})
    return await set_up(options={CONF_PERSISTENCE: Persistence.ALL}, **{CONF_SCOPE: request.param})


@pytest.fixture(autouse=True)
def _released(heard: Heard, gate: Gate) -> Iterator[None]:
    """Let the questions that a failed test holds go on, so that its home can end."""
    yield
    for event in gate._events.values():
        event.set()


def heard_contains(heard: Heard, text: str) -> bool:
    return text in heard.text


def agent_of(entry: MockConfigEntry) -> Agent:
    (agent,) = entry.runtime_data.agents.values()
    return agent


def questions_in(window: Window) -> list[str]:
    return [extract_user_text(each.messages[0].content) for each in window.exchanges()]


def all_windows(entry: MockConfigEntry) -> list[Window]:
    agent = agent_of(entry)
    agent.notify_listeners()
    return [*agent.windows.loaded_windows().values()]


async def act(home: HomeAssistant, text: str, conversation_id: str = "other", **more: Any) -> str:
    """Send a text as another satellite does, which has a device of its own, and return the answer."""
    place = {"device_id": "other", "satellite_id": "assist_satellite.other", **more}
    result = await conversation.async_converse(home, text, conversation_id, Context(), "en", AGENT, **place)
    return get_speech(result)


async def promise(home: HomeAssistant, heard: Heard, gate: Gate, model_server: ModelServer, *later: Answer) -> None:
    """Ask the satellite a question whose answer is promised. The model's `later` answers are those after it."""
    gate.close(QUESTION)
    model_server.script(words("Blue."), *later)
    await press(home, QUESTION)
    await until(lambda: heard.utterances[-1:] == [PROMISE])
    gate.stop_hand_overs()


@pytest.fixture
def timers(home: HomeAssistant, heard: Heard, gate: Gate) -> Iterator[None]:
    """Let both satellites have timers, and cancel them at the end."""
    satellite = er.async_get(home).async_get(SATELLITE)
    assert satellite is not None
    for device in (satellite.device_id, "other"):
        assert device is not None
        async_register_timer_handler(home, device, lambda *_: None)
    yield
    for timer in [*home.data[TIMER_DATA].timers]:
        home.data[TIMER_DATA].cancel_timer(timer)


async def test_command_is_answered_while_a_question_waits(
    *,
    home: HomeAssistant,
    heard: Heard,
    entry: MockConfigEntry,
    model_server: ModelServer,
    gate: Gate,
    answers: list[Any],
    timers: None,
    subtests,
) -> None:
    await promise(home, heard, gate, model_server)

    for command in COMMANDS:
        with subtests.test(command.sentence, place="the same satellite"):
            heard.begin()
            await press(home, command.sentence)
            await until(partial(heard_contains, heard, command.answer))
        with subtests.test(command.sentence, place="another satellite"):
            assert command.answer in await act(home, command.sentence)
    assert home.states.is_state("input_boolean.kitchen", "on")
    assert (answers, len(model_server.requests)) == ([], 0)
    gate.release(QUESTION)
    await until(lambda: bool(answers))

    sentences = [command.sentence for command in COMMANDS]
    spoken = [QUESTION, *(each for each in sentences for _ in range(2))]
    windows = [questions_in(window) for window in all_windows(entry)]
    assert sorted(each for window in windows for each in window) == sorted(spoken)
    assert all(window in (spoken, [QUESTION, *sentences], sentences) for window in windows)
    assert agent_of(entry).statistics.totals.turns_local == 2 * len(COMMANDS) - 1


@pytest.mark.parametrize("entry", [Scope.AGENT], indirect=True)
async def test_what_is_said_while_a_question_waits_is_in_the_order_of_speech(
    *, home: HomeAssistant, heard: Heard, entry: MockConfigEntry, model_server: ModelServer, gate: Gate, answers
) -> None:
    await promise(home, heard, gate, model_server, words("Green."))
    gate.close(OTHER_QUESTION)
    await act(home, COMMAND)
    second = asyncio.create_task(act(home, OTHER_QUESTION))
    await asyncio.sleep(0.05)
    assert "Turned off" in await act(home, "turn off kitchen light", "third")

    gate.release(QUESTION)
    await until(lambda: bool(answers))
    await until(lambda: len(gate.turns) == 2)
    gate.release(OTHER_QUESTION)

    assert await second == "Green."
    (window,) = all_windows(entry)
    assert questions_in(window) == [QUESTION, COMMAND, OTHER_QUESTION, "turn off kitchen light"]
    asked = [extract_user_text(each["content"] or "") for each in model_server.requests[-1].body["messages"]]
    assert [each for each in asked if each in questions_in(window)] == [QUESTION, COMMAND, OTHER_QUESTION]
    assert agent_of(entry).windows.get_loaded("agent") is window


@pytest.mark.parametrize("entry", [Scope.CONVERSATION], indirect=True)
async def test_command_by_action_does_not_wait_for_a_question_in_its_conversation(
    *, home: HomeAssistant, entry: MockConfigEntry, say_at_once: SayAtOnce, model_server: ModelServer, gate: Gate
) -> None:
    gate.close(QUESTION)
    model_server.script(words("Blue."))
    waiting = asyncio.create_task(say_at_once(QUESTION))
    await until(lambda: bool(gate.turns))

    assert "Turned on" in get_speech(await say_at_once(COMMAND))
    gate.release(QUESTION)

    assert get_speech(await waiting) == "Blue."
    assert [questions_in(window) for window in all_windows(entry)] == [[QUESTION, COMMAND]]


async def fail(home: HomeAssistant, entry: MockConfigEntry, gate: Gate, model_server: ModelServer) -> None:
    model_server.fault("500")
    gate.release(QUESTION)


async def end(home: HomeAssistant, entry: MockConfigEntry, gate: Gate, model_server: ModelServer) -> None:
    model_server.script()
    await press(home, "never mind")


async def reload(home: HomeAssistant, entry: MockConfigEntry, gate: Gate, model_server: ModelServer) -> None:
    assert await home.config_entries.async_reload(entry.entry_id)


@pytest.mark.parametrize("entry", [Scope.CONVERSATION], indirect=True)
@pytest.mark.parametrize(("ending", "outcome"), [(fail, "announced"), (end, "ended"), (reload, "interrupted")])
async def test_command_stays_whatever_becomes_of_the_question(
    *,
    home: HomeAssistant,
    heard: Heard,
    entry: MockConfigEntry,
    model_server: ModelServer,
    gate: Gate,
    answers: list[Any],
    ending: Callable[..., Coroutine[Any, Any, None]],
    outcome: str,
) -> None:
    gate.close(QUESTION)
    await press(home, QUESTION)
    await until(lambda: heard.utterances == [PROMISE])
    await press(home, COMMAND)

    await ending(home, entry, gate, model_server)
    await until(lambda: bool(answers))

    assert [event.data["outcome"] for event in answers] == [outcome]
    (window,) = all_windows(entry)
    assert questions_in(window)[-1] == COMMAND
    assert questions_in(window).count(COMMAND) == 1


@pytest.mark.parametrize("entry", [Scope.CONVERSATION], indirect=True)
async def test_command_is_counted_once_and_at_once(
    *, home: HomeAssistant, heard: Heard, entry: MockConfigEntry, model_server: ModelServer, gate: Gate, answers
) -> None:
    turns = async_capture_events(home, EVENT_TURN)
    await promise(home, heard, gate, model_server)
    await press(home, COMMAND)
    await until(lambda: len(turns) == 1)
    assert agent_of(entry).statistics.totals.turns_local == 1

    gate.release(QUESTION)
    await until(lambda: len(turns) == 2)

    assert [event.data["route"] for event in turns] == ["local", "model"]
    assert agent_of(entry).statistics.totals.turns_local == 1


@pytest.mark.parametrize("entry", [Scope.CONVERSATION], indirect=True)
async def test_command_is_on_disk_while_the_question_waits(
    *, home: HomeAssistant, disk: Disk, heard: Heard, entry: MockConfigEntry, model_server, gate: Gate, answers
) -> None:
    await promise(home, heard, gate, model_server)
    await press(home, COMMAND)

    await until(lambda: COMMAND in disk.exchange_text)

    assert QUESTION not in disk.exchange_text
    gate.release(QUESTION)
    await until(lambda: bool(answers) and QUESTION in disk.exchange_text)
    assert disk.exchange_text.count(COMMAND) == 1
    assert disk.exchange_text.index(QUESTION) < disk.exchange_text.index(COMMAND)


@pytest.mark.parametrize("entry", [Scope.CONVERSATION], indirect=True)
async def test_command_that_is_forgotten_while_the_question_waits_does_not_come_back(
    *, home: HomeAssistant, heard: Heard, entry: MockConfigEntry, model_server: ModelServer, gate: Gate, answers
) -> None:
    await promise(home, heard, gate, model_server)
    await press(home, "remember that the bins go out on Friday")
    await press(home, COMMAND)

    await async_forget_everywhere(home, query="bins")
    gate.release(QUESTION)
    await until(lambda: bool(answers))

    (window,) = all_windows(entry)
    assert questions_in(window)[-1:] == [COMMAND]
    assert "bins" not in str(questions_in(window))


@pytest.mark.parametrize("entry", [Scope.CONVERSATION], indirect=True)
async def test_yes_to_a_question_of_memory_is_taken_while_another_question_waits(
    *, home: HomeAssistant, heard: Heard, entry: MockConfigEntry, model_server: ModelServer, gate: Gate, answers
) -> None:
    await promise(home, heard, gate, model_server)
    for fact in ("the bins go out on Friday", "the bins are in the yard"):
        await press(home, f"remember that {fact}")
    heard.begin()
    await press(home, "forget everything about the bins")
    await until(lambda: "Shall I delete" in heard.text)
    heard.begin()

    await press(home, "yes")

    await until(lambda: "deleted" in heard.text)
    gate.release(QUESTION)
    await until(lambda: bool(answers))


@pytest.mark.parametrize("entry", [Scope.CONVERSATION], indirect=True)
async def test_trigger_that_asks_the_agent_in_its_own_conversation_is_refused_and_not_stuck(
    entry: MockConfigEntry, say_at_once: SayAtOnce, model_server: ModelServer
) -> None:
    result = await say_at_once("ask yourself")

    assert get_speech(result) == "I am still working on your last question. Please try again in a moment."
    assert model_server.requests == []


@pytest.mark.parametrize("entry", [Scope.CONVERSATION], indirect=True)
async def test_question_of_the_local_route_keeps_listening(entry: MockConfigEntry, say_at_once: SayAtOnce) -> None:
    asked, done = await say_at_once("close it"), await say_at_once(COMMAND)

    assert (get_speech(asked), asked.continue_conversation) == ("Which area?", True)
    assert not done.continue_conversation


@pytest.mark.parametrize("entry", [Scope.AGENT], indirect=True)
async def test_200_commands_at_once_are_all_carried_out_in_order(
    *, home: HomeAssistant, heard: Heard, entry: MockConfigEntry, model_server: ModelServer, gate: Gate, answers
) -> None:
    await promise(home, heard, gate, model_server)
    sentences = [f"remember that locker {number} is blue" for number in range(200)]

    said = await asyncio.gather(*(act(home, text, f"c{number}") for number, text in enumerate(sentences)))
    gate.release(QUESTION)
    await until(lambda: bool(answers))

    assert all(f"locker {number} is blue" in each for number, each in enumerate(said))
    spoken = [text for window in all_windows(entry) for text in questions_in(window)]
    expected = [QUESTION, *sentences]
    assert spoken == expected[-len(spoken) :]


@pytest.mark.parametrize("entry", [Scope.CONVERSATION], indirect=True)
async def test_command_after_a_start_does_not_wait_until_its_conversation_is_read(
    home: HomeAssistant, entry: MockConfigEntry, say_at_once: SayAtOnce, disk: Disk, monkeypatch
) -> None:
    await say_at_once(COMMAND)
    await stop(home, entry)
    await start(home, entry)
    release, read = asyncio.Event(), AgentStore.async_read

    async def read_late(self: AgentStore, *args: Any) -> Any:
        await release.wait()
        return await read(self, *args)

    monkeypatch.setattr(AgentStore, "async_read", read_late)
    assert "Turned on" in get_speech(await say_at_once(COMMAND))
    agent_of(entry).notify_listeners()
    release.set()

    await until(lambda: disk.exchange_text.count(COMMAND) == 2)


@pytest.mark.parametrize("entry", [Scope.CONVERSATION], indirect=True)
async def test_question_that_waits_for_another_one_says_so(
    *,
    home: HomeAssistant,
    heard: Heard,
    entry: MockConfigEntry,
    model_server: ModelServer,
    gate: Gate,
    answers: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await promise(home, heard, gate, model_server, words("Green."))
    monkeypatch.setattr(fillers, "FILLER_SECONDS", (0.1, 0.2, 1000.0))
    heard.begin()

    second = asyncio.create_task(press(home, OTHER_QUESTION))
    await until(lambda: heard.utterances == ["I'm still on the other question."])
    gate.release(QUESTION)
    await second
    await until(lambda: bool(answers))

    assert heard.utterances[:2] == ["I'm still on the other question.", "Green."]
