"""A registry of windows by key, limited in number. Each window is used by one turn at a time, on one event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import chain, takewhile
import time

from .errors import WindowBusy
from .exchange import Snapshot
from .policy import WindowPolicy
from .window import Window, WindowStats

# Marks of the turns that the current task is part of. They detect a turn that waits for its own window, which would
# never end. A task that outlives its turn still inherits the mark, but no window has that mark any more.
_own_marks: ContextVar[frozenset[object]] = ContextVar("own_marks", default=frozenset())


def is_in_turn() -> bool:
    """Return whether the current task is part of a turn or was started by one."""
    return bool(_own_marks.get())


class _WindowSlot:
    """A window and its users."""

    __slots__ = ("deferred", "last_used", "load_lock", "places", "rewrites", "stored_stats", "window")

    def __init__(self, window: Window, last_used: float) -> None:
        self.window = window
        # The statistics of a window that was not loaded into memory yet, otherwise None.
        self.stored_stats: WindowStats | None = None
        self.load_lock = asyncio.Lock()
        # The places of the turns in the order of their arrival. Only the first may use the window.
        self.places: list[TurnPlace] = []
        self.last_used = last_used
        # Work that must run before other code uses the window.
        self.deferred: list[Callable[[], None]] = []
        # Changes to apply to the window whenever a turn ends, each until the turn of the place beside it has ended.
        self.rewrites: list[tuple[Callable[[Snapshot], Snapshot], TurnPlace | None]] = []

    @property
    def is_in_use(self) -> bool:
        """Whether a turn uses the window."""
        return bool(self.places) and self.places[0].has_entered

    def finish_turns(self) -> Window:
        """Run the deferred work of ended turns, in order, and return the window."""
        self.remove_ended()
        while self.deferred:
            self.deferred.pop(0)()
        return self.window

    def remove_ended(self) -> None:
        """Remove the places of ended turns that no other turn precedes, and let the next turn have the window.

        Turns that ended behind an open exchange are removed, too, because the window queues the exchanges that they
        add.
        """
        places = self.places
        first = 1 if places and places[0].has_entered and self.window.is_open else 0
        while len(places) > first and places[first].has_ended:
            self.deferred += places.pop(first).deferred
        if places and (may_enter := places[0].may_enter) is not None and not may_enter.done():
            may_enter.set_result(None)


class TurnPlace:
    """The place of a turn among the turns of a window. A turn that needs the window waits for those before it."""

    def __init__(self, slot: _WindowSlot, load: Callable[[], Awaitable[None]]) -> None:
        self.mark = object()
        self.has_entered = self.has_ended = False
        # Work that waits for the end of the turns before this one.
        self.deferred: list[Callable[[], None]] = []
        # Set while the turn waits for those before it.
        self.may_enter: asyncio.Future[None] | None = None
        self._slot = slot
        self._load = load

    @property
    def is_first(self) -> bool:
        """Whether the turns before this one have ended."""
        return self._slot.places[0] is self

    @property
    def window(self) -> Window:
        """The window, which another turn may be using. Before `enter`, its contents may not be in memory."""
        return self._slot.window

    @property
    def is_unread(self) -> bool:
        """Whether the contents of the window are not in memory yet."""
        return self._slot.stored_stats is not None

    def stats(self) -> WindowStats:
        """Return the statistics of the window, or the stored ones if its contents are not in memory."""
        return self._slot.stored_stats or self._slot.window.stats()

    async def enter(self, timeout: float | None = None) -> Window:  # noqa: ASYNC109 - the caller may be cancelled later
        """Return the window for exclusive use, with the exchanges of all earlier turns.

        Raises `WindowBusy` after `timeout` seconds (None waits forever), or at once if an earlier turn waits for this
        one.
        """
        places = self._slot.places
        if not _own_marks.get().isdisjoint([each.mark for each in places[: places.index(self)]]):
            raise WindowBusy("the turn that has the window waits for this one")
        if not self.is_first:
            self.may_enter = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(timeout):
                    await self.may_enter
            except TimeoutError as err:
                raise WindowBusy(f"another turn has had the window for {timeout:g} seconds") from err
        self.has_entered = True
        if self._slot.stored_stats is not None:
            await self._load()
        self._slot.deferred += self.deferred
        self.deferred = []
        return self._slot.finish_turns()

    def defer_work(self, work: Callable[[], None]) -> None:
        """Defer work that adds to the window until earlier turns have ended. It runs before a later turn enters."""
        (self._slot if self.is_first else self).deferred.append(work)


class WindowRegistry[K: Hashable = str]:
    """Windows by key. Drops the least recently used beyond `max_windows`, and those idle for `idle_seconds`.

    A window that a turn uses or waits for is never dropped. A window without an exchange is dropped after its turn.

    Work that a turn defers runs before another turn enters, and before the window is loaded, changed or dropped.
    Methods that only read run none of it: call `run_deferred_work` first to read what ended turns leave.
    """

    def __init__(
        self,
        create: Callable[[K], Window],
        *,
        read: Callable[[K], Awaitable[Snapshot | None]] | None = None,
        reopen_seconds: float = float("inf"),
        is_lasting: Callable[[K], bool] = lambda _key: False,
        max_windows: int = 100,
        idle_seconds: float = 24 * 60 * 60,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create an empty registry. Raises `ValueError` for limits of 0 or less."""
        if max_windows < 1:
            raise ValueError(f"max_windows must be at least 1, not {max_windows!r}")
        # Builds the window of a new key.
        self._create_window = create
        # Loads the contents of a shelved window when they are first needed, or returns None if they cannot be read now:
        # the turn then continues without them, and the next turn tries again.
        self._read_snapshot = read
        # After this many idle seconds no turn can use a window again, unless its key is a lasting one.
        self._reopen_seconds = reopen_seconds
        self._is_lasting = is_lasting
        # Returns seconds and never goes back.
        self._clock = clock
        self._policy: WindowPolicy | None = None
        # Ordered by last use, least recently used first.
        self._slots: dict[K, _WindowSlot] = {}
        self._max_windows = max_windows
        self.set_idle_seconds(idle_seconds)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: object) -> bool:
        return key in self._slots

    @contextmanager
    def reserve(self, key: K, *, is_use: bool = True) -> Iterator[TurnPlace]:
        """Return a context manager with the next place among the turns of a key's window, which is created if needed.

        Runs the deferred work of earlier turns if all of them have ended. An exchange that is open at the end is
        aborted. With `is_use` False, the window must exist, and its last-used time does not change.
        """
        slot = self._get_or_create_slot(key) if is_use else self._slots[key]
        place = TurnPlace(slot, partial(self._load_contents, key, slot))
        slot.places.append(place)
        if place.is_first:
            slot.finish_turns()
        _own_marks.set(_own_marks.get() | {place.mark})
        try:
            yield place
        finally:
            # The mark is not reset with a token, because a generator may be closed in another context.
            _own_marks.set(_own_marks.get() - {place.mark})
            if place.has_entered and slot.window.is_open:
                slot.window.abort()
            place.has_ended = True
            slot.remove_ended()
            if slot.rewrites:
                self._rewrite(key, slot)
            if not (slot.stored_stats.exchange_count if slot.stored_stats else slot.window.exchanges()):
                # Checked only after the deferred work, which may still record an exchange.
                slot.deferred.append(partial(self._drop_unused, key, slot))
            if is_use:
                slot.last_used = self._clock()
                self._slots[key] = self._slots.pop(key)
            self._drop_surplus()

    def _rewrite(self, key: K, slot: _WindowSlot) -> None:
        """Apply the changes that wait for the end of a turn, even to exchanges that were added meanwhile."""
        if slot.is_in_use or slot.load_lock.locked():
            return
        slot.finish_turns()
        for change, _ in slot.rewrites:
            slot.window = self._build_window(key, change(slot.window.snapshot()))
        slot.rewrites = [(change, last) for change, last in slot.rewrites if last in slot.places]

    @asynccontextmanager
    async def hold_between_turns(self, window: Window) -> AsyncIterator[K | None]:
        """Return a context manager during which no turn uses the window. Does not change its last-used time.

        Yields the key of the window, or None if it is not in the registry any more. Entering runs the deferred work of
        earlier turns, and raises `WindowBusy` inside a turn of the window.
        """
        key = next((key for key, slot in self._slots.items() if slot.window is window), None)
        if key is None:
            yield None
            return
        with self.reserve(key, is_use=False) as place:
            # Another window may have replaced it in the meantime.
            yield key if await place.enter() is window else None

    def get_loaded(self, key: K) -> Window | None:
        """Return a key's window if it is in memory, or None. Does not change its last-used time."""
        slot = self._slots.get(key)
        return slot.window if slot and slot.stored_stats is None else None

    async def load(self, key: K) -> Window | None:
        """Return a key's window, or None if it does not exist or cannot be read. Does not change its last-used time.

        Runs the window's deferred work.
        """
        slot = self._slots.get(key)
        # A turn that uses the window has already tried to read it.
        if slot is not None and slot.stored_stats is not None and not slot.is_in_use:
            await self._load_contents(key, slot)
        # The wait may have replaced the slot, and the deferred work may drop the window.
        if (slot := self._slots.get(key)) is not None:
            slot.finish_turns()
        return self.get_loaded(key)

    def loaded_windows(self) -> dict[K, Window]:
        """Return the windows in memory by key, most recently used first."""
        return {key: slot.window for key, slot in reversed(self._slots.items()) if slot.stored_stats is None}

    def snapshots(self) -> dict[K, Snapshot]:
        """Return snapshots by key of all windows with exchanges in memory. Contents not read yet are not included."""
        return {key: slot.window.snapshot() for key, slot in self._slots.items() if slot.window.exchanges()}

    def unread_keys(self) -> list[K]:
        """Return the keys of windows that have new exchanges while their stored contents are still unread."""
        return [key for key, slot in self._slots.items() if slot.stored_stats is not None and slot.window.exchanges()]

    def stats(self) -> dict[K, WindowStats]:
        """Return the statistics of all windows by key, most recently used first."""
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
        """Return the seconds since a key's window was created or last used. Raises `KeyError` for an unknown key."""
        return self._clock() - self._slots[key].last_used

    def defer_work(self, key: K, work: Callable[[], None]) -> None:
        """Defer work of a turn until `run_deferred_work`, or until other code uses the window.

        Used for work that the answer need not wait for. The work must not raise; it may start other turns.
        """
        self._slots[key].deferred.append(work)

    def run_deferred_work(self) -> None:
        """Run all deferred work of all windows now."""
        for slot in list(self._slots.values()):
            if slot.deferred or slot.places:
                slot.finish_turns()

    def expire_windows(self) -> int:
        """Drop windows that have been idle for too long. Return the number of dropped windows."""
        idle = [key for key, slot in self._slots.items() if self._is_idle(slot)]
        for slot in [self._slots.pop(key) for key in idle]:
            slot.finish_turns()
        return len(idle)

    def drop(self, key: K) -> bool:
        """Drop a key's window and return whether it existed. Raises `WindowBusy` while the window is in use."""
        slot = self._slots.get(key)
        if slot is None:
            return False
        if slot.places:
            raise WindowBusy("a turn has the window")
        self._slots.pop(key).finish_turns()
        return True

    def set_policy(self, policy: WindowPolicy) -> None:
        """Set the policy of all present and future windows, and trim the present ones at once."""
        self._policy = policy
        self.run_deferred_work()
        for slot in self._slots.values():
            slot.window.set_policy(policy)

    def set_idle_seconds(self, idle_seconds: float) -> None:
        """Set how long windows may be idle, and expire them at once. With `math.inf` seconds, they never expire.

        Raises `ValueError` for 0 or less.
        """
        if not idle_seconds > 0:
            raise ValueError(f"idle_seconds must be above 0, not {idle_seconds!r}")
        self._idle_seconds = idle_seconds
        self.expire_windows()

    def rewrite_windows(self, change: Callable[[K, Snapshot], Snapshot]) -> None:
        """Replace windows: `change` takes a key and the current snapshot, and returns that one or a new snapshot.

        A window in use is always replaced, when its turn ends; deferred work and summaries are then applied to the old
        window. If a window is not in memory, only the exchanges since it was shelved are replaced.
        """
        for key, slot in list(self._slots.items()):
            before = slot.finish_turns().snapshot()
            last = slot.places[-1] if slot.places else None
            if last is not None or slot.load_lock.locked():
                # turns that have not ended may add an exchange to which the change applies
                slot.rewrites.append((partial(change, key), last))
            if slot.is_in_use or slot.load_lock.locked():
                continue
            if (after := change(key, before)) is not before:
                slot.window = self._build_window(key, after)
                self._drop_unused(key, slot)

    async def _load_contents(self, key: K, slot: _WindowSlot) -> None:
        """Load the stored contents of a window. Exchanges that are newer than the stored ones are appended."""
        async with slot.load_lock:
            if slot.stored_stats is None:
                return
            snapshot = None if self._read_snapshot is None else await self._read_snapshot(key)
            # The contents may be unreadable, or the window may no longer be shelved after the wait.
            if snapshot is None or slot.stored_stats is None:
                return
            exchanges = snapshot.exchanges
            last = max((len(exchanges), *(each.number for each in exchanges[-1:])))
            newer = enumerate(slot.finish_turns().exchanges(), start=last + 1)
            added = [each.with_number(number) for number, each in newer]
            slot.window = self._build_window(key, snapshot._replace(exchanges=(*exchanges, *added)))
            slot.stored_stats = None
        if slot.rewrites:
            self._rewrite(key, slot)

    def rewrite_after_turn(self, key: K, change: Callable[[Snapshot], Snapshot]) -> None:
        """Replace a window that is in use with a changed one when its turn ends."""
        slot = self._slots[key]
        slot.rewrites.append((change, slot.places[0]))

    def _build_window(self, key: K, snapshot: Snapshot | None = None) -> Window:
        window = self._create_window(key)
        if self._policy is not None and window.policy is not self._policy:
            window.set_policy(self._policy)
        if snapshot is not None:
            window.restore(snapshot)
        return window

    def _drop_unused(self, key: K, slot: _WindowSlot) -> None:
        """Drop a window without exchanges, unless a turn uses it or waits for it."""
        has_exchanges = slot.stored_stats.exchange_count if slot.stored_stats else slot.window.exchanges()
        if not slot.places and not has_exchanges and self._slots.get(key) is slot:
            del self._slots[key]

    def _is_idle(self, slot: _WindowSlot) -> bool:
        return not slot.places and self._clock() - slot.last_used >= self._idle_seconds

    def _get_or_create_slot(self, key: K) -> _WindowSlot:
        if key in self._slots and self._is_idle(self._slots[key]):
            self.drop(key)
        slot = self._slots.pop(key, None) or _WindowSlot(self._build_window(key), self._clock())
        self._slots[key] = slot
        return slot

    def _drop_surplus(self) -> None:
        while len(self._slots) > self._max_windows and (key := self._find_surplus_key()) is not None:
            self._slots.pop(key).finish_turns()

    def _find_surplus_key(self) -> K | None:
        """Return the key of the unused window that ended first, or that was used least recently if none has ended."""
        last_end = self._clock() - self._reopen_seconds
        # Lazy, because this runs in each turn: almost always the first window decides.
        idle = takewhile(lambda each: each[1].last_used < last_end, self._slots.items())
        ended = (key for key, slot in idle if not slot.places and not self._is_lasting(key))
        unused = (key for key, slot in self._slots.items() if not slot.places)
        return next(chain(ended, unused), None)

    def restore(self, key: K, snapshot: Snapshot, *, idle_seconds: float = 0) -> None:
        """Create a key's window from a snapshot, as if it had last been used `idle_seconds` ago.

        Restore several windows in the order of their last use. Raises `WindowBusy` while the key's window is in use.
        """
        self.drop(key)
        self._slots[key] = _WindowSlot(self._build_window(key, snapshot), self._clock() - idle_seconds)
        self._drop_surplus()

    def register_stored(self, stored: Mapping[K, tuple[WindowStats, float]], *, is_late: bool = False) -> None:
        """Register stored windows without reading them: by key, their statistics and idle times in seconds.

        The contents of a window are read when they are first needed. Windows in memory are not changed. A window that
        was shelved before and is missing from `stored` keeps only its newer exchanges. If `is_late` is True, the
        exchanges of windows in memory are appended to the stored ones. `stored` must be in the order of last use.
        """
        new: dict[K, _WindowSlot] = {}
        for key, (stats, idle_seconds) in stored.items():
            slot = self._slots.get(key)
            if slot is None:
                new[key] = slot = _WindowSlot(self._build_window(key), self._clock() - idle_seconds)
                slot.stored_stats = stats
            elif slot.stored_stats is not None or is_late:
                slot.stored_stats = stats
        for key, slot in list(self._slots.items()):
            if slot.stored_stats is not None and key not in stored:
                slot.stored_stats = None
                self._drop_unused(key, slot)
        # Windows that were known before come last, because they were used more recently.
        self._slots = new | self._slots
        self._drop_surplus()
