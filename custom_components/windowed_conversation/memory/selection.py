"""What somebody wants forgotten, as conditions."""

from types import EllipsisType
from typing import NamedTuple

from .records import Kind


class Selection(NamedTuple):
    """Conditions, all of which must be met. If `person` is `...`, the owner does not matter.

    An `agent` has turns and episodes, but no facts. With `ids` or a `query`, the selection covers what the person may
    see, and without `private` what may enter a shared window.
    """

    ids: tuple[tuple[Kind, int], ...] | None
    person: str | EllipsisType | None
    since: float | None
    before: float | None
    query: str | None
    kinds: tuple[Kind, ...]
    agent: str | None = None
    private: bool = True

    @property
    def is_named(self) -> bool:
        """Whether it names items, not only their owner or age."""
        return self.ids is not None or self.query is not None

    @property
    def is_asked_for(self) -> bool:
        """Whether a person asked for this, as opposed to expiry."""
        return self.is_named or self.person is not ... or self.agent is not None or self.since is not None
