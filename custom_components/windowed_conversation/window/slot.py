"""The place of one window in a registry: the window, its users, and what is to be done with it."""

import asyncio
from collections.abc import Callable

from .restore import Snapshot
from .window import Window


class Slot:
    """A window and its users. `turn` marks the turn that uses it; `users` counts that turn and those that wait.

    `after_turn` must run before anybody else looks at the window, `rewrites` when the turn has ended.
    """

    __slots__ = ("after_turn", "last_used", "lock", "rewrites", "turn", "users", "window")

    def __init__(self, window: Window) -> None:
        self.window = window
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
