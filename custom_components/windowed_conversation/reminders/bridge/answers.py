"""Answers to requests about reminders without a model, in the speaker's language."""

from dataclasses import dataclass, replace
from datetime import datetime
import time
from uuid import uuid7

from homeassistant.core import HomeAssistant, State
from homeassistant.util import dt as dt_util

from ...bridge.errors import async_get_spoken_text
from ...memory.core import MemoryUnavailable, base_language
from ...memory.turn.speaker import Speaker, get_word_boundary, iter_tokens, load_language
from ...turn.names import iter_folded_words
from ..core.recurrence import Recurrence
from ..core.reminder import MAX_TEXT_CHARS, Presence, Reminder
from ..core.requests import AFTER_DELIVERY, ReminderRequest, ReminderRequestKind, ReminderSentences
from ..core.times import DueTime, TimeParser, TimeQuestion, resolve_time
from .schedule import ReminderList

# How long a question waits for the reply, in seconds.
_REPLY_SECONDS = 300.0
_MAX_LISTED = 10
_NOON = 12

_sentences_by_language: dict[str, ReminderSentences | None] = {}


@dataclass(frozen=True, slots=True)
class _OpenQuestion:
    """A request whose time was asked, and the person and device that were asked."""

    request: ReminderRequest
    listener: tuple[str | None, str | None]
    asked_at: float


@dataclass(frozen=True, slots=True)
class ReminderAnswer:
    """An answer about reminders."""

    speech: str
    # Whether it is a question.
    asks: bool = False


def get_sentences(language: str) -> ReminderSentences | None:
    """Return the sentences of a language, or None. The first call in each language blocks for some milliseconds."""
    base = base_language(language)
    if base not in _sentences_by_language:
        _sentences_by_language[base] = _build_sentences(base)
    return _sentences_by_language[base]


def _build_sentences(base: str) -> ReminderSentences | None:
    words = load_language(base)
    if "reminders" not in words:
        return None
    # "d'" ends before a letter
    edge = r"(?:(?<=')|(?!\w))" if get_word_boundary(base) else ""
    times = TimeParser(words["reminders"], words["past"], edge)
    return ReminderSentences(words["reminders"], times, words["question_words"].split(), edge)


def parse_recurrence(text: str, language: str) -> Recurrence | None:
    """Return the recurrence that is all of a text, in a language or in English, or None."""
    today, parsers = dt_util.now().date(), filter(None, map(get_sentences, (language, "en")))
    return next(filter(None, (each.times.find_recurrence(text, today) for each in parsers)), None)


async def async_format_time(hass: HomeAssistant, language: str, at: datetime) -> str:
    """Return a day and a time as they are spoken: "Friday, 4 December, at 7:00"."""
    spoken = load_language(language if get_sentences(language) else "en")["reminders"]["spoken"]
    local = dt_util.as_local(at)
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


