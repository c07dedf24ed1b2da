"""The single store of all agents: opened in the background, written by its own thread, closed at shutdown."""

from abc import ABC, abstractmethod
import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
import logging
import math
from pathlib import Path
import time
from typing import Any, override

from home_assistant_intents import get_intents, get_languages
from homeassistant.config_entries import ConfigEntry
from homeassistant.const import EVENT_HOMEASSISTANT_CLOSE, EVENT_HOMEASSISTANT_FINAL_WRITE
from homeassistant.core import CALLBACK_TYPE, Event, HomeAssistant, callback
from homeassistant.helpers.storage import STORAGE_DIR
from homeassistant.util.hass_dict import HassKey
from homeassistant.util.language import matches

from ..const import CONF_MEMORY, CONF_PERSISTENCE, CONF_RECORD, DOMAIN, MemoryMode, Persistence, RecordLevel
from ..memory.core import Fact, Memory, MemoryUnavailable
from ..memory.turn.forgetting import CONVERSATIONS, ConversationForgetting, forget_all_but_memory
from ..memory.turn.recall_query import get_small_talk_words, iter_command_words
from ..record import RECORD, expire_turns, forget_turns
from ..reminders.core.reminder import REMINDERS, forget_reminders, read_reminders
from ..store import (
    VALUE_TABLE,
    StoreState,
    StoreWriter,
    UnavailableReason,
    WriteJob,
    delete_overdue,
    do_nothing,
    read_value,
    schedule_deletion,
    write_value,
)
from .config import DEFAULT_MEMORY, DEFAULT_MEMORY_DAYS, DEFAULT_PERSISTENCE, DEFAULT_RECORD, get_memory_days
from .issues import async_update_leftovers, async_update_store_issues

_LOGGER = logging.getLogger(__name__)

# In seconds, the longest waits: for pending writes and for closing the file when Home Assistant stops, for a change,
# and for a backup to begin.
_DRAIN_TIMEOUT = 20.0
_CLOSE_TIMEOUT = 1.0
_CHANGE_TIMEOUT = 30.0
_PAUSE_WRITES_TIMEOUT = 10.0

# In seconds. Changes wait this long, so that they are written together.
_SAVE_DELAY = 0.05

_SECONDS_PER_DAY = 86_400
# The number of days for which the record keeps text.
RECORD_TEXT_DAYS = 7

_STORE_KEY: HassKey[AgentStore] = HassKey(f"{DOMAIN}_store")


class StoreSource(ABC):
    """Data of an account or an agent that is read once the file can be read, and written after each change.

    Nothing is written before the stored data has been read, because that would overwrite it.
    """

    store: AgentStore

    async def async_start(self) -> None:
        """Read the stored data, now or as soon as the store is available. Later changes are then written."""
        self.store.sources.append(self)
        await self.async_read_missing()

    @callback
    def stop(self) -> None:
        """Stop writing, because the owner has been removed."""
        self.store.sources.remove(self)

    @abstractmethod
    def take_write_jobs(self) -> Iterable[WriteJob]:
        """Return the writes for all changes since the last call."""

    @abstractmethod
    def write_again(self) -> None:
        """Write everything again, because the file is new."""

    @abstractmethod
    async def async_read_missing(self) -> None:
        """Read what could not be read before."""


@dataclass(eq=False, slots=True)
class StoredValue(StoreSource):
    """A value of an account or agent."""

    store: AgentStore
    owner_id: str
    name: str
    # Returns the value as immutable JSON data.
    get_value: Callable[[], Any]
    # Called with the stored value, or None if there is none.
    restore: Callable[[Any], None]
    # Called with each value that has been written to disk.
    on_written: Callable[[Any], None] | None = None
    _last_stored_value: Any = field(default=None, init=False)
    _is_read: bool = field(default=False, init=False)
    _may_have_changed: bool = field(default=False, init=False)

    @callback
    def save_soon(self) -> None:
        """Schedule a write of the value if it has changed."""
        self._may_have_changed = True
        self.store.async_save_soon()

    @override
    async def async_read_missing(self) -> None:
        if self._is_read:
            return
        try:
            stored = await self.store.async_read(self._read_value, None)
        except MemoryUnavailable:
            return
        if not self._is_read:
            self._is_read, self._last_stored_value = True, stored
            self.restore(stored)
            self._may_have_changed |= stored is not None
            self.store.async_save_soon()

    @override
    def write_again(self) -> None:
        self._may_have_changed |= self._last_stored_value is not None
        self._last_stored_value = None

    @override
    def take_write_jobs(self) -> Iterable[WriteJob]:
        if not self._is_read or not self._may_have_changed:
            return
        value, self._may_have_changed = self.get_value(), False
        if value != self._last_stored_value:
            self._last_stored_value = value
            on_written = partial(self.store.run_in_loop, self.on_written, value) if self.on_written else None
            yield WriteJob(write_value, on_written, (self.owner_id, self.name, value))

    def _read_value(self, memory: Memory) -> Any:
        with memory.database.read_transaction() as connection:
            return read_value(connection, self.owner_id, self.name)


