"""Tests of rights: every command and action, tried by callers of every kind, on their data, another's and the home's.

Each caller has to get an answer or a refusal as the row says, read no word that they may not read, and change nobody's
data but that in the row.
"""

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
import sqlite3
from typing import Any

from homeassistant.components import websocket_api
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
import pytest

from custom_components.windowed_conversation import PLATFORMS
from custom_components.windowed_conversation.const import CONF_MEMORY, CONF_PERSISTENCE, CONF_RECORD, DOMAIN
from demo.model_server import ModelServer

from .callers import ADA, CALLERS, EVERY_WORD, HOME, LOGINS, REMINDERS, Callers, Try, build_words
from .conftest import AGENT, SayFn, SetUpFn
from .more_agents import add_agent
from .test_memory_actions import folder

__all__ = ["folder"]

NOBODY = frozenset[str]()
READERS = CALLERS - {"guest", "stranger", "removed"}
ACTORS = READERS - {"reader"}
ADMINS = frozenset({"owner", "administrator"})
AUTOMATION = frozenset({"automation"})
# Those who may name somebody else in memory.
TRUSTED = ADMINS | {"automation", "satellite"}
# Those who may list everybody's turns.
AUDITORS = ADMINS | AUTOMATION
# The callers who act as a person.
PEOPLE = READERS - {"automation", "satellite"}
NOT_REMOVED = CALLERS - {"removed"}
# Those who may read the first agent.
VISITORS = READERS - {"tenant"}

EVERYTHING = {"automation": EVERY_WORD}
# The figures of a turn include the device.
FIGURES = dict.fromkeys(AUDITORS, build_words(ADA, "place"))
ADAS_OPEN = dict.fromkeys(TRUSTED, build_words(ADA, "open", "old"))
OWN, HOMES, ADAS = frozenset({"own"}), frozenset({HOME}), frozenset({ADA})
ANYBODYS = OWN | HOMES | ADAS | LOGINS.keys()

FACT = {"text": "The bins go out on Friday"}
FILE = {"filename": "exports/a.jsonl"}

TARGETS = (
    ("another's", {"conversation_id": "adas"}, AUTOMATION, ADAS),
    ("another's by its key", {"conversation_id": "{ada's key}"}, NOBODY, NOBODY),
    ("another's in capitals", {"conversation_id": "ADAS"}, NOBODY, NOBODY),
    ("their own, of a name that another has", {"conversation_id": "{own talk}"}, VISITORS, OWN | HOMES),
    ("the home's", {"conversation_id": "homes"}, VISITORS, HOMES),
)
ON_CONVERSATIONS: tuple[tuple[str, str, dict[str, Any], bool], ...] = (
    ("reads the messages of", "get_conversation", {}, False),
    ("reads the figures of", "get_conversation", {"content": "statistics"}, False),
    ("counts", "get_conversation", {"content": "token_count"}, False),
    ("copies", "get_conversation", {"content": "export"}, False),
    ("opens", "conversation", {}, False),
    ("opens an exchange of", "exchange", {"number": 2}, False),
    ("tags", "tag_exchange", {"add": ["bird"]}, True),
    ("summarizes", "summarize_conversation", {"keep": 1}, True),
    ("deletes", "delete_conversation", {}, True),
)
CONVERSATIONS = (
    *(
        Try(
            f"{does} {which} conversation",
            command,
            (ACTORS if changes else READERS) & who,
            {"entity_id": AGENT, **fields, **target},
            shown=EVERYTHING,
            changed=whose if changes else NOBODY,
        )
        for does, command, fields, changes in ON_CONVERSATIONS
        for which, target, who, whose in TARGETS
    ),
    *(
        Try(
            f"imports {which}",
            "import_conversation",
            who & ACTORS,
            {"entity_id": AGENT, "export": "{export}", **fields},
            changed=OWN | HOMES,
        )
        for which, fields, who in (
            ("a conversation of another's name", {"conversation_id": "adas"}, VISITORS),
            (
                "a conversation of a name that they have",
                {"conversation_id": "talk"},
                frozenset({"automation", "satellite"}),
            ),
        )
    ),
    Try("lists conversations", "list_conversations", NOT_REMOVED, shown=EVERYTHING),
    Try("lists the conversations of an agent", "list_conversations", VISITORS, {"entity_id": AGENT}, shown=EVERYTHING),
    Try("opens the list of conversations", "conversations", NOT_REMOVED),
    Try("opens the page", "overview", NOT_REMOVED),
    Try("opens health", "health", READERS),
)

