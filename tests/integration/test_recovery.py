"""Accounts whose servers are away when Home Assistant starts: one line in the log each, and back within a minute."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
import logging
import socket
from typing import Any

from homeassistant.config_entries import SOURCE_REAUTH, ConfigEntryState
from homeassistant.const import STATE_UNAVAILABLE
from homeassistant.core import CoreState, HomeAssistant
from homeassistant.helpers import entity_registry as er
from homeassistant.util import dt as dt_util
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_fire_time_changed

from demo.model_server import ModelServer

from .account_kinds import VENDORS
from .conftest import Say, SetUp, speech

LOGGER = "custom_components.windowed_conversation"


class Servers:
    """A server for each vendor, which can all go away and come back at their addresses."""

    def __init__(self) -> None:
        self.running = [ModelServer(strict=True) for _ in VENDORS]
        self._stack = AsyncExitStack()
        self._ports: list[int] = []

    async def start(self, **options: Any) -> None:
        """Start them, at the addresses where they were."""
        if self._ports:
            self.running = [ModelServer(strict=True, port=port, **options) for port in self._ports]
        for server in self.running:
            await self._stack.enter_async_context(server)
        self._ports = [int(server.address.rpartition(":")[2]) for server in self.running]

    async def stop(self) -> None:
        """Stop them."""
        await self._stack.aclose()

    async def fall_silent(self) -> None:
        """Have connections come about at their addresses, and nobody who answers."""
        await self.stop()
        for port in self._ports:
            self._stack.enter_context(socket.create_server(("127.0.0.1", port)))

    async def drip(self) -> None:
        """Answer at their addresses with a byte now and then, and never with all of them."""
        await self.stop()
        for port in self._ports:
            server = await asyncio.start_server(self._drip, "127.0.0.1", port)
            self._stack.callback(server.close_clients)
            self._stack.callback(server.close)

    async def _drip(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # a handler that only looked now and then whether its client has gone would outlive the test
        left = asyncio.create_task(writer.wait_closed())
        writer.write(b"HTTP/1.1 200 OK\r\nX-Name: ")
        while not left.done():
            writer.write(b"a")
            await asyncio.wait([left], timeout=0.5)
        with suppress(ConnectionError):
            await left


@pytest.fixture
async def servers(home: HomeAssistant) -> AsyncIterator[Servers]:
    """Return a running server for each vendor."""
    servers = Servers()
    await servers.start()
    yield servers
    await servers.stop()


@pytest.fixture
async def entries(set_up: SetUp, servers: Servers) -> list[MockConfigEntry]:
    """Return an account with each vendor."""
    pairs = zip(VENDORS, servers.running, strict=True)
    return [await set_up(account=kind.account(server)) for kind, server in pairs]


async def start_again(home: HomeAssistant, entries: list[MockConfigEntry]) -> None:
    """Set the accounts up as at a start of Home Assistant."""
    for entry in entries:
        await home.config_entries.async_unload(entry.entry_id)
    await asyncio.gather(*(home.config_entries.async_setup(entry.entry_id) for entry in entries))
    await home.async_block_till_done()


async def wait(home: HomeAssistant, seconds: float) -> None:
    """Let time pass."""
    async_fire_time_changed(home, dt_util.utcnow() + timedelta(seconds=seconds))
    await home.async_block_till_done(wait_background_tasks=True)


def states(entries: list[MockConfigEntry]) -> set[ConfigEntryState]:
    """Return the states that there are among the accounts."""
    return {entry.state for entry in entries}


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return what the integration logs from now on at the level that people see, by Home Assistant or by itself."""
    caplog.set_level(logging.INFO)
    caplog.clear()
    return lambda: [record.getMessage() for record in caplog.records if record.name.startswith(LOGGER)]


async def test_accounts_wait_for_their_servers_with_one_line_each(
    home: HomeAssistant, entries: list[MockConfigEntry], servers: Servers, lines: Callable[[], list[str]]
) -> None:
    await servers.stop()

    await start_again(home, entries)
    for seconds in (6, 12, 21, 21, 42, 81, 601):
        await wait(home, seconds)

    assert states(entries) == {ConfigEntryState.SETUP_RETRY}
    assert len(lines()) == len(entries)
    assert all("not ready yet" in line for line in lines())
    ours = [e for each in entries for e in er.async_entries_for_config_entry(er.async_get(home), each.entry_id)]
    shown = {state.state for entity in ours if (state := home.states.get(entity.entity_id))}
    assert shown == {STATE_UNAVAILABLE}


