"""Tests that the homes which released versions have left go on: with their accounts, conversations, memory and record.

They hold for every home in `tests/kept`, so a new version changes none of them.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
import json
from pathlib import Path
from typing import Any

from homeassistant.bootstrap import async_load_base_functionality
from homeassistant.components import conversation
from homeassistant.config_entries import ConfigEntryState
from homeassistant.const import MATCH_ALL, STATE_UNAVAILABLE
from homeassistant.core import Context, Event, HomeAssistant, callback
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.json import json_dumps
from homeassistant.setup import async_setup_component
import pytest
from pytest_homeassistant_custom_component.common import mock_storage

from custom_components.windowed_conversation.agents import store
from custom_components.windowed_conversation.const import DOMAIN
from demo.model_server import ModelServer
from tests import kept_home as kept
from tests.kept_home import KeptHome

from .conftest import flush_store, get_speech, listed
from .store_file import issues

type StartFn = Callable[[], Awaitable[InProcess]]


class InProcess:
    """A kept home in a test's Home Assistant, see `tests.kept_home.Visited`, and the data of its events by name."""

    def __init__(self, hass: HomeAssistant, kept_home: KeptHome) -> None:
        self.hass = hass
        self.kept = kept_home
        self.events: defaultdict[str, list[Any]] = defaultdict(list)
        hass.bus.async_listen(MATCH_ALL, self._on_event)

    @callback
    def _on_event(self, event: Event) -> None:
        name = str(event.event_type)
        if name.startswith(DOMAIN):
            self.events[name].append(json.loads(json_dumps(event.data)))

    async def say(self, person: str, agent: str, text: str, conversation_id: str) -> str:
        """Return the answer to a text, when everything that follows the turn is done."""
        answer = await self.say_at_once(person, agent, text, conversation_id)
        await self._finish()
        return answer

    async def say_at_once(self, person: str, agent: str, text: str, conversation_id: str) -> str:
        """Return the answer to a text."""
        context = Context(user_id=self.kept.people[person])
        return get_speech(await conversation.async_converse(self.hass, text, conversation_id, context, "en", agent))

    async def say_to_satellite(self, text: str) -> str:
        """Return the answer to a text that an unknown person says to the satellite."""
        satellite = er.async_get(self.hass).async_get(kept.SATELLITE)
        assert satellite is not None
        result = await conversation.async_converse(
            self.hass, text, None, Context(), "en", kept.HOUSE, device_id=satellite.device_id
        )
        await self._finish()
        return get_speech(result)

    async def act(self, person: str, action: str, **data: Any) -> Any:
        """Return the response of an action."""
        context = Context(user_id=self.kept.people[person])
        response = await self.hass.services.async_call(
            DOMAIN, action, data, blocking=True, return_response=True, context=context
        )
        await self._finish()
        return response

    async def list_texts(self, person: str, **query: Any) -> list[str]:
        """Return the texts of the memories that `recall` returns."""
        return [each["text"] for each in (await self.act(person, "recall", limit=100, **query))["memories"]]

    async def read_messages(self, agent: str, conversation_id: str) -> list[dict[str, Any]]:
        """Return the messages of a conversation of the owner."""
        content = await self.act(kept.OWNER, "get_conversation", entity_id=agent, conversation_id=conversation_id)
        messages: list[dict[str, Any]] = content["messages"]
        return messages

    async def export(self, action: str, **data: Any) -> list[dict[str, Any]]:
        """Return the lines that an action exports to a file."""
        exported = await self.act(kept.OWNER, action, filename="media/lines.jsonl", **data)
        text = await self.hass.async_add_executor_job(Path(exported["filename"]).read_text)
        return [json.loads(line) for line in text.splitlines()]

    async def _finish(self) -> None:
        for entry in self.hass.config_entries.async_loaded_entries(DOMAIN):
            for agent in entry.runtime_data.agents.values():
                agent.notify_listeners()
        await self.hass.async_block_till_done(wait_background_tasks=True)
        await flush_store(self.hass)


@pytest.fixture(params=kept.VERSIONS)
def kept_home(request: pytest.FixtureRequest, tmp_path: Path, model_server: ModelServer) -> KeptHome:
    """Return a copy of the home of each version."""
    model_server.change(models=("scripted", "gpt-5-mini"))
    folder, address = tmp_path / "kept", model_server.address
    # Home Assistant reports blocking calls in the thread of the event loop
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(kept.copy_home, request.param, folder, address).result()


