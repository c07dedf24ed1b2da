"""The stored conversations of an agent, which are read when they are needed and written when they change."""

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
import time
from typing import override

from homeassistant.core import callback
from homeassistant.helpers.chat_session import CONVERSATION_TIMEOUT
from homeassistant.util.ulid import ulid_to_bytes

from ..const import Persistence
from ..memory.core import Memory, MemoryUnavailable
from ..store import WriteJob
from ..turn.routing import WindowKey
from ..window import CalibratedCounter, Exchange, Snapshot, Window, WindowRegistry
from ..window.codecs.snapshot import (
    StoredConversation,
    delete_conversation,
    list_stored_conversations,
    read_conversation,
    write_conversation,
)
from .config import AgentConfig
from .store import AgentStore, StoreSource

# 2026-01-01, in seconds since the epoch. An earlier time means that the clock had not been set yet.
_MIN_VALID_TIMESTAMP = 1_767_225_600

# Home Assistant continues a conversation with an ID of its own that has been idle for so long, and no longer.
_REOPEN_SECONDS = CONVERSATION_TIMEOUT.total_seconds()

# The most conversations of an agent, in memory and on disk.
_MAX_WINDOWS = 100


class ConversationStore(StoreSource):
    """The stored conversations of an agent and their unwritten changes. The object outlives a reload."""

    def __init__(self, store: AgentStore, agent_id: str, config: AgentConfig, counter: CalibratedCounter) -> None:
        self.store = store
        self._agent_id = agent_id
        self._persistence = config.persistence
        self.windows = WindowRegistry(
            lambda key: Window(WindowKey.parse(key).conversation, config.policy, counter),
            read=self._async_read_snapshot,
            reopen_seconds=_REOPEN_SECONDS,
            is_lasting=_has_custom_id,
            max_windows=_MAX_WINDOWS,
            idle_seconds=config.expiry_seconds,
        )
        # The exchanges of each stored conversation by their numbers, or None if the conversation has not been read yet.
        self._stored: dict[str, dict[int, Exchange] | None] = {}
        # Before the stored conversations are listed, nothing is written, because it could replace one of them.
        self._is_listed = False
        self._has_new_file = False

    @override
    def write_again(self) -> None:
        # A new file may contain the rows that were recovered from a damaged one.
        self._stored = dict.fromkeys(self._stored)
        self._has_new_file = True

    @override
    async def async_read_missing(self) -> None:
        if self._has_new_file or not self._is_listed:
            self._has_new_file = False
            await self.async_refresh_listing()
        # The contents of these conversations have to be read before their new exchanges can be written.
        for key in self.windows.unread_keys():
            await self.windows.load(key)
        self.store.async_save_soon()

    async def async_refresh_listing(self) -> None:
        """List the conversations in the file, with their statistics. Those in working memory stay unchanged.

        Exchanges from before the first listing are appended to the stored conversation.
        """
        try:
            stored = await self.store.async_read(self._list_stored, list[StoredConversation]())
        except MemoryUnavailable:
            return
        now = time.time()
        for each in stored:
            self._stored.setdefault(each.window_key, None)
        self.windows.register_stored(
            {
                # not idle if the clock was wrong then or is wrong now
                each.window_key: (
                    each.stats,
                    now - each.used_at if _MIN_VALID_TIMESTAMP <= each.used_at <= now else 0.0,
                )
                for each in stored
                if self._should_store(each.window_key)
            },
            is_late=not self._is_listed,
        )
        self._is_listed = True
        self.windows.expire_windows()

    async def _async_read_snapshot(self, key: str) -> Snapshot | None:
        try:
            found = await self.store.async_read(self._read_snapshot, None, key)
        except MemoryUnavailable:
            return None
        snapshot = found or Snapshot("")
        self._stored[key] = {exchange.number: exchange for exchange in snapshot.exchanges}
        return snapshot._replace(conversation_id=WindowKey.parse(key).conversation)

    @callback
    def configure(self, persistence: Persistence) -> None:
        """Set which conversations are stored."""
        if persistence is not self._persistence:
            self._persistence = persistence
            self.store.async_save()
            # Erase deleted rows from the file, so that no byte remains of conversations that are not stored any more.
            self.store.writer.submit(Memory.erase)

    @override
    def take_write_jobs(self) -> Iterator[WriteJob]:
        if not self._is_listed:
            return
        self.windows.run_deferred_work()
        for key, window in self.windows.loaded_windows().items():
            changed = window.take_changed_exchanges()
            if self._should_store(key):
                exchanges = window.exchanges() if self._stored.get(key) is None and not window.is_open else changed
                if exchanges is not None:
                    yield from self._build_write_jobs(key, window, exchanges)
        for key in [key for key in self._stored if key not in self.windows or not self._should_store(key)]:
            del self._stored[key]
            yield WriteJob(delete_conversation, arguments=(self._agent_id, key))

    def _build_write_jobs(self, key: str, window: Window, exchanges: tuple[Exchange, ...]) -> Iterator[WriteJob]:
        if self._stored.get(key, {}) is None:
            # The key belonged to another conversation, which was dropped before it was ever read.
            yield WriteJob(delete_conversation, arguments=(self._agent_id, key))
        before, now = self._stored.get(key) or {}, {exchange.number: exchange for exchange in exchanges}
        changed = [exchange for number, exchange in now.items() if before.get(number) is not exchange]
        if now or key in self._stored:
            used = time.time() - self.windows.idle_seconds(key)
            stats = window.stats()
            if window.is_open:
                # the open exchange is not stored, but those that follow it are
                counts = len(exchanges), sum(len(each.messages) for each in exchanges)
                tokens = sum(each.tokens for each in exchanges)
                stats = stats._replace(exchange_count=counts[0], message_count=counts[1], current_tokens=tokens)
            stored = StoredConversation(self._agent_id, key, round(used, 3), stats)
            self._stored[key] = now
            yield WriteJob(write_conversation, arguments=(stored, changed, before.keys() - now.keys()))

    def _should_store(self, key: str) -> bool:
        if self._persistence is Persistence.OWN_IDS:
            return _has_custom_id(key)
        return self._persistence is Persistence.ALL

    def _list_stored(self, memory: Memory) -> list[StoredConversation]:
        with memory.database.read_transaction() as connection:
            return list_stored_conversations(connection, self._agent_id)

    def _read_snapshot(self, memory: Memory, key: str) -> Snapshot | None:
        with memory.database.read_transaction() as connection:
            return read_conversation(connection, self._agent_id, key)


@lru_cache(maxsize=1024)
def _has_custom_id(key: str) -> bool:
    """Return whether the user chose the conversation id in a key. Home Assistant generates only ULIDs.

    The result is cached, because it is needed before every write, for every window.
    """
    with suppress(ValueError):
        ulid_to_bytes(WindowKey.parse(key).conversation)
        return False
    return True
