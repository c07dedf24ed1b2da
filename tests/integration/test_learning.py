"""Tests for learning from ended conversations: when they are read, how often, and the suggestions that they leave."""

import asyncio
from collections.abc import Awaitable, Callable
import json
from pathlib import Path
import shutil
import sys
import time
from typing import Any

from freezegun.api import FrozenDateTimeFactory
from homeassistant.const import CONF_LLM_HASS_API
from homeassistant.core import Context, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser

from custom_components.windowed_conversation.agents.background import learning
from custom_components.windowed_conversation.const import (
    CONF_MEMORY,
    CONF_ROUTING,
    CONF_SCOPE,
    DOMAIN,
)
from custom_components.windowed_conversation.memory.core import (
    Fact,
    Memory,
    PastTurn,
    RecallHit,
    take_ended_turns,
)
from demo.model_server import ModelServer, call, words

from .actions import act
from .conftest import SayFn, SetUpFn, get_speech, start, stop
from .remembered import add_fact, add_suggestion, list_facts, memory_of, recorded_turns
from .test_recall import ada, grace, sent

__all__ = ("ada", "grace")

NUTS = "my sister Eva is allergic to nuts"
BINS = "the bins are collected every second Tuesday"
FACTS = {CONF_ROUTING: "model_only", CONF_MEMORY: "suggestions"}
WITH_TOOLS = {CONF_LLM_HASS_API: ["assist"]}
SPOKEN = FACTS | {CONF_ROUTING: "local_first"}
HAS_ENDED = "has ended."
# A question for suggestions, and the sentences that keep, share, and deny them.
LEARNED_IN_LANGUAGES = {
    "cs": ("co ses dnes naučil?", "pro mě", "pro všechny", "to není pravda"),
    "da": ("hvad har du lært i dag?", "husk det", "for alle", "det er forkert"),
    "de": ("was hast du gelernt?", "behalte das", "für alle", "das stimmt nicht"),
    "en": ("what did you learn?", "keep that", "for everybody", "that's wrong"),
    "es": ("¿qué has aprendido?", "guárdalo", "para todos", "eso es falso"),
    "fr": ("qu'as-tu appris ?", "garde ça", "pour tous", "c'est faux"),
    "it": ("cosa hai imparato?", "ricordalo", "per tutti", "è sbagliato"),
    "ja": ("何を学びましたか？", "覚えておいて", "みんなのために", "違います"),
    "nb": ("hva har du lært?", "husk det", "for alle", "det er feil"),
    "nl": ("wat heb je geleerd?", "onthoud dat", "voor iedereen", "dat klopt niet"),
    "pl": ("czego się nauczyłeś?", "zapamiętaj to", "dla wszystkich", "to nieprawda"),
    "pt": ("o que aprendeste?", "guarda isso", "para todos", "isso está errado"),
    "pt-BR": ("o que você aprendeu?", "guarde isso", "para todos", "isso está errado"),
    "sv": ("vad har du lärt dig?", "kom ihåg det", "för alla", "det är fel"),
    "uk": ("чого ти навчився?", "запам'ятай це", "для всіх", "це неправда"),
    "zh-Hans": ("你学到了什么？", "记住", "给大家", "不对"),
}
THINGS = (
    *("ladder", "tent", "drill", "iron", "sledge", "globe", "cello", "easel", "loom", "kayak"),
    *("anvil", "canoe", "organ", "crib", "quilt", "trunk", "lathe", "harp", "kite", "raft"),
)

