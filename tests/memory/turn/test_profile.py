"""Tests for the profile at the end of the system prompt: short, in complete sentences, and never an instruction."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, product
from string import ascii_lowercase
from typing import Any

from hypothesis import given, strategies as st
import pytest

from custom_components.windowed_conversation.memory.core import Fact
from custom_components.windowed_conversation.memory.turn.recall import (
    HEADING,
    MAX_PROMPT_FACT_TOKENS,
    PromptFacts,
    RecallText,
    append_prompt_facts,
    build_prompt_facts,
)
from custom_components.windowed_conversation.window import EstimatedCounter

DAY = 86_400.0
NOW = 1_795_000_000.0
ADA = RecallText("Ada", datetime.fromtimestamp(NOW, UTC))

count = EstimatedCounter().count


def fact(number: int, text: str = "Tea at five", **fields: Any) -> Fact:
    """Return a fact of the home that was stated once; keyword arguments override its fields."""
    values = {"person": None, "private": False, "source": "said", "quote": "", "confirmed": NOW, "tellings": 1}
    return Fact(text, at=NOW, id=number, **(values | fields))


def build_facts(*facts: Fact) -> PromptFacts:
    return build_prompt_facts(facts, ADA, count)


def test_facts_are_sentences_under_whose_they_are_the_newest_first() -> None:
    mine = fact(1, "I say [no]; never", person="ada")
    older = fact(3, "The spare key is in the shed", confirmed=NOW - DAY)

    assert build_facts(older, fact(2), mine).text == (
        f"{HEADING}\n\nKnown of Ada:\nI say no, never\n\nKnown of the home:\nTea at five\nThe spare key is in the shed"
    )


SENTENCES = [
    ("The plumber comes on Friday", True),
    ("Grandma arrives tomorrow", True),
    ("Der Klempner kommt nächste Woche", True),
    ("El fontanero viene mañana", True),
    ("L'idraulico viene domani", True),
    ("Le plombier vient dans trois jours", True),
    ("De loodgieter komt volgende week", True),
    ("Hydraulik przyjdzie jutro", True),
    ("O canalizador vem amanhã", True),
    ("Rörmokaren kommer i morgon", True),
    ("Blikkenslageren kommer i morgen", True),
    ("Rørleggeren kommer i morgen", True),
    ("Instalatér přijde v pátek", True),
    ("Сантехнік прийде завтра", True),
    ("水管工下周来", True),
    ("配管工は明日来る", True),
    ("The cat food is in the cellar", False),
    ("Kočka se jmenuje Micka", False),
    ("кішку звати Мурка", False),
    ("猫叫小花", False),
    ("猫の名前はミケです", False),
    ("Die Katze heißt Tom", False),
    ("La clé est dans la cave", False),
]


def test_sentence_is_dated_only_if_it_says_a_day_that_moves(subtests: pytest.Subtests) -> None:
    for text, is_dated in SENTENCES:
        with subtests.test(text=text):
            assert ADA.format_fact(fact(1, text)) == (f"{text} (told Wed 2026-11-18)" if is_dated else text)


def test_facts_that_share_half_of_their_words_stand_together_with_their_days() -> None:
    old = fact(1, "I work at Siemens", person="ada", confirmed=NOW - 300 * DAY)
    between = fact(2, "I like jazz", person="ada", confirmed=NOW - 20 * DAY)
    new = fact(3, "I work at Bosch", person="ada", confirmed=NOW - 15 * DAY)

    assert build_facts(old, between, new).text.splitlines()[-3:] == [
        "I work at Bosch (told Tue 2026-11-03)",
        "I work at Siemens (told Thu 2026-01-22)",
        "I like jazz",
    ]


def test_time_that_no_calendar_has_is_left_out() -> None:
    assert ADA.format_fact(replace(fact(1, "today"), at=1e30)) == "today"


def test_it_has_room_for_a_hundred_facts_of_a_home() -> None:
    facts = [
        fact(number, f"The b{first}{second} are behind the o{first}{second}", confirmed=NOW - DAY * number)
        for number, (first, second) in enumerate(islice(product(ascii_lowercase, repeat=2), 120))
    ]

    assert len(build_facts(*facts).source_ids) >= 100


def test_nothing_to_tell_is_no_heading() -> None:
    assert build_facts() == PromptFacts()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (fact(1, person="ada", confirmed=0.0), fact(2)),
        (fact(1), fact(2, confirmed=NOW - DAY)),
        (fact(1), fact(2, tellings=12, confirmed=NOW - DAY)),
    ],
    ids=["the owner's", "the newest", "the newest beside one that was told often"],
)
def test_where_not_all_have_room_it_has(first: Fact, second: Fact) -> None:
    long = "word " * 400

    assert build_facts(replace(second, text=long), replace(first, text=long)).source_ids == ("fact:1",)


@given(st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=120))
def test_it_has_a_line_for_each_fact_and_no_more_tokens_than_it_may(texts: list[str]) -> None:
    profile = build_facts(*(fact(number, text) for number, text in enumerate(texts)))

    assert profile.tokens == count(profile.text) <= MAX_PROMPT_FACT_TOKENS
    assert len(profile.text.removeprefix(HEADING).splitlines()) == (
        3 + len(profile.source_ids) if profile.source_ids else 0
    )


@pytest.mark.parametrize(
    ("system", "profile", "prompt"),
    [
        ("Be brief.", PromptFacts("Tea."), "Be brief.\n\nTea."),
        ("", PromptFacts("Tea."), "Tea."),
        ("Be brief.", None, "Be brief."),
    ],
)
def test_it_is_at_the_end_of_the_prompt(system: str, profile: PromptFacts | None, prompt: str) -> None:
    assert append_prompt_facts(system, profile) == prompt
