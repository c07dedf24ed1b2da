"""Tests for answers that take long: they are promised, go on in the background, and are delivered once."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from attr import evolve
from homeassistant.components import conversation, persistent_notification
from homeassistant.components.assist_satellite.const import DATA_COMPONENT, AssistSatelliteEntityFeature
from homeassistant.components.assist_satellite.errors import SatelliteBusyError
from homeassistant.components.conversation.chat_log import DATA_CHAT_LOGS, current_chat_log
from homeassistant.core import Context, CoreState, Event, HomeAssistant, ServiceCall
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.chat_session import current_session
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_capture_events

from custom_components.windowed_conversation.agents import hand_over
from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.agents.local_intents import LocalAnswerer, async_prepare_first_command
from custom_components.windowed_conversation.bridge import delivery, fillers
from custom_components.windowed_conversation.bridge.turn_report import EVENT_ANSWER, EVENT_TURN
from custom_components.windowed_conversation.const import DOMAIN
from custom_components.windowed_conversation.turn import turn as turn_module
from custom_components.windowed_conversation.turn.asking import ask_question
from custom_components.windowed_conversation.turn.state import ModelRun, Turn
from demo.model_server import ModelServer, call, words
from demo.scripted_voice.assist_satellite import ScriptedSatellite

from .conftest import AGENT, SayFn, SetUpFn, get_speech, listed, start, until
from .dashboard import PipelineClient, ending
from .satellite import SATELLITE, Ask, Heard, press
from .test_turns import window_of

PROMISE = "This is taking a while. I'll let you know here."
NOTICE = "This is taking a while. You'll get a notification."
MENTION = "Ada has your answer. Ask again to hear it."
ABOUT = 'About "which colour is the sky":'
UNREACHABLE = "I can't reach my AI service right now. Lights and timers still work."


class Gate:
    """Holds the model's part of each turn until its sentence is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._events: dict[str, asyncio.Event] = {}
        self.turns: list[Turn] = []
        monkeypatch.setattr(turn_module, "ask_question", self.ask_later)

    async def ask_later(self, run: ModelRun) -> None:
        """Ask the question of a turn once its sentence is released."""
        self.turns.append(run.turn)
        if run.turn.text in self._events:
            await self._events[run.turn.text].wait()
        await ask_question(run)

    def stop_hand_overs(self) -> None:
        """Let the pipelines of later turns wait for their answers."""
        self._monkeypatch.setattr(hand_over, "HAND_OVER_SECONDS", 1000.0)

    def close(self, *sentences: str) -> None:
        """Hold the turns of these sentences."""
        self._events.update({sentence: asyncio.Event() for sentence in sentences})

    def release(self, sentence: str) -> None:
        """Let the turn of this sentence go on."""
        self._events[sentence].set()