type EndFn = Callable[[], Awaitable[None]]
type BeginFn = Callable[[], Awaitable[list[Any]]]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an agent check for ended conversations after each change."""
    monkeypatch.setattr(learning, "_CHECK_SECONDS", 0.0)


@pytest.fixture
def end(home: HomeAssistant, monkeypatch: pytest.MonkeyPatch) -> EndFn:
    """Return a function that lets all conversations end, and waits until they were read."""

    async def end() -> None:
        # a check that is still running would keep the next one from starting
        await home.async_block_till_done(wait_background_tasks=True)
        with monkeypatch.context() as patch:
            patch.setattr(learning, "QUIET_SECONDS", -1.0)
            for entry in home.config_entries.async_loaded_entries(DOMAIN):
                for agent in entry.runtime_data.agents.values():
                    agent.notify_listeners()
            await home.async_block_till_done(wait_background_tasks=True)

    return end


@pytest.fixture
def begin(home: HomeAssistant, monkeypatch: pytest.MonkeyPatch) -> BeginFn:
    """Return a function that lets all conversations end, and returns the requests once one has begun. It never ends."""

    async def begin() -> list[Any]:
        # a check that is still running would keep the next one from starting
        await home.async_block_till_done(wait_background_tasks=True)
        has_begun, requests = asyncio.Event(), []

        async def hang(*args: Any, **_more: Any) -> dict[str, Any]:
            requests.append(args)
            has_begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        monkeypatch.setattr(learning, "_async_request", hang)
        monkeypatch.setattr(learning, "QUIET_SECONDS", -1.0)
        for entry in home.config_entries.async_loaded_entries(DOMAIN):
            for agent in entry.runtime_data.agents.values():
                agent.notify_listeners()
        async with asyncio.timeout(30):
            await has_begun.wait()
        return requests

    return begin


def readings(model_server: ModelServer) -> list[str]:
    """Return the conversations in the requests that read one, oldest request first."""
    bodies = [request.body["messages"] for request in model_server.requests]
    return [body[1]["content"] for body in bodies if HAS_ENDED in str(body[0]["content"])]


def extraction(*facts: dict[str, Any], summary: str = "") -> Any:
    """Return a model's answer with these facts."""
    return words(json.dumps({"summary": summary, "facts": facts}))


async def list_learned(home: HomeAssistant, person: str | None = None) -> list[Fact]:
    """Return the learned facts that a person may see."""
    return [fact for fact in await list_facts(home, person) if fact.turn is not None]


async def summaries(home: HomeAssistant, person: str | None = None) -> list[str]:
    """Return the summaries that a person may see."""
    found = await memory_of(home).async_read(
        lambda memory: memory.recall(person=person, kinds=("summary",)), list[RecallHit]()
    )
    return [each.text for each in found]


async def talk(say: SayFn, *sentences: str, **more: Any) -> None:
    """Say each sentence in one conversation."""
    for sentence in sentences:
        await say(sentence, **more)


async def test_ended_conversation_leaves_facts_in_the_words_of_the_person(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, ada: Context
) -> None:
    await set_up(**FACTS)
    await talk(say, "hello", f"{NUTS}, by the way", BINS, context=ada)

    await end()

    found = {fact.text: (fact.person, fact.private, fact.quote) for fact in await list_learned(home, ada.user_id)}
    assert found == {NUTS: (ada.user_id, True, f"{NUTS}, by the way"), BINS: (ada.user_id, True, BINS)}


async def test_ended_conversation_leaves_a_summary(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, ada: Context
) -> None:
    await set_up(**FACTS | {CONF_MEMORY: "summaries"})
    await talk(say, NUTS, BINS, context=ada)

    await end()

    assert await summaries(home, ada.user_id) == [f"Said: {NUTS}; {BINS}"]
    assert await list_learned(home, ada.user_id) == []


async def test_answer_about_an_ended_conversation_is_the_last_one_of_the_server(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, ada: Context
) -> None:
    entry = await set_up(**FACTS)
    await talk(say, NUTS, BINS, context=ada)
    await home.async_block_till_done()
    before = entry.runtime_data.server.cache.answered_at

    await end()

    assert entry.runtime_data.server.cache.answered_at > before


async def test_request_has_numbered_sentences_and_answers_and_nothing_else(
    set_up: SetUpFn, say: SayFn, end: EndFn, model_server: ModelServer, ada: Context
) -> None:
    await set_up(**FACTS)
    model_server.script(words("Noted."), words("All right."))
    await talk(say, NUTS, BINS, context=ada)

    await end()

    (read,) = readings(model_server)
    assert read.partition("\n\n")[0].splitlines() == [
        f"1. Person: {NUTS}",
        "   Assistant: Noted.",
        f"2. Person: {BINS}",
        "   Assistant: All right.",
    ]
    assert "tools" not in model_server.requests[-1].body


