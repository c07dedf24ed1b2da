"""Who speaks in an exchange: given to what remembers by the caller, never taken from a model's arguments."""

from dataclasses import dataclass, replace
from typing import Self

from ..memory import Words
from .scope import WindowKey, memory_access


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who speaks, in which language, and what was said in this exchange.

    `person` is the user's id, or None for an unknown speaker, who reads and writes only the home's facts. `by_device`:
    whether the speaker is known only by the device, which counts for memory and for nothing else. `is_alone`: whether
    nobody else uses the window; only then may private facts enter it.
    """

    said: str
    language: str
    person: str | None = None
    name: str | None = None
    device: str | None = None
    is_alone: bool = False
    by_device: bool = False

    @property
    def user_name(self) -> str | None:
        """The name that a model gets to know."""
        return None if self.by_device else self.name

    def in_window(self, key: WindowKey) -> Self:
        """Return the speaker as memory knows them in a window: in another person's they are unknown."""
        access = memory_access(key, self.person)
        return replace(self, person=access.person, is_alone=access.private)

    def words(self) -> Words:
        """Return what splits texts of the speaker into words: for one thread."""
        return Words((self.language, "en"))
