"""Tests for Home Assistant's activity log: one line per turn, with agent and duration or the reason of a failure."""

from collections.abc import Callable
from itertools import chain, product
import re
from typing import Any

from homeassistant.core import Context, Event, HomeAssistant
from homeassistant.helpers.translation import async_get_translations
import pytest
from pytest_homeassistant_custom_component.common import async_capture_events

from custom_components.windowed_conversation.bridge.errors import ERROR_KEY_BY_CLASS_NAME
from custom_components.windowed_conversation.bridge.turn_report import (
    EVENT_ANSWER,
    EVENT_FORGOTTEN,
    EVENT_REPLACED,
    EVENT_TURN,
)
from custom_components.windowed_conversation.const import DOMAIN
from custom_components.windowed_conversation.logbook import async_describe_events
from demo.model_server import ModelServer

from .conftest import AGENT, SayFn, get_speech

type GetMessage = Callable[[], str]


@pytest.fixture
def get_message(home: HomeAssistant) -> GetMessage:
    """Return a function that returns the logbook message of the last turn, forgetting or promised answer."""
    events = [async_capture_events(home, kind) for kind in (EVENT_TURN, EVENT_FORGOTTEN, EVENT_REPLACED, EVENT_ANSWER)]
    described: dict[tuple[str, str], Callable[[Event[Any]], dict[str, str]]] = {}
    async_describe_events(home, lambda domain, kind, describe: described.update({(domain, kind): describe}))

    def get_message() -> str:
        event = [*chain(*events)][-1]
        row = described[DOMAIN, str(event.event_type)](event)
        assert (row["name"], row["entity_id"]) == ("Ada", AGENT)
        return row["message"]

    return get_message


async def test_local_turn_was_answered_locally(entry, say: SayFn, get_message: GetMessage) -> None:
    await say("turn on kitchen light")

    assert get_message().startswith("answered locally")


async def test_local_turn_that_took_long_has_its_seconds(home: HomeAssistant, entry, get_message: GetMessage) -> None:
    home.bus.async_fire(EVENT_TURN, {"entity_id": AGENT, "error": None, "route": "local", "duration": 2.34})
    await home.async_block_till_done()

    assert get_message() == "answered locally in 2.3 s"


@pytest.mark.parametrize(("language", "text"), [("de", "lokal in 2,3 s beantwortet"), ("ja", "ローカルで2.3秒で回答")])
async def test_seconds_have_the_decimal_sign_of_the_language(
    home: HomeAssistant, entry, get_message: GetMessage, language: str, text: str
) -> None:
    await home.config.async_update(language=language)
    await async_get_translations(home, language, "common", [DOMAIN])
    home.bus.async_fire(EVENT_TURN, {"entity_id": AGENT, "error": None, "route": "local", "duration": 2.34})
    await home.async_block_till_done()

    assert get_message() == text


ANSWERED_BY = {"model": "the model", "fallback": "Home Assistant"}
SECONDS = {0.04: "<0.1 s", 0.1: "0.1 s", 2.34: "2.3 s"}


async def test_answer_has_its_seconds(
    home: HomeAssistant, entry, get_message: GetMessage, subtests: pytest.Subtests
) -> None:
    for route, duration in product(ANSWERED_BY, SECONDS):
        with subtests.test(route=route, duration=duration):
            turn = {"error": None, "route": route, "answered_by": "conversation.home_assistant", "duration": duration}
            home.bus.async_fire(EVENT_TURN, {"entity_id": AGENT, **turn})
            await home.async_block_till_done()

            assert get_message() == f"answered by {ANSWERED_BY[route]} in {SECONDS[duration]}"


PROMISED_ANSWERS = {
    "announced": "has the promised answer",
    "notified": "has the promised answer",
    "ready": "has the promised answer",
    "ended": "was stopped before the promised answer",
    "interrupted": "was stopped before the promised answer",
}


@pytest.mark.parametrize(
    ("known_by", "note"),
    [
        (None, ""),
        ("login", ""),
        ("pipeline", " (known by the device)"),
        ("satellite", " (known by the device)"),
        ("entity", " (known by voice)"),
        ("prefix", " (known by voice)"),
    ],
)
async def test_turn_says_what_its_speaker_is_known_by(
    home: HomeAssistant, entry, get_message: GetMessage, *, known_by: str | None, note: str
) -> None:
    turn = {"error": None, "route": "local", "answered_by": None, "duration": 2.3, "known_by": known_by}
    home.bus.async_fire(EVENT_TURN, {"entity_id": AGENT, **turn})
    await home.async_block_till_done()

    assert get_message() == f"answered locally in 2.3 s{note}"


async def test_promised_answer_has_its_row(
    home: HomeAssistant, entry, get_message: GetMessage, subtests: pytest.Subtests
) -> None:
    for outcome, message in PROMISED_ANSWERS.items():
        with subtests.test(outcome):
            home.bus.async_fire(EVENT_ANSWER, {"entity_id": AGENT, "outcome": outcome})
            await home.async_block_till_done()

            assert get_message() == message


async def test_sentence_of_the_model_s_turn_has_no_text(entry, say: SayFn, get_message: GetMessage) -> None:
    await say("my name is Grace")

    assert get_message().startswith("answered by the model")
    assert "Grace" not in get_message()


async def test_turn_that_failed_has_the_reason_that_was_spoken(
    entry, say: SayFn, get_message: GetMessage, model_server: ModelServer
) -> None:
    model_server.fault("quota")

    spoken = get_speech(await say("my name is Grace"))

    assert get_message() == f"failed: {spoken}"


async def test_turn_without_a_model_that_failed_has_the_reason(
    entry_without_model, say: SayFn, get_message: GetMessage
) -> None:
    await say("why is the sky blue?")

    assert get_message() == "failed: Home Assistant did not understand it, or could not do it"


async def test_every_failure_has_a_reason_without_figures(
    home: HomeAssistant, entry, get_message: GetMessage, subtests: pytest.Subtests
) -> None:
    for error in sorted({*ERROR_KEY_BY_CLASS_NAME.values(), "unexpected"}):
        with subtests.test(error):
            home.bus.async_fire(EVENT_TURN, {"entity_id": AGENT, "error": error, "route": "model", "duration": 1.0})
            await home.async_block_till_done()

            assert re.fullmatch(r"failed: [^{}]{10,}", get_message())


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, "1 turn of a conversation was forgotten on request"),
        (4, "4 turns of a conversation were forgotten on request"),
    ],
)
async def test_conversation_that_lost_something_has_a_row(
    home: HomeAssistant, entry, get_message: GetMessage, count: int, text: str
) -> None:
    home.bus.async_fire(EVENT_FORGOTTEN, {"entity_id": AGENT, "conversation_id": "mine", "exchanges": count})
    await home.async_block_till_done()

    assert get_message() == text


async def test_replaced_fact_has_a_row(home: HomeAssistant, entry, get_message: GetMessage) -> None:
    home.bus.async_fire(EVENT_REPLACED, {"entity_id": AGENT, "fact": "fact:7"})
    await home.async_block_till_done()

    assert get_message() == "replaced a remembered fact with a newer one; it can be brought back for a day"


async def test_turn_is_the_speaker_s(home: HomeAssistant, entry, say: SayFn, hass_admin_user) -> None:
    turns = async_capture_events(home, EVENT_TURN)

    await say("turn on kitchen light", context=Context(user_id=hass_admin_user.id))

    assert turns[-1].context.user_id == hass_admin_user.id
