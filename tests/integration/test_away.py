"""Tests for accounts of every kind whose server is unavailable: everything but the model keeps working."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
import logging

from homeassistant.config_entries import ConfigEntryState
from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.helpers import entity_registry as er, issue_registry as ir
from homeassistant.util import dt as dt_util
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_fire_time_changed

from custom_components.windowed_conversation.agents.account import async_load_account_state
from custom_components.windowed_conversation.agents.issues import Issue
from demo.model_server import ModelServer

from .account_kinds import COMPATIBLE, KINDS
from .conftest import SayFn, SetUpFn, flush_store, get_speech, listed, stop, until
from .store_file import Disk

LOGGER = "custom_components.windowed_conversation"
AWAY = Issue.SERVER_AWAY
LIGHT = "input_boolean.kitchen"

ALL = (*KINDS, COMPATIBLE)
GEMINI = next(kind for kind in KINDS if kind.name == "gemini")

type ReadLogFn = Callable[[], list[str]]
type End = Callable[[HomeAssistant, MockConfigEntry, Away, SayFn], Awaitable[None]]


class Away:
    """A server for all accounts that can become unavailable in several ways and returns at the same address."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self._dripping: asyncio.Server | None = None

    async def refused(self) -> None:
        """Make the server refuse connections."""
        await self.server.stop()

    async def silent(self) -> None:
        """Make the server accept requests but never answer."""
        self.server.fault("no_answer")

    async def drip_bytes(self) -> None:
        """Make the server send single bytes slowly and never finish a response."""
        await self.server.stop()
        self._dripping = await asyncio.start_server(self._drip, self.server.settings.host, self.server.settings.port)

    async def refuse_key(self) -> None:
        """Make the server refuse the key."""
        self.server.fault("401")

    async def not_found(self) -> None:
        """Make the server answer with 404, as one without a list of models does."""
        self.server.fault("404")

    async def in_trouble(self) -> None:
        """Make the server answer with an internal error."""
        self.server.fault("500")

    async def come_back(self) -> None:
        """Make the server available again, in whatever way it was unavailable."""
        await self.close()
        await self.server.stop()
        self.server.reset()
        await self.server.start()

    async def close(self) -> None:
        """Close the connections that still send single bytes."""
        if self._dripping is not None:
            self._dripping.close_clients()
            self._dripping.close()
            self._dripping = None

    async def _drip(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Checking only occasionally whether the client has disconnected would let this handler outlive the test.
        disconnection = asyncio.create_task(writer.wait_closed())
        writer.write(b"HTTP/1.1 200 OK\r\nX-Name: ")
        while not disconnection.done():
            writer.write(b"a")
            await asyncio.wait([disconnection], timeout=0.5)
        with suppress(ConnectionError):
            await disconnection


@pytest.fixture
async def away(home: HomeAssistant, unused_tcp_port: int) -> AsyncIterator[Away]:
    """Yield a running server that the test can make unavailable."""
    async with ModelServer(strict=True, port=unused_tcp_port) as server:
        away = Away(server)
        yield away
        await away.close()


@pytest.fixture
async def entries(set_up: SetUpFn, away: Away) -> list[MockConfigEntry]:
    """Set up an account of each kind and return them."""
    return [await set_up(account=kind.account(away.server)) for kind in ALL]


class AllAgents:
    """The agents of all accounts, used one after another."""

    def __init__(self, home: HomeAssistant, say: SayFn, entity_ids: list[str]) -> None:
        self._home = home
        self._say = say
        self._entity_ids = entity_ids

    async def ask_all(self) -> list[str]:
        """Send text that needs the model to each agent, and return the answers."""
        return [get_speech(await self._say("my name is Grace", None, agent_id=each)) for each in self._entity_ids]

    async def switch_on(self) -> list[bool]:
        """Return for each agent whether it turns on the light by a local command."""
        return [await self._switch_on(each) for each in self._entity_ids]

    async def _switch_on(self, entity_id: str) -> bool:
        self._home.states.async_set(LIGHT, "off")
        await self._say("turn on the kitchen light", None, agent_id=entity_id)
        return self._home.states.is_state(LIGHT, "on")


@pytest.fixture
def all_agents(home: HomeAssistant, entries: list[MockConfigEntry], say: SayFn) -> AllAgents:
    """Return the agents of all accounts."""
    registry = er.async_get(home)
    ours = [each for entry in entries for each in er.async_entries_for_config_entry(registry, entry.entry_id)]
    return AllAgents(home, say, [each.entity_id for each in ours if each.domain == "conversation"])


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> ReadLogFn:
    """Return a function that returns the integration's log messages since the start of this fixture."""
    caplog.set_level(logging.INFO, LOGGER)
    caplog.clear()
    return lambda: [record.getMessage() for record in caplog.records if record.name.startswith(LOGGER)]


async def start_again(home: HomeAssistant, entries: list[MockConfigEntry]) -> None:
    """Stop and set up the accounts again, as a restart of Home Assistant does."""
    await stop(home, *entries)
    await asyncio.gather(*(home.config_entries.async_setup(entry.entry_id) for entry in entries))


def lists(disk: Disk) -> set[str]:
    """Return the owners of the stored model lists."""
    return {owner for (owner,) in disk.execute("SELECT owner FROM value WHERE name = 'models'")}


def get_context_tokens(entry: MockConfigEntry) -> int | None:
    """Return the context size, in tokens, that is assumed for the next request to the account's model."""
    (agent,) = entry.runtime_data.agents.values()
    return agent.model.planned_budget.context_tokens


async def test_local_commands_work_from_a_start_that_waits_for_no_server(
    home: HomeAssistant, entries: list[MockConfigEntry], all_agents: AllAgents, away: Away, subtests: pytest.Subtests
) -> None:
    for way in ("refused", "silent", "drip_bytes", "refuse_key", "not_found", "in_trouble"):
        await away.come_back()
        with subtests.test(way):
            await getattr(away, way)()

            began = home.loop.time()
            await start_again(home, entries)
            seconds = home.loop.time() - began

            assert {entry.state for entry in entries} == {ConfigEntryState.LOADED}
            assert await all_agents.switch_on() == [True] * len(ALL)
            assert seconds < 1


@pytest.mark.rule("entity-unavailable")
@pytest.mark.rule("log-when-unavailable")
@pytest.mark.long
async def test_server_that_goes_away_later_is_one_line_and_another_when_it_is_back(
    all_agents: AllAgents, away: Away, lines: ReadLogFn
) -> None:
    await away.refused()
    await all_agents.ask_all()
    await all_agents.ask_all()
    commands = await all_agents.switch_on()
    lines_before = lines()
    await away.server.start()

    answers = [await all_agents.ask_all(), await all_agents.ask_all()]

    assert commands == [True] * len(ALL)
    assert ["cannot be reached" in line for line in lines_before] == [True] * len(ALL)
    assert ["Nice to meet you" in answer for answer in answers[0]] == [True] * len(ALL)
    assert lines()[len(lines_before) :] == ["The server of Server answers again"] * len(ALL)


@pytest.mark.parametrize("way", ["silent", "drip_bytes"])
async def test_server_that_does_not_answer_at_the_start_is_one_line(
    home: HomeAssistant, entries: list[MockConfigEntry], away: Away, lines: ReadLogFn, way: str
) -> None:
    await getattr(away, way)()
    await start_again(home, entries)

    async_fire_time_changed(home, dt_util.utcnow() + timedelta(seconds=11))
    await until(lambda: len(lines()) >= len(ALL))

    assert ["does not answer in time" in line for line in lines()] == [True] * len(ALL)


async def test_reload_repeats_no_line(home: HomeAssistant, set_up: SetUpFn, away: Away, lines: ReadLogFn) -> None:
    entry = await set_up(account=COMPATIBLE.account(away.server))
    await away.refused()

    for _ in range(2):
        await home.config_entries.async_reload(entry.entry_id)
        await listed(home)

    assert len(lines()) == 1


async def test_server_that_answers_and_lists_nothing_is_one_line(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, away: Away, lines: ReadLogFn
) -> None:
    away.server.fault("404", 1)
    entry = await set_up(account=COMPATIBLE.account(away.server))
    (line,) = lines()

    await say("my name is Grace")
    await listed(home)

    assert "does not list its models" in line
    assert entry.state is ConfigEntryState.LOADED
    assert lines() == [line]


async def test_slow_answer_is_no_server_that_is_away(set_up: SetUpFn, say: SayFn, away: Away, lines: ReadLogFn) -> None:
    await set_up(account=COMPATIBLE.account(away.server))
    away.server.fault("cut_mid_stream", 1)

    await say("tell me a story about the sea in 300 words")

    assert [line for line in lines() if "server of" in line] == []


class AwayIssues:
    """The repair issues for unavailable servers after some time."""

    def __init__(self, home: HomeAssistant) -> None:
        self._home = home

    async def after(self, minutes: float) -> list[tuple[str, dict[str, str] | None]]:
        """Advance the time and return the id and placeholders of each issue about an unavailable server."""
        async_fire_time_changed(self._home, dt_util.utcnow() + timedelta(minutes=minutes))
        await listed(self._home)
        found = ir.async_get(self._home).issues.values()
        return [(each.issue_id, each.translation_placeholders) for each in found if each.translation_key == AWAY]


@pytest.fixture
async def compatible(set_up: SetUpFn, away: Away) -> MockConfigEntry:
    """Set up an account with a compatible server and return it."""
    return await set_up(account=COMPATIBLE.account(away.server))


@pytest.fixture
def issues(home: HomeAssistant) -> AwayIssues:
    """Return access to the repair issues for unavailable servers."""
    return AwayIssues(home)


@pytest.fixture
async def failed_account(compatible: MockConfigEntry, away: Away, say: SayFn) -> MockConfigEntry:
    """Return an account whose server became unavailable and has already failed a user's request."""
    await away.refused()
    await say("my name is Grace")
    return compatible


async def test_server_that_is_away_for_long_when_somebody_asks_is_an_issue_until_it_is_back(
    failed_account: MockConfigEntry, away: Away, say: SayFn, issues: AwayIssues
) -> None:

    early = await issues.after(29)
    late = await issues.after(31)
    later = await issues.after(31)
    await away.server.start()

    assert early == []
    assert late == later == [(f"{AWAY}_{failed_account.entry_id}", {"account": "Server"})]
    assert await issues.after(6) == []


async def test_server_that_is_away_while_nobody_asks_is_no_issue(
    home: HomeAssistant, compatible: MockConfigEntry, away: Away, issues: AwayIssues
) -> None:
    await away.refused()
    await home.config_entries.async_reload(compatible.entry_id)
    await listed(home)

    assert await issues.after(600) == []


async def test_server_that_came_back_while_nobody_asked_is_no_issue(
    failed_account: MockConfigEntry, away: Away, say: SayFn, issues: AwayIssues
) -> None:
    await away.server.start()

    assert await issues.after(31) == []
    await away.refused()
    assert await issues.after(600) == []


@pytest.mark.parametrize("way", ["refuse_key", "not_found"])
async def test_server_that_responds_without_a_list_is_no_issue(
    failed_account: MockConfigEntry, away: Away, say: SayFn, issues: AwayIssues, way: str
) -> None:
    await away.server.start()
    await getattr(away, way)()

    assert await issues.after(31) == []


async def test_time_for_which_a_server_is_away_goes_on_over_a_reload(
    home: HomeAssistant, failed_account: MockConfigEntry, away: Away, say: SayFn, issues: AwayIssues
) -> None:
    server = (await async_load_account_state(home, failed_account.entry_id)).server
    assert server.unanswered_since is not None
    server.unanswered_since -= timedelta(minutes=28).total_seconds()

    await home.config_entries.async_reload(failed_account.entry_id)
    await listed(home)

    assert len(await issues.after(3)) == 1


async def answer(home: HomeAssistant, entry: MockConfigEntry, away: Away, say: SayFn) -> None:
    """Make the server available again and send it a request."""
    await away.server.start()
    await say("my name is Grace")


async def move(home: HomeAssistant, entry: MockConfigEntry, away: Away, say: SayFn) -> None:
    """Change the address of the account."""
    home.config_entries.async_update_entry(entry, data={**entry.data, CONF_URL: "http://127.0.0.1:9"})
    await listed(home)


async def remove(home: HomeAssistant, entry: MockConfigEntry, away: Away, say: SayFn) -> None:
    """Remove the account."""
    await home.config_entries.async_remove(entry.entry_id)


@pytest.mark.parametrize(("end", "minutes"), [(answer, 0), (move, 0), (remove, 31)])
async def test_issue_of_a_server_that_is_away_clears(
    home: HomeAssistant,
    failed_account: MockConfigEntry,
    away: Away,
    say: SayFn,
    issues: AwayIssues,
    *,
    end: End,
    minutes: int,
) -> None:
    open_issues = await issues.after(31)

    await end(home, failed_account, away, say)

    assert len(open_issues) == 1
    assert await issues.after(minutes) == []


@pytest.fixture
async def small(set_up: SetUpFn, away: Away) -> MockConfigEntry:
    """Return an account with a server whose model list reports a small context size."""
    away.server.change(context_size=4000)
    return await set_up(account=GEMINI.account(away.server))


async def test_start_without_the_server_knows_what_its_model_reads(
    home: HomeAssistant, small: MockConfigEntry, away: Away
) -> None:
    await away.refused()

    await start_again(home, [small])
    await listed(home)

    assert get_context_tokens(small) == 4000


async def test_list_that_comes_late_reaches_the_agent_that_runs(
    home: HomeAssistant, small: MockConfigEntry, away: Away, say: SayFn
) -> None:
    await away.refused()
    await start_again(home, [small])
    await listed(home)
    agents = dict(small.runtime_data.agents)
    away.server.change(context_size=6000)
    await away.server.start()

    await say("my name is Grace")
    await listed(home)

    assert get_context_tokens(small) == 6000
    assert small.runtime_data.agents == agents
    assert "Grace" in get_speech(await say("what is my name?"))


async def test_list_of_another_server_is_forgotten(
    home: HomeAssistant, small: MockConfigEntry, away: Away, unused_tcp_port_factory: Callable[[], int]
) -> None:
    nobody = f"http://127.0.0.1:{unused_tcp_port_factory()}"

    home.config_entries.async_update_entry(small, data={**small.data, CONF_URL: nobody})
    await listed(home)

    assert get_context_tokens(small) is None


async def test_list_goes_with_its_account(
    home: HomeAssistant, small: MockConfigEntry, away: Away, set_up: SetUpFn, disk: Disk
) -> None:
    await set_up()
    await flush_store(home)
    before = lists(disk)

    await home.config_entries.async_remove(small.entry_id)
    await listed(home)
    await flush_store(home)

    assert before - lists(disk) == {small.entry_id}