@pytest.mark.parametrize("silence", ["fall_silent", "drip"])
async def test_start_waits_no_longer_than_five_seconds_for_servers_that_do_not_answer(
    home: HomeAssistant, entries: list[MockConfigEntry], servers: Servers, silence: str
) -> None:
    await getattr(servers, silence)()
    home.set_state(CoreState.not_running)

    began = home.loop.time()
    await start_again(home, entries)

    assert states(entries) == {ConfigEntryState.SETUP_RETRY}
    assert home.loop.time() - began == pytest.approx(5, abs=1)


async def test_accounts_wait_for_servers_that_do_not_answer_with_one_line_each_and_are_back_when_they_do(
    home: HomeAssistant, entries: list[MockConfigEntry], servers: Servers, lines: Callable[[], list[str]]
) -> None:
    await servers.fall_silent()
    home.set_state(CoreState.not_running)
    await start_again(home, entries)
    await wait(home, 21)
    away = lines()

    await servers.stop()
    await servers.start()
    await wait(home, 21)

    assert len(away) == len(entries)
    assert all("not ready yet" in line for line in away)
    assert lines()[len(away) :] == ["The server of Server answers again"] * len(entries)
    assert states(entries) == {ConfigEntryState.LOADED}


async def test_line_is_seen_where_only_warnings_are(
    home: HomeAssistant, entries: list[MockConfigEntry], servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, LOGGER)
    await servers.stop()

    await start_again(home, entries)
    for _ in range(3):
        await wait(home, 21)

    shown = [record.getMessage() for record in caplog.records if record.name.startswith(LOGGER)]
    assert len(shown) == len(entries)
    assert all("cannot be reached" in line for line in shown)


@pytest.mark.parametrize("away", [0, 700])
async def test_accounts_are_back_within_a_minute(
    home: HomeAssistant, entries: list[MockConfigEntry], servers: Servers, say: Say, away: float
) -> None:
    await servers.stop()
    await start_again(home, entries)
    await wait(home, away)

    await servers.start()
    await wait(home, 21)

    assert states(entries) == {ConfigEntryState.LOADED}
    assert "Nice to meet you" in speech(await say("my name is Grace"))


async def test_being_back_is_a_line_as_well(
    home: HomeAssistant, entries: list[MockConfigEntry], servers: Servers, lines: Callable[[], list[str]]
) -> None:
    await servers.stop()
    await start_again(home, entries)
    await wait(home, 21)
    before = len(lines())

    await servers.start()
    await wait(home, 21)
    await wait(home, 21)

    assert lines()[before:] == ["The server of Server answers again"] * len(entries)


async def test_account_that_is_back_is_left_alone(
    home: HomeAssistant, entries: list[MockConfigEntry], servers: Servers
) -> None:
    await servers.stop()
    await start_again(home, entries)
    await servers.start()
    await wait(home, 21)
    for server in servers.running:
        server.log.clear()

    await wait(home, 21)
    await wait(home, 21)

    assert [server.log.received for server in servers.running] == [2] * len(entries)
    assert [list(server.log.records) for server in servers.running] == [[]] * len(entries)


async def test_key_that_the_server_refuses_when_it_is_back_is_asked_for_again(
    home: HomeAssistant, entries: list[MockConfigEntry], servers: Servers
) -> None:
    await servers.stop()
    await start_again(home, entries)

    await servers.start(key="new")
    await wait(home, 21)

    assert states(entries) == {ConfigEntryState.SETUP_ERROR}
    assert [len(list(entry.async_get_active_flows(home, {SOURCE_REAUTH}))) for entry in entries] == [1] * len(entries)


@pytest.mark.parametrize("end", ["async_unload", "async_remove"])
async def test_account_that_is_gone_is_not_looked_for(
    home: HomeAssistant, entries: list[MockConfigEntry], servers: Servers, end: str
) -> None:
    await servers.stop()
    await start_again(home, entries)
    for entry in entries:
        await getattr(home.config_entries, end)(entry.entry_id)

    await servers.start()
    await wait(home, 21)

    assert states(entries) == {ConfigEntryState.NOT_LOADED}
    assert [server.log.received for server in servers.running] == [0] * len(entries)


async def test_account_that_is_reloaded_by_hand_looks_once_at_a_time(
    home: HomeAssistant, entries: list[MockConfigEntry], servers: Servers
) -> None:
    await servers.stop()
    await start_again(home, entries)
    for entry in entries:
        await home.config_entries.async_reload(entry.entry_id)

    await servers.start()
    await wait(home, 21)

    # one look, one set-up
    assert [server.log.received for server in servers.running] == [2] * len(entries)
