"""Tests that the first local command after a start of Home Assistant waits for nothing that later ones do not."""

from collections.abc import Callable
from inspect import unwrap
from typing import Any

from hassil import parse_sentence
from hassil.intents import Intents
from homeassistant.const import EVENT_HOMEASSISTANT_STARTED
from homeassistant.core import CoreState, HomeAssistant
import pytest

from custom_components.windowed_conversation.const import CONF_ROUTING
from custom_components.windowed_conversation.turn.routing import RoutingMode

from .conftest import SayFn, SetUpFn, get_speech

type ParseCount = Callable[[], int]


@pytest.fixture
def parse_count(monkeypatch: pytest.MonkeyPatch) -> ParseCount:
    """Return a function that returns how many sentences have been parsed."""
    # other tests share the parsed sentences
    monkeypatch.setattr(Intents, "from_dict", staticmethod(unwrap(Intents.from_dict)))
    parsed: list[str] = []

    def parse(text: str, **options: Any) -> Any:
        parsed.append(text)
        return parse_sentence(text, **options)

    monkeypatch.setattr("hassil.intents.parse_sentence", parse)
    return lambda: len(parsed)


async def start(home: HomeAssistant) -> None:
    """End the start of Home Assistant."""
    home.set_state(CoreState.running)
    home.bus.async_fire(EVENT_HOMEASSISTANT_STARTED)
    await home.async_block_till_done(wait_background_tasks=True)


async def test_first_command_after_a_start_parses_no_sentence(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, parse_count: ParseCount
) -> None:
    home.set_state(CoreState.starting)
    await set_up()
    await start(home)
    parsed_at_start = parse_count()

    assert get_speech(await say("turn on the kitchen light")) == "Turned on the switch"

    assert (parsed_at_start > 0, parse_count() - parsed_at_start) == (True, 0)


async def test_set_up_does_not_wait_for_the_sentences(
    home: HomeAssistant, set_up: SetUpFn, parse_count: ParseCount
) -> None:
    home.set_state(CoreState.starting)

    await set_up()

    assert parse_count() == 0


async def test_nothing_is_prepared_for_agents_that_answer_nothing_locally(
    home: HomeAssistant, set_up: SetUpFn, parse_count: ParseCount
) -> None:
    home.set_state(CoreState.starting)
    await set_up(**{CONF_ROUTING: RoutingMode.MODEL_ONLY})

    await start(home)

    assert parse_count() == 0
