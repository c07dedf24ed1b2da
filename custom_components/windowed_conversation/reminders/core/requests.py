"""Sentences about reminders: to set, list, move, delete and finish one, and to hear one again later."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
import re
from typing import Any
import unicodedata

from ...turn.names import APOSTROPHE_TABLE, SENTENCE_MARKS
from .times import NamedTime, TimeParser

# Longer sentences are for a model.
_MAX_REQUEST_CHARS = 300
_MARKS = f"{SENTENCE_MARKS}?¿¡？"

# The first of the signs that stand for the zones of a sentence while it is parsed, in Unicode's private use area.
_FIRST_SIGN, _MAX_SIGNS = 0xE000, 6_000
# A name may have another ending than that of its zone: Polish "do pracy" is "Praca".
_VOWEL_AT_END_PATTERN = re.compile("(?<=...)[aeiouyаеиоуюяієїь]$", re.IGNORECASE)  # noqa: RUF001 - of several scripts
_ENDING = r"\w{0,3}"

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


class ReminderSentences:
    """The sentences of a language. "Remind me what ..." is no request: no task begins with one of `question_words`."""

    def __init__(self, data: Mapping[str, Any], times: TimeParser, question_words: Iterable[str], edge: str) -> None:
        self.times = times
        self._edge = edge
        self._trigger = re.compile(data["trigger"])
        self._patterns = [
            (kind, re.compile(f"(?:{data['openers']})?(?:{pattern})", re.IGNORECASE))
            for kind in ReminderRequestKind
            # "to" may be a part of the words, or of the time
            for pattern in dict.fromkeys([*data[kind], *[each.replace("<text>.+?", "<text>.+") for each in data[kind]]])
        ]
        self._me = re.compile(data["me"], re.IGNORECASE)
        self._us = re.compile(data["us"], re.IGNORECASE)
        self._question = re.compile(rf"(?:{'|'.join(map(re.escape, question_words))}){edge}", re.IGNORECASE)

    def match(self, text: str, zones: Mapping[str, str]) -> ReminderRequest | None:
        """Return the request of a sentence, or None. Takes microseconds for most sentences.

        `zones` are the entity ids of places by their names, without that of the home.
        """
        said = _clean(text)
        if len(said) > _MAX_REQUEST_CHARS or not self.may_match(said):
            return None
        hidden, words, ids = self._hide_zones(said, zones)
        request = self._match(hidden) if ids else None
        if request is None or request.named.zone not in ids:
            return self._match(said)
        named = request.named._replace(zone=ids[request.named.zone])
        return replace(request, named=named, text=request.text.translate(words))

    def may_match(self, text: str) -> bool:
        """Return whether a text has a word about reminders, without which it is no request. Takes a microsecond."""
        return self._trigger.search(_clean(text).lower()) is not None

    def _match(self, said: str) -> ReminderRequest | None:
        said = self.times.drop_last_filler(said)
        # the time may be in front of everything else
        for start in dict.fromkeys((0, self.times.find_end(said))):
            for kind, pattern in self._patterns:
                match = pattern.fullmatch(said, start)
                if match and (request := self._build(kind, match.groupdict(), said[:start])) is not None:
                    return request
        return None

    def find_time(self, text: str, zones: Mapping[str, str]) -> NamedTime | None:
        """Return the time that a text names if it names nothing else, or None."""
        hidden, _, ids = self._hide_zones(_clean(text), zones)
        named = self.times.find_only(hidden)
        if named is None or named.zone not in ids:
            return self.times.find_only(_clean(text))
        return named._replace(zone=ids[named.zone])

    def may_be_meant(self, text: str, zones: Mapping[str, str], *, is_question: bool) -> bool:
        """Return whether a text has words about reminders, or is no question and names a time or a place."""
        said, *_ = self._hide_zones(_clean(text[:_MAX_REQUEST_CHARS]), zones)
        return self.may_match(said) or (not is_question and self.times.names_time(said))

    def _hide_zones(self, said: str, zones: Mapping[str, str]) -> tuple[str, dict[int, str], dict[str, str]]:
        """Return a sentence with signs in place of zones, the words by their signs, and the entity ids by theirs."""
        words, ids = dict[int, str](), dict[str, str]()
        for sign, (name, entity_id) in enumerate(islice(zones.items(), _MAX_SIGNS), _FIRST_SIGN):
            pattern = rf"\b{re.escape(_VOWEL_AT_END_PATTERN.sub('', name))}{_ENDING}{self._edge}"
            if found := re.search(pattern if self._edge else re.escape(name), said, re.IGNORECASE):
                said = f"{said[: found.start()]}{chr(sign)}{said[found.end() :]}"
                words[sign], ids[chr(sign)] = found[0], entity_id
        return said, words, ids

    def _build(self, kind: ReminderRequestKind, groups: Mapping[str, str | None], front: str) -> ReminderRequest | None:
        # the task may follow the verb, and the time precede it
        rest = " ".join(filter(None, [front, *[groups.get(each) for each in ("rest", "timed", "tail")]]))
        text = groups.get("text") or ""
        if kind is ReminderRequestKind.SET:
            request = self._build_new(groups.get("who") or "", rest)
            # words that ask for a reminder only together with a time
            return None if groups.get("timed") and request and request.named == _NO_TIME else request
        named = self.times.find_only(rest) if rest.strip() else _NO_TIME
        return ReminderRequest(kind, named, text.strip(_MARKS)) if named is not None else None

    def _build_new(self, who: str, rest: str) -> ReminderRequest | None:
        named, task = self.times.find_around(rest)
        if not re.search(r"\w", task) or self._question.match(task) or named.is_nth_weekday:
            return None
        is_for_all = self._us.fullmatch(who) is not None
        other = None if is_for_all or not who or self._me.fullmatch(who) else who
        return ReminderRequest(ReminderRequestKind.SET, named, task, other, is_for_all)


def _clean(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate(APOSTROPHE_TABLE).strip(_MARKS)
