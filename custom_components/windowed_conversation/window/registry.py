"""All windows by key: a limited number, each used by one turn at a time. For one event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from itertools import islice
import time

from .errors import WindowBusy
from .exchange import Snapshot
from .policy import WindowPolicy
from .window import Window, WindowStats

# A turn that leads to itself would wait for ever. A task that outlives its turn still inherits the mark, which by then
# belongs to no window.
_active_turns: ContextVar[frozenset[object]] = ContextVar("active_turns", default=frozenset())


def is_in_turn() -> bool:
    """Return whether the current task is part of a turn, or was started by one."""
    return bool(_active_turns.get())


class _Slot:
    """A window and its users. `turn` marks the turn that uses it; `users` counts that turn and those that wait.

    `after_turn` must run before anybody else looks at the window, `rewrites` when the turn has ended. `stored_stats`
    are those of a window that is not in working memory yet.
    """

    __slots__ = ("after_turn", "last_used", "lock", "rewrites", "stored_stats", "turn", "users", "window")

    def __init__(self, window: Window) -> None:
        self.window = window
        self.stored_stats: WindowStats | None = None
        self.lock = asyncio.Lock()
        self.turn: object = None
        self.users = 0
        self.last_used = 0.0
        self.after_turn: list[Callable[[], None]] = []
        self.rewrites: list[Callable[[Snapshot], Snapshot]] = []

    def finish_turns(self) -> Window:
        """Run the deferred work and return the window."""
        while self.after_turn:
            self.after_turn.pop(0)()
        return self.window


async def _acquire(lock: asyncio.Lock, seconds: float | None) -> None:
    try:
        async with asyncio.timeout(seconds):
            await lock.acquire()
    except TimeoutError as err:
        raise WindowBusy(f"another turn has had the window for {seconds:g} seconds") from err


class WindowRegistry[K: Hashable = str]:
    """Windows by key. Drops the least recently used beyond `max_windows`, and those idle for `idle_seconds`.

    A window that is used or waited for always stays. A window without an exchange is dropped after its turn. `create`
    makes the window of a new key. `read` returns the contents of a window that was shelved, when it is first needed, or
    None if they cannot be read now: its turns then go on without, and the next one tries again. `clock` is in seconds
    and never goes back.
    """

    def __init__(
        self,
        create: Callable[[K], Window],
        *,
        read: Callable[[K], Awaitable[Snapshot | None]] | None = None,
        max_windows: int = 100,
        idle_seconds: float = 24 * 60 * 60,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create an empty registry. Raises `ValueError` like `set_limits`."""
        self._create = create
        self._read = read
        self._clock = clock
        self._policy: WindowPolicy | None = None
        # Least recently used first.
        self._slots: dict[K, _Slot] = {}
        self._max_windows = max_windows
        self._idle_seconds = idle_seconds
        self.set_limits(max_windows=max_windows, idle_seconds=idle_seconds)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: object) -> bool:
        return key in self._slots

    @asynccontextmanager
    # the deadline of waiting alone: one around the context would end the turn
    async def turn(self, key: K, timeout: float | None = None) -> AsyncIterator[Window]:  # noqa: ASYNC109
        """Return a context that has the window of the key for itself; creates the window if there is none.

        Callers enter in the order in which they came. Entering raises `WindowBusy` after `timeout` seconds (None waits
        for ever), and at once inside a turn that uses the same window. An exchange that is still open at the end is
        aborted.
        """
        slot = self._claim(key)
        try:
            async with self._exclusive(key, slot, timeout):
                slot.turn = object()
                _active_turns.set(_active_turns.get() | {slot.turn})
                try:
                    if slot.stored_stats is not None:
                        await self._fill(key, slot)
                    yield slot.finish_turns()
                finally:
                    # Not reset by token: a generator may be closed in another context than it was entered in.
                    _active_turns.set(_active_turns.get() - {slot.turn})
                    slot.turn = None
                    if slot.window.is_open:
                        slot.window.abort()
        finally:
            if not (slot.stored_stats or slot.window.stats()).exchange_count:
                # deferred work may still record one
                slot.after_turn.append(partial(self._drop_unused, key, slot))
            slot.last_used = self._clock()
            self._slots[key] = self._slots.pop(key)
            if len(self._slots) > self._max_windows:
                self._drop_surplus()

    @asynccontextmanager
    async def between_turns(self, window: Window) -> AsyncIterator[bool]:
        """Return a context in which no turn uses the window. Does not change when it was last used.

        Yields whether the window is still in the registry: it may have been dropped or replaced. Entering raises
        `WindowBusy` inside a turn that uses the window.
        """
        key = self.key_of(window)
        if key is None:
            yield False
            return
        slot = self._slots[key]
        try:
            async with self._exclusive(key, slot):
                # another window may have taken its place meanwhile
                yield slot.finish_turns() is window
        finally:
            self._drop_surplus()

    @asynccontextmanager
    async def _exclusive(self, key: K, slot: _Slot, seconds: float | None = None) -> AsyncIterator[None]:
        if slot.turn in _active_turns.get():
            raise WindowBusy("the turn that has the window waits for this one")
        slot.users += 1
        if len(self._slots) > self._max_windows:
            self._drop_surplus()
        try:
            if not slot.lock.locked() and slot.users == 1:
                # nothing to wait for: a deadline would cost more than the lock
                await slot.lock.acquire()
            else:
                await _acquire(slot.lock, seconds)
            try:
                yield
            finally:
                while slot.rewrites:
                    slot.window = self._new(key, slot.rewrites.pop(0)(slot.window.snapshot()))
                slot.lock.release()
        finally:
            slot.users -= 1

    def key_of(self, window: Window) -> K | None:
        """Return the key of a window, or None if it is none of these."""
        return next((key for key, slot in self._slots.items() if slot.window is window), None)

    def peek(self, key: K) -> Window | None:
        """Return a key's window if it is in working memory, or None. Does not touch its last-used time."""
        if slot := self._slots.get(key):
            slot.finish_turns()
        slot = self._slots.get(key)
        return slot.window if slot and slot.stored_stats is None else None

    async def load(self, key: K) -> Window | None:
        """Return a key's window, or None if there is none or it cannot be read. Does not touch its last-used time."""
        slot = self._slots.get(key)
        # a turn that has it has tried to read it, and may wait for this
        if slot is not None and slot.stored_stats is not None and slot.turn is None:
            async with self._exclusive(key, slot):
                await self._fill(key, slot)
        return self.peek(key)

    def loaded(self) -> dict[K, Window]:
        """Return the windows in working memory by their keys, most recently used first."""
        self.finish_turns()
        return {key: slot.window for key, slot in reversed(self._slots.items()) if slot.stored_stats is None}

    def snapshots(self) -> dict[K, Snapshot]:
        """Return the snapshots of windows with exchanges by their keys; without contents that were not read yet."""
        self.finish_turns()
        return {key: slot.window.snapshot() for key, slot in self._slots.items() if slot.window.exchanges()}

    def unread_keys(self) -> list[K]:
        """Return the keys of windows with exchanges that began while their contents could not be read."""
        return [key for key, slot in self._slots.items() if slot.stored_stats is not None and slot.window.exchanges()]

    def stats(self) -> dict[K, WindowStats]:
        """Return the statistics of all windows by their keys, most recently used first."""
        self.finish_turns()
        stats: dict[K, WindowStats] = {}
        for key, slot in reversed(self._slots.items()):
            if slot.stored_stats is None:
                stats[key] = slot.window.stats()
            else:
                budget, stored = slot.window.policy.history_tokens, slot.stored_stats
                utilization = min(100.0, 100 * stored.current_tokens / budget)
                stats[key] = stored._replace(max_tokens=budget, utilization=utilization)
        return stats

    def idle_seconds(self, key: K) -> float:
        """Return the seconds since a key's window was created or last used. Raises `KeyError`."""
        return self._clock() - self._slots[key].last_used

    def after_turn(self, key: K, work: Callable[[], None]) -> None:
        """Defer work of a turn until `finish_turns`, or until its window is dropped or looked at.

        For work that the answer does not wait for. The work must not raise; it may start other turns.
        """
        self._slots[key].after_turn.append(work)

    def finish_turns(self) -> None:
        """Run all deferred work now."""
        for slot in list(self._slots.values()):
            if slot.after_turn:
                slot.finish_turns()

    def expire(self) -> int:
        """Drop the windows that have been idle for too long. Return their number."""
        idle = [key for key, slot in self._slots.items() if self._is_idle(slot)]
        for slot in [self._slots.pop(key) for key in idle]:
            slot.finish_turns()
        return len(idle)

    def drop(self, key: K) -> bool:
        """Drop a key's window and return whether there was one. Raises `WindowBusy` while it is in use."""
        slot = self._slots.get(key)
        if slot is None:
            return False
        if slot.users:
            raise WindowBusy("a turn has the window")
        self._slots.pop(key).finish_turns()
        return True

    def set_policy(self, policy: WindowPolicy) -> None:
        """Change the policy of all present and future windows, and trim to it at once."""
        self._policy = policy
        self.finish_turns()
        for slot in self._slots.values():
            slot.window.set_policy(policy)

    def set_limits(self, *, max_windows: int | None = None, idle_seconds: float | None = None) -> None:
        """Change the limits that are not None, at once; `inf` seconds never expire.

        Raises `ValueError` for 0 or less.
        """
        if max_windows is not None:
            if max_windows < 1:
                raise ValueError(f"max_windows must be at least 1, not {max_windows!r}")
            self._max_windows = max_windows
        if idle_seconds is not None:
            if not idle_seconds > 0:
                raise ValueError(f"idle_seconds must be above 0, not {idle_seconds!r}")
            self._idle_seconds = idle_seconds
        self.expire()
        self._drop_surplus()

    def rewrite(self, change: Callable[[K, Snapshot], Snapshot]) -> None:
        """Replace each window from which `change` makes another snapshot; it takes the key and the present one.

        A window in use is replaced when its turn ends, in any case; deferred work and summaries then go to the old one.
        Of a window that is not in working memory, only exchanges since it was shelved are replaced.
        """
        for key, slot in list(self._slots.items()):
            before = slot.finish_turns().snapshot()
            if slot.lock.locked():
                slot.rewrites.append(partial(change, key))
            elif (after := change(key, before)) is not before:
                slot.window = self._new(key, after)
                self._drop_unused(key, slot)

    async def _fill(self, key: K, slot: _Slot) -> None:
        """Read the contents of a window that is not in working memory; exchanges since then follow them."""
        snapshot = None if self._read is None else await self._read(key)
        # it may be gone by now
        if snapshot is None or slot.stored_stats is None:
            return
        exchanges = snapshot.exchanges
        last = max((len(exchanges), *(each.number for each in exchanges[-1:])))
        newer = (each.with_number(last + place) for place, each in enumerate(slot.finish_turns().exchanges(), start=1))
        slot.window, slot.stored_stats = self._new(key, snapshot._replace(exchanges=(*exchanges, *newer))), None

    def rewrite_after_turn(self, key: K, change: Callable[[Snapshot], Snapshot]) -> None:
        """Replace a window that is in use when its turn ends."""
        self._slots[key].rewrites.append(change)

    def _new(self, key: K, snapshot: Snapshot | None = None) -> Window:
        window = self._create(key)
        if self._policy is not None:
            window.set_policy(self._policy)
        if snapshot is not None:
            window.restore(snapshot)
        return window

    def _drop_unused(self, key: K, slot: _Slot) -> None:
        """Drop a window without exchanges, unless a turn uses it or waits for it."""
        stats = slot.stored_stats or slot.window.stats()
        if not slot.users and not stats.exchange_count and self._slots.get(key) is slot:
            del self._slots[key]

    def _is_idle(self, slot: _Slot) -> bool:
        return not slot.users and self._clock() - slot.last_used >= self._idle_seconds

    def _claim(self, key: K) -> _Slot:
        if key in self._slots and self._is_idle(self._slots[key]):
            self.drop(key)
        slot = self._slots.pop(key, None)
        if slot is None:
            slot = _Slot(self._new(key))
            slot.last_used = self._clock()
        self._slots[key] = slot
        return slot

    def _drop_surplus(self) -> None:
        surplus = len(self._slots) - self._max_windows
        if surplus > 0:
            unused = (key for key, slot in self._slots.items() if not slot.users)
            for slot in [self._slots.pop(key) for key in list(islice(unused, surplus))]:
                slot.finish_turns()

    def restore(self, key: K, snapshot: Snapshot, *, idle_seconds: float = 0) -> None:
        """Create a key's window from a snapshot, as if it was last used `idle_seconds` ago.

        Restore several in the order of their last use. Raises `WindowBusy` while the window is in use.
        """
        self.drop(key)
        slot = _Slot(self._new(key, snapshot))
        slot.last_used = self._clock() - idle_seconds
        self._slots[key] = slot
        self._drop_surplus()

    def shelve(self, stored: Mapping[K, tuple[WindowStats, float]], *, is_late: bool = False) -> None:
        """Take in the stored windows, by their keys: their statistics, and for how many seconds they are idle.

        The contents of each are read when they are first needed. Windows in working memory stay as they are, and of
        those that were stored before and are not any more, only newer exchanges stay. If it `is_late`, the exchanges
        of those in working memory are added to the stored ones. Give them in the order of their last use.
        """
        new: dict[K, _Slot] = {}
        for key, (stats, idle_seconds) in stored.items():
            slot = self._slots.get(key)
            if slot is None:
                new[key] = slot = _Slot(self._new(key))
                slot.last_used = self._clock() - idle_seconds
                slot.stored_stats = stats
            elif slot.stored_stats is not None or is_late:
                slot.stored_stats = stats
        for key, slot in list(self._slots.items()):
            if slot.stored_stats is not None and key not in stored:
                slot.stored_stats = None
                self._drop_unused(key, slot)
        # those that are known were used since
        self._slots = new | self._slots
        self._drop_surplus()
