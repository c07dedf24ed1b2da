"""Sentences about reminders: to set, list, move, delete and finish one, and to hear one again later."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
import re
from typing import Any
import unicodedata

from .times import NamedTime, TimeParser

_APOSTROPHES = str.maketrans("’‘ʼ", "'''")  # noqa: RUF001 - of several scripts

# Longer sentences are for a model.
_MAX_REQUEST_CHARS = 300

_NO_TIME = NamedTime()


class ReminderRequestKind(StrEnum):
    """The kinds of requests, named like their patterns."""

    SNOOZE = "again"
    LIST = "list"
    MOVE = "move"
    DELETE = "delete"
    FINISH = "finish"
    SET = "remind"


# A sentence such as "done" is one only after a reminder was heard.
AFTER_DELIVERY = frozenset({ReminderRequestKind.SNOOZE, ReminderRequestKind.FINISH})


@dataclass(frozen=True, slots=True)
class ReminderRequest:
    """A request about reminders."""

    kind: ReminderRequestKind
    named: NamedTime = _NO_TIME
    # The task of a new reminder, or words of an existing one.
    text: str = ""
    # The name of another person whom to remind.
    who: str | None = None
    is_for_all: bool = False
    # The recurrence in the user's words.
    repeats: str = ""


class ReminderSentences:
    """The sentences of a language. "Remind me what ..." is no request: no task begins with one of `question_words`."""

    def __init__(self, data: Mapping[str, Any], times: TimeParser, question_words: Iterable[str], edge: str) -> None:
        self.times = times
        self._trigger = re.compile(data["trigger"], re.IGNORECASE)
        self._patterns = [
            (kind, re.compile(f"(?:{data['openers']})?(?:{pattern})", re.IGNORECASE))
            for kind in ReminderRequestKind
            for pattern in data[kind]
        ]
        self._me = re.compile(data["me"], re.IGNORECASE)
        self._us = re.compile(data["us"], re.IGNORECASE)
        self._question = re.compile(rf"(?:{'|'.join(map(re.escape, question_words))}){edge}", re.IGNORECASE)

    def match(self, text: str) -> ReminderRequest | None:
        """Return the request of a sentence, or None. Takes microseconds for most sentences."""
        said = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).strip(" .!?¿¡。！？")  # noqa: RUF001 - of several scripts
        if len(said) > _MAX_REQUEST_CHARS or not self._trigger.search(said):
            return None
        for kind, pattern in self._patterns:
            if (match := pattern.fullmatch(said)) and (request := self._build(kind, match.groupdict())) is not None:
                return request
        return None

    def _build(self, kind: ReminderRequestKind, groups: Mapping[str, str | None]) -> ReminderRequest | None:
        rest, text = groups.get("rest") or "", groups.get("text") or ""
        # the task may follow the verb, and the time precede it
        rest += f" {groups['tail']}" if groups.get("tail") else ""
        if kind is ReminderRequestKind.SET:
            return self._build_new(groups.get("who") or "", rest)
        named = self.times.find_only(rest) if rest.strip() else _NO_TIME
        return ReminderRequest(kind, named, text.strip(" ,")) if named is not None else None

    def _build_new(self, who: str, rest: str) -> ReminderRequest | None:
        named, task = self.times.find_around(rest)
        if not re.search(r"\w", task) or self._question.match(task):
            return None
        is_for_all = self._us.fullmatch(who) is not None
        other = None if is_for_all or not who or self._me.fullmatch(who) else who
        repeats = self.times.cut_recurrence(rest) if named.recurrence is not None else ""
        return ReminderRequest(ReminderRequestKind.SET, named, task, other, is_for_all, repeats)
