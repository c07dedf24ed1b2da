"""Tests for the search words of facts: written with the fact, or requested in the background for those without any."""

import json
from typing import Any

from homeassistant.core import Context, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockUser, async_capture_events

from custom_components.windowed_conversation.agents.background import search_words
from custom_components.windowed_conversation.bridge.turn_report import EVENT_REPLACED
from custom_components.windowed_conversation.const import CONF_MEMORY, CONF_ROUTING
from custom_components.windowed_conversation.memory.core import Replacement
from custom_components.windowed_conversation.turn.routing import RoutingMode
from demo.model_server import ModelServer, call, words

from .conftest import AGENT, SayFn, SetUpFn, flush_store, until
from .remembered import add_fact, list_facts, memory_of, recorded_turns
from .test_recall import ada, asked, grace, sent

__all__ = ("ada", "grace")

FUSES = "the fuse box is behind the wardrobe"
WRITTEN = words("1: power cut, blackout, electricity gone")
BLACKOUT = "the electricity is gone, is it a blackout?"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a model be idle at once, and no fact be in the prompt."""
    monkeypatch.setattr(search_words, "_IDLE_SECONDS", 0.0)
    monkeypatch.setattr("custom_components.windowed_conversation.memory.turn.recall.MAX_PROMPT_FACT_TOKENS", 0)


def requested(model_server: ModelServer) -> list[str]:
    """Return the lists of facts in the requests for search words."""
    bodies = [request.body["messages"] for request in model_server.requests]
    return [body[1]["content"] for body in bodies if "told these facts" in str(body[0]["content"])]


async def list_unwritten(home: HomeAssistant, person: str | None = None) -> list[str]:
    """Return the facts that have no search words yet."""
    return [fact.text for fact in await list_facts(home, person) if fact.search_words is None]


async def settle(home: HomeAssistant) -> None:
    """Wait until the background work after a turn has ended."""
    await home.async_block_till_done(wait_background_tasks=True)


async def test_fact_told_without_a_model_is_found_in_other_words(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.script(WRITTEN, words("See the fuse box."))
    await say(f"remember that {FUSES}", "one")
    await settle(home)

    await say(BLACKOUT, "two")
    await settle(home)

    assert requested(model_server) == [f"1: {FUSES}"]
    assert f'the home: "{FUSES}"' in asked(model_server)[1]


async def test_search_words_are_an_answer_of_the_server(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.script(WRITTEN)
    assert entry.runtime_data.server.cache.answered_at is None

    # no model answers this
    await say(f"remember that {FUSES}")
    await settle(home)

    assert entry.runtime_data.server.cache.answered_at is not None


async def test_search_words_are_never_sent_as_something_that_was_said(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    await add_fact(home, FUSES, search_words="blackout, zebra, electricity")

    await say(BLACKOUT)
    await say("what do you know about me?")

    assert FUSES in sent(model_server)
    assert "zebra" not in sent(model_server)


async def test_model_writes_search_words_with_the_fact(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    await set_up(**{CONF_ROUTING: RoutingMode.MODEL_ONLY})
    model_server.script(
        call("remember", text=FUSES, quote=FUSES, words="power cut, blackout, electricity gone"),
        words("Noted."),
        words("See the fuse box."),
    )

    await say(FUSES, "one")
    await settle(home)
    await say(BLACKOUT, "two")

    (schema,) = [tool for tool in model_server.requests[0].body["tools"] if tool["function"]["name"] == "remember"]
    assert schema["function"]["parameters"]["properties"]["words"]["description"].endswith(", in en")
    assert f'the home: "{FUSES}"' in asked(model_server)[1]
    assert requested(model_server) == []


@pytest.mark.parametrize("odd", [None, 7, ["power cut", 7, "blackout"], {"a": 1}, "x" * 5_000])
async def test_odd_search_words_store_the_fact(
    home: HomeAssistant, entry, say: SayFn, *, model_server: ModelServer, odd: Any
) -> None:
    model_server.script(call("remember", text=FUSES, quote=FUSES, words=odd), words("Noted."))

    await say(FUSES)

    assert [fact.text for fact in await list_facts(home)] == [FUSES]


async def test_request_is_made_once(home: HomeAssistant, entry, say: SayFn, model_server: ModelServer) -> None:
    await add_fact(home, FUSES)
    await add_fact(home, "the vet is called Keller")
    for number in range(3):
        await say("hello there", f"{number}")
        await settle(home)

    assert requested(model_server) == [f"1: the vet is called Keller\n2: {FUSES}"]
    assert await list_unwritten(home) == []


async def test_facts_beyond_twenty_wait_for_the_next_turn(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    for number in range(25):
        await add_fact(home, f"the locker {number} is blue")
    for number in range(3):
        await say("hello there", f"{number}")
        await settle(home)

    assert [len(each.splitlines()) for each in requested(model_server)] == [20, 5]


@pytest.mark.parametrize(
    "off",
    [
        {CONF_MEMORY: "off"},
        {CONF_ROUTING: RoutingMode.LOCAL_ONLY},
    ],
    ids=["memory", "routing"],
)
async def test_nothing_is_requested_where_it_is_off(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, *, model_server: ModelServer, off: dict[str, Any]
) -> None:
    await set_up(**off)
    await add_fact(home, FUSES)

    await say("remember that the vet is called Keller")
    await settle(home)

    assert requested(model_server) == []


async def test_nothing_is_requested_while_the_provider_asked_for_a_pause(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.fault("429", 1, retry_after=600)
    await say("tell me about fish")
    model_server.log.clear()
    await add_fact(home, FUSES)

    await say("remember that the vet is called Keller")
    await settle(home)

    assert model_server.requests == []


async def test_failed_request_is_repeated_after_the_next_fact(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.fault("422", 1)
    await say(f"remember that {FUSES}")
    await settle(home)
    unwritten = await list_unwritten(home)
    await say("hello there")
    await settle(home)
    await say("remember that the cat is called Tom")
    await settle(home)

    assert unwritten == [FUSES]
    assert requested(model_server) == [f"1: {FUSES}", f"1: the cat is called Tom\n2: {FUSES}"]
    assert await list_unwritten(home) == []


async def test_private_fact_is_sent_only_when_its_owner_talks_to_the_model(
    home: HomeAssistant, entry, say: SayFn, *, model_server: ModelServer, ada: Context, grace: Context
) -> None:
    await add_fact(home, "Ada hides the key in the jar", person=ada.user_id, private=True)
    await say("hello there", "grace", context=grace)
    await say("hello there", "nobody")
    await settle(home)
    before = requested(model_server)
    await say("hello there", "ada", context=ada)
    await settle(home)

    assert (before, requested(model_server)) == ([], ["1: Ada hides the key in the jar"])


async def test_model_says_what_a_fact_replaces(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    events = async_capture_events(home, EVENT_REPLACED)
    old = await add_fact(home, "the piano teacher teaches at the old school", search_words="")
    new = "the piano teacher has a studio in Mill Lane"

    model_server.script(
        call("remember", text=new, quote=new, words="one, two"), words("Noted."), words(f"1: music, replaces {old}")
    )
    await say(new)
    await settle(home)

    (fact,) = await list_facts(home)
    assert requested(model_server) == [f"1: {new}\n   [{old}] the piano teacher teaches at the old school"]
    assert (fact.text, fact.search_words) == (new, "one, two")
    assert [event.data for event in events] == [{"entity_id": AGENT, "fact": f"fact:{fact.id}"}]
    (replacement,) = await memory_of(home).async_read(lambda memory: memory.get_replacements(), list[Replacement]())
    assert await memory_of(home).async_change(lambda memory: memory.undo_replacement(replacement))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("the piano teacher has a dog", "the window cleaner has a van"),
        ("the piano teacher has a dog", "the piano teacher has a cat too"),
        ("bus 12 stops at the school gate", "bus 14 stops at the church gate"),
        ("Nora takes one tablet at 8", "Nora takes one tablet at 20"),
    ],
    ids=["another thing", "as well", "another number in the name", "twice a day"],
)
async def test_model_cannot_replace_a_fact_that_may_be_true(
    home: HomeAssistant, entry, say: SayFn, *, model_server: ModelServer, old: str, new: str
) -> None:
    row = await add_fact(home, old, search_words="")
    model_server.script(words(f"1: music, replaces {row}"))

    await say(f"remember that {new}")
    await settle(home)

    assert requested(model_server) == [f"1: {new}"]
    assert {fact.text for fact in await list_facts(home)} == {old, new}


async def test_model_cannot_replace_a_fact_of_another_owner(
    home: HomeAssistant, entry, say: SayFn, *, model_server: ModelServer, ada: Context
) -> None:
    old = "Ada hides the key in the jar"
    row = await add_fact(home, old, person=ada.user_id, private=True, search_words="")
    new = "the key is hidden in a jar in the shed"
    model_server.script(words(f"1: secret, replaces {row}"))

    await say(f"remember that {new}", context=ada)
    await settle(home)

    assert {fact.text for fact in await list_facts(home, ada.user_id)} == {old, new}


async def test_model_is_not_asked_what_a_person_was_asked(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    row = await add_fact(home, "the spare key is under the mat", search_words="")
    model_server.script(words(f"1: entrance, replaces {row}"))

    await say("remember that the spare key is in the shed")
    await say("no")
    await settle(home)

    assert requested(model_server) == ["1: the spare key is in the shed"]
    assert len(await list_facts(home)) == 2


async def test_fact_that_is_forgotten_meanwhile_gets_none(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.script(words("Hello."), WRITTEN)
    row = await add_fact(home, FUSES)
    await say("hello there")
    hold = model_server.hold(after_words=2)
    await until(lambda: len(requested(model_server)) == 1)
    await memory_of(home).async_change(lambda memory: memory.forget(ids=[("fact", row)]))
    hold.release()
    await settle(home)

    assert "blackout" not in "".join(await memory_of(home).async_read(lambda memory: list(memory.export()), []))


async def test_request_is_counted_and_recorded_without_text(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    entry = await set_up(**{CONF_ROUTING: RoutingMode.MODEL_ONLY, "record": "full"})
    (agent,) = entry.runtime_data.agents.values()
    model_server.script(words("Hello."), WRITTEN)
    await add_fact(home, FUSES)
    await say("hello there")
    await settle(home)
    await flush_store(home)

    (record,) = [each for each in await recorded_turns(home) if each["route"] == "search_words"]
    assert (record["outcome"], [each["purpose"] for each in record["attempts"]]) == ("answered", ["search_words"])
    assert not record["has_text"]
    assert "fuse" not in json.dumps(record)
    assert agent.statistics.as_dict()["requests"] == 2


async def test_home_s_languages_are_those_of_its_pipelines_and_speakers(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    user = MockUser(name="Heidi").add_to_hass(home)
    await add_fact(home, FUSES)

    await say("hallo, wie geht es dir?", language="de", context=Context(user_id=user.id))
    await settle(home)

    assert ", in en, de: " in sent(model_server)
