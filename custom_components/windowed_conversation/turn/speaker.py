"""The speaker in an exchange: given to memory by the caller, never taken from a model's arguments."""

from dataclasses import dataclass, replace
from typing import Self

from ..memory import Words
from .scope import WindowKey, memory_access


def base_language(language: str) -> str:
    """Return a language without its country: "pt" for "pt-BR"."""
    return language.replace("_", "-").partition("-")[0].casefold()


@dataclass(frozen=True, slots=True)
class Speaker:
    """The speaker of an exchange, with their language and their words.

    `person` is the user's id, or None for an unknown speaker, who reads and writes only the home's facts. `by_device`:
    whether the speaker is known only by the device, which gives no rights. `has_device`: whether a device is theirs, so
    that whoever speaks there is taken for them. `is_alone`: whether nobody else uses the window; only then may private
    facts enter it. `conversation` is where they speak, once that is known.
    """

    said: str
    language: str
    person: str | None = None
    name: str | None = None
    device: str | None = None
    is_alone: bool = False
    by_device: bool = False
    has_device: bool = False
    conversation: str | None = None

    @property
    def user_name(self) -> str | None:
        """The name of the user who is signed in, for the instructions."""
        return None if self.by_device else self.name

    @property
    def stamp_name(self) -> str | None:
        """The name for the stamp, which says so if it is known only by the device."""
        return f"{self.name}, by this device" if self.by_device and self.name else self.name

    def in_window(self, key: WindowKey) -> Self:
        """Return the speaker as memory knows them in a window: in another person's they are unknown."""
        access = memory_access(key, self.person)
        return replace(self, person=access.person, is_alone=access.private, conversation=key.conversation)

    def words(self) -> Words:
        """Return the `Words` that split the speaker's texts, for one thread."""
        return Words((self.language, "en"))
