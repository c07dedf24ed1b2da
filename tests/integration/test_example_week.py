"""Tests that a real recorder continues the demo's made-up week with the turns that are really taken."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from homeassistant.components.recorder.statistics import statistics_during_period
from homeassistant.core import HomeAssistant
from homeassistant.helpers.recorder import get_instance
import pytest
from pytest_homeassistant_custom_component.components.recorder.common import (
    async_wait_recording_done,
    do_adhoc_statistics,
)

from demo.client import Client
from demo.example_week import import_example_week

from .conftest import SayAtOnce, until
from .states import get_state

SENSOR = "sensor.ada_turns_answered_locally"


class WebsocketClient:
    """The part of the demo's client that sends commands, for a Home Assistant in this process."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def send_command(self, kind: str, **fields: Any) -> Any:
        """Send a command and return its result."""
        await self._client.send_json_auto_id({"type": kind, **fields})
        answer = await self._client.receive_json()
        assert answer["success"], answer
        return answer["result"]


@pytest.fixture
async def mock_recorder_before_hass(async_test_recorder: Any) -> None:
    """Prepare the recorder's database, which must exist before Home Assistant is set up."""


@pytest.fixture(autouse=True)
async def _recorder(hass: HomeAssistant, async_test_recorder: Any) -> AsyncIterator[None]:
    """Run a recorder, which must be set up before the first recorded state."""
    async with async_test_recorder(hass):
        yield


async def compile_sums(home: HomeAssistant, now: datetime) -> list[float]:
    """Have the recorder compile the minutes up to `now`, and return the sums of the sensor's hours, oldest first."""
    await async_wait_recording_done(home)
    start = now.replace(minute=now.minute - now.minute % 5, second=0, microsecond=0)
    do_adhoc_statistics(home, start=start)
    await async_wait_recording_done(home)
    begin = now - timedelta(days=10)
    rows: dict[str, list[dict[str, Any]]] = {}
    for period in ("hour", "5minute"):
        found = await get_instance(home).async_add_executor_job(
            statistics_during_period, home, begin, None, {SENSOR}, period, None, {"sum"}
        )
        rows[period] = cast(list[dict[str, Any]], found.get(SENSOR, []))
    # in the last five minutes of an hour, the recorder adds up that hour as well
    this_hour = now.replace(minute=0, second=0, microsecond=0).timestamp()
    hours = [row for row in rows["hour"] if row["start"] < this_hour]
    return [row["sum"] for row in (*hours, *rows["5minute"])]


async def test_real_turns_continue_the_made_up_week_without_a_jump(
    home: HomeAssistant, entry, say_at_once: SayAtOnce, hass_ws_client: Any
) -> None:
    client = cast(Client, WebsocketClient(await hass_ws_client(home)))
    await import_example_week(client, {"turns_local": SENSOR})
    for _ in range(2):
        await say_at_once("turn on kitchen light")
    await until(lambda: get_state(home, SENSOR).state == "2")

    *week, last, real = await compile_sums(home, datetime.now(UTC))

    assert (last, real) == (0, 2)
    assert len(week) == 9 * 24


async def test_sensor_with_statistics_of_its_own_gets_no_made_up_ones(
    home: HomeAssistant, entry, say_at_once: SayAtOnce, hass_ws_client: Any
) -> None:
    await say_at_once("turn on kitchen light")
    await until(lambda: get_state(home, SENSOR).state == "1")
    # the next five minutes may begin meanwhile, and would have a sum of their own
    now = datetime.now(UTC)
    before = await compile_sums(home, now)

    await import_example_week(cast(Client, WebsocketClient(await hass_ws_client(home))), {"turns_local": SENSOR})

    assert await compile_sums(home, now) == before == [1]