# The ways to name Ada that are none.
WRONG_NAMES = ("ada", "Ada", "{ada's key}", "person.nobody", "person.", "*", "%")
NAMED = ({"person": "{ada}"}, {"person": "person.ada"})
MEMORY = (
    Try("remembers for everybody", "remember", ACTORS, FACT, changed=HOMES),
    Try("remembers for themselves", "remember", ACTORS & PEOPLE, {**FACT, "private": True}, changed=OWN),
    *(Try("remembers for another", "remember", TRUSTED, FACT | each, changed=ADAS) for each in NAMED),
    *(Try(f"remembers for {each}", "remember", NOBODY, {**FACT, "person": each}) for each in WRONG_NAMES),
    Try("recalls", "recall", READERS),
    Try("recalls what another said", "recall", READERS, {"query": "adaprivate adaopen adaturn"}),
    *(Try("recalls another's", "recall", TRUSTED, each, shown=ADAS_OPEN) for each in NAMED),
    *(Try(f"recalls what belongs to {each}", "recall", NOBODY, {"person": each}) for each in WRONG_NAMES),
    *(
        Try(f"forgets another's by its id: {each}", "forget", ACTORS, {"ids": each, "dry_run": dry})
        for each in ("{ada open}", "{ada private}", "{ada suggested}", "{adaturn}", "{adasummary}")
        for dry in (True, False)
    ),
    Try("forgets what another said", "forget", ACTORS, {"query": "adaprivate"}),
    Try("forgets a fact of another by name", "forget", TRUSTED, {"ids": "{ada open}", **NAMED[0]}, changed=ADAS),
    Try("forgets a private fact of another", "forget", TRUSTED, {"ids": "{ada private}", **NAMED[0]}),
    Try("forgets a fact of the home", "forget", ACTORS, {"ids": "{home open}"}, changed=HOMES),
    Try("forgets all of their own", "forget", ACTORS & PEOPLE, {"everything": True}, changed=OWN),
    *(Try("forgets all of another", "forget", TRUSTED, {"everything": True, **each}, changed=ADAS) for each in NAMED),
    Try("looks what another has", "forget", TRUSTED, {"everything": True, "dry_run": True, **NAMED[0]}, ADAS_OPEN),
    Try("forgets all of everyone", "forget", TRUSTED, {"everything": True, "everyone": True}, changed=ANYBODYS),
    *(Try(f"forgets all of {each}", "forget", NOBODY, {"everything": True, "person": each}) for each in WRONG_NAMES),
    Try("exports their own", "export_memories", PEOPLE - {"tool"}),
    Try("exports another's", "export_memories", NOBODY, NAMED[0]),
    Try("exports everyone's", "export_memories", NOBODY, {"everyone": True}),
    Try("exports their own to a file", "export_memories", ADMINS, FILE),
    Try("exports another's to a file", "export_memories", TRUSTED, FILE | NAMED[0]),
    Try("exports everyone's to a file", "export_memories", TRUSTED, {**FILE, "everyone": True}),
    Try("imports", "import_memories", TRUSTED, {"memories": []}),
    *(
        Try(f"corrects another's fact: {each}", "correct_fact", NOBODY, {"fact": each, **FACT})
        for each in ("{ada open}", "{ada private}", "{ada suggested}")
    ),
    Try("corrects their own fact", "correct_fact", ACTORS, {"fact": "{own private}", **FACT}, changed=OWN),
    Try("corrects a fact of the home", "correct_fact", ACTORS, {"fact": "{home open}", **FACT}, changed=HOMES),
    Try("brings back another's fact", "bring_back_fact", NOBODY, {"fact": "{ada new}"}),
    Try("brings back their own fact", "bring_back_fact", ACTORS, {"fact": "{own new}"}, changed=OWN),
    Try("brings back a fact of the home", "bring_back_fact", ACTORS, {"fact": "{home new}"}, changed=HOMES),
    *(
        Try(
            f"decides about another's: {each}",
            "decide_suggestion",
            NOBODY,
            {"fact": "{ada suggested}", "decision": each},
        )
        for each in ("keep", "share", "dismiss")
    ),
    *(
        Try(
            f"decides: {each}",
            "decide_suggestion",
            ACTORS,
            {"fact": "{own suggested}", "decision": each},
            changed=OWN | HOMES,
        )
        for each in ("keep", "share", "dismiss")
    ),
    Try("reads about themselves", "about_me", READERS),
)

TURNS = (
    Try("lists turns", "list_turns", READERS, shown=FIGURES),
    Try("lists summaries", "list_turns", READERS, {"route": "summary"}, shown=FIGURES),
    Try("lists the turns of a conversation", "list_turns", READERS, {"conversation_id": "adas"}, shown=FIGURES),
    Try("lists the turns of an agent", "list_turns", VISITORS, {"entity_id": AGENT}, shown=FIGURES),
    *(Try("lists another's turns", "list_turns", AUDITORS, each, shown=FIGURES) for each in NAMED),
    *(Try(f"lists the turns of {each}", "list_turns", NOBODY, {"person": each}) for each in WRONG_NAMES),
    Try("exports turns", "list_turns", TRUSTED, FILE),
    *(
        Try(f"opens another's turn: {each}", "get_turn", AUDITORS, {"turn_id": each, **more}, shown=FIGURES)
        for each in ("{ada model}", "{adas model}", "{old summary}")
        for more in ({}, {"request": 1})
    ),
    Try("opens their own turn", "get_turn", PEOPLE, {"turn_id": "{own model}", "request": 1}),
    Try("opens a turn of the home", "get_turn", VISITORS, {"turn_id": "{home model}", "request": 1}),
    Try(
        "opens the task of an automation",
        "get_turn",
        AUDITORS | {"satellite"},
        {"turn_id": "{task}"},
        dict.fromkeys(AUDITORS, build_words(HOME)),
    ),
    Try("opens turns", "turns", READERS, shown=FIGURES),
    Try(
        "opens turns and background work",
        "turns",
        READERS,
        {"background": True, "limit": 100},
        dict.fromkeys(AUDITORS, build_words(ADA, "place") | build_words(HOME)),
    ),
    *(
        Try(f"opens turns at {each}", "turns", READERS, {"turn_id": each}, shown=FIGURES)
        for each in ("{ada model}", "{old summary}")
    ),
    Try("opens the commands of the model", "model_commands", READERS),
    Try("opens costs", "costs", READERS),
    Try("opens the week", "week", READERS),
)