async def test_conversation_is_read_once(set_up: SetUpFn, say: SayFn, end: EndFn, model_server: ModelServer) -> None:
    await set_up(**FACTS)
    await talk(say, BINS, "hello")

    await end()
    await end()

    assert len(readings(model_server)) == 1


async def test_later_turns_of_a_conversation_are_read_alone(
    set_up: SetUpFn, say: SayFn, end: EndFn, model_server: ModelServer
) -> None:
    await set_up(**FACTS)
    await talk(say, BINS, "hello")
    await end()
    await talk(say, "the spare key is kept in the shed", "thank you")

    await end()

    assert len(readings(model_server)) == 2
    assert "Tuesday" not in readings(model_server)[1]


async def test_conversation_of_one_turn_is_not_read(
    set_up: SetUpFn, say: SayFn, end: EndFn, model_server: ModelServer
) -> None:
    await set_up(**FACTS)
    await say(BINS)

    await end()

    assert readings(model_server) == []


async def test_conversation_that_goes_on_is_not_read(set_up: SetUpFn, say: SayFn, model_server: ModelServer) -> None:
    await set_up(**FACTS)

    await talk(say, BINS, "hello", "hello")

    assert readings(model_server) == []


@pytest.mark.parametrize(
    "off",
    [{CONF_MEMORY: "on"}, {CONF_MEMORY: "off"}, {CONF_ROUTING: "local_only"}],
    ids=["option", "memory", "routing"],
)
async def test_nothing_is_requested_imported_or_marked_where_it_is_off(
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    end: EndFn,
    *,
    model_server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    off: dict[str, Any],
) -> None:
    monkeypatch.delitem(sys.modules, f"custom_components.{DOMAIN}.agents.background.learning")
    await set_up(**FACTS | off)
    await talk(say, BINS, "hello")

    await end()

    assert readings(model_server) == []
    assert await count_unread(home) == 0


async def count_unread(home: HomeAssistant) -> int:
    """Return the number of turns that are marked as unread."""

    def count(memory: Any) -> int:
        with memory.database.read_transaction() as connection:
            unread: int = connection.execute("SELECT count(*) FROM unread").fetchone()[0]
        return unread

    return await memory_of(home).async_read(count, 0)


async def test_learning_is_off_by_default(entry: MockConfigEntry, get_agent) -> None:
    assert get_agent(entry).config.memory_mode == "on"


async def test_learning_module_is_not_imported_by_default(
    set_up: SetUpFn, say: SayFn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"custom_components.{DOMAIN}.agents.background.learning")
    await set_up()
    await talk(say, BINS, "hello")

    assert f"custom_components.{DOMAIN}.agents.background.learning" not in sys.modules


async def test_turn_in_which_the_model_remembered_is_not_read(
    set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer, ada: Context
) -> None:
    await set_up(**FACTS)
    model_server.script(call("remember", text=NUTS, quote=NUTS), words("Noted."))
    await talk(say, NUTS, BINS, "hello", context=ada)

    await end()

    assert ["Eva" in each for each in readings(model_server)] == [False]


async def test_each_person_is_read_alone(
    set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer, ada: Context, grace: Context
) -> None:
    await set_up(**FACTS | {CONF_SCOPE: "agent"})
    await talk(say, NUTS, "hello", context=ada)
    await talk(say, "I always sleep badly", "hello", context=grace)

    await end()

    assert [("Eva" in each, "sleep" in each) for each in readings(model_server)] == [(True, False), (False, True)]


async def test_fact_of_a_person_is_seen_by_nobody_else(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, ada: Context, grace: Context
) -> None:
    await set_up(**FACTS)
    await talk(say, NUTS, BINS, context=ada)

    await end()

    assert await list_facts(home, grace.user_id) == []
    assert await list_facts(home) == []
    assert await summaries(home, grace.user_id) == []


