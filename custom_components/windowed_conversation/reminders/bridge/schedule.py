"""The list of reminders: kept in the store, the next one scheduled, each delivered once, by time or by place."""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
import logging
import time

from homeassistant.const import ATTR_ENTITY_ID, EVENT_CORE_CONFIG_UPDATE, STATE_HOME, STATE_ON, Platform
from homeassistant.core import (
    CALLBACK_TYPE,
    Context,
    CoreState,
    Event,
    HassJob,
    HomeAssistant,
    callback,
)
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.event import async_track_point_in_utc_time, async_track_state_change_event
from homeassistant.helpers.start import async_at_started
from homeassistant.util import dt as dt_util

from ...bridge.delivery import Delivery, async_announce, async_mention, async_notify
from ...bridge.errors import async_get_spoken_text, log_fault
from ...bridge.persons import async_get_device_owners
from ...bridge.turn_report import EVENT_REMINDER
from ...const import DOMAIN
from ...memory.core import Memory, MemoryAccess, MemoryUnavailable
from ...memory.turn.speaker import load_language
from ..core.reminder import MAX_REMINDERS, Reminder, delete_reminders, read_reminders, write_reminder
from ..core.requests import ReminderRequest

_LOGGER = logging.getLogger(__name__)

# The unique id of the list.
LIST_KEY = "reminders"

# In seconds. The clock may be set forward, which no timer notices, so that none waits longer than this.
_MAX_WAIT_SECONDS = 3_600.0
# A reminder that is later than this is said with its time.
_LATE_SECONDS = 120.0
# One that is later than this is only listed.
_MAX_LATE_SECONDS = 86_400.0
# How long after a reminder "done" and "again in ten minutes" are about it.
REPLY_SECONDS = 300.0
# The id of the label of schedules and toggles that are on in quiet hours.
_QUIET_HOURS_LABEL = "quiet_hours"
# A lamp may have that label, too.
_QUIET_HOURS_DOMAINS = frozenset({"schedule", "input_boolean", "binary_sensor"})
_NOON = 12
_UNKNOWN_PLACES = frozenset({"unknown", "unavailable"})


