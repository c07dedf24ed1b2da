"""The open request to a model: its events, the limits of time on them, and a request that outlives the wait for it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
import math
from typing import Self

from ..providers import DeadlineExceeded, Event, ProviderError, Request, TextDelta, ToolCallDone
from .attempts import OpenAttempt
from .deadlines import TurnLimits
from .ports import Model

# How long a server that sends signs of life may take for its first token while a fallback agent stands by, in seconds.
# llama.cpp sends a comment each second, also when it is stuck.
LONGEST_FIRST_TOKEN = 60.0


class Pulse:
    """The signs of life of a server: everything that it sends, also if it is no event. They keep its stream alive.

    `idle_timeout` is in seconds. `last` is when the last sign came, on the event loop's clock, or None before the
    first: a server that has not begun to answer is not silent yet.
    """

    __slots__ = ("_deadline", "_loop", "idle_timeout", "last")

    def __init__(self, idle_timeout: float) -> None:
        self.idle_timeout = idle_timeout
        self.last: float | None = None
        self._loop = asyncio.get_running_loop()
        self._deadline: asyncio.Timeout | None = None

    def beat(self) -> None:
        """Take in a sign of life."""
        self.last = self._loop.time()
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(self.last + self.idle_timeout)

    async def next_event[E](self, events: AsyncGenerator[E]) -> E | None:
        """Return the next event, or None at the end. Raises `DeadlineExceeded` after the idle timeout."""
        try:
            async with asyncio.timeout(None if self.last is None else self.idle_timeout) as self._deadline:
                return await anext(events, None)
        except TimeoutError as err:
            if self._deadline is None or not self._deadline.expired():
                raise
            raise DeadlineExceeded(f"silent for {self.idle_timeout:g} seconds") from err
        finally:
            self._deadline = None


class AnswerStream:
    """A request and the events of its answer. An async context, which closes the request unless it `is_waiting`.

    If a fallback agent stands by, the first token has to come in time. If it does not, the request stays open: the
    answer can be heard later if nobody else has one, and some servers begin to load a model again when a client leaves.
    """

    def __init__(self, model: Model, request: Request, limits: TurnLimits) -> None:
        self.model = model
        self.request = request
        # The record of the request, if it outlives the wait for its first token.
        self.attempt: OpenAttempt | None = None
        # Whether a wait for the first token has ended without it.
        self.is_waiting = False
        self._loop = asyncio.get_running_loop()
        self._pulse = Pulse(limits.idle(at_home=model.is_at_home))
        self._events = model.provider.stream(request, self._pulse.beat)
        self._pending: asyncio.Task[Event | None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self.is_waiting:
            await self.aclose()

    async def events(self, fallback_timeout: float | None) -> AsyncGenerator[Event]:
        """Yield the events of the answer. Raises `ProviderError`.

        `fallback_timeout` is how long the server may be silent before its first token, in seconds, or None if no
        fallback agent stands by.
        """
        self.is_waiting = False
        began = self._loop.time()
        while (event := await self._next(fallback_timeout, began)) is not None:
            if isinstance(event, TextDelta | ToolCallDone):
                fallback_timeout = None
            yield event

    async def load(self, seconds: float) -> None:
        """Leave the request open until its first event, at most this long: the server then has loaded the model."""
        limit, self.is_waiting = self.model.limit, False
        limit.is_loading = True
        try:
            async with self:
                with suppress(ProviderError, TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._next(None, self._loop.time())
        finally:
            limit.is_loading = False

    async def aclose(self) -> None:
        """Close the request."""
        if self._pending is not None:
            self._pending.cancel()
            await asyncio.wait({self._pending})
            # an error that nobody waits for any more is not worth a line in the log
            with suppress(asyncio.CancelledError, Exception):
                self._pending.result()
            self._pending = None
        await self._events.aclose()

    async def _next(self, fallback_timeout: float | None, began: float) -> Event | None:
        """Return the next event, or None at the end.

        Raises `DeadlineExceeded`. The request stays open if a fallback agent stands by.
        """
        if fallback_timeout is None and self._pending is None:
            return await self._pulse.next_event(self._events)
        pending = self._pending = self._pending or self._loop.create_task(_next_of(self._events))
        try:
            while not pending.done():
                left = self._ends_at(fallback_timeout, began) - self._loop.time()
                if left <= 0:
                    self.is_waiting = fallback_timeout is not None
                    raise DeadlineExceeded("no first token in time")
                await asyncio.wait({pending}, timeout=min(left, self._pulse.idle_timeout))
        finally:
            if pending.done():
                self._pending = None
        return pending.result()

    def _ends_at(self, fallback_timeout: float | None, began: float) -> float:
        """Return when the wait for the next event ends, on the event loop's clock."""
        last = self._pulse.last
        if fallback_timeout is None:
            return math.inf if last is None else last + self._pulse.idle_timeout
        return min(max(began, last or began) + fallback_timeout, began + max(LONGEST_FIRST_TOKEN, fallback_timeout))


async def _next_of(events: AsyncGenerator[Event]) -> Event | None:
    return await anext(events, None)