async def test_unknown_speaker_leaves_a_summary_and_no_suggestion(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, model_server: ModelServer
) -> None:
    await set_up(**FACTS)
    await talk(say, BINS, NUTS, "the spare key is kept in the shed")

    await end()

    assert await list_facts(home) == []
    assert await summaries(home) == [f"Said: {BINS}; the spare key is kept in the shed"]
    assert "quote" not in str(model_server.requests[-1].body)


async def test_unknown_speakers_in_a_window_that_everybody_shares_are_not_read(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, model_server: ModelServer
) -> None:
    await set_up(**FACTS | {CONF_SCOPE: "agent"})
    await talk(say, BINS, "the spare key is kept in the shed")

    await end()

    assert await summaries(home) == []
    assert readings(model_server) == []


INVENTED_FACTS: tuple[Any, ...] = (
    {"number": 1, "quote": "my sister Eva is allergic to milk", "lasts": True},
    {"number": 1, "quote": "Eva", "lasts": True},
    {"number": 1, "quote": NUTS, "lasts": False},
    {"number": 1, "quote": NUTS, "lasts": "yes"},
    {"number": 1, "quote": NUTS, "lasts": True, "subject": "Grace"},
    {"number": 7, "quote": "", "lasts": True},
    {"number": "x", "quote": None, "words": {"a": 1}, "lasts": True},
    {"fact": "Eva hates Ada"},
    "allergic to nuts",
    7,
    None,
)


async def test_invented_fact_is_not_stored(
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    end: EndFn,
    *,
    model_server: ModelServer,
    ada: Context,
    subtests: pytest.Subtests,
) -> None:
    await set_up(**FACTS)
    for number, fact in enumerate(INVENTED_FACTS):
        with subtests.test(fact=fact):
            facts = await list_facts(home, ada.user_id)
            model_server.script(words("Noted."), words("Hello."), extraction(fact))
            await talk(say, NUTS, "hello", conversation_id=f"talk {number}", context=ada)

            await end()

            assert list(model_server.answer_script.remaining_answers) == []
            assert await list_facts(home, ada.user_id) == facts


ODD_ANSWERS = ("", "Nothing.", "[]", "{", '{"facts": 3}', '{"summary": {"a": 1}, "facts": {}}')


async def test_odd_answer_stores_nothing_and_the_next_turn_works(
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    end: EndFn,
    *,
    model_server: ModelServer,
    ada: Context,
    subtests: pytest.Subtests,
) -> None:
    await set_up(**FACTS)
    for answer in ODD_ANSWERS:
        with subtests.test(answer=answer):
            memories = await list_facts(home, ada.user_id), await summaries(home, ada.user_id)
            model_server.script(words("Noted."), words("Hello."), words(answer), words(answer))
            await talk(say, NUTS, "hello", conversation_id=f"answer {answer}", context=ada)

            await end()

            assert (await list_facts(home, ada.user_id), await summaries(home, ada.user_id)) == memories
            assert get_speech(await say("what time is it", f"answer {answer}", context=ada))
            assert list(model_server.answer_script.remaining_answers) == []


async def test_invented_summary_is_not_stored(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer, ada: Context
) -> None:
    await set_up(**FACTS)
    summary = "Everybody may open the front door with the code 1234."
    model_server.script(words("Noted."), words("Hello."), extraction(summary=summary))
    await talk(say, NUTS, "hello", context=ada)

    await end()

    assert await summaries(home, ada.user_id) == []


async def test_fact_without_a_subject_gets_the_persons_own_words_for_it(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, ada: Context
) -> None:
    await set_up(**FACTS)
    await talk(say, "my daughter comes on Friday", "she is allergic to eggs", context=ada)

    await end()

    assert [fact.text for fact in await list_learned(home, ada.user_id)] == ["my daughter: she is allergic to eggs"]


async def test_what_was_told_is_no_suggestion(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, ada: Context
) -> None:
    await set_up(**SPOKEN)
    await say(f"remember that {BINS}", "other", context=ada)
    await talk(say, BINS, "tell me about pelicans", context=ada)

    await end()

    assert [(fact.source, fact.tellings) for fact in await list_facts(home, ada.user_id)] == [("said", 1)]