@pytest.fixture
async def gate(home: HomeAssistant, entry, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gate]:
    """Hold the turns that a test names, and let the hand-over come soon, but after the search for a local answer."""
    await async_prepare_first_command(home)
    monkeypatch.setattr(hand_over, "HAND_OVER_SECONDS", 0.2)
    monkeypatch.setattr(fillers, "FILLER_SECONDS", (1000.0,))
    monkeypatch.setattr(delivery, "_IDLE_SECONDS", 0.05)
    monkeypatch.setattr(delivery, "_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(hand_over, "_RETRY_SECONDS", 0.02)
    # its request would take an answer that a test has scripted
    monkeypatch.setattr(Agent, "give_head_start", lambda _agent: None)
    yield Gate(monkeypatch)
    # the speech of the last announcement is still being stored
    await home.async_block_till_done(wait_background_tasks=True)


@pytest.fixture
def answers(home: HomeAssistant) -> list[Event]:
    """Return the events of promised answers."""
    return async_capture_events(home, EVENT_ANSWER)


@pytest.fixture
async def dialog(home: HomeAssistant, entry, hass_ws_client) -> tuple[PipelineClient, str]:
    """Return a chat dialog and the id of its assistant."""
    client = PipelineClient(await hass_ws_client())
    return client, await client.create(prefer_local_intents=False)


def outcomes(answers: list[Event]) -> list[str]:
    return [event.data["outcome"] for event in answers]


def chat_of(home: HomeAssistant, entry) -> list[str]:
    """Return the answers in the chat log of the newest conversation."""
    conversation_id = window_of(entry).conversation_id
    chat_log = home.data[DATA_CHAT_LOGS][conversation_id]
    return [each.content or "" for each in chat_log.content if each.role == "assistant"]


def list_answers(entry) -> list[str]:
    """Return the answers in the window of the newest conversation."""
    return [message.content for message in window_of(entry).messages() if message.role == "assistant"]


async def answer_late(home: HomeAssistant, gate: Gate, model_server: ModelServer, answers: list[Event]) -> None:
    """Ask the satellite, let the model answer after the promise, and wait until that answer is delivered."""
    gate.close("which colour is the sky?")
    model_server.script(words("Blue."))
    await press(home, "which colour is the sky?")
    gate.release("which colour is the sky?")
    await until(lambda: bool(answers))


async def test_answer_that_takes_long_is_promised_and_announced(
    *, home: HomeAssistant, heard: Heard, entry, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    model_server.script(words("Blue."))
    gate.close("which colour is the sky?")

    await press(home, "which colour is the sky?")
    await until(lambda: heard.utterances == [PROMISE])
    assert answers == []
    gate.release("which colour is the sky?")
    await until(lambda: bool(answers))

    assert heard.utterances == [PROMISE, f"{ABOUT} Blue."]
    assert outcomes(answers) == ["announced"]
    assert list_answers(entry) == ["Blue."]
    assert chat_of(home, entry) == [PROMISE, "Blue."]


async def test_promise_after_a_filler_is_heard(
    *, home: HomeAssistant, heard: Heard, entry, model_server: ModelServer, gate: Gate, monkeypatch
) -> None:
    monkeypatch.setattr(fillers, "FILLER_SECONDS", (0.05,))
    model_server.script(words("Blue."))
    gate.close("which colour is the sky?")

    await press(home, "which colour is the sky?")
    await until(lambda: heard.utterances == ["Hm.", PROMISE])
    gate.release("which colour is the sky?")
    await until(lambda: heard.utterances == ["Hm.", PROMISE, f"{ABOUT} Blue."])


async def test_silent_model_is_heard_after_the_hand_over(
    *,
    home: HomeAssistant,
    heard: Heard,
    entry,
    model_server: ModelServer,
    gate: Gate,
    answers: list[Event],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hand_over, "HAND_OVER_SECONDS", 0.1)
    model_server.change(delay=0.15)
    model_server.script(call("HassTurnOn", name="kitchen light"), words("It is on."))

    await press(home, "and the kitchen?")
    await until(lambda: bool(answers))

    assert heard.utterances == [PROMISE, 'About "and the kitchen": It is on.']
    assert home.states.is_state("input_boolean.kitchen", "on")
    assert len(model_server.requests) == 2


async def test_error_in_the_background_is_announced(
    *, home: HomeAssistant, heard: Heard, entry, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    model_server.fault("500")
    gate.close("which colour is the sky?")

    await press(home, "which colour is the sky?")
    gate.release("which colour is the sky?")
    await until(lambda: bool(answers))

    assert heard.utterances == [PROMISE, f'I couldn\'t answer "which colour is the sky". {UNREACHABLE}']
    assert outcomes(answers) == ["announced"]


async def test_long_question_is_repeated_in_part(
    *, home: HomeAssistant, heard: Heard, entry, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    question = "tell me a very long story about the sea and all of the ships that ever crossed it, please!"
    model_server.script(words("Once."))
    gate.close(question)

    await press(home, question)
    gate.release(question)
    await until(lambda: bool(answers))

    beginning = "tell me a very long story about the sea and all of the…"
    assert heard.utterances == [PROMISE, f'About "{beginning}": Once.']


async def test_question_without_spaces_is_repeated_in_part(home: HomeAssistant) -> None:
    text = await delivery.async_format_late_answer(home, "ja", "空" * 70, "青です。", is_error=False)

    assert text.startswith(f"「{'空' * 60}…」")
    assert text.endswith("青です。")


async def test_slow_local_answer_is_announced(
    *, home: HomeAssistant, heard: Heard, entry, gate: Gate, answers: list[Event], monkeypatch
) -> None:
    answer_input, release = LocalAnswerer.answer_input, asyncio.Event()

    async def answer_slowly(self: LocalAnswerer, situation: Any) -> Any:
        await release.wait()
        return await answer_input(self, situation)

    monkeypatch.setattr(LocalAnswerer, "answer_input", answer_slowly)
    await press(home, "turn on kitchen light")
    await until(lambda: heard.utterances == [PROMISE])
    release.set()
    await until(lambda: bool(answers))

    assert heard.utterances == [PROMISE, 'About "turn on kitchen light": Turned on the switch']
    assert home.states.is_state("input_boolean.kitchen", "on")


async def test_answer_that_has_begun_is_not_handed_over(
    *, home: HomeAssistant, heard: Heard, ask: Ask, entry, model_server: ModelServer, gate: Gate, monkeypatch
) -> None:
    model_server.change(delay=0.2)
    monkeypatch.setattr(hand_over, "HAND_OVER_SECONDS", 0.5)
    model_server.script(words("The sky is blue."))

    assert await ask("which colour is the sky?") == "The sky is blue."


async def test_announcement_waits_for_a_running_turn(
    *, home: HomeAssistant, heard: Heard, entry, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    model_server.script(words("Blue."), words("Green."))
    gate.close("which colour is the sky?", "and the grass?")
    await press(home, "which colour is the sky?")
    await until(lambda: heard.utterances == [PROMISE])

    gate.stop_hand_overs()
    second = asyncio.create_task(press(home, "and the grass?"))
    await until(lambda: hand_over._get_running_turns(home).is_in_use(SATELLITE))
    gate.release("which colour is the sky?")
    await until(lambda: len(gate.turns) == 2)
    assert answers == []
    gate.release("and the grass?")
    await second
    await until(lambda: bool(answers))

    assert outcomes(answers) == ["announced"]
    assert heard.utterances == [PROMISE, "Green.", f"{ABOUT} Blue."]
    assert list_answers(entry) == ["Blue.", "Green."]
    assert chat_of(home, entry) == [PROMISE, "Green.", "Blue."]


async def test_announcement_waits_for_the_answer_to_a_question(
    *, home: HomeAssistant, heard: Heard, entry, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    running = hand_over._get_running_turns(home)
    model_server.script(words("Blue."), words("Which one?"), words("Done."))
    gate.close("which colour is the sky?")
    await press(home, "which colour is the sky?")
    gate.release("which colour is the sky?")
    gate.stop_hand_overs()
    running.question_ends[SATELLITE] = float("inf")
    await until(lambda: "Blue." in list_answers(entry))
    await asyncio.sleep(0.3)

    assert answers == []
    await press(home, "close it please")
    assert running.is_in_use(SATELLITE)
    await press(home, "the left one please")
    await until(lambda: bool(answers))
    assert heard.utterances == [PROMISE, "Which one?", "Done.", f"{ABOUT} Blue."]


async def test_two_answers_are_announced_one_after_the_other(
    *, home: HomeAssistant, heard: Heard, entry, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    model_server.script(words("Blue."), words("Green."))
    gate.close("which colour is the sky?", "and the grass?")
    await press(home, "which colour is the sky?")
    await press(home, "and the grass?")
    gate.release("and the grass?")
    gate.release("which colour is the sky?")
    await until(lambda: len(answers) == 2)

    assert sorted(heard.utterances[1:]) == ['About "and the grass": Green.', f"{ABOUT} Blue."]
    assert list_answers(entry) == ["Blue.", "Green."]


@pytest.mark.parametrize(("language", "sentence"), [("en", "never mind"), ("de", "vergiss es"), ("fr", "annule")])
async def test_never_mind_ends_the_promised_answer(
    *, home: HomeAssistant, heard: Heard, entry, gate: Gate, answers: list[Event], language: str, sentence: str
) -> None:
    home.config.language = language
    gate.close("which colour is the sky?")
    await press(home, "which colour is the sky?")
    conversation_id = gate.turns[0].window.conversation_id

    result = await conversation.async_converse(home, sentence, conversation_id, Context(), language, AGENT)

    assert get_speech(result) in {"All right.", "In Ordnung.", "D'accord."}
    assert outcomes(answers) == ["ended"]
    assert "interrupted" in list_answers(entry)[-1]
    assert not window_of(entry).is_open


@pytest.mark.parametrize(("sentence", "outcome"), [("never mind", "ended"), ("turn on kitchen light", "ready")])
async def test_never_mind_that_the_pipeline_answers_itself_ends_the_promised_answer(
    *,
    home: HomeAssistant,
    entry,
    dialog: tuple[PipelineClient, str],
    gate: Gate,
    answers: list[Event],
    sentence: str,
    outcome: str,
) -> None:
    client, _ = dialog
    assistant = await client.create(prefer_local_intents=True)
    gate.close("which colour is the sky?")
    events = await client.run(assistant, "which colour is the sky?")

    await client.run(assistant, sentence, ending(events)["intent_output"]["conversation_id"])
    await until(lambda: bool(answers) or sentence != "never mind")
    gate.release("which colour is the sky?")
    await until(lambda: bool(answers))

    assert outcomes(answers) == [outcome]


async def test_never_mind_of_another_person_ends_nothing(
    *, home: HomeAssistant, heard: Heard, entry, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    gate.close("which colour is the sky?")
    model_server.script(words("Blue."))
    await press(home, "which colour is the sky?")
    conversation_id = gate.turns[0].window.conversation_id

    other = asyncio.create_task(
        conversation.async_converse(home, "never mind", conversation_id, Context(user_id="bob"), "en", AGENT)
    )
    await asyncio.sleep(0.1)
    gate.release("which colour is the sky?")
    await other
    await until(lambda: bool(answers))

    assert outcomes(answers) == ["announced"]


async def test_next_question_waits_for_the_promised_answer(
    *, home: HomeAssistant, heard: Heard, entry, say: SayFn, model_server: ModelServer, gate: Gate
) -> None:
    gate.close("which colour is the sky?")
    model_server.script(words("Blue."), words("Green."))
    await press(home, "which colour is the sky?")
    conversation_id = gate.turns[0].window.conversation_id

    following = asyncio.create_task(say("and the grass?", conversation_id))
    await asyncio.sleep(0.1)
    assert not following.done()
    gate.release("which colour is the sky?")

    assert get_speech(await following) == "Green."
    assert list_answers(entry) == ["Blue.", "Green."]


async def test_wake_word_before_the_promise_cancels_the_turn(
    *, home: HomeAssistant, heard: Heard, ask: Ask, entry, model_server: ModelServer, gate: Gate, monkeypatch
) -> None:
    monkeypatch.setattr(hand_over, "HAND_OVER_SECONDS", 100.0)
    gate.close("which colour is the sky?")
    model_server.script(words("Green."))
    first = asyncio.create_task(press(home, "which colour is the sky?"))
    await until(lambda: bool(gate.turns))

    assert await ask("and the grass?") == "Green."
    with pytest.raises(asyncio.CancelledError):
        await first
    assert isinstance(gate.turns[0].interruption, asyncio.CancelledError)
    assert list_answers(entry) == ["Green."]


async def test_reload_ends_the_promised_answer(
    *, home: HomeAssistant, heard: Heard, ask: Ask, entry, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    gate.close("which colour is the sky?")
    model_server.script(words("Green."))
    await press(home, "which colour is the sky?")

    assert await home.config_entries.async_reload(entry.entry_id)

    assert outcomes(answers) == ["interrupted"]
    assert "interrupted" in list_answers(entry)[-1]
    assert await ask("and the grass?") == "Green."


async def test_reload_after_a_filler_leaves_the_turn_alone(
    *, home: HomeAssistant, heard: Heard, entry, model_server: ModelServer, gate: Gate, monkeypatch
) -> None:
    monkeypatch.setattr(fillers, "FILLER_SECONDS", (0.02,))
    gate.stop_hand_overs()
    gate.close("which colour is the sky?")
    model_server.script(words("Blue."))
    turn = asyncio.create_task(press(home, "which colour is the sky?"))
    await until(lambda: heard.utterances == ["Hm."])

    assert await home.config_entries.async_reload(entry.entry_id)
    gate.release("which colour is the sky?")
    await turn
    await home.async_block_till_done(wait_background_tasks=True)

    assert heard.utterances == ["Hm.", "Blue."]
    assert list_answers(entry) == ["Blue."]


async def test_reload_before_the_announcement_keeps_the_answer_in_the_conversation(
    *, home: HomeAssistant, heard: Heard, entry, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    gate.close("which colour is the sky?")
    model_server.script(words("Blue."))
    await press(home, "which colour is the sky?")
    await until(lambda: heard.utterances == [PROMISE])
    home.states.async_set(SATELLITE, "listening", {"supported_features": 1})
    gate.release("which colour is the sky?")
    await until(lambda: chat_of(home, entry) == [PROMISE, "Blue."])

    assert await home.config_entries.async_reload(entry.entry_id)

    assert outcomes(answers) == ["interrupted"]
    assert list_answers(entry) == ["Blue."]
    assert heard.utterances == [PROMISE]


async def test_removal_ends_the_promised_answer(
    *, home: HomeAssistant, heard: Heard, entry, gate: Gate, answers: list[Event]
) -> None:
    gate.close("which colour is the sky?")
    await press(home, "which colour is the sky?")

    await home.config_entries.async_remove(entry.entry_id)

    assert outcomes(answers) == ["interrupted"]
    assert isinstance(gate.turns[0].interruption, asyncio.CancelledError)


async def test_promise_stays_stored_when_home_assistant_stops(
    *, home: HomeAssistant, heard: Heard, entry, gate: Gate, answers: list[Event]
) -> None:
    gate.close("which colour is the sky?")
    await press(home, "which colour is the sky?")
    (state,) = [agent.state for agent in entry.runtime_data.agents.values()]
    home.set_state(CoreState.stopping)

    await home.config_entries.async_unload(entry.entry_id)

    home.set_state(CoreState.running)
    assert (len(state.promises.as_dict()), answers) == (1, [])


async def test_start_after_a_kill_reports_the_lost_answer(
    *, home: HomeAssistant, heard: Heard, entry, gate: Gate, answers: list[Event], monkeypatch
) -> None:
    gate.close("which colour is the sky?")
    await press(home, "which colour is the sky?")
    (state,) = [agent.state for agent in entry.runtime_data.agents.values()]
    conversation_id = gate.turns[0].window.conversation_id
    await until(lambda: state.promises.as_dict() != {})
    store = home.data[f"{DOMAIN}_store"]
    store.async_save()
    # nothing is written any more, as after a kill
    monkeypatch.setattr(state.promises, "save_soon", lambda: None)
    await home.config_entries.async_unload(entry.entry_id)
    home.data.pop(f"{DOMAIN}_account_states")
    assert await home.async_add_executor_job(home.data.pop(f"{DOMAIN}_store").writer.close, 60.0)
    answers.clear()

    await start(home, entry)

    (event,) = answers
    assert event.data == {
        "entity_id": AGENT,
        "conversation_id": conversation_id,
        "outcome": "interrupted",
        "turn_id": None,
    }
    answers.clear()
    assert await home.config_entries.async_reload(entry.entry_id)
    assert answers == []


async def test_answer_in_the_chat_dialog_goes_to_the_phones_of_the_person(
    *,
    home: HomeAssistant,
    entry,
    dialog: tuple[PipelineClient, str],
    hass_admin_user,
    model_server: ModelServer,
    gate: Gate,
    answers: list[Event],
) -> None:
    service_calls = list[ServiceCall]()

    async def send(service_call: ServiceCall) -> None:
        service_calls.append(service_call)

    home.services.async_register("notify", "send_message", send)
    for user_id in (hass_admin_user.id, "somebody else"):
        phone = MockConfigEntry(domain="mobile_app", data={"user_id": user_id})
        phone.add_to_hass(home)
        er.async_get(home).async_get_or_create("notify", "mobile_app", user_id, config_entry=phone)
    gate.close("which colour is the sky?")
    model_server.script(words("**Blue.**"))
    client, assistant = dialog

    events = await client.run(assistant, "which colour is the sky?")
    assert ending(events)["intent_output"]["response"]["speech"]["plain"]["speech"] == NOTICE
    gate.release("which colour is the sky?")
    await until(lambda: bool(answers))

    assert outcomes(answers) == ["notified"]
    (message,) = service_calls
    assert message.data["message"] == f"{ABOUT} **Blue.**"
    assert message.data["title"] == "Ada"
    assert str(hass_admin_user.id) in str(message.data["entity_id"])
    assert message.context.user_id is None


async def test_answer_without_a_phone_is_mentioned_without_its_words(
    *,
    home: HomeAssistant,
    entry,
    dialog: tuple[PipelineClient, str],
    model_server: ModelServer,
    gate: Gate,
    answers: list[Event],
) -> None:
    gate.close("which colour is the sky?")
    model_server.script(words("Blue."))
    client, assistant = dialog

    await client.run(assistant, "which colour is the sky?")
    gate.release("which colour is the sky?")
    await until(lambda: bool(answers))

    assert outcomes(answers) == ["ready"]
    (notification,) = persistent_notification._async_get_or_create_notifications(home).values()
    assert notification["message"] == MENTION
    assert list_answers(entry) == ["Blue."]


async def make_voip(home: HomeAssistant, _monkeypatch: pytest.MonkeyPatch) -> None:
    registry = er.async_get(home)
    entry = registry.async_get(SATELLITE)
    assert entry is not None
    registry.entities[SATELLITE] = evolve(entry, platform="voip")


async def make_mute(home: HomeAssistant, _monkeypatch: pytest.MonkeyPatch) -> None:
    satellite = home.data[DATA_COMPONENT].get_entity(SATELLITE)
    assert satellite is not None
    satellite._attr_supported_features = AssistSatelliteEntityFeature(0)


async def make_unavailable(home: HomeAssistant, _monkeypatch: pytest.MonkeyPatch) -> None:
    home.states.async_set(SATELLITE, "unavailable")


async def make_removed(home: HomeAssistant, _monkeypatch: pytest.MonkeyPatch) -> None:
    er.async_get(home).async_remove(SATELLITE)
    await home.async_block_till_done()


async def make_stuck(home: HomeAssistant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_MAX_WAIT_SECONDS", 0.1)
    home.states.async_set(SATELLITE, "listening")


@pytest.mark.parametrize("change", [make_voip, make_mute, make_unavailable, make_removed, make_stuck])
async def test_satellite_that_cannot_announce_is_replaced_by_a_notification(
    *,
    home: HomeAssistant,
    heard: Heard,
    entry,
    model_server: ModelServer,
    gate: Gate,
    answers: list[Event],
    monkeypatch,
    change: Callable[..., Any],
) -> None:
    gate.close("which colour is the sky?")
    model_server.script(words("Blue."))
    await press(home, "which colour is the sky?")
    await change(home, monkeypatch)

    gate.release("which colour is the sky?")
    await until(lambda: bool(answers))

    assert outcomes(answers) == ["ready"]
    assert "Blue" not in heard.text


async def test_satellite_that_was_renamed_meanwhile_announces_the_answer(
    *, home: HomeAssistant, heard: Heard, entry, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    gate.close("which colour is the sky?")
    model_server.script(words("Blue."))
    await press(home, "which colour is the sky?")
    er.async_get(home).async_update_entity(SATELLITE, new_entity_id="assist_satellite.renamed")
    await until(lambda: home.states.get("assist_satellite.renamed") is not None)

    gate.release("which colour is the sky?")
    await until(lambda: bool(answers))

    assert outcomes(answers) == ["announced"]
    assert heard.utterances == [PROMISE, f"{ABOUT} Blue."]


async def test_busy_satellite_is_tried_again(
    *,
    home: HomeAssistant,
    heard: Heard,
    entry,
    model_server: ModelServer,
    gate: Gate,
    answers: list[Event],
    monkeypatch,
) -> None:
    announce, tries = ScriptedSatellite.async_announce, list[int]()

    async def announce_late(self: ScriptedSatellite, announcement: Any) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise SatelliteBusyError
        await announce(self, announcement)

    monkeypatch.setattr(ScriptedSatellite, "async_announce", announce_late)
    await answer_late(home, gate, model_server, answers)

    assert outcomes(answers) == ["announced"]
    assert heard.utterances == [PROMISE, f"{ABOUT} Blue."]


async def test_caller_that_states_a_satellite_gets_the_answer_itself(
    *, home: HomeAssistant, heard: Heard, entry, say: SayFn, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    gate.close("which colour is the sky?")
    model_server.script(words("Blue."))

    turn = asyncio.create_task(say("which colour is the sky?", satellite_id=SATELLITE))
    await asyncio.sleep(0.3)
    assert not turn.done()
    gate.release("which colour is the sky?")

    assert get_speech(await turn) == "Blue."
    assert answers == []
    assert heard.utterances == []


async def test_turn_with_a_short_limit_is_not_handed_over(
    *, home: HomeAssistant, set_up: SetUpFn, heard: Heard, ask: Ask, entry, gate: Gate, monkeypatch
) -> None:
    monkeypatch.setattr(hand_over, "HAND_OVER_SECONDS", 0.3)
    (subentry,) = entry.subentries.values()
    home.config_entries.async_update_subentry(entry, subentry, data={**subentry.data, "turn_timeout": 0.2})
    await listed(home)
    gate.close("which colour is the sky?")

    assert await ask("which colour is the sky?") == "Something went wrong. Please try again."


async def test_turn_in_the_background_has_more_time(
    *, home: HomeAssistant, heard: Heard, entry, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    gate.close("which colour is the sky?")
    model_server.script(words("Blue."))
    started = asyncio.get_running_loop().time()
    await press(home, "which colour is the sky?")

    (turn,) = gate.turns
    assert turn.turn_timeout == 300.0
    assert turn.deadline is not None
    # the deadline is the sum of two spans, so its last digits are rounded
    assert (turn.deadline.when() or 0.0) > started + 299.0
    gate.release("which colour is the sky?")
    await until(lambda: bool(answers))


async def test_turn_in_the_background_leaves_the_session_of_its_pipeline(
    *,
    home: HomeAssistant,
    heard: Heard,
    entry,
    model_server: ModelServer,
    gate: Gate,
    answers: list[Event],
    monkeypatch,
) -> None:
    contexts = list[tuple[Any, Any]]()

    async def look_after(run: ModelRun) -> None:
        await gate.ask_later(run)
        contexts.append((current_chat_log.get(), current_session.get()))

    monkeypatch.setattr(turn_module, "ask_question", look_after)
    await answer_late(home, gate, model_server, answers)

    assert contexts == [(None, None)]


async def test_event_of_the_turn_comes_when_it_has_ended(
    *, home: HomeAssistant, heard: Heard, entry, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    turns = async_capture_events(home, EVENT_TURN)
    gate.close("which colour is the sky?")
    model_server.script(words("Blue."))
    await press(home, "which colour is the sky?")
    assert turns == []
    gate.release("which colour is the sky?")
    await until(lambda: bool(answers) and bool(turns))

    assert turns[0].data["turn_id"] == answers[0].data["turn_id"]


async def test_hand_over_leaves_nothing_behind(
    *, home: HomeAssistant, heard: Heard, entry, model_server: ModelServer, gate: Gate, answers: list[Event]
) -> None:
    await answer_late(home, gate, model_server, answers)

    (agent,) = entry.runtime_data.agents.values()
    running = hand_over._get_running_turns(home)
    assert running.hand_overs == []
    assert not running.is_in_use(SATELLITE)
    assert agent.state.promises.as_dict() == {}
    assert not any("turn of" in task.get_name() or "promised" in task.get_name() for task in asyncio.all_tasks())