class ReminderList:
    """All reminders of the household, and their delivery while any account is loaded.

    `reminders` are in the order in which they were set. `get_store` returns None if no account is set up.
    """

    def __init__(self, hass: HomeAssistant, get_store: Callable[[], MemoryAccess | None]) -> None:
        self.reminders: dict[str, Reminder] = {}
        self.listeners: list[Callable[[], None]] = []
        # Requests whose time was asked, and when on the monotonic clock, by the person and the device that were asked.
        self.questions: dict[tuple[str | None, str | None], tuple[ReminderRequest, float]] = {}
        self._hass = hass
        self._get_store = get_store
        self._is_in_use: Callable[[str], bool] = lambda _satellite: False
        self._users = 0
        self._in_delivery: set[str] = set()
        # The reminder that was delivered last to each satellite, by its id in the registry, and to each person, with
        # the time on the monotonic clock.
        self._delivered: dict[str, tuple[str, float]] = {}
        self._cancel_timer: CALLBACK_TYPE | None = None
        self._stops: list[CALLBACK_TYPE] = []
        self._stop_tracking: CALLBACK_TYPE | None = None
        self._write_lock = asyncio.Lock()

    async def async_acquire(self, is_in_use: Callable[[str], bool]) -> CALLBACK_TYPE:
        """Read the reminders and deliver them once Home Assistant has started, until the returned function is called.

        `is_in_use` returns whether a turn uses a satellite.
        """
        self._is_in_use = is_in_use
        self._users += 1
        if self._users == 1:
            self._stops = [
                self._hass.bus.async_listen(EVENT_CORE_CONFIG_UPDATE, self._on_change),
                async_at_started(self._hass, self._schedule),
            ]
        await self.async_read()
        return self._release

    @callback
    def _release(self) -> None:
        self._users -= 1
        if not self._users:
            for stop in (*self._stops, self._stop_tracking, self._cancel_timer):
                if stop is not None:
                    stop()
            self._stops, self._stop_tracking, self._cancel_timer = [], None, None

    async def async_read(self) -> None:
        """Read the reminders from the store. Without a file there are none."""
        store, nothing = self._get_store(), list[Reminder]()
        async with self._write_lock:
            try:
                found = await store.async_read(read_reminders, nothing) if store is not None else nothing
            except MemoryUnavailable as err:
                _LOGGER.debug("Reminders wait for the store: %s", err.reason)
                return
            self.reminders = {each.id: each for each in found}
        self._on_change()

    async def async_put(self, reminder: Reminder) -> None:
        """Add or replace a reminder. Raises `MemoryUnavailable`, also if there are too many."""
        if reminder.id not in self.reminders and len(self.reminders) >= MAX_REMINDERS:
            raise MemoryUnavailable("full")
        async with self._write_lock:
            await self._async_change(write_reminder, reminder)
            self.reminders[reminder.id] = reminder
        self._on_change()

    async def async_delete(self, ids: Collection[str]) -> None:
        """Delete reminders. Raises `MemoryUnavailable`."""
        async with self._write_lock:
            await self._async_change(delete_reminders, tuple(ids))
            self.reminders = {key: each for key, each in self.reminders.items() if key not in ids}
        self._on_change()

    def get_delivered(self, satellite: str | None, person: str | None) -> Reminder | None:
        """Return the reminder that a satellite or a person has heard in the last five minutes."""
        heard = [self._delivered[each] for each in (satellite, person) if each in self._delivered]
        recent = [(at, each) for each, at in heard if time.monotonic() - at < REPLY_SECONDS]
        return self.reminders.get(max(recent)[1]) if recent else None

    async def _async_change[*Arguments](
        self, work: Callable[[Memory, *Arguments], None], *arguments: *Arguments
    ) -> None:
        if (store := self._get_store()) is None:
            raise MemoryUnavailable("closed")
        store.async_allow_file()
        await store.async_change(work, *arguments)

    @callback
    def _on_change(self, _event: Event | None = None) -> None:
        self._schedule()
        for listener in tuple(self.listeners):
            listener()

    @callback
    def _schedule(self, _cause: object = None) -> None:
        """Deliver the reminders that are due, and schedule the next one."""
        if self._cancel_timer is not None:
            self._cancel_timer()
            self._cancel_timer = None
        if not self._users or self._hass.state is not CoreState.running:
            return
        self._track_places()
        now, times = time.time(), []
        for reminder in self.reminders.values():
            at = _next_time(reminder)
            if at is None or reminder.id in self._in_delivery:
                continue
            if at > now:
                times.append(at)
            else:
                self._start_delivery(reminder, at)
        if times:
            next_at = dt_util.utc_from_timestamp(min(*times, now + _MAX_WAIT_SECONDS))
            self._cancel_timer = async_track_point_in_utc_time(
                self._hass, HassJob(self._schedule, cancel_on_shutdown=True), next_at
            )

    @callback
    def _track_places(self) -> None:
        """Deliver the reminders whose person is in their place, and arm those that wait for a change of it."""
        if self._stop_tracking is not None:
            self._stop_tracking()
        waiting = [(each, each.place) for each in self.reminders.values() if each.place and each.is_waiting]
        persons = {place.person for _, place in waiting}
        self._stop_tracking = async_track_state_change_event(self._hass, persons, self._schedule) if persons else None
        for reminder, place in waiting:
            person, zone = self._hass.states.get(place.person), self._hass.states.get(place.zone)
            if person is None or person.state in _UNKNOWN_PLACES or (place.zone and zone is None):
                continue
            if reminder.id in self._in_delivery:
                continue
            is_met = (person.state == (zone.name if zone else STATE_HOME)) == place.is_arrival
            if is_met and place.is_armed:
                self._start_delivery(reminder, time.time())
            elif not is_met and not place.is_armed:
                self.reminders[reminder.id] = replace(reminder, place=replace(place, is_armed=True))
                self._hass.async_create_task(self._async_store(reminder.id), "arm a reminder")

    async def _async_store(self, reminder_id: str) -> None:
        with suppress(MemoryUnavailable):
            if (reminder := self.reminders.get(reminder_id)) is not None:
                await self.async_put(reminder)

    @callback
    def _start_delivery(self, reminder: Reminder, due: float) -> None:
        self._in_delivery.add(reminder.id)
        work = self._async_deliver(reminder, due)
        self._hass.async_create_background_task(work, "deliver a reminder", eager_start=False)

    async def _async_deliver(self, reminder: Reminder, due: float) -> None:
        """Deliver a reminder and store that. A crash before leaves it to the next start, with its time."""
        late, is_expired, outcome = time.time() - due, due == reminder.expires_at, "missed"
        try:
            if is_expired:
                outcome = "expired"
            elif late <= _MAX_LATE_SECONDS:
                outcome = await self._async_tell(reminder, due, is_late=late > _LATE_SECONDS)
            current = self.reminders.get(reminder.id)
            if current is not None and _next_time(current) == _next_time(reminder):
                changed = current.after_delivery(dt_util.now().replace(tzinfo=None))
                if is_expired:
                    text = await self._async_say("reminder_expired")
                    changed = replace(changed, notes=f"{text}\n{changed.notes}".strip())
                    async_mention(self._hass, await self._async_get_title(), f"{changed.text}: {text}", changed.id)
                await self.async_put(replace(changed, unheard_since=due if outcome == Delivery.READY else None))
            self._fire_event(reminder, outcome)
        except MemoryUnavailable as err:
            # it is delivered, but a restart would deliver it again
            _LOGGER.warning("A reminder could not be marked as delivered: %s", err.reason)
            self.reminders[reminder.id] = reminder.after_delivery(dt_util.now().replace(tzinfo=None))
        except Exception as err:  # noqa: BLE001 - the others are still delivered
            log_fault(_LOGGER, "A reminder could not be delivered", err)
        finally:
            self._in_delivery.discard(reminder.id)
        self._schedule()

    async def _async_tell(self, reminder: Reminder, due: float, *, is_late: bool) -> Delivery:
        """Say a reminder in the first way that is possible. In quiet hours, only phones are."""
        language, person = self._hass.config.language, reminder.person
        text = await self._async_format(reminder, due if is_late else None, language)
        own = [reminder.satellite] if reminder.satellite else self._find_satellites(person)
        if await self._async_announce(reminder, own, text):
            return Delivery.ANNOUNCED
        title = await self._async_get_title()
        persons = self._hass.states.async_all("person")
        users = [person] if person else [*filter(None, (each.attributes.get("user_id") for each in persons))]
        if sent := [each for each in users if await async_notify(self._hass, each, title, text, Context())]:
            self._delivered |= dict.fromkeys(sent, (reminder.id, time.monotonic()))
            return Delivery.NOTIFIED
        if await self._async_announce(reminder, self._find_satellites(None), text):
            return Delivery.ANNOUNCED
        async_mention(self._hass, title, text, reminder.id)
        return Delivery.READY

    async def async_take_unheard(self, satellite: str | None, person: str | None, language: str) -> str:
        """Return the text of unheard reminders for a person and the household, which they hear now."""
        texts = []
        for reminder in tuple(self.reminders.values()):
            if reminder.unheard_since and not reminder.is_done and reminder.person in (None, person):
                # at once, because two persons may talk at the same time
                self.reminders[reminder.id] = replace(reminder, unheard_since=None)
                self._delivered |= dict.fromkeys(filter(None, (satellite, person)), (reminder.id, time.monotonic()))
                texts.append(await self._async_format(reminder, reminder.unheard_since, language))
                await self._async_store(reminder.id)
        return " ".join(texts)

    async def _async_format(self, reminder: Reminder, late_since: float | None, language: str) -> str:
        when = "" if late_since is None else f"{format_time(language, late_since)}: "
        return (await self._async_say("reminder_due", language)).format(text=f"{when}{reminder.text}")

    async def _async_get_title(self) -> str:
        return await async_get_spoken_text(self._hass, self._hass.config.language, "entity", "todo.reminders.name")

    async def _async_say(self, key: str, language: str | None = None) -> str:
        return await async_get_spoken_text(self._hass, language or self._hass.config.language, "common", key)

    async def _async_announce(self, reminder: Reminder, satellites: Collection[str], text: str) -> bool:
        """Announce a text on satellites, given by their ids in the registry. Return whether any of them did."""
        labelled = er.async_entries_for_label(er.async_get(self._hass), _QUIET_HOURS_LABEL)
        quiet = [each.entity_id for each in labelled if each.domain in _QUIET_HOURS_DOMAINS]
        if any(self._hass.states.is_state(each, STATE_ON) for each in quiet):
            return False
        calls = [async_announce(self._hass, each, text, Context(), self._is_in_use) for each in satellites]
        heard = [each for each, done in zip(satellites, await asyncio.gather(*calls), strict=True) if done]
        self._delivered |= dict.fromkeys(heard, (reminder.id, time.monotonic()))
        return bool(heard)

    def _find_satellites(self, person: str | None) -> list[str]:
        """Return the satellites of a person, or all if it is None."""
        owners = async_get_device_owners(self._hass)
        return [
            entry.id
            for entry in er.async_get(self._hass).entities.values()
            if entry.domain == Platform.ASSIST_SATELLITE
            and entry.disabled_by is None
            and (person is None or owners.get(entry.device_id or "") == person)
        ]

    def _fire_event(self, reminder: Reminder, outcome: str) -> None:
        # the list may not have been added yet when Home Assistant has just started
        entity_id = er.async_get(self._hass).async_get_entity_id(Platform.TODO, DOMAIN, LIST_KEY)
        data = {"uid": reminder.id, "summary": reminder.text, "person": reminder.person, "outcome": outcome}
        self._hass.bus.async_fire(EVENT_REMINDER, {ATTR_ENTITY_ID: entity_id, **data})


def format_time(language: str, at: float) -> str:
    """Return a day and a time as they are spoken: "Friday, 4 December, at 7:00". `at` is in seconds since the epoch."""
    spoken = (load_language(language) or load_language("en"))["reminders"]["spoken"]
    local = dt_util.as_local(dt_util.utc_from_timestamp(at))
    hour, ending = local.hour, ""
    if "halves" in spoken:
        hour, ending = local.hour % _NOON or _NOON, f" {spoken['halves'][local.hour // _NOON]}"
    return str(spoken["format"]).format(
        weekday=spoken["weekdays"].split()[local.weekday()],
        month=spoken["months"].split()[local.month - 1],
        day=local.day,
        number=local.month,
        time=f"{hour}:{local.minute:02}{ending}",
    )


def _next_time(reminder: Reminder) -> float | None:
    """Return when a reminder is due or expires, in seconds since the epoch, or None if it waits for nothing."""
    if not reminder.is_waiting:
        return None
    return reminder.due_at(dt_util.get_default_time_zone()) or reminder.expires_at