class AgentStore:
    """The store of all agents. Its methods raise `MemoryUnavailable` while the file cannot be used.

    Writes are queued in `writer`, which never blocks. Reads run in the executor. Changes run in the writer thread,
    after all writes that were queued earlier.
    """

    def __init__(self, hass: HomeAssistant) -> None:
        self._hass = hass
        self._listeners: list[Callable[[], None]] = []
        self._unsubscribers: tuple[CALLBACK_TYPE, ...] = ()
        self._last_reason: UnavailableReason | None = None
        # The monotonic time of the last deletion from memory, and the number of deletions in progress.
        self._forgotten_at = -math.inf
        self._running_deletions = 0
        # The number of days for which turns are stored, by agent id. The writer thread reads this mapping.
        self._days_by_agent: Mapping[str, int] = {}
        self.sources: list[StoreSource] = []
        # Callbacks after each opening of the file.
        self.opening_listeners: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._pending_records: list[object] = []
        self._save_timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._languages = (hass.config.language, "en")
        # The words of small talk and of Home Assistant's command sentences. The writer thread reads them.
        self.command_words: frozenset[str] = frozenset()
        # The memory that was opened last, whose facts are known even while its file cannot be used.
        self._last_memory: Memory | None = None
        # The number of turns that continued without a search because it took too long.
        self.late_searches = 0
        # The number of changes of memory, and the languages that were spoken in this home.
        self.changes = 0
        self.spoken_languages: tuple[str, ...] = ()
        self.conversations = ConversationForgetting()
        self.writer = StoreWriter(
            store_path(hass),
            self._open_memory,
            daily=self._delete_expired_turns,
            on_opened=lambda memory: self.run_in_loop(self._on_file_opened, memory.database.is_new),
            on_state=partial(self.run_in_loop, self._handle_state),
        )

    @callback
    def async_start(self) -> None:
        """Open the file in the background, and close it when Home Assistant stops."""
        bus = self._hass.bus
        self._unsubscribers = (
            bus.async_listen(EVENT_HOMEASSISTANT_FINAL_WRITE, self._async_drain_writer),
            bus.async_listen(EVENT_HOMEASSISTANT_CLOSE, self._async_close_file),
        )
        self.writer.start()

    @callback
    def async_configure(self, entries: Sequence[ConfigEntry[Any]]) -> None:
        """Apply the options of all accounts: how long turns are kept, and whether a file is needed at all."""
        days = {agent_id: get_memory_days(entry) for entry in entries for agent_id in entry.subentries}
        self.writer.may_create = any(map(_stores_optional_data, entries))
        if days != self._days_by_agent:
            self._days_by_agent = days
            self.writer.request_upkeep(repeat_daily=True)
        if self.writer.may_create:
            # open the file now, so that no turn has to wait for it
            self.writer.submit(do_nothing)

    @callback
    def async_allow_file(self) -> None:
        """Let a change create the file, even if no option asks for one."""
        self.writer.may_create = True

    @callback
    def async_queue_record(self, record: object) -> None:
        """Queue a record, to be written together with the other changes of its turn."""
        self._pending_records.append(record)
        self.async_save_soon()

    @callback
    def async_save_soon(self) -> None:
        """Schedule a write of all changes after a short delay."""
        # Without subscriptions, the store is closed.
        if self._save_timer is None and self._unsubscribers and not self._is_stopping:
            self._save_timer = self._hass.loop.call_later(_SAVE_DELAY, self.async_save)

    @callback
    def async_save(self) -> None:
        """Pass all changes to the writer thread, as one transaction.

        During a deletion from memory, nothing is passed, because the changes may repeat the text to forget.
        """
        if self._save_timer is not None:
            self._save_timer.cancel()
            self._save_timer = None
        if self._running_deletions:
            return
        changes = [change for source in self.sources for change in source.take_write_jobs()]
        records, self._pending_records = self._pending_records, []
        if records or changes:
            self.writer.put(*records, *changes)
            # the queue may have been full, which changes only a count
            for listener in tuple(self._listeners):
                listener()

    def run_in_loop(self, work: Callable[..., None], *args: Any) -> None:
        """Run a callback in the event loop. Can be called from any thread."""
        if not self._hass.loop.is_closed():
            self._hass.loop.call_soon_threadsafe(work, *args)

    async def async_close_keeping_memory(self, until: float) -> bool:
        """Close the file after deleting all but memory, which is kept until a time. Return whether memory has data."""
        self.async_save()
        for unsubscribe in self._unsubscribers:
            unsubscribe()
        self._unsubscribers = ()
        try:
            return await self.async_change(self._delete_all_but_memory, until)
        except MemoryUnavailable:
            # the file cannot be read, so memory may have data
            return True
        finally:
            await self._hass.async_add_executor_job(self.writer.close, _DRAIN_TIMEOUT)
            async_update_store_issues(self._hass, self.writer.path, StoreState())

    @callback
    def async_add_listener(self, listener: Callable[[], None]) -> CALLBACK_TYPE:
        """Call `listener` after a write and when the store's state changes. Return a function that unsubscribes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @contextmanager
    def pause_for_deletion(self) -> Iterator[None]:
        """Hold back writes during a deletion. Turns that began before its end may repeat the forgotten text."""
        self.async_save()
        self._running_deletions += 1
        try:
            yield
        finally:
            self._running_deletions -= 1
            self._forgotten_at = time.monotonic()
            self.async_save()

    def predates_forgetting(self, began: float) -> bool:
        """Return whether something may contain forgotten text, because it began before the end of a deletion.

        `began` is in seconds since the epoch.
        """
        # use the monotonic clock, because the system clock may have been ahead and set back
        return self._running_deletions > 0 or time.monotonic() - (time.time() - began) <= self._forgotten_at

    async def async_pause_writes(self) -> None:
        """Bring the file up to date for a copy, and pause writes until `StoreWriter.resume_writing`."""
        if not await self._hass.async_add_executor_job(self.writer.pause_writing, _PAUSE_WRITES_TIMEOUT):
            _LOGGER.warning("The backup may lack what was remembered last")

    @callback
    def get_facts(self, person: str | None, *, private: bool) -> list[Fact]:
        """Return the facts that a person may see. They are in working memory, so they are there at once."""
        return self._last_memory.get_facts(person, private=private) if self._last_memory is not None else []

    async def async_read[Result, *Arguments](
        self, read: Callable[[Memory, *Arguments], Result], default: Result, *arguments: *Arguments
    ) -> Result:
        """Return the result of `read`, which runs in the executor, or return `default` if no file exists yet."""
        memory, reason = self.writer.open_store, self.writer.state.reason
        if memory is None and reason is None:
            # The file has not been opened yet, or does not exist. If it may be created, it is on its way, also while a
            # damaged one has made room for it.
            is_there = self.writer.may_create or await self._hass.async_add_executor_job(self.writer.path.exists)
            return await self.async_change(read, *arguments) if is_there else default
        if memory is None or reason == "damaged":
            raise MemoryUnavailable(reason or "closed")
        try:
            return await self._hass.async_add_executor_job(read, memory, *arguments)
        except MemoryUnavailable:
            self.writer.request_upkeep()
            raise

    async def async_change[Result, *Arguments](
        self, work: Callable[[Memory, *Arguments], Result], *arguments: *Arguments
    ) -> Result:
        """Run `work` in the writer thread, and return its result when its changes are on disk."""
        self.changes += 1
        future = self.writer.submit(work, *arguments)
        done = asyncio.wrap_future(future)
        try:
            await asyncio.wait([done], timeout=_CHANGE_TIMEOUT)
        except asyncio.CancelledError:
            done.cancel()
            raise
        # a change that has begun cannot be cancelled, so wait for it rather than report that it failed
        if not done.done() and future.cancel():
            raise MemoryUnavailable(self.writer.state.reason or "locked")
        return await done

    def _open_memory(self, path: Path) -> Memory:
        """Open the file and cancel its scheduled deletion. If that is overdue, delete the file first."""
        delete_overdue(path, time.time())
        if not self.command_words:
            self.command_words = frozenset().union(*map(_load_command_words, self._languages))
        memory = Memory(
            path,
            self._languages,
            rooms=(RECORD, CONVERSATIONS, REMINDERS, VALUE_TABLE),
            companions=(forget_turns, forget_reminders, self.conversations.forget),
        )
        try:
            schedule_deletion(memory.database, None)
        except BaseException:
            memory.close()
            raise
        self._last_memory = memory
        return memory

    def _delete_all_but_memory(self, memory: Memory, until: float) -> bool:
        forget_all_but_memory(memory)
        schedule_deletion(memory.database, until)
        statistics = memory.statistics()
        return bool(statistics.facts or statistics.turns or statistics.summaries or read_reminders(memory))

    def _delete_expired_turns(self, memory: Memory) -> None:
        """Delete expired turns. Turns of an unknown agent are kept for the longest period of any agent."""
        now = time.time()
        before = {agent: now - days * _SECONDS_PER_DAY for agent, days in self._days_by_agent.items()}
        others = min(before.values(), default=now - DEFAULT_MEMORY_DAYS * _SECONDS_PER_DAY)
        with memory.database.write_transaction() as connection:
            expire_turns(connection, before, others, now - RECORD_TEXT_DAYS * _SECONDS_PER_DAY)
        memory.forget_expired(before, others)

    async def _async_drain_writer(self, _event: Event) -> None:
        self.async_save()
        if not await self._hass.async_add_executor_job(self.writer.drain, _DRAIN_TIMEOUT):
            _LOGGER.warning("%d records of turns could not be written", self.writer.counts.queued)

    @property
    def _is_stopping(self) -> bool:
        # The state of Home Assistant says so only until its registries are written for the last time.
        return self._hass.is_stopping or self._is_closed

    async def _async_close_file(self, _event: Event) -> None:
        self._is_closed = True
        await self._hass.async_add_executor_job(self.writer.close, _CLOSE_TIMEOUT)

    def _on_file_opened(self, is_new: bool) -> None:
        if self._is_stopping:
            return
        for source in self.sources if is_new else ():
            source.write_again()
        for read in (*[source.async_read_missing for source in self.sources], *self.opening_listeners):
            self._hass.async_create_background_task(read(), "read from the store")
        self.async_save_soon()

    def _handle_state(self, state: StoreState) -> None:
        if self._is_stopping:
            return
        if state.reason != self._last_reason:
            self._last_reason = state.reason
            if state.reason is None:
                _LOGGER.info("The store works again")
            else:
                _LOGGER.warning("The store is off: %s", state.reason)
        async_update_store_issues(self._hass, self.writer.path, state)
        for listener in tuple(self._listeners):
            listener()


def _stores_optional_data(entry: ConfigEntry[Any]) -> bool:
    """Return whether an account or one of its agents stores any data that the user can choose not to store."""
    if entry.options.get(CONF_PERSISTENCE, DEFAULT_PERSISTENCE) != Persistence.OFF:
        return True
    return any(
        agent.data.get(CONF_MEMORY, DEFAULT_MEMORY) != MemoryMode.OFF
        or agent.data.get(CONF_RECORD, DEFAULT_RECORD) != RecordLevel.OFF
        for agent in entry.subentries.values()
    )


@cache
def _load_command_words(language: str) -> frozenset[str]:
    """Return the words of small talk and of Home Assistant's command sentences. The first call blocks on disk I/O."""
    words = set(get_small_talk_words(language))
    for variant in matches(language, get_languages())[:1]:
        words.update(iter_command_words(get_intents(variant) or {}))
    return frozenset(words)


def store_path(hass: HomeAssistant) -> Path:
    """Return the path of the store's file."""
    return Path(hass.config.path(STORAGE_DIR, f"{DOMAIN}.db"))


@callback
def async_get_store(hass: HomeAssistant) -> AgentStore | None:
    """Return the store of all agents, or None if no account has been set up yet."""
    return hass.data.get(_STORE_KEY)


@callback
def async_start_store(hass: HomeAssistant) -> AgentStore:
    """Return the store of all agents. The first call creates it and starts to open its file."""
    if _STORE_KEY not in hass.data:
        hass.data[_STORE_KEY] = AgentStore(hass)
        hass.data[_STORE_KEY].async_start()
        async_update_leftovers(hass, None)
    hass.data[_STORE_KEY].async_configure(hass.config_entries.async_entries(DOMAIN))
    return hass.data[_STORE_KEY]


async def async_close_store(hass: HomeAssistant, account: ConfigEntry[Any], until: float) -> bool:
    """Close the store after the last account was removed. See `AgentStore.async_close_keeping_memory`."""
    store = hass.data.pop(_STORE_KEY, None)
    if store is None:
        store = AgentStore(hass)
        store.async_start()
    store.async_configure([account])
    return await store.async_close_keeping_memory(until)