async def test_suggestion_replaces_no_fact_that_was_told(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer, ada: Context
) -> None:
    monday = "the bins are collected every second Monday"
    await set_up(**SPOKEN)
    await say(f"remember that {monday}", "other", context=ada)
    await talk(say, BINS, "tell me about pelicans", context=ada)

    await end()
    await say("tell me a story", "later", context=ada)

    assert {fact.text for fact in await list_facts(home, ada.user_id)} == {monday, BINS}
    system = sent(model_server)
    assert f"{BINS} (mentioned" in system
    assert f"{monday} (mentioned" not in system


async def test_forgotten_fact_is_not_learned_again(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer, ada: Context
) -> None:
    await set_up(**SPOKEN)
    await talk(say, NUTS, "tell me about pelicans", "tell me a story", context=ada)
    await end()
    await say("forget that my sister Eva is allergic to nuts", "other", context=ada)

    await end()

    assert await list_facts(home, ada.user_id) == []
    assert await summaries(home, ada.user_id) == []
    assert len(readings(model_server)) == 1


async def test_turn_that_was_forgotten_before_the_end_is_not_read(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer, ada: Context
) -> None:
    await set_up(**FACTS)
    await talk(say, "hello", NUTS, "tell me a story", context=ada)
    await act(home, "forget", ada, query="allergic nuts")

    await end()

    assert "nuts" not in "".join(readings(model_server))


async def test_answer_that_comes_after_something_was_forgotten_is_dropped(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, monkeypatch: pytest.MonkeyPatch, ada: Context
) -> None:
    await set_up(**FACTS)
    await talk(say, NUTS, "hello", context=ada)
    ask = learning._async_request

    async def forget_meanwhile(*args: Any, **more: Any) -> dict[str, Any]:
        data = await ask(*args, **more)
        await act(home, "forget", ada, query="allergic nuts")
        return data

    monkeypatch.setattr(learning, "_async_request", forget_meanwhile)
    await end()

    assert await list_facts(home, ada.user_id) == []
    assert await summaries(home, ada.user_id) == []


async def test_restart_before_the_end_reads_the_conversation_once(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer, ada: Context
) -> None:
    entry = await set_up(**FACTS)
    await talk(say, NUTS, "hello", context=ada)
    await stop(home, entry)
    await start(home, entry)

    await end()
    await end()

    assert len(readings(model_server)) == 1
    assert [fact.text for fact in await list_learned(home, ada.user_id)] == [NUTS]


async def test_reload_during_the_request_reads_it_at_most_once(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, begin: BeginFn, ada: Context
) -> None:
    entry = await set_up(**FACTS)
    await talk(say, NUTS, "hello", context=ada)
    requests = await begin()
    await home.config_entries.async_reload(entry.entry_id)
    await end()

    assert len(requests) == 1


async def test_file_of_a_home_that_was_killed_during_the_request_has_nothing_to_read(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, *, begin: BeginFn, tmp_path: Path
) -> None:
    entry = await set_up(**FACTS)
    await talk(say, BINS, "hello")
    copy = tmp_path / "killed.db"
    await begin()

    def read_copy() -> tuple[dict[int, PastTurn], int]:
        for suffix in ("", "-wal"):
            shutil.copy(f"{memory_of(home).writer.path}{suffix}", f"{copy}{suffix}")
        memory = Memory(copy, ("en",))
        unread = take_ended_turns(memory, next(iter(entry.subentries)), time.time() + 1)
        turns = memory.statistics().turns
        memory.close()
        return unread, turns

    assert await home.async_add_executor_job(read_copy) == ({}, 2)


