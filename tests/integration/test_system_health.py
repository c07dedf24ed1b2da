"""Tests for the integration's entry on Home Assistant's system health page, read through the websocket API."""

from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web
from homeassistant.const import CONF_API_KEY, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry
from pytest_homeassistant_custom_component.typing import WebSocketGenerator

from custom_components.windowed_conversation import const
from custom_components.windowed_conversation.const import DOMAIN, PROVIDER_NONE
from custom_components.windowed_conversation.memory.core import PastTurn
from custom_components.windowed_conversation.store import writer
from tests.documents import DOCS, column
from tests.repository_files import TEXTS

from .conftest import SayFn, SetUpFn, flush_store, run_server, until
from .remembered import memory_of
from .store_file import Disk, issues
from .test_memory_faults import lock_file

NAMES = TEXTS["system_health"]["info"]
DOCUMENTED = column(DOCS / "troubleshooting.md", "System health")
# A URL with a port on which no server listens.
NOWHERE = "http://127.0.0.1:1/v1"

type Page = Callable[[], Coroutine[Any, Any, dict[str, Any]]]


@dataclass(slots=True)
class Listener:
    """A server that answers every request with 404 and records the requests."""

    url: str = ""
    asked: list[web.Request] = field(default_factory=list)


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    """Yield a server that records its requests."""
    listener = Listener()

    async def answer(request: web.Request) -> web.Response:
        listener.asked.append(request)
        return web.Response(status=404)

    async with run_server(answer) as listener.url:
        yield listener


@pytest.fixture
async def page(home: HomeAssistant, hass_ws_client: WebSocketGenerator) -> Page:
    """Return a function that opens the page and returns its content after all values have arrived."""
    assert await async_setup_component(home, "system_health", {})
    socket = await hass_ws_client(home)

    async def page() -> dict[str, Any]:
        shown: dict[str, Any] = {}
        await socket.send_json_auto_id({"type": "system_health/info"})
        assert (await socket.receive_json())["success"]
        while True:
            event = (await socket.receive_json())["event"]
            if event["type"] == "finish":
                return shown
            if event["type"] == "initial":
                shown = event["data"][DOMAIN]["info"]
            elif event["domain"] == DOMAIN:
                shown[event["key"]] = event["data"] if event["success"] else event["error"]

    return page


def time(shown: Any) -> datetime:
    """Return the time of a value that the page shows as a date."""
    assert shown["type"] == "date"
    return datetime.fromisoformat(shown["value"])


async def healed(home: HomeAssistant) -> None:
    """Wait until the queue is written and the issue has disappeared."""
    await flush_store(home)
    await until(lambda: issues(home) == set())


async def test_server_that_answers_is_reached_and_the_last_answer_is_now(
    entry: MockConfigEntry, say: SayFn, page: Page
) -> None:
    before = await page()
    await say("hello there")

    shown = await page()

    assert before["can_reach_openai_chat"] == shown["can_reach_openai_chat"] == "ok"
    assert "last_answer" not in before
    assert abs(datetime.now(UTC) - time(shown["last_answer"])) < timedelta(minutes=5)


async def test_one_server_of_several_that_is_away_is_shown(set_up: SetUpFn, page: Page) -> None:
    await set_up()
    await set_up(account={CONF_URL: NOWHERE})

    shown = await page()

    assert shown["can_reach_openai_chat"] == {"type": "failed", "error": "unreachable"}


async def test_no_key_and_no_path_is_sent_to_a_server(set_up: SetUpFn, page: Page, listener: Listener) -> None:
    address = listener.url.replace("http://", "http://ada:pelican@")
    await set_up(account={CONF_URL: f"{address}/secret/v1?token=marlin", CONF_API_KEY: "swordfish"})
    listener.asked.clear()

    assert (await page())["can_reach_openai_chat"] == "ok"

    assert [(each.path_qs, each.headers.get("Authorization")) for each in listener.asked] == [("/", None)]


async def test_memory_is_shown_with_its_figures(
    entry: MockConfigEntry, say: SayFn, page: Page, home: HomeAssistant
) -> None:
    await say("hello there")

    before = memory_of(home).writer.state.statistics
    shown = await page()
    after = memory_of(home).writer.state.statistics

    assert shown["memory"] == "ok"
    assert (shown["memory_queued"], shown["memory_dropped"], shown["memory_late"]) == (0, 0, 0)
    assert abs(datetime.now(UTC) - time(shown["memory_written"])) < timedelta(minutes=5)
    sizes = [0 if statistics is None else statistics.size for statistics in (before, after)]
    assert shown["memory_size"] in [f"{size / 1e6:.1f} MB" for size in sizes]


async def test_memory_that_is_off_is_shown_with_the_reason(
    entry: MockConfigEntry, say: SayFn, page: Page, disk: Disk, home: HomeAssistant
) -> None:
    await say("hello there")
    memory = memory_of(home).writer.open_store
    assert memory is not None
    with lock_file(disk, memory):
        await say("hello again")
        await until(lambda: memory_of(home).writer.state.reason == "locked")
        shown = await page()
    await healed(home)

    assert shown["memory"] == {"type": "failed", "error": "locked"}
    # The queue contains the exchange, the turn for memory, the turn for the record, the totals, and the calibration.
    assert shown["memory_queued"] == 5


async def test_records_for_which_there_is_no_room_are_shown_as_dropped(
    *,
    home: HomeAssistant,
    entry: MockConfigEntry,
    say: SayFn,
    page: Page,
    disk: Disk,
) -> None:
    await say("hello there")
    memory = memory_of(home)
    assert memory.writer.open_store is not None
    with lock_file(disk, memory.writer.open_store):
        for _ in range(writer._MAX_QUEUED_RECORDS + 1):
            memory.writer.put(PastTurn("mine", 1.0, "hello", ""))
        await say("hello again")
        await until(lambda: memory.writer.counts.dropped > 0)
        shown = await page()
    await healed(home)

    assert shown["memory_dropped"] == memory.writer.counts.dropped


async def test_account_without_a_model_has_no_server(entry_without_model: MockConfigEntry, page: Page) -> None:
    assert [key for key in await page() if key.startswith(("can_reach", "last"))] == []


async def test_every_figure_has_a_name_that_is_documented(entry: MockConfigEntry, say: SayFn, page: Page) -> None:
    await say("hello there")
    providers = {value for name, value in vars(const).items() if name.startswith("PROVIDER_")} - {PROVIDER_NONE}
    of_servers = {f"can_reach_{provider}" for provider in providers}

    assert NAMES.keys() == of_servers | (await page()).keys()
    assert [*NAMES.values()] == DOCUMENTED
