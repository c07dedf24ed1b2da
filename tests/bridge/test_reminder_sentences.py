"""Tests for sentences in each language that ask for a reminder, and for equally ordinary ones that do not."""

from collections.abc import Mapping
from datetime import datetime
import json
from pathlib import Path
import re
from zoneinfo import ZoneInfo

import pytest

from custom_components.windowed_conversation.memory.turn.speaker import UNDERSTOOD_LANGUAGES
from custom_components.windowed_conversation.reminders.bridge.answers import get_sentences, parse_recurrence
from custom_components.windowed_conversation.reminders.core.requests import (
    AFTER_DELIVERY,
    ReminderRequest,
    ReminderRequestKind,
)
from custom_components.windowed_conversation.reminders.core.times import DueTime, TimeQuestion, resolve_time

from .ordinary_sentences import ordinary_sentences

SENTENCES = json.loads(Path(__file__).with_name("reminder_sentences.json").read_text("utf-8"))
WAYS = json.loads(Path(__file__).with_name("reminder_ways.json").read_text("utf-8"))
EMPTY: Mapping[str, str] = {}
BERLIN = ZoneInfo("Europe/Berlin")
# A Wednesday.
NOW = datetime(2026, 12, 2, 10, tzinfo=BERLIN)
FRIDAY = datetime(2026, 12, 4, 10, tzinfo=BERLIN)
TIMES_BY_WAY = {
    "half past eight in the evening": (NOW, "2026-12-02 20:30"),
    "noon tomorrow": (NOW, "2026-12-03 12:00"),
    "Friday at nine in the evening": (FRIDAY, "2026-12-04 21:00"),
    "next Friday at nine in the evening": (FRIDAY, "2026-12-11 21:00"),
    "29 February at noon": (NOW, "2028-02-29 12:00"),
}
ORDINARY = 500


def match(said: str, language: str, zones: Mapping[str, str] = EMPTY) -> ReminderRequest | None:
    sentences = get_sentences(language)
    assert sentences is not None
    return sentences.match(said, zones)


def resolve(said: str, language: str) -> tuple[ReminderRequest, DueTime | TimeQuestion]:
    request = match(said, language)
    assert request is not None
    assert request.kind is ReminderRequestKind.SET
    return request, resolve_time(request.named, NOW)


def local(due: DueTime | TimeQuestion) -> str:
    """Return the time at which a reminder is due, in the home."""
    assert isinstance(due, DueTime)
    at = due.at if due.instant is None else datetime.fromtimestamp(due.instant, BERLIN)
    return f"{at:%Y-%m-%d %H:%M}"


def test_a_sentence_sets_a_reminder_to_the_minute(subtests: pytest.Subtests) -> None:
    for language, kinds in SENTENCES.items():
        for said, (at, text, *rule) in kinds["set"].items():
            with subtests.test(language=language, said=said):
                request, due = resolve(said, language)
                found = due.recurrence if isinstance(due, DueTime) else None
                assert (local(due), request.text, *([str(found)] if found else [])) == (at, text, *rule)


def test_a_recurrence_is_read_from_the_words_that_name_it(subtests: pytest.Subtests) -> None:
    for language, kinds in SENTENCES.items():
        for said in [said for said, expected in kinds["set"].items() if len(expected) > 2]:
            with subtests.test(language=language, said=said):
                request = resolve(said, language)[0]
                assert parse_recurrence(request.named.repeats, language) is not None


def test_a_time_that_may_be_two_is_asked(subtests: pytest.Subtests) -> None:
    for language, kinds in SENTENCES.items():
        for said in kinds["asked"]:
            with subtests.test(language=language, said=said):
                assert isinstance(resolve(said, language)[1], TimeQuestion)


def test_reminders_are_asked_for(subtests: pytest.Subtests) -> None:
    for language, kinds in SENTENCES.items():
        for said in kinds["list"]:
            with subtests.test(language=language, said=said):
                request = match(said, language)
                assert request is not None
                assert request.kind is ReminderRequestKind.LIST


