"""Tests for the answers to questions about turns: why, how long, for how much, and during an absence."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
import json
from pathlib import Path
import time
from typing import Any

from homeassistant.core import Context, HomeAssistant
from homeassistant.util import dt as dt_util
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from demo.model_server import ModelServer
from tests.record.recorded import record, writes

from .conftest import SayFn, SetUpFn, flush_store
from .page import Visit, visit
from .remembered import memory_of
from .test_memory_actions import People, people

__all__ = ["people", "visit"]

SENTENCES = json.loads((Path(__file__).parent.parent / "bridge" / "turn_questions.json").read_text("utf-8"))

type Keep = Callable[..., Coroutine[Any, Any, None]]


@pytest.fixture
def keep(home: HomeAssistant, entry: MockConfigEntry) -> Keep:
    """Return a function that records turns of the agent, each given as its fields."""
    agent_id = next(iter(entry.subentries))

    async def keep(*turns: dict[str, Any]) -> None:
        for number, fields in enumerate(turns):
            memory_of(home).writer.put(*writes(record(number, **{"agent": agent_id, "attempts": [], **fields})))
        await flush_store(home)

    return keep


async def test_why_is_answered_with_the_sentence_and_the_reason(
    entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    await say("turn on the kitchen light", "mine")
    local = (await say("why did you do that?", "mine")).response.speech["plain"]["speech"]
    await say("make the kitchen cosy", "mine")
    model = (await say("why did you do that?", "mine")).response.speech["plain"]["speech"]

    assert local == "I answered without the model: it understood the command."
    assert model == ("I asked the model: Home Assistant has no sentence for this.")
    assert len(model_server.requests) == 1


async def test_why_is_not_answered_with_the_words_of_another_person(
    entry: MockConfigEntry, visit: Visit, say: SayFn
) -> None:
    ada, grace = await visit("Ada"), await visit("Grace")
    await say("what is a herring", "adas", context=ada.context)

    answer = await say("why did you do that?", "graces", context=grace.context)

    assert answer.response.speech["plain"]["speech"] == "I know of nothing that came before."


async def test_duration_is_explained_with_the_longest_step(
    entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.change(latency=0.5)
    await say("make the kitchen cosy", "mine")

    speech = (await say("what took you so long?", "mine")).response.speech["plain"]["speech"]

    assert speech.startswith("It took ")
    assert speech.endswith("of them for this: Request to the model.")


async def test_cost_is_that_of_everybody_today_and_this_month(keep: Keep, people: People, say: SayFn) -> None:
    today = dt_util.start_of_local_day()
    before = today.replace(day=1) - timedelta(hours=1)
    await keep(
        {"time": today.timestamp() + 1, "cost": "0.0125", "person": people.ada.user_id},
        {"time": today.timestamp() + 2, "cost": "0.0305", "person": people.grace.user_id},
        {"time": before.timestamp(), "cost": "5"},
    )

    speech = (await say("how much did you cost today?")).response.speech["plain"]["speech"]
    month = (await say("how much did you cost this month?")).response.speech["plain"]["speech"]

    assert speech == "Today 4.3 US cents so far (questions: 2)."
    assert month == "This month 4.3 US cents so far (questions: 3)."


async def test_absence_has_the_turns_since_the_last_word_until_the_arrival(
    home: HomeAssistant, keep: Keep, people: People, say: SayFn
) -> None:
    now = time.time()
    home.states.async_set("person.ada", "home", {"user_id": people.ada.user_id})
    await keep(
        {"time": now - 400, "person": None},
        {"time": now - 300, "person": people.ada.user_id},
        {"time": now - 200, "person": None, "route": "local"},
        {"time": now - 100, "person": None, "outcome": "error", "error": "unavailable"},
        {"time": now - 50, "person": people.grace.user_id},
        {"time": now - 40, "person": None, "route": "summary"},
    )

    said = await say("what did you do while I was away?", context=Context(user_id=people.ada.user_id))

    speech = said.response.speech["plain"]["speech"]
    assert speech.endswith("questions: 2, answered without the model: 1, failed: 1.")


async def test_each_question_is_answered_without_the_model_in_each_language(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer, subtests: pytest.Subtests
) -> None:
    await set_up()
    answers = {}
    for language, kinds in SENTENCES.items():
        await say("hello", "mine", language=language)
        asked = len(model_server.requests)
        for kind, (first, *_) in kinds.items():
            with subtests.test(language=language, kind=kind):
                said = await say(first, "mine", language=language)
                answers[language, kind] = said.response.speech["plain"]["speech"]
                assert "{" not in answers[language, kind]
                assert len(model_server.requests) == asked
    assert len({*answers.values()}) > len(answers) / 2
