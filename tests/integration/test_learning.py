"""Tests for learning from ended conversations: when they are read, how often, what is stored for whom, and when not."""

import asyncio
from collections.abc import Awaitable, Callable
import json
from pathlib import Path
import shutil
import sys
import time
from typing import Any

from homeassistant.core import Context, Event, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser, async_capture_events

from custom_components.windowed_conversation.agents import learning
from custom_components.windowed_conversation.const import (
    CONF_LEARNING,
    CONF_MEMORY,
    CONF_ROUTING,
    CONF_SCOPE,
    DOMAIN,
)
from custom_components.windowed_conversation.memory import (
    LEARNED_SOURCE,
    Fact,
    Memory,
    MemoryListQuery,
    PastTurn,
    RecallHit,
)
from demo.model_server import ModelServer, call, words

from .actions import act
from .conftest import SayFn, SetUpFn, get_speech, start, stop
from .remembered import add_fact, list_facts, memory_of, recorded_turns
from .test_recall import ada, grace, sent

__all__ = ("ada", "grace")

NUTS = "my sister Eva is allergic to nuts"
BINS = "the bins are collected every second Tuesday"
FACTS = {CONF_ROUTING: "model_only", CONF_LEARNING: "facts"}
SPOKEN = FACTS | {CONF_ROUTING: "local_first"}
HAS_ENDED = "has ended."
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
        has_begun, requests = asyncio.Event(), []

        async def hang(*args: Any) -> dict[str, Any]:
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
    return [fact for fact in await list_facts(home, person) if fact.source == LEARNED_SOURCE]


async def summaries(home: HomeAssistant, person: str | None = None) -> list[str]:
    """Return the summaries that a person may see."""
    query = MemoryListQuery(person=person, kinds=("summary",))
    found = await memory_of(home).async_read(lambda memory: memory.list_newest(query), list[RecallHit]())
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
    assert found == {NUTS: (ada.user_id, True, NUTS), BINS: (None, False, BINS)}


async def test_ended_conversation_leaves_a_summary(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, ada: Context
) -> None:
    await set_up(**FACTS | {CONF_LEARNING: "summaries"})
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
    before = entry.runtime_data.server.answered_at

    await end()

    assert entry.runtime_data.server.answered_at > before


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
    [{CONF_LEARNING: "off"}, {CONF_MEMORY: False}, {CONF_ROUTING: "local_only"}],
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
    monkeypatch.delitem(sys.modules, f"custom_components.{DOMAIN}.agents.learning")
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
    assert get_agent(entry).config.learning == "off"


async def test_learning_module_is_not_imported_by_default(
    set_up: SetUpFn, say: SayFn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"custom_components.{DOMAIN}.agents.learning")
    await set_up()
    await talk(say, BINS, "hello")

    assert f"custom_components.{DOMAIN}.agents.learning" not in sys.modules


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

    assert [fact.text for fact in await list_learned(home, grace.user_id)] == [BINS]
    assert [fact.text for fact in await list_learned(home)] == [BINS]
    assert await summaries(home, grace.user_id) == []


async def test_unknown_speaker_leaves_only_facts_of_the_home(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn
) -> None:
    await set_up(**FACTS)
    await talk(say, BINS, NUTS, "I am allergic to cats", "the spare key is kept in the shed")

    await end()

    assert {(fact.text, fact.person) for fact in await list_learned(home)} == {
        (BINS, None),
        ("the spare key is kept in the shed", None),
    }


async def test_window_that_everybody_shares_leaves_no_summary_of_unknown_speakers(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn
) -> None:
    await set_up(**FACTS | {CONF_SCOPE: "agent"})
    await talk(say, BINS, "the spare key is kept in the shed")

    await end()

    assert await summaries(home) == []


