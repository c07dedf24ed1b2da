"""Tests for reminders as families ask for them: three tables of sentences written before anyone had tried them."""

from datetime import date, datetime
from functools import cache
import json
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from custom_components.windowed_conversation.memory.turn.speaker import get_word_boundary, load_language
from custom_components.windowed_conversation.reminders.core.requests import (
    AFTER_DELIVERY,
    ReminderRequestKind,
    ReminderSentences,
)
from custom_components.windowed_conversation.reminders.core.times import TimeParser, TimeQuestion, resolve_time

TABLES = [
    json.loads(Path(__file__).with_name(f"spoken_requests_{number}.json").read_text("utf-8")) for number in (1, 2, 3)
]
BERLIN = ZoneInfo("Europe/Berlin")
# A Thursday.
NOW = datetime(2026, 11, 26, 10, tzinfo=BERLIN)
# Sentences with words of reminders that ask for something else.
OTHERS = {
    "en": [
        "tell me tomorrow's weather",
        "tell me in two sentences how to cook rice",
        "don't let me forget that ada is vegetarian",
        "notify me when the washing machine is done",
        "remind me on the first monday of every month at 9 am to pay",
    ],
    "de": [
        "erinnerst du dich an gestern",
        "ich kann mich an heute morgen nicht erinnern",
        "sag mir bescheid wenn die wäsche fertig ist",
        "sag mir morgen früh bescheid wie das wetter wird",
    ],
    "fr": ["préviens-moi s'il pleut demain", "préviens-moi quand ada rentre à la maison"],
    "it": ["avvisami se domani piove"],
    "es": ["avísame si mañana llueve"],
    "nl": ["waarschuw me als het morgen regent"],
    "pt": ["me avisa se amanhã chover"],
    "pl": ["nie zapomnij o mnie"],
    "cs": ["nezapomeň na mě"],
    "sv": ["säg till om det regnar i morgon"],
    "da": ["sig til om det regner i morgen"],
    "nb": ["si fra om det regner i morgen"],
    "ja": ["10分後に雨が降るか教えて", "明日の天気を教えて", "明日の朝の気温を知らせて"],
    "zh": ["十分钟后叫我起床", "明天几点叫我"],
}


@cache
def sentences(language: str) -> ReminderSentences:
    words = load_language(language)
    edge = r"(?:(?<=')|(?!\w))" if get_word_boundary(language) else ""
    times = TimeParser(words["reminders"], words["past"], edge)
    return ReminderSentences(words["reminders"], times, words["question_words"].split(), edge)


def understand(said: str, language: str, text: str = "") -> dict[str, Any]:
    """Return the row of a table as a sentence is understood, with `text` if the task has it."""
    known = sentences(language)
    request = known.match(said, {})
    if request is None or request.kind in AFTER_DELIVERY:
        return {"none": True}
    if request.kind is not ReminderRequestKind.SET:
        return {"manage": str(request.kind)}
    task = {"text": text if text.casefold() in request.text.casefold() else request.text}
    if request.named.who is not None:
        return task | {"place": True}
    due = resolve_time(request.named, NOW)
    if isinstance(due, TimeQuestion):
        return task | {"ask": True}
    at = due.at if due.instant is None else datetime.fromtimestamp(due.instant, BERLIN)
    # the words about a recurrence are kept, and read again when the list is edited
    repeats = due.recurrence and {"repeats": known.times.find_recurrence(due.repeats, NOW.date()) == due.recurrence}
    return task | {"due": f"{at:%Y-%m-%dT%H:%M}"} | (repeats or {})


@pytest.mark.parametrize("language", TABLES[0])
@pytest.mark.parametrize("table", TABLES, ids=("first", "second", "third"))
def test_each_sentence_of_a_family_is_understood(table: dict[str, list[dict[str, Any]]], language: str) -> None:
    rows = {row["say"]: {name: value for name, value in row.items() if name != "say"} for row in table[language]}

    assert {said: understand(said, language, row.get("text", "")) for said, row in rows.items()} == rows


@pytest.mark.parametrize("language", OTHERS)
def test_words_of_reminders_in_another_sentence_ask_for_none(language: str) -> None:
    assert {said for said in OTHERS[language] if understand(said, language) != {"none": True}} == set()


@pytest.mark.parametrize(
    ("said", "due", "repeats"),
    [
        ("on the last day of every month at 9 am", "2026-12-31T09:00", "on the last day of every month"),
        ("every month on the 31st at 9 am", "2026-12-31T09:00", "every month on the 31st"),
        ("on Mondays and Fridays at 9 am", "2026-11-27T09:00", "on Mondays and Fridays"),
        ("every evening at nine", "2026-11-26T21:00", "every evening"),
        ("on Friday of next week at 9 am", "2026-12-04T09:00", ""),
        ("on the 15th at 9 am", "2026-12-15T09:00", ""),
        ("in one hour and ten minutes", "2026-11-26T11:10", ""),
        ("in a year", "2027-11-26T10:00", ""),
        ("in a month at nine in the morning", "2026-12-26T09:00", ""),
    ],
)
def test_a_time_is_named_in_several_phrases(said: str, due: str, repeats: str) -> None:
    request = sentences("en").match(f"remind me {said} to eat", {})

    assert request is not None
    assert request.named.repeats == repeats
    assert understand(f"remind me {said} to eat", "en", "eat")["due"] == due


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "remind me in three months to change the filter"),
        ("de", "erinnere mich in drei Monaten an den Filter"),
        ("fr", "rappelle-moi dans trois mois de changer le filtre"),
        ("it", "ricordami tra tre mesi di cambiare il filtro"),
        ("es", "recuérdame dentro de tres meses cambiar el filtro"),
        ("nl", "herinner me over drie maanden aan het filter"),
        ("pt", "lembra-me daqui a três meses de mudar o filtro"),
        ("pl", "przypomnij mi za trzy miesiące o filtrze"),
        ("cs", "připomeň mi za tři měsíce vyměnit filtr"),
        ("sv", "påminn mig om tre månader att byta filter"),
        ("da", "mind mig om tre måneder om at skifte filter"),
        ("nb", "minn meg på om tre måneder å bytte filter"),
        ("uk", "нагадай мені через три місяці поміняти фільтр"),
        ("ja", "3か月後にフィルターを交換するようリマインドして"),
        ("zh", "三个月后提醒我换滤网"),
    ],
)
def test_months_are_a_duration(language: str, said: str) -> None:
    assert understand(said, language)["due"] == "2027-02-26T10:00"


def test_day_that_a_later_month_lacks_is_its_last_day() -> None:
    named = sentences("en").times.find_only("in three months")

    assert named is not None
    assert named.find_day(date(2026, 11, 30)) == date(2027, 2, 28)


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("de", "erinner mich am 3.12. um 9 uhr morgens an die miete"),
        ("it", "ricordami il 3/12 alle 9 di mattina di miete"),
        ("fr", "rappelle-moi le 3/12 à 9h du matin de miete"),
    ],
)
def test_a_month_may_be_a_number(language: str, said: str) -> None:
    assert understand(said, language, "miete") == {"text": "miete", "due": "2026-12-03T09:00"}