def test_each_language_has_its_way_to_say_a_time(subtests: pytest.Subtests) -> None:
    for language, ways in WAYS.items():
        for way, (now, at) in TIMES_BY_WAY.items():
            for said, text in ways[way].items():
                with subtests.test(language=language, said=said):
                    request = match(said, language)
                    assert request is not None
                    assert (local(resolve_time(request.named, now)), request.text) == (at, text)


def test_a_reminder_is_heard_again(subtests: pytest.Subtests) -> None:
    for language, ways in WAYS.items():
        for said in ways["again"]:
            with subtests.test(language=language, said=said):
                request = match(said, language)
                assert request is not None
                assert request.kind is ReminderRequestKind.SNOOZE
                assert local(resolve_time(request.named, NOW)) == "2026-12-02 10:10"


def test_a_reminder_is_finished(subtests: pytest.Subtests) -> None:
    for language, ways in WAYS.items():
        for said in ways["finish"]:
            with subtests.test(language=language, said=said):
                request = match(said, language)
                assert request is not None
                assert request.kind is ReminderRequestKind.FINISH


def test_a_reminder_is_moved_and_deleted_by_its_words(subtests: pytest.Subtests) -> None:
    for language, ways in WAYS.items():
        for kind in (ReminderRequestKind.MOVE, ReminderRequestKind.DELETE):
            for said, text in ways[kind].items():
                with subtests.test(language=language, said=said):
                    request = match(said, language)
                    assert request is not None
                    assert (request.kind, request.text) == (kind, text)


def test_a_reminder_is_moved_to_the_minute(subtests: pytest.Subtests) -> None:
    for language, ways in WAYS.items():
        for said in ways["move"]:
            with subtests.test(language=language, said=said):
                request = match(said, language)
                assert request is not None
                assert local(resolve_time(request.named, NOW)) == "2026-12-04 20:00"


def test_a_reminder_waits_for_a_place(subtests: pytest.Subtests) -> None:
    for language, ways in WAYS.items():
        for way, zone in (("home", ""), ("another place", "zone.other")):
            for said, text in ways[way].items():
                with subtests.test(language=language, said=said):
                    request = match(said, language, {ways["zone"]: "zone.other"})
                    assert request is not None
                    named = request.named
                    assert (named.who, named.is_arrival, named.zone, request.text) == ("", True, zone, text)


def test_the_name_of_a_zone_changes_no_other_sentence() -> None:
    request = match("Remind me every workday at 07:00 to take my pills", "en", {"Work": "zone.work"})

    assert request is not None
    assert (request.named.repeats, request.text) == ("every workday", "take my pills")


def test_another_sentence_is_no_request(subtests: pytest.Subtests) -> None:
    for language, kinds in SENTENCES.items():
        for said in kinds["nothing"]:
            with subtests.test(language=language, said=said):
                assert match(said, language) is None


def test_sentences_of_each_language_are_tested() -> None:
    assert set(SENTENCES) == UNDERSTOOD_LANGUAGES


# The everyday sentences include some that do ask for a reminder.
REMINDING = {
    "da": "mind ",
    "de": "erinner",
    "en": "remind",
    "es": "recuérd|recordar",
    "fr": "rappel",
    "it": "ricorda",
    "ja": "リマイン|思い出させて",
    "nb": "minn ",
    "nl": "herinner",
    "pl": "przypom",
    "pt": "lembr",
    "cs": "připom",
    "sv": "påminn",
    "uk": "нагада",
    "zh": "提醒",
}


@pytest.mark.long
@pytest.mark.parametrize("language", sorted(UNDERSTOOD_LANGUAGES))
def test_ordinary_sentences_are_for_others(language: str) -> None:
    spoken = "pt-BR" if language == "pt" else language
    sentences = ordinary_sentences(spoken, ORDINARY)
    requests = {said: match(said, language) for said in sentences}
    taken = [
        said
        for said, request in requests.items()
        if request is not None and request.kind not in AFTER_DELIVERY
        if not re.search(REMINDING[language], said, re.IGNORECASE)
    ]

    assert len(sentences) >= 400
    assert len(taken) <= len(sentences) / 200, taken
