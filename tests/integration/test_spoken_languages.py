"""Tests that a satellite speaks the language in which it was spoken to, in all sixteen: one behaviour in each test."""

import json
from pathlib import Path
from typing import Any

from home_assistant_intents import get_intents
from homeassistant.components import conversation
from homeassistant.components.assist_pipeline.pipeline import async_get_pipeline, async_update_pipeline
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.const import Platform
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import area_registry as ar, entity_registry as er
from homeassistant.setup import async_setup_component
import pytest

from custom_components.windowed_conversation.agents import hand_over
from demo.model_server import ModelServer, words
from tests.repository_files import PACKAGE
from tests.routing.entities import Light, Spec

from .conftest import get_speech
from .remembered import memory_of
from .satellite import Ask, Heard
from .states import get_state

SENTENCES: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("spoken_sentences.json").read_text(encoding="utf-8")
)
TEXTS = {path.stem: json.loads(path.read_text("utf-8")) for path in (PACKAGE / "translations").glob("*.json")}
MARKS = {path.stem: json.loads(path.read_text("utf-8")).get("marks") for path in (PACKAGE / "languages").glob("*.json")}

ENGLISH_ANSWER = (get_intents("en") or {})["responses"]["intents"]["HassTurnOn"]["lights_area"]


@pytest.fixture(params=sorted(SENTENCES))
async def language(request: pytest.FixtureRequest, home: HomeAssistant) -> str:
    """Let the home speak a language, and return its code."""
    code: str = request.param
    home.config.language = code
    return code


@pytest.fixture
def sentences(language: str) -> dict[str, Any]:
    return SENTENCES[language]


@pytest.fixture
async def speak(*, home: HomeAssistant, language: str, heard: Heard, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Return a function that speaks to a satellite whose pipeline is in the language, and returns what was heard."""
    monkeypatch.setattr(hand_over, "FILLER_SECONDS", 60.0)
    await async_update_pipeline(home, async_get_pipeline(home), language=language, conversation_language=language)
    return ask


def get_text(language: str, key: str) -> str:
    """Return a text in the language, which is another one than in English."""
    text, english = (TEXTS[code]["common"][key] for code in (language, "en"))
    assert (text == english) is (language == "en")
    # the satellite hears any white space as a space
    return " ".join(text.split())


def quote(language: str, text: str) -> str:
    """Return a fact between the quotation marks of the language."""
    opening, closing = (MARKS[language.partition("-")[0]] or {"quotes": '""'})["quotes"]
    return f"{opening}{text}{closing}"


def get_remembered_text(language: str) -> str:
    """Return the answer to the fact to remember, which is a clause in a language with another word order in clauses."""
    sentences = SENTENCES[language]
    if "conjunction" in sentences:
        return get_text(language, "memory_remembered_home_clause").format(facts=sentences["fact"])
    return get_text(language, "memory_remembered_home").format(facts=quote(language, sentences["fact"]))


def test_every_spoken_language_has_sentences() -> None:
    assert SENTENCES.keys() == TEXTS.keys()
    assert len(SENTENCES) == 16


@pytest.fixture
async def kitchen_light(home: HomeAssistant, sentences: dict[str, Any]) -> str:
    """Add a light to the kitchen, both named in the language, and return its entity id."""
    area = ar.async_get(home).async_create(sentences["area"], aliases=set(sentences.get("aliases", ())))
    assert await async_setup_component(home, Platform.LIGHT, {})
    light = Light(Spec("light.lamp", "Lamp", None, None, "off", {}))
    await home.data[Platform.LIGHT].async_add_entities([light])
    er.async_get(home).async_update_entity(light.entity_id, area_id=area.id)
    async_expose_entity(home, "conversation", light.entity_id, should_expose=True)
    return light.entity_id


async def test_command_is_answered_as_home_assistant_answers_it(
    *, home: HomeAssistant, language: str, sentences: dict[str, Any], kitchen_light: str, speak: Ask
) -> None:
    spoken = await speak(sentences["command"])

    assert get_state(home, kitchen_light).state == "on"
    own_agent = conversation.HOME_ASSISTANT_AGENT
    own = await conversation.async_converse(home, sentences["command"], None, Context(), language, own_agent)
    assert spoken == get_speech(own)
    assert (spoken == ENGLISH_ANSWER) is (language == "en")


async def test_fact_is_remembered(language: str, sentences: dict[str, Any], speak: Ask) -> None:
    spoken = await speak(sentences["remember"])

    assert spoken == get_remembered_text(language)


async def test_fact_is_recalled(language: str, sentences: dict[str, Any], speak: Ask) -> None:
    await speak(sentences["remember"])

    spoken = await speak(sentences["recall"])

    listed = f"{sentences.get('conjunction', '')} {sentences['fact']}".strip()
    assert spoken == get_text(language, "memory_known_home").format(facts=quote(language, listed))


async def test_fact_is_forgotten(home: HomeAssistant, language: str, sentences: dict[str, Any], speak: Ask) -> None:
    await speak(sentences["remember"])

    spoken = await speak(sentences["forget"])

    assert spoken == get_text(language, "memory_forgotten").format(facts=quote(language, sentences["fact"]))
    assert await memory_of(home).async_read(lambda memory: len(memory.get_facts(None)), 1) == 0


async def test_failure_of_the_model_is_told(
    language: str, sentences: dict[str, Any], speak: Ask, model_server: ModelServer
) -> None:
    model_server.fault("500")

    spoken = await speak(sentences["question"])

    texts = {code: TEXTS[code]["exceptions"]["unavailable"]["message"] for code in (language, "en")}
    assert spoken == texts[language]
    assert (spoken == texts["en"]) is (language == "en")


async def test_filler_opens_a_slow_answer(
    *,
    language: str,
    sentences: dict[str, Any],
    heard: Heard,
    speak: Ask,
    model_server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hand_over, "FILLER_SECONDS", 0.15)
    model_server.change(delay=0.4)
    model_server.script(words("42."))

    assert await speak(sentences["question"]) == f"{get_text(language, 'filler')} 42."
    assert heard.utterances[0] == get_text(language, "filler")