INVENTED_FACTS: tuple[Any, ...] = (
    {"number": 1, "quote": "my sister Eva is allergic to milk"},
    {"number": 1, "quote": "Eva"},
    {"number": 7, "quote": ""},
    {"number": "x", "quote": None, "words": {"a": 1}},
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


async def test_known_fact_is_confirmed(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, ada: Context
) -> None:
    await set_up(**SPOKEN)
    await say(f"remember that {BINS}", "other", context=ada)
    await talk(say, BINS, "tell me about pelicans", context=ada)

    await end()

    assert [(fact.source, fact.tellings) for fact in await list_facts(home)] == [("said", 2)]


async def test_correction_replaces_the_older_fact(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, ada: Context
) -> None:
    await set_up(**SPOKEN)
    await say("remember that the bins are collected every second Monday", "other", context=ada)
    await talk(say, BINS, "tell me about pelicans", context=ada)

    await end()

    assert [fact.text for fact in await list_facts(home)] == [BINS]


async def test_what_was_learned_late_does_not_replace_what_was_told_since(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, ada: Context
) -> None:
    await set_up(**SPOKEN)
    await talk(say, BINS, "tell me about pelicans", context=ada)
    await say("remember that the bins are collected every second Monday", "other", context=ada)

    await end()

    assert "the bins are collected every second Monday" in [fact.text for fact in await list_facts(home)]


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

    async def forget_meanwhile(*args: Any) -> dict[str, Any]:
        data = await ask(*args)
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

    def read_copy() -> tuple[tuple[PastTurn, ...], int]:
        for suffix in ("", "-wal"):
            shutil.copy(f"{memory_of(home).writer.path}{suffix}", f"{copy}{suffix}")
        memory = Memory(copy, ("en",))
        unread = memory.take_ended_turns(next(iter(entry.subentries)), time.time() + 1)
        turns = memory.statistics().turns
        memory.close()
        return unread, turns

    assert await home.async_add_executor_job(read_copy) == ((), 2)


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
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, monkeypatch: pytest.MonkeyPatch
) -> None:
    await set_up(**FACTS)
    for thing in THINGS:
        await talk(say, f"the {thing} is kept in the attic", "hello", conversation_id=thing)
    ask, running, most = learning._async_request, [], []

    async def count_requests(*args: Any) -> dict[str, Any]:
        running.append(1)
        most.append(len(running))
        try:
            return await ask(*args)
        finally:
            running.pop()

    monkeypatch.setattr(learning, "_async_request", count_requests)
    await end()

    assert (len(most), max(most)) == (20, 1)
    assert len(await list_learned(home)) == 20


async def test_reading_is_recorded_and_billed_once(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, ada: Context
) -> None:
    await set_up(**FACTS)
    await talk(say, NUTS, "hello", context=ada)

    await end()

    (record,) = [each for each in await recorded_turns(home) if each.route == "learning"]
    assert (record.person, record.conversation, record.words) == (ada.user_id, "test", None)
    assert [each.purpose for each in record.requests] == ["learning"]
    assert record.requests[0].usage is not None


async def test_summaries_alone_fire_no_event_that_activity_shows(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, ada: Context
) -> None:
    await set_up(**FACTS | {CONF_LEARNING: "summaries"})
    events: list[Event] = async_capture_events(home, f"{DOMAIN}_learned")
    for conversation_id in ("one", "two"):
        await say(NUTS, conversation_id, context=ada)
        await say(BINS, conversation_id, context=ada)

    await end()

    assert len(await summaries(home, ada.user_id)) == 2
    assert events == []


async def test_event_has_ids_and_no_text(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, ada: Context
) -> None:
    await set_up(**FACTS)
    events: list[Event] = async_capture_events(home, f"{DOMAIN}_learned")
    await talk(say, NUTS, "hello", context=ada)

    await end()

    (event,), (fact,) = events, await list_learned(home, ada.user_id)
    assert event.data == {
        "entity_id": "conversation.ada",
        "conversation_id": "test",
        "person": ada.user_id,
        "facts": [fact.id],
        "summary": True,
    }


async def test_learned_facts_come_after_told_ones_in_the_prompt(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, *, model_server: ModelServer
) -> None:
    await set_up(**FACTS)
    await add_fact(home, "the vet is called Keller")
    await add_fact(home, BINS, source=LEARNED_SOURCE)

    await say("hello")

    system = model_server.requests[-1].body["messages"][0]["content"]
    assert 0 < system.index("Keller") < system.index("Tuesday")


async def test_turned_off_again_learned_facts_stay(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, end: EndFn, *, model_server: ModelServer
) -> None:
    entry = await set_up(**FACTS)
    await talk(say, BINS, "hello")
    await end()
    (subentry,) = entry.subentries.values()
    home.config_entries.async_update_subentry(entry, subentry, data={**subentry.data, CONF_LEARNING: "off"})
    await home.async_block_till_done()
    await talk(say, "the spare key is kept in the shed", "hello", conversation_id="later")

    await end()

    assert [fact.text for fact in await list_learned(home)] == [BINS]
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
