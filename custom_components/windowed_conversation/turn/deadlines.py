"""The limits of a turn, and the pauses that a provider asks for. The idle timeout finds models that are stuck."""

from collections.abc import Callable
from dataclasses import dataclass
import time

# The longest silence of a vendor's server between two signs of life, in seconds, with one for the network. OpenAI's and
# Azure's Responses send a keep-alive after 30 s: https://github.com/openai/openai-node/issues/1964
IDLE_TIMEOUT = 45.0 + 1.0


@dataclass(frozen=True, slots=True)
class TurnLimits:
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
