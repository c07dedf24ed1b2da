"""The profile at the end of the system prompt: what is in it, and when another one takes its place."""

from dataclasses import replace
from datetime import UTC
from typing import Any

from hypothesis import given, strategies as st
import pytest

from custom_components.windowed_conversation.memory import Fact
from custom_components.windowed_conversation.turn.narration import Narrator, keys_of
from custom_components.windowed_conversation.turn.profile import (
    HEADING,
    PROFILE_TOKENS,
    Profile,
    kept_profile,
    new_profile,
    profile_in_force,
    with_profile,
)
from custom_components.windowed_conversation.window import EstimatedCounter, Message, Remembered

ADA = Narrator("Ada", UTC)
DAY = 86_400.0
NOW = 1_795_000_000.0

count = EstimatedCounter().count


def fact(number: int, text: str = "Tea at five", **fields: Any) -> Fact:
    """Return a fact of the home that was told once, unless the fields say otherwise."""
    values = {"person": None, "private": False, "source": "said", "quote": "", "confirmed": NOW, "told": 1, **fields}
    return Fact(number, text, NOW, **values)


def profile_of(*facts: Fact) -> Profile:
    return new_profile(facts, ADA, count)


def test_facts_are_quotes_with_the_day_under_who_and_the_month() -> None:
    mine = fact(1, 'I say "no"', person="ada")
    older, timeless = replace(fact(3), at=NOW - DAY), replace(fact(4, "No tea"), at=1e30)

    assert profile_of(older, fact(2), mine, timeless).text == (
        f"{HEADING}\n\nAda, 2026-11\n- 18: \"I say 'no'\""
        '\n\nhome\n- "No tea"\n\nhome, 2026-11\n- 18: "Tea at five"\n- 17: "Tea at five"'
    )


def test_it_has_room_for_fifty_facts_of_a_home() -> None:
    facts = [replace(fact(each, "The bins go out on Friday"), at=NOW - 3 * DAY * each) for each in range(60)]

    assert len(profile_of(*facts).sources) >= 50


def test_nothing_to_tell_is_no_heading() -> None:
    assert profile_of() == Profile()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (fact(1, person="ada", confirmed=0.0), fact(2)),
        (fact(1), fact(2, confirmed=NOW - DAY)),
        (fact(1, told=3, confirmed=NOW - DAY), fact(2)),
    ],
    ids=["the owner's", "the newest", "the one told most often"],
)
def test_where_not_all_have_room_it_has(first: Fact, second: Fact) -> None:
    long = "word " * 400

    assert profile_of(replace(second, text=long), replace(first, text=long)).sources == ("fact:1",)


@given(st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=120))
def test_it_has_whole_lines_and_no_more_tokens_than_it_may(texts: list[str]) -> None:
    profile = profile_of(*(fact(number, text) for number, text in enumerate(texts)))

    assert profile.tokens == count(profile.text) <= PROFILE_TOKENS
    assert profile.text.count("\n- ") == len(profile.sources)


def test_kept_one_stays_when_there_is_more_to_tell() -> None:
    kept = profile_of(fact(1))
    new = profile_of(fact(1), fact(2))

    assert profile_in_force(kept, new, keys_of([fact(1), fact(2)])) is kept


def test_it_is_another_at_once_when_a_fact_of_it_is_gone() -> None:
    kept = profile_of(fact(1), fact(2))
    new = profile_of(fact(2))

    assert profile_in_force(kept, new, keys_of([fact(2)])) is new


def test_kept_one_stays_when_no_new_one_could_be_made() -> None:
    kept = profile_of(fact(1))

    assert profile_in_force(kept, None, frozenset()) is kept


@pytest.mark.parametrize("system", ["Be brief.", ""])
@pytest.mark.parametrize("facts", [(), (fact(1),)], ids=["none", "one"])
def test_window_keeps_the_profile_in_its_system_message(system: str, facts: tuple[Fact, ...]) -> None:
    profile = profile_of(*facts)
    prompt = with_profile(system, profile)

    assert kept_profile(Message.system(prompt.text, remembered=prompt.profile)) == profile
    assert prompt.text.startswith(system)


def test_system_message_without_a_mark_has_no_profile() -> None:
    assert kept_profile(Message.system(HEADING)) is None
    assert kept_profile(Message.user(HEADING, remembered=Remembered(0, 1, 1))) is None
    assert kept_profile(None) is None
