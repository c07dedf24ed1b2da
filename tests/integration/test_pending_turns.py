"""Tests for turns whose steps are pending: a getter runs none of them, and nobody sees a figure without the turn."""

from collections.abc import Callable
import math
from typing import Any

from homeassistant.auth.const import GROUP_ID_ADMIN
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents import agent as agents
from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.agents.forgetting import async_forget_everywhere
from custom_components.windowed_conversation.diagnostics import async_get_config_entry_diagnostics
from custom_components.windowed_conversation.page import subscription

from .conftest import SayAtOnce, flush_store, until
from .page import Visit, visit
from .remembered import memory_of
from .store_file import Disk

__all__ = ["visit"]

COMMAND = "turn on kitchen light"


@pytest.fixture(autouse=True)
def unnotified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the steps after a turn pending until something runs them."""
    monkeypatch.setattr(agents, "_NOTIFY_DELAY", 3_600.0)


@pytest.fixture
async def agent(entry: MockConfigEntry, get_agent: Callable[[MockConfigEntry], Agent], say_at_once: SayAtOnce) -> Agent:
    """Return an agent that has answered one command, with the steps after it pending."""
    await say_at_once(COMMAND)
    return get_agent(entry)


def count_exchanges(agent: Agent) -> int:
    return sum(stats.exchange_count for stats in agent.windows.stats().values())


@pytest.mark.parametrize(
    "read",
    [
        lambda windows: windows.stats(),
        lambda windows: windows.loaded_windows(),
        lambda windows: windows.snapshots(),
        lambda windows: windows.get_loaded(next(iter(windows.stats()))),
    ],
    ids=["stats", "loaded_windows", "snapshots", "get_loaded"],
)
async def test_a_getter_counts_no_turn(agent: Agent, read: Callable[[Any], object]) -> None:
    read(agent.windows)

    assert (count_exchanges(agent), agent.statistics.totals.turns_local) == (0, 0)


async def test_listeners_are_notified_of_an_ended_turn(agent: Agent) -> None:
    counted: list[int] = []
    agent.add_listener(lambda: counted.append(agent.statistics.totals.turns_local))

    agent.notify_listeners()

    assert counted == [1]
    assert [stats.exchange_count for stats in agent.window_stats.values()] == [1]


@pytest.mark.parametrize(
    ("command", "fields", "count"),
    [
        ("list_conversations", {}, lambda found: found["conversations"][0]["exchanges"]),
        ("get_conversation", {"content": "messages"}, lambda found: found["messages"][0]["content"].count(COMMAND)),
        ("get_conversation", {"content": "statistics"}, lambda found: found["statistics"]["exchanges"]),
        ("get_conversation", {"content": "export"}, lambda found: len(found["export"]["exchanges"])),
        ("tag_exchange", {"exchange": 1, "add": ["important"]}, lambda found: found["exchange"]),
        ("delete_conversation", {}, lambda found: found["exchanges"]),
        ("conversations", {}, lambda found: found["conversations"][0]["figures"]["exchanges"]),
        ("conversation", {}, lambda found: len(found["exchanges"])),
        ("turns", {}, lambda found: len(found["turns"])),
        ("health", {}, lambda found: found["agents"][0]["window"]["exchanges"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_action_and_page_see_an_ended_turn(
    agent: Agent, visit: Visit, command: str, *, fields: dict[str, Any], count: Callable[[Any], int]
) -> None:
    visitor = await visit("Grace", GROUP_ID_ADMIN)

    assert count(await visitor.call(command, **fields)) == 1


async def test_turn_is_found_by_its_id_at_once(agent: Agent, visit: Visit) -> None:
    visitor = await visit("Grace", GROUP_ID_ADMIN)
    (turn,) = (await visitor.call("turns"))["turns"]

    assert (await visitor.call("get_turn", turn_id=turn["turn_id"]))["said"] == COMMAND


async def test_diagnostics_count_an_ended_turn(home: HomeAssistant, entry: MockConfigEntry, agent: Agent) -> None:
    (found,) = (await async_get_config_entry_diagnostics(home, entry))["agents"]

    assert (found["windows"]["conversations"], found["windows"]["newest"][0]["exchanges"]) == (1, 1)
    assert found["totals"]["turns_local"] == 1


async def test_open_page_gets_the_figures_with_an_ended_turn(
    home: HomeAssistant, agent: Agent, visit: Visit, say_at_once: SayAtOnce, monkeypatch: pytest.MonkeyPatch
) -> None:
    due: list[subscription._Subscription] = []
    send = subscription._Subscription._send

    def hold(page: subscription._Subscription) -> None:
        due.append(page)

    monkeypatch.setattr(subscription._Subscription, "_send", hold)
    visitor = await visit("Grace", GROUP_ID_ADMIN)
    await visitor.call("subscribe")
    await say_at_once(COMMAND)
    agent.notify_listeners()
    await until(lambda: bool(due))

    await say_at_once(COMMAND)
    send(due[0])

    (row,) = (await visitor.client.receive_json())["event"]["conversations"]
    assert row["figures"]["exchanges"] == 3


async def test_forgetting_includes_an_ended_turn(home: HomeAssistant, agent: Agent, disk: Disk) -> None:
    await async_forget_everywhere(home, since=-math.inf)

    assert (agent.windows.stats(), [*agent.state.recent_turns]) == ({}, [])
    assert agent.statistics.totals.turns_local == 1
    await flush_store(home)
    assert COMMAND not in disk.exchange_text


async def test_forgetting_includes_a_turn_that_ended_during_another_deletion(
    home: HomeAssistant,
    entry: MockConfigEntry,
    get_agent: Callable[[MockConfigEntry], Agent],
    say_at_once: SayAtOnce,
) -> None:
    with memory_of(home).pause_for_deletion():
        await say_at_once(COMMAND)
        forgotten = await async_forget_everywhere(home, query="kitchen light")

    assert (forgotten.exchange_count, get_agent(entry).windows.stats()) == (1, {})


async def test_save_includes_an_ended_turn(home: HomeAssistant, agent: Agent, disk: Disk) -> None:
    agent.state.conversations.store.async_save()
    await flush_store(home)

    assert COMMAND in disk.exchange_text


async def test_save_writes_the_totals_of_an_ended_turn_with_its_exchange(
    home: HomeAssistant, agent: Agent, disk: Disk
) -> None:
    store = agent.state.conversations.store
    store.async_save()
    await home.async_add_executor_job(store.writer.drain, 20.0)

    assert COMMAND in disk.exchange_text
    assert disk.execute("SELECT value ->> 'turns_local' FROM value WHERE name = 'totals'") == [(1,)]
