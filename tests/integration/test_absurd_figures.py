"""Tests for absurd token counts from a server: totals never decrease, and entity states and conversations survive."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from homeassistant.const import CONF_MODEL
from homeassistant.core import HomeAssistant, State
from homeassistant.helpers.json import json_bytes
from homeassistant.helpers.restore_state import async_get
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import CONF_FAMILY
from demo.model_server import ModelServer

from .account_kinds import COMPATIBLE, VENDORS
from .actions import act
from .conftest import SayFn, SetUpFn, get_speech, start, stop

_CHAT = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "total_tokens")
_RESPONSES = (
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "total_tokens",
)
_MESSAGES = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "ephemeral_5m_input_tokens",
    "thinking_tokens",
)
_GEMINI = (
    "promptTokenCount",
    "candidatesTokenCount",
    "cachedContentTokenCount",
    "thoughtsTokenCount",
    "totalTokenCount",
    "tokenCount",
)

FORMATS = {
    kind.name: (kind, places, model)
    for (kind, places, model) in zip(
        (COMPATIBLE, *VENDORS),
        (_CHAT, _RESPONSES, _RESPONSES, _GEMINI, _MESSAGES),
        ("scripted", "gpt-5-mini", "gpt-5-mini", "gemini-2.5-flash", "claude-haiku-4-5"),
        strict=True,
    )
}
FIGURES: dict[str, str | None] = {
    "negative": "-100000",
    "huge": "1" + "0" * 400,
    "above 64 bits": str(2**64),
    "boolean": "true",
    "fractional": "1.5",
    "no number of JSON": "1e999",
    "textual": '"7"',
    "null": "null",
    "missing": None,
}


@dataclass(frozen=True, slots=True)
class Reports:
    """A server that can report wrong usage; `places` are the names of its token counts.

    `number` is that of the format, because formats with the same places have other values in each of them.
    """

    server: ModelServer
    number: int
    places: tuple[str, ...]
    entry: MockConfigEntry

    def some_places(self) -> Iterable[dict[str, str | None]]:
        """Yield counts to report: each absurd value in two places, one at a time, and correct counts at last.

        Each place has at least three of the values, and a correct count after each of them.
        """
        places = self.places
        for at, figure in enumerate(FIGURES.values(), self.number):
            yield {places[at % len(places)]: figure}
            yield {places[(at + len(places) // 2) % len(places)]: figure}
        yield {}

    def every_place(self) -> Iterable[dict[str, str | None]]:
        """Yield counts to report: each absurd value in all places at once, and correct counts at last."""
        for figure in FIGURES.values():
            yield dict[str, str | None].fromkeys(self.places, figure)
        yield {}


@pytest.fixture
async def reports(request: pytest.FixtureRequest, set_up: SetUpFn, model_server: ModelServer, say: SayFn) -> Reports:
    """Set up an agent of each wire format that has had one turn."""
    kind, places, model = FORMATS[request.param]
    model_server.change(models=("scripted", model), shapes=("reasoning",))
    entry = await set_up(account=kind.account(model_server), **{CONF_MODEL: model, CONF_FAMILY: model})
    await say(f"my name is Ada{' and the sea is wide' * 1000}")
    return Reports(model_server, [*FORMATS].index(request.param), places, entry)


def sums(home: HomeAssistant) -> dict[str, float]:
    """Return the states of the sensors whose value never decreases."""
    states = (state for state in home.states.async_all("sensor") if _is_sum(state))
    return {state.entity_id: float(state.state) for state in states}


def _is_sum(state: State) -> bool:
    return state.attributes.get("state_class") in {"total", "total_increasing"}


@pytest.mark.long
@pytest.mark.parametrize("reports", FORMATS, indirect=True)
async def test_every_answer_is_heard_and_no_sum_falls(home: HomeAssistant, reports: Reports, say: SayFn) -> None:
    heard, shown = [], [sums(home)]

    for bent in reports.some_places():
        reports.server.change(figures=bent)
        heard.append(get_speech(await say("I would like the kitchen light switched on")))
        shown.append(sums(home))

    assert {"kitchen light" in each for each in heard} == {True}
    assert [
        (name, before[name], after[name])
        for before, after in pairwise(shown)
        for name in before
        if not before[name] <= after[name] <= before[name] + 10**10
    ] == []


@pytest.mark.parametrize("reports", FORMATS, indirect=True)
async def test_states_of_the_home_can_be_written(
    home: HomeAssistant, reports: Reports, say: SayFn, caplog: pytest.LogCaptureFixture
) -> None:
    for bent in reports.every_place():
        reports.server.change(figures=bent)
        await say("I would like the kitchen light switched on")
        assert json_bytes([state.as_dict() for state in home.states.async_all()])
    caplog.clear()

    await async_get(home).async_dump_states()

    assert json_bytes([stored.as_dict() for stored in async_get(home).async_get_stored_states()])
    assert "Error" not in caplog.text


async def held(home: HomeAssistant) -> list[dict[str, Any]]:
    """Return the messages of the conversation without the system prompt, which is set again in each turn."""
    messages = (await act(home, "get_conversation"))["messages"]
    return [message for message in messages if message["role"] != "system"]


@pytest.mark.parametrize("reports", FORMATS, indirect=True)
async def test_conversation_is_read_again_as_it_was(
    home: HomeAssistant, reports: Reports, say: SayFn, get_agent: Callable[[MockConfigEntry], Any]
) -> None:
    for bent in reports.every_place():
        reports.server.change(figures=bent)
        await say("I would like the kitchen light switched on")
    before = await held(home)
    tokens = [message["tokens"] for message in before]

    await stop(home, reports.entry)
    await start(home, reports.entry)

    assert await held(home) == before
    assert min(tokens) > 0
