"""Importing a conversation: read it, and count its messages with the agent's counter."""

import asyncio
from dataclasses import replace

from homeassistant.core import HomeAssistant

from ..window import Exchange, Snapshot, TokenCounter, recounted, recounted_message
from ..window.codecs import load_snapshot


async def async_read_conversation(hass: HomeAssistant, data: object, counter: TokenCounter) -> Snapshot:
    """Return the snapshot that `dump_snapshot` wrote, with its messages counted anew. Raises `CodecError`."""
    snapshot = await hass.async_add_executor_job(load_snapshot, data)
    # an imported profile is ignored: the next turn makes one of the facts that it may know
    system = snapshot.system and recounted_message(replace(snapshot.system, remembered=None), counter)
    exchanges: list[Exchange] = []
    for exchange in snapshot.exchanges:
        exchanges.append(recounted(exchange, counter))
        # a counter is not thread-safe, and a long conversation must not block the event loop
        await asyncio.sleep(0)
    return snapshot._replace(system=system, exchanges=tuple(exchanges))
