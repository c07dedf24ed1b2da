"""Tests of the facts that a family tells its home over months: the newest wins, and no other true fact is lost.

A row of `life_events.json` has the language, the way in which the second fact reaches memory, both facts, and whether
the newest wins or both are true. For a model's tool, it also has the fact that the model says it replaces.
"""

from dataclasses import dataclass, replace
from datetime import datetime
import json
from pathlib import Path

from homeassistant.core import Context, HomeAssistant
from homeassistant.util import dt as dt_util
import pytest
from pytest_homeassistant_custom_component.common import MockUser

from custom_components.windowed_conversation.memory.core import Memory
from custom_components.windowed_conversation.memory.turn.recall import RecallText, build_prompt_facts
from custom_components.windowed_conversation.memory.turn.remember_requests import recall_lines
from custom_components.windowed_conversation.memory.turn.speaker import Speaker
from demo.model_server import ModelServer, call, words

from .conftest import SayFn, get_speech
from .remembered import memory_of

EVENTS: dict[str, list[list[str]]] = json.loads(
    Path(__file__).with_name("life_events.json").read_text(encoding="utf-8")
)
REMEMBER = {
    "en": "remember that {}",
    "de": "merk dir: {}",
    "fr": "retiens que {}",
    "es": "recuerda que {}",
    "nl": "onthoud: {}",
    "it": "ricorda che {}",
}
_MAX_ASKED = 6


@dataclass(frozen=True, slots=True)
class Event:
    """A fact that a family told, and a later one."""

    language: str
    way: str
    old: str
    new: str
    wins: str
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The current facts after all events, and the new facts after which memory asked whether they replace another."""

    memory: Memory
    speaker: Speaker
    current: frozenset[str]
    asked: tuple[str, ...]


@pytest.fixture(params=EVENTS)
def events(request: pytest.FixtureRequest) -> list[Event]:
    return [Event(*row) for row in EVENTS[request.param]]


@pytest.fixture
async def outcome(home: HomeAssistant, entry, say: SayFn, *, model_server: ModelServer, events: list[Event]) -> Outcome:
    """Tell everything to a home, first all old facts and then all new ones. Confirm what is asked about an update."""
    anna = MockUser(name="Anna").add_to_hass(home)
    asked = []

    async def tell(text: str, language: str) -> str:
        return get_speech(await say(text, context=Context(user_id=anna.id), language=language))

    for event in events:
        await tell(REMEMBER[event.language].format(event.old), event.language)
    for event in events:
        if event.way == "tool":
            model_server.script(call("remember", text=event.new, quote=event.new, **_name(event)), words("Noted."))
        text = {"remember": REMEMBER[event.language], "correct": "that's wrong, {}", "tool": "{}"}[event.way]
        speech = await tell(text.format(event.new), event.language)
        if speech.endswith(("?", "？")):
            asked.append(event.new)
            await tell("yes" if event.wins == "newest" else "no", event.language)
    opened = memory_of(home).writer.open_store
    assert opened is not None
    current = frozenset(fact.text for fact in opened.get_facts(anna.id))
    return Outcome(opened, Speaker("", "en", anna.id, "Anna", is_alone=True), current, tuple(asked))


def _name(event: Event) -> dict[str, str]:
    return {"replaces": event.replaces} if event.replaces else {}


def shows_newest(outcome: Outcome, event: Event) -> bool:
    """Return whether the profile, and the tool that recalls, have the new fact first, each with its day."""
    facts = [each for each in outcome.memory.get_facts(outcome.speaker.person) if each.text in (event.old, event.new)]
    narrator = RecallText("Anna", dt_util.now())
    profile = build_prompt_facts(facts, narrator, len).text
    day = f" (told {datetime.fromtimestamp(facts[0].at, dt_util.now().tzinfo):%a %Y-%m-%d})"
    lines = "\n".join(
        recall_lines(outcome.memory, replace(outcome.speaker, language=event.language), event.old, dt_util.UTC)
    )
    return f"{event.new}{day}\n{event.old}{day}" in profile and -1 < lines.find(event.new) < lines.find(event.old)


async def test_newest_wins_and_nothing_else_is_lost(outcome: Outcome, events: list[Event]) -> None:
    lost = [each.old for each in events if each.wins == "both" and not {each.old, each.new} <= outcome.current]
    stale = [
        each.new
        for each in events
        if each.wins == "newest"
        and (each.new not in outcome.current or (each.old in outcome.current and not shows_newest(outcome, each)))
    ]

    assert (lost, stale) == ([], [])
    assert len(outcome.asked) <= _MAX_ASKED
