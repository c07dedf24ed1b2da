"""The end of an answer after its terminal marker: how long it is waited for, and which errors are ignored."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from .errors import ProviderError
from .events import Event

# How long the end may take to come, in seconds. The shortest idle timeout of an agent is one second: with as much, or
# more, a server that never ends its stream would have that make an error of a whole answer.
GRACE = 0.9


async def late_events[E](stream: AsyncIterator[E], decode: Callable[[E], Iterable[Event]]) -> Sequence[Event]:
    """Wait for the end of a whole answer. Return the events that come before it, or none once it has come.

    The end has come when the stream ends or breaks, or brings nothing but usage and pings for `GRACE` seconds. At most
    the usage is lost then, so none of these is an error. Raises the `ProviderError` that `decode` raises.
    """
    try:
        async with asyncio.timeout(GRACE):
            async for sent in stream:
                if events := tuple(decode(sent)):
                    return events
    except ProviderError:
        raise
    except Exception:  # noqa: BLE001 - whatever breaks here, the answer is whole
        return ()
    return ()
