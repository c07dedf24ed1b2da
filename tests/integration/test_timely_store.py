"""A file is written soon after a change, never too often, and never when there is nothing to write or after its end."""

import asyncio
from collections.abc import AsyncIterator, Callable
import json
import threading
from typing import Any, cast

from homeassistant.const import EVENT_HOMEASSISTANT_STOP
from homeassistant.core import CoreState, HomeAssistant
import pytest

from custom_components.windowed_conversation.bridge.timely_store import TimelyStore, interval

from .conftest import until, written

KEY = "windowed_conversation.test"


class StoppedClock:
    """The event loop's clock, which stands still until it is moved."""

    def __init__(self, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = loop.time()
        monkeypatch.setattr(loop, "time", lambda: self.now)

    async def move(self, home: HomeAssistant, seconds: float) -> None:
        """Let time pass, and have everything done that is due then."""
        self.now += seconds
        for _ in range(3):
            await home.async_block_till_done()


@pytest.fixture
async def clock(hass: HomeAssistant) -> AsyncIterator[StoppedClock]:
    """Stop the event loop's clock for the test itself."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield StoppedClock(hass.loop, monkeypatch)


class Kept:
    """Something that changes, the store that keeps it, and when the store said that what is on disk."""

    def __init__(self, home: HomeAssistant, *, size: int = 0) -> None:
        self.value = 0
        self.on_disk: list[tuple[float, int]] = []
        self._home = home
        self._padding = "x" * size
        self.store = TimelyStore(
            home, 1, KEY, state=lambda: self.value, encode=self.encode, on_written=self._on_written
        )

    def encode(self, value: int) -> bytes:
        """Return the file's data."""
        return json.dumps({"value": value, "padding": self._padding}).encode()

    def change(self) -> None:
        """Change, and have it kept."""
        self.value += 1
        self.store.save_soon()

    def _on_written(self, value: int) -> None:
        self.on_disk.append((self._home.loop.time(), value))


async def test_first_change_after_a_quiet_time_is_written_within_a_moment(hass: HomeAssistant, clock) -> None:
    kept = Kept(hass)
    kept.change()
    kept.change()

    await clock.move(hass, 0.25)

    assert [value for _, value in kept.on_disk] == [2]


async def test_each_change_is_on_disk_five_seconds_later_while_they_never_end(
    hass: HomeAssistant, clock, hass_storage
) -> None:
    kept = Kept(hass)
    waited = []
    for _ in range(120):
        kept.change()
        await clock.move(hass, 0.5)
        waited.append(kept.value - hass_storage[KEY]["data"]["value"] if KEY in hass_storage else 1)

    assert max(waited) <= 10
    assert 12 <= len(kept.on_disk) <= 13


async def test_large_file_is_written_every_thirty_seconds(hass: HomeAssistant, clock) -> None:
    kept = Kept(hass, size=2_000_000)
    for _ in range(120):
        kept.change()
        await clock.move(hass, 0.5)

    times = [at for at, _ in kept.on_disk]
    assert len(times) == 2
    assert times[1] - times[0] == pytest.approx(30, abs=0.6)


@pytest.mark.parametrize(
    ("size", "seconds"), [(0, 5), (250_000, 5), (500_000, 10), (1_000_000, 20), (1_500_000, 30), (50_000_000, 30)]
)
def test_interval_is_fifty_kilobytes_a_second_and_never_above_thirty_seconds(size: int, seconds: float) -> None:
    assert interval(size) == seconds


async def test_state_that_is_on_disk_is_not_written_again(hass: HomeAssistant, clock) -> None:
    kept = Kept(hass)
    kept.change()
    await clock.move(hass, 1)

    kept.store.save_soon()
    await clock.move(hass, 60)

    assert len(kept.on_disk) == 1


async def test_state_that_was_read_is_not_written_again(hass: HomeAssistant, clock) -> None:
    kept = Kept(hass)
    kept.store.is_on_disk()

    kept.store.save_soon()
    await clock.move(hass, 60)

    assert kept.on_disk == []


async def test_what_waits_is_written_at_the_end_of_home_assistant(hass: HomeAssistant, clock) -> None:
    kept = Kept(hass)
    kept.change()
    await clock.move(hass, 1)
    kept.change()

    await written(hass)

    assert [value for _, value in kept.on_disk] == [1, 2]


async def test_change_while_home_assistant_stops_is_written_with_the_rest(hass: HomeAssistant, clock) -> None:
    kept = Kept(hass)
    hass.set_state(CoreState.stopping)
    hass.bus.async_fire(EVENT_HOMEASSISTANT_STOP)
    kept.change()
    kept.store.save_now()
    await clock.move(hass, 60)
    assert kept.on_disk == []

    hass.set_state(CoreState.final_write)
    await written(hass)

    assert [value for _, value in kept.on_disk] == [1]


async def test_removed_file_is_not_written_again(hass: HomeAssistant, clock, hass_storage) -> None:
    kept = Kept(hass)
    kept.change()
    await clock.move(hass, 1)
    kept.change()

    await kept.store.async_remove()
    kept.change()
    await clock.move(hass, 60)

    assert KEY not in hass_storage


class Slow:
    """An encoding that another thread is still at, until it may go on."""

    def __init__(self, encode: Callable[[int], bytes]) -> None:
        self._encode = encode
        self.at_work = 0
        self.most_at_work = 0
        self.may_end = threading.Event()

    def __call__(self, value: int) -> bytes:
        self.at_work += 1
        self.most_at_work = max(self.at_work, self.most_at_work)
        assert self.may_end.wait(30)
        self.at_work -= 1
        return self._encode(value)


@pytest.fixture
def slow(hass: HomeAssistant) -> tuple[Kept, Slow]:
    """Return something that is kept slowly."""
    kept = Kept(hass)
    kept.store._encode = slow = Slow(kept.encode)
    return kept, slow


async def test_write_under_way_does_not_bring_a_removed_file_back(
    hass: HomeAssistant, slow: tuple[Kept, Slow], hass_storage
) -> None:
    kept, encoding = slow
    kept.change()
    await until(lambda: encoding.at_work == 1)
    removal = hass.async_create_task(kept.store.async_remove())
    await asyncio.sleep(0)

    encoding.may_end.set()
    await removal
    await hass.async_block_till_done()

    assert KEY not in hass_storage


async def test_changes_during_a_write_are_written_after_it(hass: HomeAssistant, slow: tuple[Kept, Slow]) -> None:
    kept, encoding = slow
    kept.change()
    await until(lambda: encoding.at_work == 1)
    kept.change()
    kept.store.save_now()
    await asyncio.sleep(0)

    encoding.may_end.set()
    await until(lambda: len(kept.on_disk) == 2)

    assert [value for _, value in kept.on_disk] == [1, 2]
    assert encoding.most_at_work == 1


async def test_state_that_cannot_be_encoded_holds_no_other_up(hass: HomeAssistant, clock, caplog: Any) -> None:
    kept = Kept(hass)
    kept.value = cast("int", object())
    kept.store.save_soon()
    await clock.move(hass, 1)
    assert "cannot be written: TypeError" in caplog.text

    kept.value = 7
    kept.store.save_soon()
    await clock.move(hass, 1)

    assert [value for _, value in kept.on_disk] == [7]