REMINDER = {"entity_id": REMINDERS, "item": f"{HOME}open"}
LIST = (
    Try("reads the reminders", "todo.get_items", VISITORS & ACTORS, {"entity_id": REMINDERS}),
    Try("adds a reminder", "todo.add_item", VISITORS & ACTORS, REMINDER, changed=HOMES),
    Try(
        "changes a reminder", "todo.update_item", VISITORS & ACTORS, {**REMINDER, "status": "completed"}, changed=HOMES
    ),
    Try("deletes a reminder", "todo.remove_item", VISITORS & ACTORS, REMINDER, changed=HOMES),
)

TRIES = (*CONVERSATIONS, *MEMORY, *TURNS, *LIST)


@pytest.fixture
async def callers(
    *,
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    model_server: ModelServer,
    hass_ws_client: Any,
    store_path: Path,
    folder: Path,
) -> AsyncIterator[Callers]:
    """Yield the callers in a furnished home with two agents, whose record keeps all text."""
    assert await async_setup_component(home, websocket_api.DOMAIN, {})
    agent = {CONF_MEMORY: "off", CONF_RECORD: "full"}
    account = {"provider": "openai", "url": model_server.url}
    entry = await set_up(options={CONF_PERSISTENCE: "off"}, account=account, **agent)
    await add_agent(home, entry, "Second", **agent)
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as copy:
        callers = Callers(home, say, store_path, copy)
        await callers.add_users(hass_ws_client)
        await callers.furnish()
        yield callers


async def test_each_caller_gets_and_changes_only_what_they_may(callers: Callers) -> None:
    tries = [(each, caller, way) for each in TRIES for caller, way in each.list_callers()]

    outcomes = [(*each, await callers.attempt(*each)) for each in tries]

    wrong = {f"{who} {each.sentence} by {way}": got for each, who, way, got in outcomes if not each.allows(who, got)}
    assert wrong == {}


async def test_answer_about_the_data_of_another_is_as_if_there_were_none(callers: Callers) -> None:
    ids = [callers.tokens[each] for each in ("{ada open}", "{ada private}", "{ada suggested}", "{adaturn}")]

    for name in sorted(LOGINS.keys() & ACTORS):
        for more in ({"ids": ids}, {"query": "adaopen adaprivate adaturn"}):
            found = await callers.visitors[name].call("forget", dry_run=True, **more)
            assert {**found, "exchanges": 0} == {**dict.fromkeys(found, 0), "memories": []}


async def test_subscription_sends_each_caller_only_what_they_may_see(callers: Callers) -> None:
    for visitor in callers.visitors.values():
        await visitor.client.send_json_auto_id({"type": f"{DOMAIN}/subscribe"})
        assert (await visitor.client.receive_json())["success"]

    await callers.say("adatalk", "adas", context=callers.contexts[ADA])
    await callers.say("hometalk", "homes")
    for agent in callers.home.config_entries.async_loaded_entries(DOMAIN)[0].runtime_data.agents.values():
        agent.notify_listeners()
    for name in sorted(LOGINS.keys() & VISITORS):
        event = (await callers.visitors[name].client.receive_json())["event"]
        assert [each["conversation_id"] for each in event["conversations"]] == ["homes"]
    for name in LOGINS.keys() - VISITORS:
        assert await callers.visitors[name].call("overview")


@pytest.mark.usefixtures("entry")
async def test_every_command_is_tried(home: HomeAssistant) -> None:
    assert await async_setup_component(home, websocket_api.DOMAIN, {})
    commands = {name.partition("/")[2] for name in home.data[websocket_api.DOMAIN] if name.startswith(f"{DOMAIN}/")}
    actions = set(home.services.async_services_for_domain(DOMAIN))

    tried = {each.command for each in TRIES}

    # the events of a subscription are tested below
    assert commands | actions == {each for each in tried if "." not in each} | {"subscribe"}
    # the entities of the other platforms take no command of ours
    assert [*PLATFORMS] == ["ai_task", "conversation", "sensor", "todo"]
