"""Importing a conversation: read it, and count its messages with the agent's counter."""

import asyncio

from homeassistant.core import HomeAssistant

from ..window import Exchange, Snapshot, TokenCounter, recounted, recounted_message
from ..window.codecs import load_snapshot


async def async_read_conversation(hass: HomeAssistant, data: object, counter: TokenCounter) -> Snapshot:
    """Return the snapshot that `dump_snapshot` wrote, with its messages counted anew. Raises `CodecError`."""
    snapshot = await hass.async_add_executor_job(load_snapshot, data)
    exchanges: list[Exchange] = []
    for exchange in snapshot.exchanges:
        exchanges.append(recounted(exchange, counter))
        # a counter is not thread-safe, and a long conversation must not block the event loop
        await asyncio.sleep(0)
    system = snapshot.system and recounted_message(snapshot.system, counter)
    return snapshot._replace(system=system, exchanges=tuple(exchanges))