@dataclass(frozen=True, slots=True)
class ReminderAnswerer:
    """Answers one input if it is a request about reminders. `satellite` is the id of the speaker's in the registry."""

    hass: HomeAssistant
    reminders: ReminderList
    speaker: Speaker
    conversation_key: str
    satellite: str | None

    async def answer_input(self) -> ReminderAnswer | None:
        """Carry out the input's request and return the answer, or None if it is no request about reminders."""
        if base_language(self.speaker.language) not in _sentences_by_language:
            await self.hass.async_add_executor_job(get_sentences, self.speaker.language)
        sentences = get_sentences(self.speaker.language)
        if sentences is None:
            return None
        request = self._take_reply(sentences) or sentences.match(self.speaker.text)
        if request is None or (request.kind in AFTER_DELIVERY and self._find_delivered() is None):
            return None
        try:
            return await self._async_answer(request)
        except MemoryUnavailable:
            return ReminderAnswer(await self._async_say("memory_unavailable"))

    def _take_reply(self, sentences: ReminderSentences) -> ReminderRequest | None:
        """Return the request of the last question with the time that the input names, or None if it names none."""
        question: _OpenQuestion | None = self.reminders.questions.pop(self.conversation_key, None)
        listener = (self.speaker.person, self.speaker.device)
        if question is None or question.listener != listener or time.monotonic() - question.asked_at > _REPLY_SECONDS:
            return None
        named = sentences.times.find_only(self.speaker.text)
        if named is None:
            return None
        return replace(question.request, named=question.request.named.with_parts_of(named))

    async def _async_answer(self, request: ReminderRequest) -> ReminderAnswer | None:
        match request.kind:
            case ReminderRequestKind.SET:
                return await self._async_set(request)
            case ReminderRequestKind.LIST:
                return await self._async_list(request)
            case ReminderRequestKind.SNOOZE | ReminderRequestKind.FINISH:
                found = list(filter(None, [self._find_delivered()]))
            case _:
                found = self._find_named(request.text)
        if len(found) > 1:
            items = await self._async_format_items(found)
            return ReminderAnswer(await self._async_say("reminder_several", items=items))
        if not found:
            return ReminderAnswer(await self._async_say("reminder_not_found"))
        return await self._async_change(request, found[0])

    async def _async_set(self, request: ReminderRequest) -> ReminderAnswer | None:
        person, place = self.speaker.person, None
        if request.who is not None and (person := self._find_user(request.who)) is None:
            return None
        if request.named.who is not None:
            # "Ada, when she is home"
            named = request.named.who if request.who is None or self._find_user(request.named.who) else request.who
            waited_for = self._find_person(named, person)
            if waited_for is None:
                return None
            place = Presence(waited_for.entity_id, request.named.is_arrival)
        due = DueTime() if place is not None else resolve_time(request.named, dt_util.now())
        if isinstance(due, TimeQuestion):
            return await self._async_ask(request, due)
        new = Reminder(
            str(uuid7()),
            request.text[:MAX_TEXT_CHARS],
            time.time(),
            at=due.at,
            instant=due.instant,
            recurrence=due.recurrence,
            repeats=request.repeats,
            place=place,
            person=None if request.is_for_all else person,
            satellite=None if request.who is not None else self.satellite,
        )
        is_first = not self.reminders.reminders
        await self.reminders.async_put(new)
        text = await self._async_say("reminder_set", item=await self._async_format_item(new))
        return ReminderAnswer(f"{text} {await self._async_say('reminder_heard')}" if is_first else text)

    async def _async_ask(self, request: ReminderRequest, question: TimeQuestion) -> ReminderAnswer:
        listener, questions = (self.speaker.person, self.speaker.device), self.reminders.questions
        for key in [key for key, each in questions.items() if time.monotonic() - each.asked_at > _REPLY_SECONDS]:
            del questions[key]
        questions[self.conversation_key] = _OpenQuestion(request, listener, time.monotonic())
        if question.hour is None:
            return ReminderAnswer(await self._async_say("reminder_ask_time"), asks=True)
        return ReminderAnswer(await self._async_say("reminder_ask_part", hour=str(question.hour)), asks=True)

    async def _async_list(self, request: ReminderRequest) -> ReminderAnswer:
        found = [each for each in self.reminders.reminders.values() if not each.is_done]
        if (ahead := request.named.days_ahead) is not None:
            last = dt_util.now().date().toordinal() + ahead
            days = [(each, each.at_local(dt_util.get_default_time_zone())) for each in found]
            # a task of an earlier day that is not done is one of today
            found = [
                each
                for each, at in days
                if at is not None and (at.toordinal() == last or (not ahead and at.toordinal() < last))
            ]
        if not found:
            return ReminderAnswer(await self._async_say("reminder_none"))
        return ReminderAnswer(f"{await self._async_format_items(found)}.")

    async def _async_change(self, request: ReminderRequest, found: Reminder) -> ReminderAnswer | None:
        if request.kind is ReminderRequestKind.DELETE:
            await self.reminders.async_delete([found.id])
            return ReminderAnswer(await self._async_say("reminder_deleted", text=found.text))
        if request.kind is ReminderRequestKind.FINISH:
            if found.recurrence is None:
                await self.reminders.async_put(replace(found, is_done=True))
            return ReminderAnswer(await self._async_say("all_right"))
        due = resolve_time(request.named, dt_util.now())
        if isinstance(due, TimeQuestion):
            return await self._async_ask(request, due)
        moved = replace(found, at=due.at, instant=due.instant, place=None, is_all_day=False, is_delivered=False)
        if request.kind is ReminderRequestKind.SNOOZE and found.recurrence is not None:
            # the next one still comes when it would
            moved = replace(moved, id=str(uuid7()), recurrence=None, repeats="")
        elif due.at is None:
            moved = replace(moved, recurrence=None, repeats="")
        await self.reminders.async_put(moved)
        return ReminderAnswer(await self._async_say("reminder_set", item=await self._async_format_item(moved)))

    def _find_delivered(self) -> Reminder | None:
        return self.reminders.get_delivered(self.satellite, self.speaker.person)

    def _find_named(self, text: str) -> list[Reminder]:
        """Return the reminders with all of these words; those that are not done if there are none."""
        wanted = set(iter_tokens(text))
        return [
            each
            for each in self.reminders.reminders.values()
            if not each.is_done and wanted <= set(iter_tokens(each.text))
        ]

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

    async def _async_format_items(self, found: list[Reminder]) -> str:
        return "; ".join([await self._async_format_item(each) for each in found[:_MAX_LISTED]])

    async def _async_format_item(self, reminder: Reminder) -> str:
        """Return the time and the text of a reminder."""
        due = reminder.due_at(dt_util.get_default_time_zone())
        when = []
        if due is not None:
            when.append(await async_format_time(self.hass, self.speaker.language, dt_util.utc_from_timestamp(due)))
        elif reminder.place is not None:
            state = self.hass.states.get(reminder.place.person)
            phrase = "reminder_arrival" if reminder.place.is_arrival else "reminder_departure"
            when.append(await self._async_say(phrase, name=state.name if state else reminder.place.person))
        if reminder.repeats:
            when.append(reminder.repeats)
        return f"{', '.join(when)}: {reminder.text}" if when else reminder.text

    async def _async_say(self, key: str, **placeholders: str) -> str:
        text = await async_get_spoken_text(self.hass, self.speaker.language, "common", key)
        return text.format(**placeholders)
