"""Tests for what is read of the languages and their sentences at set-up, and that a turn reads nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from inspect import unwrap
import json
from pathlib import Path
import sys
import threading
from types import SimpleNamespace

from hassil import intents as hassil_intents
from hassil.parse_expression import parse_sentence
from homeassistant.components import conversation
from homeassistant.components.conversation import agent_manager
from homeassistant.components.conversation.default_agent import DefaultAgent
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import area_registry as ar
from homeassistant.util import dt as dt_util
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser, async_fire_time_changed

import custom_components.windowed_conversation as integration
from custom_components.windowed_conversation.const import CONF_ROUTING
from custom_components.windowed_conversation.memory.bridge import sentences
from custom_components.windowed_conversation.memory.turn import recall_query, replies, speaker, updates
from demo.model_server import ModelServer, words

from .conftest import AGENT, SayFn, SetUpFn, get_speech

LANGUAGES = Path(integration.__path__[0]) / "languages"
FILES = {path.stem: path.read_text("utf-8") for path in LANGUAGES.glob("*.json")}
GERMAN_TEMPLATES = {
    template
    for name, templates in json.loads(FILES["de"])["memory"].items()
    if name not in ("yes", "no") and not isinstance(templates, str)
    for template in (templates.values() if isinstance(templates, dict) else templates)
}


@dataclass
class WorkLog:
    """The language files that were opened, whether in the event loop, and how much was parsed."""

    opened: list[str] = field(default_factory=list)
    opened_in_loop: list[str] = field(default_factory=list)
    parsed_files: int = 0
    parsed_templates: int = 0


_LOGS: list[WorkLog] = []
_LOOP_THREAD = threading.main_thread()


def on_audit_event(event: str, arguments: tuple[object, ...]) -> None:
    """Note the language files that the interpreter opens while a log is being kept."""
    if _LOGS and event == "open" and isinstance(arguments[0], str) and Path(arguments[0]).parent == LANGUAGES:
        name = Path(arguments[0]).stem
        _LOGS[0].opened.append(name)
        if threading.current_thread() is _LOOP_THREAD:
            _LOGS[0].opened_in_loop.append(name)


@cache
def watch_interpreter() -> None:
    """Add the audit hook, which stays for the life of the interpreter and slows down everything after it."""
    sys.addaudithook(on_audit_event)


@contextmanager
def logged() -> Iterator[WorkLog]:
    """Keep a log of what is opened and parsed."""
    watch_interpreter()
    log = WorkLog()
    parse_json, parse_template = json.loads, parse_sentence

    def count_file(text, **options):
        log.parsed_files += text in FILES.values()
        return parse_json(text, **options)

    def count_template(text, **options):
        log.parsed_templates += text in GERMAN_TEMPLATES
        return parse_template(text, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json, "loads", count_file)
        patch.setattr(hassil_intents, "parse_sentence", count_template)
        _LOGS.append(log)
        yield log
        _LOGS.clear()


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the languages that were read, as if Home Assistant had just started."""
    monkeypatch.setattr(sentences, "_sentences_by_language", {})
    # the other tests share the parsed templates
    monkeypatch.setattr(sentences, "Intents", SimpleNamespace(from_dict=unwrap(hassil_intents.Intents.from_dict)))
    for module, name in (
        (speaker, "_read_language"),
        (speaker, "_load_words"),
        (replies, "_compile_phrases"),
        (recall_query, "_load_phrases"),
        (updates, "_load_patterns"),
    ):
        monkeypatch.setattr(module, name, cache(unwrap(getattr(module, name))))


@pytest.fixture
def german(home: HomeAssistant) -> str:
    """Let the home speak German."""
    home.config.language = "de"
    return home.config.language


async def test_set_up_reads_the_language_of_the_home_and_english(unread: None, german: str, set_up: SetUpFn) -> None:
    with logged() as log:
        await set_up()

    assert sorted(log.opened) == ["de", "en"]
    assert log.parsed_files == 2


async def test_set_up_reads_no_language_in_the_event_loop(unread: None, german: str, set_up: SetUpFn) -> None:
    with logged() as log:
        await set_up()

    assert log.opened_in_loop == []


async def test_set_up_parses_the_sentences_of_the_language(unread: None, german: str, set_up: SetUpFn) -> None:
    with logged() as log:
        await set_up()

    assert log.parsed_templates > 0


@pytest.mark.parametrize(
    ("said", "answers"),
    [
        ("Merk dir, dass der Müll freitags abgeholt wird", ()),
        ("Was weißt du über mich?", ()),
        ("Vergiss alles über den Zahnarzt", ()),
        ("Ja", ("Gern.",)),
        ("Was hat Anna letzte Woche gesagt?", ("Nichts.",)),
    ],
)
async def test_turn_reads_and_parses_nothing(
    *,
    said: str,
    answers: tuple[str, ...],
    home: HomeAssistant,
    unread: None,
    german: str,
    set_up: SetUpFn,
    say: SayFn,
    model_server: ModelServer,
) -> None:
    await set_up()
    model_server.script(*map(words, answers))
    user = Context(user_id=MockUser(name="Ada", is_owner=True).add_to_hass(home).id)

    with logged() as log:
        answer = await say(said, language="de", context=user)

    assert get_speech(answer)
    assert log == WorkLog()


async def test_first_turn_in_another_language_reads_its_file_once(unread: None, entry, say: SayFn) -> None:
    with logged() as log:
        await say("Che cosa sai di me?", language="it")
        await say("Ricordati che la chiave è nel garage", language="it-CH")

    assert log.opened == ["it"]
    assert log.opened_in_loop == []


async def test_pipeline_that_begins_to_listen_reads_its_language(unread: None, home: HomeAssistant, entry) -> None:
    agent = agent_manager.async_get_agent(home, AGENT)
    assert agent is not None

    with logged() as log:
        await agent.async_prepare("fr-FR")

    assert log.opened == ["fr"]


async def test_sentences_are_loaded_before_they_are_needed(home: HomeAssistant, entry: MockConfigEntry) -> None:
    agent = conversation.agent_manager.async_get_agent(home, AGENT)
    assert agent is not None

    await agent.async_prepare("de")

    own_agent = get_default_agent(home)
    assert "de" in own_agent._lang_intents


def get_default_agent(home: HomeAssistant) -> DefaultAgent:
    """Return Home Assistant's built-in conversation agent."""
    agent = conversation.agent_manager.async_get_agent(home)
    assert isinstance(agent, DefaultAgent)
    return agent


async def get_cached_names(home: HomeAssistant) -> dict | None:
    """Add an area, let six seconds pass, and return the name lists that Home Assistant has cached, or None."""
    own_agent = get_default_agent(home)
    await own_agent.async_prepare("en")
    ar.async_get(home).async_create("Attic")
    await home.async_block_till_done()
    assert own_agent._slot_lists is None
    async_fire_time_changed(home, dt_util.utcnow() + timedelta(seconds=6))
    await home.async_block_till_done(wait_background_tasks=True)
    return own_agent._slot_lists


@pytest.mark.parametrize("routing", ["local_first", "local_only"])
async def test_names_are_collected_again_after_a_change(routing: str, home: HomeAssistant, set_up: SetUpFn) -> None:
    await set_up(**{CONF_ROUTING: routing})

    assert await get_cached_names(home) is not None


async def test_names_are_not_collected_for_an_agent_that_asks_the_model_only(
    home: HomeAssistant, set_up: SetUpFn
) -> None:
    await set_up(**{CONF_ROUTING: "model_only"})

    assert await get_cached_names(home) is None
