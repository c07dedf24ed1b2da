"""The to-do list of reminders, which one of the loaded accounts owns for the household."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, time as clock_time
import time
from typing import Any, override
from uuid import uuid7

from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.components.todo.const import DOMAIN as TODO_DOMAIN, TodoItemStatus, TodoListEntityFeature
from homeassistant.components.todo.entity import TodoItem, TodoListEntity
from homeassistant.core import HomeAssistant, callback
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback
from homeassistant.util import dt as dt_util

from .agents.agent import AccountConfigEntry
from .agents.reminders import async_get_reminders
from .bridge.errors import build_translated_error
from .entity import async_share_entities
from .memory.core import MemoryUnavailable
from .reminders.bridge.answers import parse_recurrence
from .reminders.bridge.schedule import LIST_KEY, ReminderList
from .reminders.core.reminder import MAX_NOTES_CHARS, MAX_TEXT_CHARS, Reminder

PARALLEL_UPDATES = 0


async def async_setup_entry(
    hass: HomeAssistant, entry: AccountConfigEntry, async_add_entities: AddConfigEntryEntitiesCallback
) -> None:
    """Have one of the loaded accounts add the list."""

    @callback
    def add_list() -> None:
        async_add_entities([ReminderListEntity(async_get_reminders(hass))])

    async_share_entities(hass, entry, TODO_DOMAIN, [LIST_KEY], add_list)


class ReminderListEntity(TodoListEntity):
    """The list of reminders. Models do not see it until the user exposes it, because its tools cost tokens."""

    _attr_has_entity_name = True
    _attr_should_poll = False
    _attr_translation_key = LIST_KEY
    _attr_unique_id = LIST_KEY
    _attr_supported_features = (
        TodoListEntityFeature.CREATE_TODO_ITEM
        | TodoListEntityFeature.UPDATE_TODO_ITEM
        | TodoListEntityFeature.DELETE_TODO_ITEM
        | TodoListEntityFeature.SET_DUE_DATE_ON_ITEM
        | TodoListEntityFeature.SET_DUE_DATETIME_ON_ITEM
        | TodoListEntityFeature.SET_DESCRIPTION_ON_ITEM
    )

    def __init__(self, reminders: ReminderList) -> None:
        self._reminders = reminders

    @override
    async def async_added_to_hass(self) -> None:
        if self.registry_entry is not None and CONVERSATION_DOMAIN not in self.registry_entry.options:
            async_expose_entity(self.hass, CONVERSATION_DOMAIN, self.entity_id, should_expose=False)
        self._reminders.listeners.append(self.async_write_ha_state)
        self.async_on_remove(lambda: self._reminders.listeners.remove(self.async_write_ha_state))

    @property
    @override
    def todo_items(self) -> list[TodoItem]:
        return [_to_item(each) for each in self._reminders.reminders.values()]

    @property
    @override
    def extra_state_attributes(self) -> dict[str, Any]:
        rules = {each.id: str(each.recurrence) for each in self._reminders.reminders.values() if each.recurrence}
        return {"recurrences": rules}

    @override
    async def async_create_todo_item(self, item: TodoItem) -> None:
        person = self._context.user_id if self._context else None
        await self._async_put(Reminder(str(uuid7()), "", time.time(), person=person), item)

    @override
    async def async_update_todo_item(self, item: TodoItem) -> None:
        # core has checked that the item exists
        await self._async_put(self._reminders.reminders[item.uid or ""], item)

    @override
    async def async_delete_todo_items(self, uids: list[str]) -> None:
        with _translate_errors():
            await self._reminders.async_delete(uids)

    async def _async_put(self, old: Reminder, item: TodoItem) -> None:
        """Store a reminder with the fields of an item."""
        repeats, _, notes = (item.description or "").partition("\n")
        recurrence = old.recurrence if repeats == old.repeats else parse_recurrence(repeats, self.hass.config.language)
        if recurrence is None:
            repeats, notes = "", item.description or ""
        new = replace(
            old,
            text=(item.summary or "")[:MAX_TEXT_CHARS],
            recurrence=recurrence,
            repeats=repeats,
            notes=notes[:MAX_NOTES_CHARS],
            is_done=item.status == TodoItemStatus.COMPLETED,
        )
        zone = dt_util.get_default_time_zone()
        if item.due != _to_item(old).due:
            at: datetime | None = None
            if isinstance(item.due, datetime):
                at = dt_util.as_local(item.due).replace(tzinfo=None)
            elif item.due is not None:
                at = datetime.combine(item.due, clock_time())
            is_all_day = at is not None and not isinstance(item.due, datetime)
            new = replace(new, at=at, is_all_day=is_all_day, instant=None)
            # a time that is over is only listed
            new = replace(new, is_delivered=at is not None and (new.due_at(zone) or 0.0) <= time.time())
        if new.recurrence is not None and new.at is not None and (new.is_done or new.is_delivered):
            new = replace(new, is_delivered=False).after_delivery(dt_util.now().replace(tzinfo=None))
        with _translate_errors():
            await self._reminders.async_put(new)


def _to_item(reminder: Reminder) -> TodoItem:
    zone = dt_util.get_default_time_zone()
    at = reminder.at_local(zone)
    due: date | datetime | None = None
    if at is not None:
        due = at.date() if reminder.is_all_day else at.replace(tzinfo=zone)
    status = TodoItemStatus.COMPLETED if reminder.is_done else TodoItemStatus.NEEDS_ACTION
    description = "\n".join(filter(None, (reminder.repeats, reminder.notes)))
    return TodoItem(reminder.text, reminder.id, status, due, description or None)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except MemoryUnavailable as err:
        raise build_translated_error("memory_unavailable", HomeAssistantError) from err