async def test_account_that_is_removed_during_the_request_stores_nothing(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, *, begin: BeginFn, caplog: Any
) -> None:
    entry, other = await set_up(**FACTS), await set_up()
    await talk(say, BINS, "hello")
    await begin()
    await home.config_entries.async_remove(entry.entry_id)
    await home.async_block_till_done(wait_background_tasks=True)

    assert home.config_entries.async_entries(DOMAIN) == [other]
    assert await list_learned(home) == []
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("fault", ["401", "quota", "500"])
async def test_failed_request_is_not_repeated(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer, ada: Context, fault: str
) -> None:
    await set_up(**FACTS)
    await talk(say, NUTS, "hello", context=ada)

    model_server.fault(fault)
    await end()
    model_server.faults.armed = None
    await end()

    assert await list_facts(home, ada.user_id) == []
    assert len(readings(model_server)) == 1


async def test_pause_of_the_provider_is_waited_for(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, get_agent, model_server: ModelServer
) -> None:
    entry = await set_up(**FACTS)
    await talk(say, BINS, "hello")
    get_agent(entry).model.pause.begin(60.0)

    await end()

    assert readings(model_server) == []
    assert await count_unread(home) == 2


async def test_twenty_conversations_are_read_one_after_another(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, monkeypatch: pytest.MonkeyPatch, ada: Context
) -> None:
    await set_up(**FACTS)
    for thing in THINGS:
        await talk(say, f"the {thing} is kept in the attic", "hello", conversation_id=thing, context=ada)
    ask, running, most = learning._async_request, [], []

    async def count_requests(*args: Any, **more: Any) -> dict[str, Any]:
        running.append(1)
        most.append(len(running))
        try:
            return await ask(*args, **more)
        finally:
            running.pop()

    monkeypatch.setattr(learning, "_async_request", count_requests)
    await end()

    assert (len(most), max(most)) == (20, 1)
    assert len(await list_learned(home, ada.user_id)) == 20


async def test_reading_is_recorded_and_billed_once(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, ada: Context
) -> None:
    await set_up(**FACTS)
    await talk(say, NUTS, "hello", context=ada)

    await end()

    (record,) = [each for each in await recorded_turns(home) if each["route"] == "summary"]
    assert (record["person"], record["conversation_id"], record["reason"]) == (ada.user_id, "test", "ended")
    assert not record["has_text"]
    assert [each["purpose"] for each in record["attempts"]] == ["summary"]
    assert record["attempts"][0]["usage"] is not None


async def test_suggestions_come_after_what_was_told_in_the_prompt(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer, ada: Context
) -> None:
    await set_up(**FACTS)
    await add_fact(home, "I see Doctor Keller", person=ada.user_id, private=True, at=1_700_000_000.0)
    await talk(say, BINS, "hello", context=ada)
    await end()

    await say("hello", "later", context=ada)

    system = model_server.requests[-1].body["messages"][0]["content"]
    assert 0 < system.index("Keller") < system.index(f"{BINS} (mentioned")


async def test_turned_off_again_suggestions_stay(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer, ada: Context
) -> None:
    entry = await set_up(**FACTS)
    await talk(say, BINS, "hello", context=ada)
    await end()
    (subentry,) = entry.subentries.values()
    home.config_entries.async_update_subentry(entry, subentry, data={**subentry.data, CONF_MEMORY: "on"})
    await home.async_block_till_done()
    await talk(say, "the spare key is kept in the shed", "hello", conversation_id="later", context=ada)

    await end()

    assert [fact.text for fact in await list_learned(home, ada.user_id)] == [BINS]
    assert "shed" not in "".join(readings(model_server))


async def test_removed_person_is_not_read(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer
) -> None:
    await set_up(**FACTS)
    user = MockUser(name="Guest").add_to_hass(home)
    await talk(say, NUTS, "hello", context=Context(user_id=user.id))
    await home.auth.async_remove_user(user)

    await end()

    assert readings(model_server) == []
    assert "Eva" not in sent(model_server).partition(HAS_ENDED)[2]


TEXTS = (
    "my sister Eva is allergic to nuts",
    "the spare key is kept in the shed",
    "my boss is called Mister Lind",
    "our cat never eats fish",
)


async def mention(home: HomeAssistant, person: Context, *texts: str) -> None:
    """Store a turn and a suggestion of a person for each text, the newest last."""
    for number, text in enumerate(texts):
        await add_suggestion(home, person.user_id, text, time.time() - 60 + number)


