"""Reminders as tools for a model. Tasks and times have to be the user's own words, from which times are read here."""

from dataclasses import dataclass

from homeassistant.helpers import llm
import probatio

from ...bridge.errors import refuse
from ...bridge.store_tool import StoreTool, text_validator
from ...memory.core import MAX_QUOTE_CHARS
from ...memory.turn.speaker import is_supported_by, iter_tokens
from ..core.reminder import MAX_TEXT_CHARS
from ..core.requests import ReminderRequest, ReminderRequestKind, ReminderSentences
from .answers import ReminderAnswerer

_NOT_SAID_TEXT = "Not the user's words of this exchange. Ask the user."
_NO_TIME_TEXT = "Quote only the user's words for one time or place."
_NOT_FOUND_TEXT = "Ask the user which of these is meant."
_UNKNOWN_PERSON_TEXT = "It is not known who that is."
_REPEATED_TEXT = "It repeats. The user deletes it in the list, or asks to cancel the reminder."

_TEXT = text_validator(MAX_TEXT_CHARS)
_WHEN = probatio.All(str, probatio.Length(max=MAX_QUOTE_CHARS))
_NEW_SCHEMA = probatio.Schema(
    {
        probatio.Required("text", description="Task in the user's words"): _TEXT,
        probatio.Required("when", description="The user's exact words for time, or who arrives or leaves"): _WHEN,
    }
)
_CHANGE_SCHEMA = probatio.Schema(
    {
        probatio.Required("reminder", description="Its words"): _TEXT,
        probatio.Required("when", description="The user's exact words for its new time, or empty"): _WHEN,
    }
)
_LIST_SCHEMA = probatio.Schema({})
# None of them deletes anything.
_CHANGES = llm.ToolAnnotations(destructive=False, open_world=False)


def make_reminder_tools(answerer: ReminderAnswerer, sentences: ReminderSentences) -> tuple[llm.Tool, ...]:
    """Return the tools for an exchange whose words may be about reminders."""
    calls = _Calls(answerer, sentences)
    move = "Move a reminder. Without when, mark it as done or cancelled."
    return (
        StoreTool("remind", "Set a reminder. Not for timers or calendars.", _NEW_SCHEMA, calls.set_reminder, _CHANGES),
        StoreTool("reminders", "List the reminders.", _LIST_SCHEMA, calls.list_reminders, _CHANGES),
        StoreTool("change_reminder", move, _CHANGE_SCHEMA, calls.change_reminder, _CHANGES),
    )


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of the tools."""

    answerer: ReminderAnswerer
    sentences: ReminderSentences

    async def set_reminder(self, *, text: str, when: str) -> llm.ToolResult:
        if not self._is_said(text):
            return refuse("not_said", _NOT_SAID_TEXT)
        return await self._answer(ReminderRequestKind.SET, text, when)

    async def list_reminders(self) -> llm.ToolResult:
        items = await self.answerer.async_format_items(self.answerer.find_by_words(""))
        return llm.ToolResult(data={"reminders": items})

    async def change_reminder(self, *, reminder: str, when: str) -> llm.ToolResult:
        answerer, heard = self.answerer, self.answerer.find_delivered()
        found = [each for each in answerer.find_by_words(reminder) if each == heard or self._is_said(each.text)]
        if len(found) != 1:
            items = await answerer.async_format_items(found or answerer.find_by_words(""))
            return refuse("not_found", _NOT_FOUND_TEXT, reminders=items)
        if when.strip():
            return await self._answer(ReminderRequestKind.MOVE, found[0].text, when)
        if answerer.is_asking:
            return refuse("not_said", _NOT_SAID_TEXT)
        if found[0].recurrence is not None:
            return refuse("repeats", _REPEATED_TEXT)
        return await self._answer(ReminderRequestKind.FINISH, found[0].text)

    async def _answer(self, kind: ReminderRequestKind, text: str, when: str = "") -> llm.ToolResult:
        """Carry out a request with the time of a quote. It is refused if the speaker did not say these words."""
        request, speaker = ReminderRequest(kind, text=text), self.answerer.speaker
        if kind is not ReminderRequestKind.FINISH:
            named = self.sentences.find_time(when, self.answerer.find_zones())
            if named is None or _join_tokens(when) not in _join_tokens(speaker.text):
                return refuse("no_time", _NO_TIME_TEXT)
            request = ReminderRequest(kind, named, text)
        if (answer := await self.answerer.async_answer(request)) is None:
            return refuse("unknown_person", _UNKNOWN_PERSON_TEXT)
        return llm.ToolResult(data={"ask" if answer.asks else "done": answer.speech})

    def _is_said(self, text: str) -> bool:
        speaker = self.answerer.speaker
        return is_supported_by(text, speaker.text, speaker.name, speaker.build_words())


def _join_tokens(text: str) -> str:
    return f" {' '.join(iter_tokens(text))} "
