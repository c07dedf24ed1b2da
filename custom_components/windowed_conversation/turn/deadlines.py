"""Deadlines of a turn, and the pauses that a provider asks for. The idle timeout finds models that are stuck."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
import time
from typing import Any

from ..providers import DeadlineExceeded

# The longest silence of a vendor's server between two signs of life, in seconds, with one for the network. OpenAI's and
# Azure's Responses send a keep-alive after 30 s: https://github.com/openai/openai-node/issues/1964
IDLE_TIMEOUT = 45.0 + 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a turn: its time in seconds, and the rounds of its tool loop.

    `fallback_timeout` is how long a server may be silent before its first token while a fallback agent stands by, and
    None if none does. `idle_timeout` is the longest silence once the server has begun to answer, None for the default.
    """

    fallback_timeout: float | None = 10.0
    idle_timeout: float | None = None
    turn: float = 120.0
    tool_iterations: int = 10

    def idle(self, *, at_home: bool) -> float:
        """Return the idle timeout. A server at home has as long as the turn: it writes a tool call without a sign."""
        if self.idle_timeout is not None:
            return self.idle_timeout
        return self.turn if at_home else IDLE_TIMEOUT


# In seconds: servers name hours, or a year, and serve again long before that.
LONGEST_PAUSE = 60.0


class Pause:
    """The pause that a provider has asked for, in seconds on the monotonic clock.

    It is respected for at most `LONGEST_PAUSE` from its beginning; then the provider is asked again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_at = self._ends_at = self._asked_until = 0.0

    @property
    def seconds_left(self) -> float:
        """How long the pause lasts, or 0 if there is none."""
        return max(0.0, self._ends_at - self._clock())

    @property
    def seconds_asked(self) -> float:
        """How long the pause would last if it was respected as long as the provider asked, or 0 if there is none."""
        return max(0.0, self._asked_until - self._clock()) if self.seconds_left else 0.0

    def begin(self, seconds: float) -> None:
        """Begin a pause of this many seconds."""
        now = self._clock()
        if not self.seconds_left:
            self._began_at = self._asked_until = now
        self._asked_until = max(self._asked_until, now + seconds)
        self._ends_at = min(self._asked_until, self._began_at + LONGEST_PAUSE)


class Pulse:
    """The signs of life of a server: everything that it sends, also what is no event. `last` is when, or None."""

    __slots__ = ("_loop", "last")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.last: float | None = None

    def beat(self) -> None:
        """Take in a sign of life."""
        self.last = self._loop.time()


class _IdleTimer:
    """One timer for all waits of a stream, checked when it runs out instead of reset for every event.

    Resetting would cost more than everything else that is done with a token on its way to the user.
    """

    __slots__ = ("_cancelling", "_is_over", "_loop", "_pulse", "_seconds", "_since", "_task", "_timer")

    def __init__(self, seconds: float, pulse: Pulse | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._pulse = pulse
        self._since = 0.0
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._is_over = False
        self._timer = self._loop.call_later(seconds, self._look)

    def begin(self) -> None:
        """Begin to wait, in the current task."""
        self._since = self._loop.time()
        self._task = task = asyncio.current_task()
        self._cancelling = task.cancelling() if task else 0

    def end(self) -> None:
        """End the wait: neither the consumer's time nor a finished stream counts as idle."""
        if self._is_over and self._task is not None:
            self._is_over = False
            self._task.uncancel()
            self._timer = self._loop.call_later(self._seconds, self._look)
        self._task = None

    def was_broken_off(self) -> bool:
        """Return whether the idle timeout alone ended the wait, and take that cancellation back."""
        return self._is_over and self._task is not None and self._task.uncancel() <= self._cancelling

    def close(self) -> None:
        """Stop the timer."""
        self._timer.cancel()

    def _look(self) -> None:
        now, ends_at = self._loop.time(), self._last_sign() + self._seconds
        if self._task is None:
            self._timer = self._loop.call_at(now + self._seconds, self._look)
        elif now < ends_at:
            self._timer = self._loop.call_at(ends_at, self._look)
        else:
            self._is_over = True
            self._task.cancel()

    def _last_sign(self) -> float:
        """Return when the server was last heard; a server that has not begun to answer is not silent yet."""
        if self._pulse is None:
            return self._since
        last = self._pulse.last
        return self._loop.time() if last is None else max(last, self._since)


@asynccontextmanager
async def with_idle_timeout[E](
    events: AsyncGenerator[E], seconds: float, pulse: Pulse | None = None
) -> AsyncIterator[AsyncGenerator[E]]:
    """Return a context with the events, which it closes. They raise `DeadlineExceeded` after this many idle seconds.

    With a pulse, everything that the server sends counts, and the time begins with the first of it.
    """
    async with aclosing(events), aclosing(_with_idle_timeout(events, seconds, pulse)) as heard:
        yield heard


async def _with_idle_timeout[E](events: AsyncIterator[E], seconds: float, pulse: Pulse | None) -> AsyncGenerator[E]:
    timer = _IdleTimer(seconds, pulse)
    try:
        while True:
            timer.begin()
            event = await anext(events)
            timer.end()
            yield event
    except BaseException as err:
        if timer.was_broken_off() and isinstance(err, asyncio.CancelledError):
            raise DeadlineExceeded(f"silent for {seconds:g} seconds") from err
        if not isinstance(err, StopAsyncIteration):
            raise
    finally:
        timer.close()
