"""The profiles that an agent's last turns have made, which serve the next turns until a fact has changed."""

from collections.abc import Hashable
from dataclasses import dataclass

from ..turn.profile import Profile

# The most owners whose profiles are cached.
_MOST = 16


@dataclass(frozen=True, slots=True)
class MadeProfile:
    """A profile, the names of all facts that it was chosen from, and the revision of these facts."""

    profile: Profile
    revision: object


class MadeProfiles:
    """The profiles by whom and how they are for; those that were asked for last stay."""

    def __init__(self) -> None:
        self._made: dict[Hashable, MadeProfile] = {}

    def get(self, key: Hashable) -> MadeProfile | None:
        """Return what was made last, which may be out of date, or None."""
        return self._made.get(key)

    def put(self, key: Hashable, made: MadeProfile) -> None:
        """Keep what a turn has made or used."""
        self._made.pop(key, None)
        self._made[key] = made
        if len(self._made) > _MOST:
            del self._made[next(iter(self._made))]
