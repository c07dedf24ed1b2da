"""Tests that a satellite speaks the language in which it was spoken to, in all sixteen: one behaviour in each test."""

import asyncio
from collections.abc import Awaitable, Callable
import json
from pathlib import Path
from typing import Any

from home_assistant_intents import get_intents
from homeassistant.components import conversation
from homeassistant.components.assist_pipeline.pipeline import async_get_pipeline, async_update_pipeline
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.const import ATTR_ENTITY_ID, SERVICE_TURN_OFF, Platform
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import area_registry as ar, entity_registry as er
from homeassistant.helpers.chat_session import DATA_CHAT_SESSION
from homeassistant.setup import async_setup_component
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.bridge import fillers
from demo.model_server import ModelServer, words
from tests.repository_files import PACKAGE
from tests.routing.entities import Light, Spec

from .conftest import get_speech, start, stop, until
from .remembered import memory_of
from .satellite import Ask, Heard
from .states import get_state

SENTENCES: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("spoken_sentences.json").read_text(encoding="utf-8")
)
TEXTS = {path.stem: json.loads(path.read_text("utf-8")) for path in (PACKAGE / "translations").glob("*.json")}

ENGLISH_ANSWER = (get_intents("en") or {})["responses"]["intents"]["HassTurnOn"]["lights_area"]


type Begin = Callable[[str], Awaitable[dict[str, Any]]]


@pytest.fixture
def begin(
    home: HomeAssistant, entry: MockConfigEntry, heard: Heard, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Begin:
    """Return a function that starts the account and its memory anew in another language, and returns its sentences.

    The home, its satellite and the pipeline speak that language from then on.
    """
    monkeypatch.setattr(fillers, "FILLER_SECONDS", (60.0,))

    async def begin(language: str) -> dict[str, Any]:
        await stop(home, entry)
        await home.async_add_executor_job(store_path.unlink)
        # the satellite's conversation would go on
        home.data.pop(DATA_CHAT_SESSION, None)
        home.config.language = language
        await start(home, entry)
        await async_update_pipeline(home, async_get_pipeline(home), language=language, conversation_language=language)
        return SENTENCES[language]

    return begin


def get_text(language: str, key: str) -> str:
    """Return a text in the language, which is another one than in English."""
    text, english = (TEXTS[code]["common"][key] for code in (language, "en"))
    assert (text == english) is (language == "en")
    # the satellite hears any white space as a space
    return " ".join(text.split())


def get_spoken_fact(language: str) -> str:
    """Return the fact as it is said: in the order of a main clause, or as a clause where that order is not sure."""
    sentences = SENTENCES[language]
    return sentences.get("main_clause") or f"{sentences.get('conjunction', '')} {sentences['fact']}".strip()


def test_every_spoken_language_has_sentences() -> None:
    assert SENTENCES.keys() == TEXTS.keys()
    assert len(SENTENCES) == 16


@pytest.fixture
def room(home: HomeAssistant) -> ar.AreaEntry:
    """Create an area for a light, and return it."""
    return ar.async_get(home).async_create("Room")


@pytest.fixture
async def light_id(home: HomeAssistant, room: ar.AreaEntry) -> str:
    """Add a light to the room, and return its entity id."""
    assert await async_setup_component(home, Platform.LIGHT, {})
    light = Light(Spec("light.lamp", "Lamp", None, None, "off", {}))
    await home.data[Platform.LIGHT].async_add_entities([light])
    er.async_get(home).async_update_entity(light.entity_id, area_id=room.id)
    async_expose_entity(home, "conversation", light.entity_id, should_expose=True)
    return light.entity_id


async def test_command_is_answered_as_home_assistant_answers_it(
    *, home: HomeAssistant, room: ar.AreaEntry, light_id: str, begin: Begin, ask: Ask, subtests: pytest.Subtests
) -> None:
    for language in SENTENCES:
        with subtests.test(language):
            sentences = await begin(language)
            aliases = set(sentences.get("aliases", ()))
            ar.async_get(home).async_update(room.id, name=sentences["area"], aliases=aliases)
            await home.services.async_call(Platform.LIGHT, SERVICE_TURN_OFF, {ATTR_ENTITY_ID: light_id}, blocking=True)

            spoken = await ask(sentences["command"])

            assert get_state(home, light_id).state == "on"
            own_agent = conversation.HOME_ASSISTANT_AGENT
            own = await conversation.async_converse(home, sentences["command"], None, Context(), language, own_agent)
            assert spoken == get_speech(own)
            assert (spoken == ENGLISH_ANSWER) is (language == "en")


async def test_fact_is_remembered(begin: Begin, ask: Ask, subtests: pytest.Subtests) -> None:
    for language in SENTENCES:
        with subtests.test(language):
            sentences = await begin(language)

            remembered = get_text(language, "memory_remembered_home").format(facts=get_spoken_fact(language))
            assert await ask(sentences["remember"]) == remembered


async def test_fact_is_recalled(begin: Begin, ask: Ask, subtests: pytest.Subtests) -> None:
    for language in SENTENCES:
        with subtests.test(language):
            sentences = await begin(language)
            await ask(sentences["remember"])

            spoken = await ask(sentences["recall"])

            assert spoken == get_text(language, "memory_known_home").format(facts=get_spoken_fact(language))


async def test_fact_is_forgotten(home: HomeAssistant, begin: Begin, ask: Ask, subtests: pytest.Subtests) -> None:
    for language in SENTENCES:
        with subtests.test(language):
            sentences = await begin(language)
            await ask(sentences["remember"])

            spoken = await ask(sentences["forget"])

            assert spoken == get_text(language, "memory_forgotten").format(facts=get_spoken_fact(language))
            assert await memory_of(home).async_read(lambda memory: len(memory.get_facts(None)), 1) == 0


async def test_failure_of_the_model_is_told(
    begin: Begin, ask: Ask, model_server: ModelServer, subtests: pytest.Subtests
) -> None:
    for language in SENTENCES:
        with subtests.test(language):
            sentences = await begin(language)
            model_server.fault("500")

            spoken = await ask(sentences["question"])

            model_server.faults.armed = None
            assert spoken == f"{get_text(language, 'heard_unreachable')} {get_text(language, 'heard_local_works')}"


async def test_filler_opens_a_slow_answer(
    *,
    heard: Heard,
    begin: Begin,
    ask: Ask,
    model_server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    monkeypatch.setattr(fillers, "FILLER_SECONDS", (0.01, 0.02))
    for language in SENTENCES:
        with subtests.test(language):
            sentences = await begin(language)
            model_server.script(words("42."))
            hold = model_server.hold(after_words=0)
            heard.begin()

            answer = asyncio.create_task(ask(sentences["question"]))
            await until(lambda: len(heard.pieces) > 1)
            hold.release()

            assert await answer == f"{TEXTS[language]['common']['filler_sound']} {get_text(language, 'filler')} 42."
            assert heard.utterances[1] == get_text(language, "filler")