@pytest.fixture
def hass_storage(kept_home: KeptHome) -> Iterator[dict[str, Any]]:
    """Let Home Assistant read the files of the kept home."""
    with mock_storage(kept_home.storage) as storage:
        yield storage


@pytest.fixture
def load_registries() -> bool:
    """Leave it to the start of the home to load the registries."""
    return False


@pytest.fixture
def start(
    *,
    hass: HomeAssistant,
    kept_home: KeptHome,
    store_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> StartFn:
    """Return a function that starts the kept home as Home Assistant does."""
    monkeypatch.setattr(store, "STORAGE_DIR", str(kept_home.database.parent))

    async def start() -> InProcess:
        home = InProcess(hass, kept_home)
        assert await async_load_base_functionality(hass)
        await hass.auth._store.async_load()
        media = kept_home.folder / "media"
        media.mkdir()
        hass.config.config_dir, hass.config.allowlist_external_dirs = str(kept_home.folder), {str(media)}
        for component in ("homeassistant", "conversation", "intent", "assist_pipeline", DOMAIN):
            assert await async_setup_component(hass, component, {})
        await hass.async_block_till_done()
        return home

    return start


@pytest.fixture
async def home(start: StartFn, model_server: ModelServer) -> InProcess:
    """Return the started home, when it has listed the models and has read what was said before."""
    home = await start()
    await listed(home.hass)
    model_server.log.clear()
    return home


def find_request(model_server: ModelServer, text: str) -> list[dict[str, Any]]:
    """Return the messages of the newest request for the answer to a text."""
    requests = [request.body["messages"] for request in model_server.requests]
    return next(each for each in reversed(requests) if text in each[-1]["content"])


def read_texts(messages: Iterable[dict[str, Any]]) -> list[str]:
    """Return the texts of messages, without those that have only tool calls."""
    return [each["content"] for each in messages if each["content"]]


def read_file(path: Path) -> bytes:
    """Return the bytes of the store's file and of its write-ahead log."""
    return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))


async def test_accounts_of_the_kept_home_start_without_issues(home: InProcess) -> None:
    entries = {each.entry_id: each.state for each in home.hass.config_entries.async_entries(DOMAIN)}

    assert entries == dict.fromkeys(home.kept.account_ids, ConfigEntryState.LOADED)
    assert issues(home.hass) == set()


async def test_entities_of_the_kept_home_are_there_under_their_ids(home: InProcess) -> None:
    states = {each: home.hass.states.get(each) for each in home.kept.entity_ids}

    assert {kept.TASK, *kept.AGENTS} <= states.keys()
    assert [each for each, state in states.items() if state is None or state.state == STATE_UNAVAILABLE] == []


async def test_conversation_goes_on_with_its_history(home: InProcess, model_server: ModelServer) -> None:
    history = await home.read_messages(kept.STUDY, kept.DIARY)

    answer = await home.say(kept.OWNER, kept.STUDY, "what is my name?", kept.DIARY)

    sent = find_request(model_server, "what is my name?")
    assert kept.NAME in answer
    assert [each for each in read_texts(history) if each not in read_texts(sent)] == []
    assert any(each.get("tool_calls") for each in sent)


async def test_tagged_exchange_and_summary_are_in_their_conversations(home: InProcess) -> None:
    diary = {"entity_id": kept.STUDY, "conversation_id": kept.DIARY, "tags": [kept.TAG]}
    tagged = (await home.act(kept.OWNER, "get_conversation", **diary))["messages"]
    cellar = await home.read_messages(kept.STUDY, kept.CELLAR)

    assert kept.NAME in str(read_texts(tagged))
    assert kept.SUMMARY in read_texts(each for each in cellar if "summary" in each["tags"])


async def test_conversation_with_a_vendors_own_data_goes_on(home: InProcess) -> None:
    assert kept.NAME in await home.say(kept.OWNER, kept.CLERK, "what is my name?", kept.LETTERS)


async def test_conversation_with_a_person_goes_on_whatever_its_id(home: InProcess, model_server: ModelServer) -> None:
    await home.say(kept.OWNER, kept.HOUSE, "tell me a story about ids", "new")

    assert kept.WORDED_FACT in str(read_texts(find_request(model_server, "a story about ids")))


@pytest.mark.parametrize(("person", "own", "foreign"), kept.FACTS_BY_PERSON)
async def test_person_hears_the_own_facts(person: str, own: str, foreign: str, home: InProcess) -> None:
    answer = await home.say(person, kept.HOUSE, "what do you know about me?", "new")

    assert own in answer
    assert foreign not in answer


async def test_owner_of_the_satellite_hears_the_own_facts_there(home: InProcess) -> None:
    assert kept.OWNERS_FACT in await home.say_to_satellite("what do you know about me?")


