"""What the recorder knows of one entity."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from homeassistant.core import HomeAssistant, split_entity_id
from homeassistant.helpers.recorder import get_instance
from homeassistant.util import dt as dt_util

from ..turn.home_history import Change, Span
from ..turn.state_text import state_text

_RECORDER = "recorder"
# The most states that are read for one answer.
_MOST_READ = 5000


class HistoryUnavailable(Exception):
    """The home has no recorder."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The states of an entity, oldest first, and until when they were read: not all of too many are."""

    states: Sequence[Change]
    read_to: datetime


async def async_changes(hass: HomeAssistant, entity_id: str, span: Span) -> Changes:
    """Return the states that an entity had in a time, the one at its beginning included.

    Reads them in the recorder's own executor. Raises `HistoryUnavailable`.
    """
    if _RECORDER not in hass.config.components:
        raise HistoryUnavailable
    return await get_instance(hass).async_add_executor_job(_read, hass, entity_id, span)


def _read(hass: HomeAssistant, entity_id: str, span: Span) -> Changes:
    from homeassistant.components.recorder import history  # noqa: PLC0415 - its requirements may be missing before

    start, end = dt_util.as_utc(span.start), dt_util.as_utc(span.end)
    found = history.state_changes_during_period(hass, start, end, entity_id, limit=_MOST_READ).get(entity_id, [])
    states = sorted(found, key=lambda state: state.last_updated)
    domain, unit, zone = split_entity_id(entity_id)[0], hass.config.units.temperature_unit, span.end.tzinfo
    changes = [
        (state.last_updated.astimezone(zone), state_text(domain, state.state, state.attributes, unit))
        for state in states
        # an entity that was removed for a while had no state then
        if state.state
    ]
    is_whole = len(states) < _MOST_READ
    return Changes(changes, span.end if is_whole else changes[-1][0])
