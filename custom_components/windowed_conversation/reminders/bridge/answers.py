"""Answers to requests about reminders without a model, in the speaker's language."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, time as clock_time
from functools import cache
import time
from typing import Any, NamedTuple
from uuid import uuid7

from homeassistant.components.zone import ENTITY_ID_HOME
from homeassistant.core import HomeAssistant, State
from homeassistant.util import dt as dt_util

from ...bridge.errors import async_get_spoken_text
from ...memory.core import MemoryUnavailable, Words, base_language
from ...memory.turn.speaker import Speaker, get_word_boundary, is_spoken_question, is_supported_by, load_language
from ...turn.names import iter_folded_words
from ...turn.routing import is_question
from ..core.recurrence import Recurrence
from ..core.reminder import MAX_TEXT_CHARS, Presence, Reminder
from ..core.requests import AFTER_DELIVERY, ReminderRequest, ReminderRequestKind, ReminderSentences
from ..core.times import DueTime, NamedTime, TimeParser, TimeQuestion, resolve_time
from .schedule import REPLY_SECONDS, ReminderList, format_time

_MAX_LISTED = 10


class ReminderAnswer(NamedTuple):
    """An answer about reminders."""

    speech: str
    # Whether it is a question.
    asks: bool = False


def get_sentences(language: str) -> ReminderSentences | None:
    """Return the sentences of a language, or None. The first call in each language blocks for some milliseconds."""
    return _build_sentences(base_language(language))


@cache
def _build_sentences(base: str) -> ReminderSentences | None:
    words = load_language(base)
    if "reminders" not in words:
        return None
    # the stemmer blocks while it is loaded, and reminders are found by its words
    Words((base, "en"))
    # "d'" ends before a letter
    edge = r"(?:(?<=')|(?!\w))" if get_word_boundary(base) else ""
    times = TimeParser(words["reminders"], words["past"], edge)
    return ReminderSentences(words["reminders"], times, words["question_words"].split(), edge)


def parse_recurrence(text: str, language: str) -> Recurrence | None:
    """Return the recurrence that is all of a text, in a language or in English, or None."""
    today, parsers = dt_util.now().date(), filter(None, map(get_sentences, (language, "en")))
    return next(filter(None, (each.times.find_recurrence(text, today) for each in parsers)), None)


@dataclass(frozen=True, slots=True)
class ReminderAnswerer:
    """Answers one input if it is a request about reminders. `satellite` is the id of the speaker's in the registry."""

    hass: HomeAssistant
    reminders: ReminderList
    speaker: Speaker
    satellite: str | None

    async def answer_input(self) -> ReminderAnswer | None:
        """Carry out the input's request and return the answer, or None if it is no request about reminders."""
        sentences, request = get_sentences(self.speaker.language), None
        if sentences is None:
            return None
        if self.reminders.questions:
            request = self._take_reply(sentences)
        if request is None and sentences.may_match(self.speaker.text):
            request = sentences.match(self.speaker.text, self.find_zones())
        if request is None or (request.kind in AFTER_DELIVERY and self.find_delivered() is None):
            return None
        try:
            return await self.async_answer(request)
        except MemoryUnavailable:
            return ReminderAnswer(await self._async_say("memory_unavailable"))

    @property
    def is_asking(self) -> bool:
        """Whether the input is a question."""
        return is_question(self.speaker.text) or is_spoken_question(self.speaker.text, self.speaker.language)

    def find_sentences_for_tools(self) -> ReminderSentences | None:
        """Return the sentences of the speaker's language, or None if the input is not about reminders.

        It is if it has words about reminders, or is no question and names a time or a place.
        """
        text, sentences = self.speaker.text, get_sentences(self.speaker.language)
        if sentences is None or not sentences.may_be_meant(text, self.find_zones(), is_question=self.is_asking):
            return None
        return sentences

    def _take_reply(self, sentences: ReminderSentences) -> ReminderRequest | None:
        """Return the request of the last question with the time that the input names, or None if it names none."""
        request, asked_at = self.reminders.questions.pop((self.speaker.person, self.speaker.device), (None, 0.0))
        if request is None or time.monotonic() - asked_at > REPLY_SECONDS:
            return None
        named = sentences.find_time(self.speaker.text, self.find_zones())
        return None if named is None else replace(request, named=request.named.with_parts_of(named))

    async def async_answer(self, request: ReminderRequest) -> ReminderAnswer | None:
        """Carry out a request and return the answer, or None if a model has to answer. Raises `MemoryUnavailable`."""
        match request.kind:
            case ReminderRequestKind.SET:
                return await self._async_set(request)
            case ReminderRequestKind.LIST:
                return await self._async_list(request.named)
            case _ if not request.text:
                delivered = self.find_delivered()
                found = self.find_by_words("") if delivered is None else [delivered]
            case _:
                found = self.find_by_words(request.text)
        if len(found) > 1:
            return ReminderAnswer(await self._async_say("reminder_several", items=await self.async_format_items(found)))
        if not found:
            return ReminderAnswer(await self._async_say("reminder_not_found"))
        return await self._async_change(request, found[0])

    async def _async_set(self, request: ReminderRequest) -> ReminderAnswer | None:
        person, place, named = self.speaker.person, None, request.named
        if request.who is not None and (person := self._find_user(request.who)) is None:
            return None
        if named.who is not None:
            # "Ada, when she is home"
            waited_for = named.who if request.who is None or self._find_user(named.who) else request.who
            if (state := self._find_person(waited_for, person)) is None:
                return None
            place = Presence(state.entity_id, named.is_arrival, named.zone)
        due = DueTime() if place is not None else resolve_time(named, dt_util.now())
        if isinstance(due, TimeQuestion):
            return await self._async_ask(request, due)
        new = Reminder(
            str(uuid7()),
            request.text[:MAX_TEXT_CHARS],
            time.time(),
            **due._asdict(),
            place=place,
            person=None if request.is_for_all else person,
            satellite=None if request.who is not None else self.satellite,
        )
        is_first = not self.reminders.reminders
        await self.reminders.async_put(new)
        speech = await self._async_say("reminder_set", item=await self._async_format_item(new))
        return ReminderAnswer(f"{speech} {await self._async_say('reminder_heard')}" if is_first else speech)

    async def _async_ask(self, request: ReminderRequest, question: TimeQuestion) -> ReminderAnswer:
        self.reminders.questions[self.speaker.person, self.speaker.device] = request, time.monotonic()
        key = "reminder_ask_time" if question.hour is None else "reminder_ask_part"
        return ReminderAnswer(await self._async_say(key, hour=str(question.hour)), asks=True)

    async def _async_list(self, named: NamedTime) -> ReminderAnswer:
        found, today = self.find_by_words(""), dt_util.now().date()
        if (day := named.find_day(today)) is not None:
            days = [(each, each.at_local(dt_util.get_default_time_zone())) for each in found]
            # a task of an earlier day that is not done is one of today
            found = [each for each, at in days if at is not None and max(at.date(), today) == day]
        if not found:
            return ReminderAnswer(await self._async_say("reminder_none"))
        return ReminderAnswer(f"{await self.async_format_items(found)}.")

    async def _async_change(self, request: ReminderRequest, found: Reminder) -> ReminderAnswer:
        if request.kind is ReminderRequestKind.DELETE:
            await self.reminders.async_delete([found.id])
            return ReminderAnswer(await self._async_say("memory_forgotten", facts=found.text))
        if request.kind is ReminderRequestKind.FINISH:
            if found.recurrence is None:
                await self.reminders.async_put(replace(found, is_done=True))
            return ReminderAnswer(await self._async_say("all_right"))
        due = resolve_time(request.named, self._find_start(request, found))
        if isinstance(due, TimeQuestion):
            return await self._async_ask(request, due)
        moved = replace(found, at=due.at, instant=due.instant, place=None, is_all_day=False, is_delivered=False)
        moved = replace(moved, unheard_since=None)
        if request.kind is ReminderRequestKind.SNOOZE and found.recurrence is not None:
            # the next one still comes when it would
            moved = replace(moved, id=str(uuid7()), recurrence=None, repeats="")
        elif due.at is None or due.recurrence is not None:
            moved = replace(moved, recurrence=due.recurrence, repeats=due.repeats)
        await self.reminders.async_put(moved)
        return ReminderAnswer(await self._async_say("reminder_set", item=await self._async_format_item(moved)))

    def _find_start(self, request: ReminderRequest, found: Reminder) -> datetime:
        """Return the time after which a reminder is moved. "To eight" is on its own day."""
        now, zone = dt_util.now(), dt_util.get_default_time_zone()
        at = found.at_local(zone)
        if request.kind is not ReminderRequestKind.MOVE or at is None or request.named.find_day(now.date()) is not None:
            return now
        return max(now, datetime.combine(at, clock_time(), zone))

    def find_delivered(self) -> Reminder | None:
        """Return the reminder that the speaker has heard in the last minutes."""
        return self.reminders.get_delivered(self.satellite, self.speaker.person)

    def find_by_words(self, text: str) -> list[Reminder]:
        """Return the reminders that are not done and have all of these words but stop words, with any ending."""
        waiting = [each for each in self.reminders.reminders.values() if not each.is_done]
        words = self.speaker.build_words() if text else None
        return [each for each in waiting if words is None or is_supported_by(text, each.text, None, words, share=1.0)]

    def find_zones(self) -> dict[str, str]:
        """Return the entity ids of the zones by their names, without the home."""
        zones = self.hass.states.async_all("zone")
        return {each.name: each.entity_id for each in zones if each.entity_id != ENTITY_ID_HOME and each.name}

    def _find_user(self, name: str) -> str | None:
        """Return the user id of a person of the household by their name."""
        found = self._find_person(name, None)
        return None if found is None else found.attributes.get("user_id")

    def _find_person(self, name: str, user_id: str | None) -> State | None:
        """Return the person of a name, or without a name that of a user id."""
        persons, wanted = self.hass.states.async_all("person"), [*iter_folded_words(name)]
        if wanted:
            found = [each for each in persons if [*iter_folded_words(each.name)][: len(wanted)] == wanted]
        else:
            found = [each for each in persons if user_id is not None and each.attributes.get("user_id") == user_id]
        return found[0] if len(found) == 1 else None

    async def async_format_items(self, found: Iterable[Reminder]) -> str:
        """Return up to ten reminders with their times."""
        return "; ".join([await self._async_format_item(each) for each in [*found][:_MAX_LISTED]])

    async def _async_format_item(self, reminder: Reminder) -> str:
        """Return the time and the text of a reminder."""
        due, place = reminder.due_at(dt_util.get_default_time_zone()), reminder.place
        when = [reminder.repeats] if reminder.repeats else []
        if due is not None:
            when.insert(0, format_time(self.speaker.language, due))
        elif place is not None:
            person, zone = [self.hass.states.get(each) for each in (place.person, place.zone or ENTITY_ID_HOME)]
            phrase = "reminder_departure"
            if place.is_arrival:
                phrase = "reminder_arrival_zone" if place.zone else "reminder_arrival"
            names = {"name": person.name if person else place.person, "zone": zone.name if zone else place.zone}
            when.append(await self._async_say(phrase, **names))
        return f"{', '.join(when)}: {reminder.text}" if when else reminder.text

    async def _async_say(self, key: str, **placeholders: Any) -> str:
        text = await async_get_spoken_text(self.hass, self.speaker.language, "common", key)
        return text.format(**placeholders)