async def test_fact_is_sent_with_a_question_about_it(home: InProcess, model_server: ModelServer) -> None:
    answer = await home.say(kept.GUEST, kept.STUDY, "when do the bins go out?", "new")

    sent = str(read_texts(find_request(model_server, "when do the bins go out?")))
    assert "Friday" in answer
    assert kept.HOMES_FACT in sent
    assert kept.REPLACED_FACT not in sent


async def test_fact_is_found_by_its_search_words(home: InProcess) -> None:
    for word in kept.WORDED_BY.split(", "):
        assert await home.list_texts(kept.OWNER, query=word, kinds="fact") == [kept.WORDED_FACT]


async def test_summaries_are_found(home: InProcess) -> None:
    assert kept.SUMMARY in await home.list_texts(kept.OWNER, query="wine", kinds="summary")


async def test_new_fact_is_remembered_and_replaces_a_kept_one(home: InProcess) -> None:
    await home.say(kept.OWNER, kept.HOUSE, "remember that the bins go out on Monday", "new")

    facts = await home.list_texts(kept.GUEST, kinds="fact")
    assert "the bins go out on Monday" in facts
    assert kept.HOMES_FACT not in facts


async def test_fact_is_forgotten_in_memory_and_in_the_kept_conversation(home: InProcess) -> None:
    before = str(await home.read_messages(kept.STUDY, kept.DIARY))

    await home.say(kept.OWNER, kept.HOUSE, f"forget that {kept.OWNERS_FACT}", "new")

    after = str(await home.read_messages(kept.STUDY, kept.DIARY))
    assert (kept.NAME in before, kept.OWNERS_FACT in before) == (True, True)
    assert (kept.NAME in after, kept.OWNERS_FACT in after) == (True, False)
    assert kept.OWNERS_FACT not in await home.list_texts(kept.OWNER)
    assert kept.OWNERS_FACT.encode() not in await home.hass.async_add_executor_job(read_file, home.kept.database)


async def test_forgotten_fact_stays_forgotten(home: InProcess) -> None:
    lines = await home.export("export_memories", everyone=True)
    forgotten = next(each for each in lines if each["kind"] == "forgotten" and each["of"] == "fact")
    fact = next(each for each in lines if each["kind"] == "fact" and "person" not in each)
    again = {**fact, "id": forgotten["id"], "at": forgotten["at"], "text": kept.FORGOTTEN_FACT}

    loaded = await home.act(kept.OWNER, "import_memories", memories=[again])

    assert loaded == {"added": 0, "known": 0, "refused": 1}
    assert kept.FORGOTTEN_FACT not in await home.list_texts(kept.OWNER)


async def test_record_has_the_texts_and_the_costs_of_turns(home: InProcess) -> None:
    exported = {each["turn_id"] for each in home.kept.turns}
    turns = (await home.act(kept.OWNER, "list_turns", limit=100))["turns"]
    tool = next(each["turn_id"] for each in turns if "remember" in each["tools"])
    shown = await home.act(kept.OWNER, "get_turn", turn_id=tool, request=1)

    assert exported <= {each["turn_id"] for each in turns}
    assert kept.WORDED_FACT in shown["said"]
    assert kept.WORDED_FACT in str(shown["sent"]["messages"])
    assert sum(each["cost"] or 0 for each in turns) > 0


async def test_record_is_exported_as_it_was(home: InProcess) -> None:
    lines = await home.export("list_turns")

    assert find_lost_shapes(home.kept.turns, lines) == set()
    assert [each for each in read_said(home.kept.turns) if each not in read_said(lines)] == []


async def test_actions_return_what_they_returned(home: InProcess) -> None:
    responses = await kept.visit(home)

    assert find_lost_shapes(home.kept.responses["actions"], responses) == set()


async def test_events_have_what_they_had(home: InProcess) -> None:
    await kept.visit(home)

    assert find_lost_shapes(home.kept.responses["events"], dict(home.events)) == set()


def find_lost_shapes(before: Any, now: Any) -> set[tuple[str, str]]:
    """Return the paths and types of values that responses or events once had and have no longer.

    A value that is null now may have been of any type.
    """
    shapes = set(kept.list_shapes(now))
    return {(path, kind) for path, kind in kept.list_shapes(before) if not {(path, kind), (path, "NoneType")} & shapes}


def read_said(lines: Iterable[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Return the ids and texts of the turns in an export."""
    return [(each["turn_id"], each["said"], each["answer"]) for each in lines if each["has_text"]]
