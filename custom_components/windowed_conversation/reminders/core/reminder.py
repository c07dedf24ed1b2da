"""A reminder: its text, the time or the place at which it is due, the person that it is for, and its table."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, time, tzinfo
import json
import logging
import math
import sqlite3
from typing import Any, Self

from ...memory.core import Erasure, LostRows, Memory
from ...store import Schema, checksum_sql
from .recurrence import Recurrence

_LOGGER = logging.getLogger(__name__)

MAX_TEXT_CHARS = 300
MAX_NOTES_CHARS = 2_000
MAX_REMINDERS = 500

_CHECKSUM_COLUMNS = {"reminder": ("content",)}
REMINDERS = Schema(
    f"""
    CREATE TABLE IF NOT EXISTS reminder (
        id TEXT PRIMARY KEY, person TEXT, content TEXT NOT NULL,
        sum INTEGER AS ({checksum_sql(_CHECKSUM_COLUMNS["reminder"])}) STORED
    )
    """,
    _CHECKSUM_COLUMNS,
)

# A reminder for a day without a time is due at this time.
_DAY_TIME = time(9)
# In seconds. A condition that has not come for so long never will.
_MAX_PLACE_AGE = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class Presence:
    """A condition on a person: they arrive in a zone, or they leave it."""

    # The entity id of the person.
    person: str
    is_arrival: bool
    # The entity id of the zone, or empty for home.
    zone: str = ""
    # Whether the person was seen away from it, if they have to arrive, or in it, if they have to leave.
    is_armed: bool = False


@dataclass(frozen=True, slots=True)
class Reminder:
    """A reminder. `due_at` says when it is due; one without time and place is only an item of the list."""

    id: str
    text: str
    # In seconds since the epoch.
    created: float
    # The local time at which it is due, without a zone: seven o'clock stays seven o'clock when the zone changes.
    at: datetime | None = None
    # Whether only the day of `at` was given.
    is_all_day: bool = False
    # In seconds since the epoch, for "in twenty minutes". It takes precedence over `at`.
    instant: float | None = None
    recurrence: Recurrence | None = None
    # The recurrence in the user's words, the first line of the description.
    repeats: str = ""
    # The rest of the description.
    notes: str = ""
    place: Presence | None = None
    # The user id of the person whom it is for, or None for the household.
    person: str | None = None
    # The id in the entity registry of the satellite at which it was set.
    satellite: str | None = None
    # Whether it has been delivered. A recurring one never is.
    is_delivered: bool = False
    is_done: bool = False
    # When it was due, in seconds since the epoch, if nobody has heard it and it has to be said at the next talk.
    unheard_since: float | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it still has to be delivered."""
        return not (self.is_done or self.is_delivered)

    def due_at(self, zone: tzinfo) -> float | None:
        """Return the time at which it is due in a zone, in seconds since the epoch, or None.

        A time that a change to daylight saving skips is as much later; the first of two equal times counts.
        """
        if self.instant is not None or self.at is None:
            return self.instant
        at = datetime.combine(self.at, _DAY_TIME) if self.is_all_day else self.at
        return at.replace(tzinfo=zone).timestamp()

    @property
    def expires_at(self) -> float | None:
        """The time at which a condition on a person has expired, in seconds since the epoch."""
        return self.created + _MAX_PLACE_AGE if self.place is not None else None

    def after_delivery(self, now: datetime) -> Self:
        """Return the reminder once it was due, `now` in local time: the next one if it recurs."""
        found = self.recurrence.find_next(self.at, max(now, self.at)) if self.recurrence and self.at else None
        return replace(self, is_delivered=True) if found is None else replace(self, at=found, is_done=False)

    def at_local(self, zone: tzinfo) -> datetime | None:
        """Return the local time at which it is due, without a zone."""
        due = self.due_at(zone)
        return None if due is None else datetime.fromtimestamp(due, zone).replace(tzinfo=None)

    def as_json(self) -> str:
        """Return the text to store."""
        stored = {name: value for name, value in asdict(self).items() if value not in (None, "", False)}
        stored |= {"recurrence": str(self.recurrence)} if self.recurrence is not None else {}
        return json.dumps(stored, default=datetime.isoformat, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the reminder of a stored text. Raises `ValueError`, `TypeError` or `KeyError` for another one."""
        stored: dict[str, Any] = json.loads(text)
        if "at" in stored:
            stored["at"] = datetime.fromisoformat(stored["at"])
        if "recurrence" in stored:
            stored["recurrence"] = Recurrence.parse(stored["recurrence"])
        if "place" in stored:
            stored["place"] = Presence(**stored["place"])
        return cls(**stored)


def read_reminders(memory: Memory) -> list[Reminder]:
    """Return all reminders that can be read."""
    with memory.database.read_transaction() as connection:
        rows = connection.execute("SELECT content FROM reminder ORDER BY rowid").fetchall()
    reminders = []
    for (content,) in rows:
        try:
            reminders.append(Reminder.from_json(content))
        except (ValueError, TypeError, KeyError) as err:
            _LOGGER.warning("A reminder cannot be read: %s", type(err).__name__)
    return reminders


def write_reminder(memory: Memory, reminder: Reminder) -> None:
    """Store a reminder, or a change of one."""
    with memory.database.write_transaction() as connection:
        connection.execute(
            "INSERT INTO reminder (id, person, content) VALUES (?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET person = excluded.person, content = excluded.content",
            (reminder.id, reminder.person, reminder.as_json()),
        )


def delete_reminders(memory: Memory, ids: Iterable[str]) -> None:
    """Delete reminders by their ids."""
    with memory.database.write_transaction() as connection:
        connection.executemany("DELETE FROM reminder WHERE id = ?", [(each,) for each in ids])


def forget_reminders(connection: sqlite3.Connection, erasure: Erasure, lost: LostRows, dry_run: bool) -> LostRows:
    """Delete the reminders for a person if everything of theirs is forgotten. Return `lost` unchanged."""
    conditions = erasure.conditions
    is_selective = conditions.is_explicit or conditions.agent is not None
    is_whole = not is_selective and conditions.time_span == (-math.inf, math.inf)
    if isinstance(conditions.person, str) and is_whole and not dry_run:
        connection.execute("DELETE FROM reminder WHERE person = ?", (conditions.person,))
    return lost