async def ask(say: SayFn, text: str, context: Context, **more: Any) -> str:
    return get_speech(await say(text, context=context, **more))


async def waiting(home: HomeAssistant, person: Context) -> list[str]:
    """Return the suggestions of a person that wait, newest first."""
    return [fact.text for fact in await list_learned(home, person.user_id)]


@pytest.mark.usefixtures("entry")
async def test_suggestions_are_read_three_at_a_time_and_kept_with_a_yes(
    home: HomeAssistant, say: SayFn, ada: Context
) -> None:
    await mention(home, ada, *TEXTS)

    first = await ask(say, "what did you learn?", ada)
    second = await ask(say, "yes please", ada)
    third = await ask(say, "yes", ada)

    assert [text in first for text in TEXTS] == [False, True, True, True]
    assert second.startswith("Noted, only for you:")
    assert TEXTS[0] in second
    assert third == f"Noted, only for you: {TEXTS[0]}"
    assert {fact.text for fact in await list_facts(home, ada.user_id)} == set(TEXTS)
    assert await waiting(home, ada) == []
    assert await list_facts(home) == []


@pytest.mark.usefixtures("entry")
@pytest.mark.parametrize(
    ("said", "own", "homes"),
    [
        ("keep that", [TEXTS[0]], []),
        ("keep it", [TEXTS[0]], []),
        ("for everybody", [], [TEXTS[0]]),
        ("that's wrong", [], []),
    ],
)
async def test_suggestion_is_decided_by_voice(
    *, home: HomeAssistant, say: SayFn, ada: Context, said: str, own: list[str], homes: list[str]
) -> None:
    await mention(home, ada, TEXTS[0])
    await ask(say, "what did you learn?", ada)

    await ask(say, said, ada)

    facts = await list_facts(home, ada.user_id)
    assert [fact.text for fact in facts if fact.person is not None] == own
    assert [fact.text for fact in facts if fact.person is None] == homes
    assert await waiting(home, ada) == []


@pytest.mark.usefixtures("entry")
async def test_no_leaves_suggestions_where_they_are(home: HomeAssistant, say: SayFn, ada: Context) -> None:
    await mention(home, ada, TEXTS[0])
    await ask(say, "what did you learn?", ada)

    assert await ask(say, "no", ada) == "All right."

    assert await waiting(home, ada) == [TEXTS[0]]


@pytest.mark.usefixtures("entry")
async def test_decision_is_no_decision_without_the_question(home: HomeAssistant, say: SayFn, ada: Context) -> None:
    await mention(home, ada, TEXTS[0])
    await ask(say, "what did you learn?", ada)
    await ask(say, "tell me about pelicans", ada)

    for said in ("for everybody", "keep that", "that's wrong"):
        await ask(say, said, ada)

    assert await waiting(home, ada) == [TEXTS[0]]


@pytest.mark.usefixtures("entry")
async def test_suggestions_of_another_person_are_neither_read_nor_decided(
    home: HomeAssistant, say: SayFn, *, ada: Context, grace: Context
) -> None:
    await mention(home, ada, TEXTS[0])
    await ask(say, "what did you learn?", ada)

    heard = [await ask(say, "what did you learn?", each) for each in (grace, Context())]
    await ask(say, "for everybody", grace)

    assert heard == ["I've learned nothing new."] * 2
    assert await waiting(home, ada) == [TEXTS[0]]


@pytest.mark.usefixtures("entry")
async def test_what_is_known_has_no_suggestion(home: HomeAssistant, say: SayFn, ada: Context) -> None:
    await mention(home, ada, TEXTS[0])

    assert await ask(say, "what do you know about me?", ada) == "I don't remember anything yet."


@pytest.mark.usefixtures("entry")
async def test_suggestion_that_corrects_a_fact_says_so_when_it_is_kept(
    home: HomeAssistant, say: SayFn, ada: Context
) -> None:
    await add_fact(home, "my tablet is due at 8", person=ada.user_id, private=True)
    await mention(home, ada, "my tablet is due at 9")
    await ask(say, "what did you learn?", ada)

    answer = await ask(say, "keep that", ada)

    assert "It replaces: my tablet is due at 8" in answer
    assert [fact.text for fact in await list_facts(home, ada.user_id)] == ["my tablet is due at 9"]


@pytest.mark.usefixtures("entry")
async def test_suggestions_are_asked_about_in_each_language(
    home: HomeAssistant, say: SayFn, ada: Context, subtests: pytest.Subtests
) -> None:
    for language, (question, *answers) in LEARNED_IN_LANGUAGES.items():
        for number, answer in enumerate(answers):
            with subtests.test(language=language, answer=answer):
                text = f"{language} {number}: my friend {THINGS[number]} plays the cello"
                await mention(home, ada, text)
                asked = await ask(say, question, ada, language=language)
                await ask(say, answer, ada, language=language)

                assert text in asked
                assert await waiting(home, ada) == []


async def count_turns(home: HomeAssistant) -> int:
    found = await memory_of(home).async_change(Memory.statistics)
    return found.turns


async def test_conversation_that_is_marked_as_private_leaves_nothing_and_is_not_read(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer, ada: Context
) -> None:
    await set_up(**SPOKEN)
    await talk(say, NUTS, "tell me a story", conversation_id="other", context=ada)
    await talk(say, "Tom takes antidepressants", "tell me about pelicans", context=ada)

    answer = await ask(say, "keep this between us", ada)
    await talk(say, "Tom is afraid of them", "tell me about whales", context=ada)
    await end()

    assert answer == "That stays between us. I keep nothing of this conversation."
    assert ["Tom" in each for each in readings(model_server)] == [False]
    assert await count_turns(home) == 2
    assert [fact.text for fact in await list_learned(home, ada.user_id)] == [NUTS]


async def test_private_conversation_takes_its_suggestions_and_summaries_along(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, ada: Context
) -> None:
    await set_up(**SPOKEN)
    await talk(say, NUTS, "tell me a story", context=ada)
    await end()

    await ask(say, "don't remember this", ada)

    assert await list_facts(home, ada.user_id) == []
    assert await summaries(home, ada.user_id) == []
    assert await count_turns(home) == 0


async def test_mark_of_one_person_leaves_what_another_one_said(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, *, ada: Context, grace: Context
) -> None:
    await set_up(**SPOKEN | {CONF_SCOPE: "agent"})
    await talk(say, "tell me about pelicans", context=grace)
    await talk(say, NUTS, context=ada)

    await ask(say, "keep this between us", ada)

    assert await count_turns(home) == 1


async def test_conversation_is_kept_again_once_the_private_one_has_ended(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, *, ada: Context, freezer: FrozenDateTimeFactory
) -> None:
    await set_up(**SPOKEN)
    await ask(say, "keep this between us", ada)
    await talk(say, "tell me about whales", context=ada)
    assert await count_turns(home) == 0

    freezer.tick(601)
    await talk(say, "tell me about pelicans", context=ada)

    assert await count_turns(home) == 1


async def test_model_marks_a_conversation_as_private_and_deletes_nothing_by_itself(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer, ada: Context
) -> None:
    await set_up(**SPOKEN, **WITH_TOOLS)
    await talk(say, NUTS, "tell me a story", context=ada)
    model_server.script(call("forget", query="this conversation"), words("Just between us, then."))

    await talk(say, "you are my confidant now, so hush", "Tom takes antidepressants", context=ada)
    await end()

    assert readings(model_server) == []
    assert await count_turns(home) == 2


async def test_model_deletes_a_private_conversation_if_the_person_asks_for_it(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer, ada: Context
) -> None:
    await set_up(**SPOKEN, **WITH_TOOLS)
    await talk(say, NUTS, "tell me a story", context=ada)
    model_server.script(call("forget", query="this conversation"), words("Forgotten."))

    await talk(say, "you had better forget all of our chat here", context=ada)
    await end()

    assert readings(model_server) == []
    assert await count_turns(home) == 0
