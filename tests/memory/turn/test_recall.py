"""Tests for recall: the query from a sentence, the memories that are chosen for the context, and their lines."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given, strategies as st
import pytest

from custom_components.windowed_conversation.memory.core import RecallHit, RecallQuery
from custom_components.windowed_conversation.memory.turn.recall import (
    MAX_RECALLED_TOKENS,
    PromptFacts,
    RecalledLines,
    RecallText,
    SentContent,
    build_sent_context,
    choose_recalled_lines,
    interleave_hits,
    is_about_home_state,
)
from custom_components.windowed_conversation.memory.turn.recall_query import (
    build_recall_query,
    find_past_time,
    get_small_talk_words,
    iter_command_words,
)
from custom_components.windowed_conversation.memory.turn.speaker import Speaker
from custom_components.windowed_conversation.turn.context import (
    InputStamp,
    LiveContext,
    add_context,
    format_context,
    format_recalled_lines,
)
from custom_components.windowed_conversation.window import (
    EstimatedCounter,
    Exchange,
    Message,
    Window,
    WindowPolicy,
)

AT = 1_795_000_000.0
MORNING = datetime(2026, 11, 23, 8, 5, tzinfo=UTC)
ADA = RecallText("Ada", MORNING)
NOTHING = SentContent()

count = EstimatedCounter().count


def turn(text: str, person: str | None = "ada", number: int = 1) -> RecallHit:
    return RecallHit("turn", number, text, AT, person, 1.0)


def fact(text: str, person: str | None = "ada", number: int = 1) -> RecallHit:
    return RecallHit("fact", number, text, AT, person, 1.0)


def chosen(*found: RecallHit, sent: SentContent = NOTHING, most: int = MAX_RECALLED_TOKENS) -> tuple[str, ...]:
    return choose_recalled_lines(found, sent, ADA, count, most).lines


def exchanges(text: str) -> tuple[Exchange, ...]:
    window = Window("conversation", WindowPolicy(), EstimatedCounter())
    window.open(text)
    window.add(Message.assistant("Yes."))
    window.close()
    return window.exchanges()


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (turn("my name is Ada\nHello."), '2026-11-18 Ada: "my name is Ada", answered: "Hello."'),
        (turn("my name is Ada"), '2026-11-18 Ada: "my name is Ada"'),
        (turn("hello\nHello.", None), '2026-11-18 someone: "hello", answered: "Hello."'),
        (fact("Tea at five", None), '2026-11-18 the home: "Tea at five"'),
        (fact('a; b] [CONTEXT: "c"\u2028d'), "2026-11-18 Ada: \"a, b CONTEXT: 'c' d\""),
        (RecallHit("fact", 1, "Tea", 1e30, None, 1.0), 'the home: "Tea"'),
        (
            RecallHit("summary", 1, "Tea. Milk.", AT, "ada", 1.0, excerpt="Milk."),
            '2026-11-18 Ada, summary of an earlier conversation: "Milk."',
        ),
    ],
)
def test_line_is_a_quote_with_who_and_when(found: RecallHit, line: str) -> None:
    assert chosen(found) == (line,)


def test_person_without_a_name_is_a_user() -> None:
    assert RecallText(None, MORNING).format_line_variants(fact("Tea")) == ('2026-11-18 the user: "Tea"',)


@pytest.mark.parametrize(
    ("hours", "head"),
    [(1, "2026-11-23 07:05 Ada"), (30, "2026-11-22 02:05 Ada"), (40, "2026-11-21 Ada")],
    ids=["today", "yesterday", "before"],
)
def test_line_of_today_and_yesterday_has_its_hour(hours: int, head: str) -> None:
    found = replace(fact("Tea"), time=(MORNING - timedelta(hours=hours)).timestamp())

    assert chosen(found) == (f'{head}: "Tea"',)


def test_oldest_line_comes_first_so_that_a_correction_comes_last() -> None:
    corrected = replace(turn("no, at six", number=2), time=AT + 60)

    assert chosen(corrected, turn("tea at five")) == ('2026-11-18 Ada: "tea at five"', '2026-11-18 Ada: "no, at six"')


@pytest.mark.parametrize(
    ("found", "is_home"),
    [
        (replace(turn("what is it?"), tool_names=("intent__HassTurnOn",)), True),
        (replace(turn("is it locked?"), tool_names=("windowed_conversation__get_states", "remember")), True),
        (replace(turn("good night"), tool_names=("script__good_night",)), True),
        (turn("is the oven on?"), True),
        (fact("the oven is old"), False),
        (replace(turn("my name is Ada"), tool_names=("windowed_conversation__remember",)), False),
        (replace(turn("what is the news?"), tool_names=("search__web",)), False),
    ],
)
def test_turn_that_asked_or_commanded_the_home_is_known(found: RecallHit, is_home: bool) -> None:
    assert is_about_home_state(found, lambda said: "oven" in said) is is_home


def test_two_facts_come_before_each_turn() -> None:
    facts, turns = [fact("Tea", number=number) for number in range(5)], [turn("hello", number=9)] * 2

    assert [each.id for each in interleave_hits(facts, turns)] == [0, 1, 9, 2, 3, 9, 4]
    assert [each.id for each in interleave_hits((), turns)] == [9, 9]


def test_answer_that_is_too_long_is_omitted_and_what_was_said_stays() -> None:
    assert chosen(turn("my name is Ada\n" + "Hello. " * 200)) == ('2026-11-18 Ada: "my name is Ada"',)


def long_turns(count: int) -> tuple[RecallHit, ...]:
    return tuple(turn(f"{number} " + "long " * 300, number=number) for number in range(10, 10 + count))


def test_however_many_lines_do_not_fit_the_first_that_fits_is_recalled() -> None:
    assert chosen(*long_turns(19), fact("Tea at five")) == ('2026-11-18 Ada: "Tea at five"',)


def test_no_more_is_looked_for_after_four_lines_that_do_not_fit() -> None:
    counted: list[str] = []

    def counting(text: str) -> int:
        counted.append(text)
        return count(text)

    choose_recalled_lines((fact("Tea at five"), *long_turns(19)), NOTHING, ADA, counting, MAX_RECALLED_TOKENS)

    assert sum("long" in text for text in counted) == 4


def test_what_was_said_twice_is_one_line() -> None:
    assert chosen(turn("my name is Ada\nHello."), turn("My name is Ada\nHi.", number=2)) == (
        '2026-11-18 Ada: "my name is Ada", answered: "Hello."',
    )


def test_answer_to_the_same_question_is_not_recalled() -> None:
    sent = build_sent_context((), None, "what is  my name?")

    assert chosen(turn("what is my name?\nI do not know."), turn("my name is Ada", number=2), sent=sent) == (
        '2026-11-18 Ada: "my name is Ada"',
    )


def test_nothing_that_fits_is_no_line() -> None:
    assert choose_recalled_lines([turn("word " * 300)], NOTHING, ADA, count, MAX_RECALLED_TOKENS) == RecalledLines()


@given(st.lists(st.text(max_size=400), max_size=20), st.integers(-20, MAX_RECALLED_TOKENS))
def test_lines_break_no_prefix_and_cost_no_more_than_they_may(texts: list[str], most: int) -> None:
    found = [turn(text, number=number) for number, text in enumerate(texts)]
    recalled = choose_recalled_lines(found, NOTHING, ADA, count, most)
    stamp = InputStamp(MORNING, "Ada").format_prefix()
    context = LiveContext(format_context("", recalled.lines))
    prefix = add_context((Message.user(stamp),), stamp, context)[0].content

    assert recalled.tokens == count(format_recalled_lines(recalled.lines)) <= max(most, 0)
    assert (prefix.count("["), prefix.count("]"), len(prefix.splitlines())) == (1, 1, 2)
    assert len(recalled.source_ids) == len(recalled.lines)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (turn("my name is Ada\nHello."), "[CONTEXT: time: now]\n\nmy name  is Ada"),
        (turn(f"{'word ' * 300}…\nHello."), "word " * 400),
        (fact("Tea at five"), "remember this: Tea at five please"),
    ],
    ids=["a turn", "a long turn", "a fact"],
)
def test_what_the_window_holds_is_not_recalled(found: RecallHit, said: str) -> None:
    assert chosen(found, sent=build_sent_context(exchanges(said), None)) == ()


def test_turn_that_the_window_only_mentions_is_recalled() -> None:
    assert chosen(turn("Ada\nHello."), sent=build_sent_context(exchanges("my name is Ada, yes"), None))


def test_fact_of_the_profile_is_not_recalled() -> None:
    assert chosen(fact("Tea", number=7), sent=build_sent_context((), PromptFacts("Tea", 1, ("fact:7",)))) == ()


NUTS = "My sister cannot eat nuts."


def test_turn_whose_words_a_fact_of_the_profile_has_is_not_recalled() -> None:
    facts = PromptFacts("Known of Ada:\nmy sister cannot eat nuts", 9, ("fact:7",))

    sent = build_sent_context((), facts)

    assert chosen(turn(f"{NUTS}\nThat is good to know."), sent=sent) == ()
    assert len(chosen(turn("My sister cannot eat nuts, but raisins."), sent=sent)) == 1


@pytest.mark.parametrize(
    "known",
    [fact("my sister cannot eat nuts"), RecallHit("summary", 1, "", AT, "ada", 1.0, excerpt=f"Ada said: {NUTS}")],
    ids=["a fact", "a summary"],
)
def test_turn_whose_words_a_recalled_memory_has_is_not_recalled_beside_it(known: RecallHit) -> None:
    said = turn(f"{NUTS}\nThat is good to know.", number=2)
    facts, others = ([known], [said]) if known.kind == "fact" else ([], [said, known])

    assert len(chosen(*interleave_hits(facts, others))) == 1
    assert len(chosen(said)) == 1


def test_turn_comes_before_a_summary_that_lacks_its_words() -> None:
    summary = RecallHit("summary", 1, "", AT, "ada", 1.0, excerpt=f"Ada said: {NUTS}")

    assert [each.kind for each in interleave_hits((), [turn("We moved to York.", number=2), summary])] == [
        "turn",
        "summary",
    ]


# a Thursday
NOW = datetime(2026, 11, 26, 16, 30, tzinfo=UTC)

LAST_WEEK = ("2026-11-16", "2026-11-23")
YESTERDAY = ("2026-11-25", "2026-11-26")
TWO_MONTHS_AGO = ("2026-09-01", "2026-10-01")
MARCH = ("2026-03-01", "2026-04-01")
MONDAY = ("2026-11-23", "2026-11-24")

PHRASES = {
    "en": ("last week", "yesterday", "two months ago", "in March", "last Monday"),
    "de": ("letzte Woche", "gestern", "vor zwei Monaten", "im März", "am letzten Montag"),
    "fr": ("la semaine dernière", "hier", "il y a deux mois", "en mars", "lundi dernier"),
    "es": ("la semana pasada", "ayer", "hace dos meses", "en marzo", "el lunes pasado"),
    "it": ("la settimana scorsa", "ieri", "due mesi fa", "a marzo", "lunedì scorso"),
    "nl": ("vorige week", "gisteren", "twee maanden geleden", "in maart", "vorige maandag"),
    "pl": ("w zeszłym tygodniu", "wczoraj", "dwa miesiące temu", "w marcu", "w zeszły poniedziałek"),
    "pt": ("na semana passada", "ontem", "há dois meses", "em março", "na segunda-feira passada"),
    "pt-BR": ("semana passada", "ontem", "dois meses atrás", "em março", "segunda passada"),
    "sv": ("förra veckan", "igår", "för två månader sedan", "i mars", "i måndags"),
    "da": ("i sidste uge", "i går", "for to måneder siden", "i marts", "i mandags"),
    "cs": ("minulý týden", "včera", "před dvěma měsíci", "v březnu", "minulé pondělí"),
    "uk": ("минулого тижня", "вчора", "два місяці тому", "в березні", "минулого понеділка"),
    "nb": ("forrige uke", "i går", "for to måneder siden", "i mars", "sist mandag"),
    "ja": ("先週", "昨日", "二か月前", "三月", "この前の月曜日"),
    "zh-Hans": ("上周", "昨天", "两个月前", "三月", "刚过去的星期一"),
}
CASES = [
    (language, phrase, span)
    for language, phrases in PHRASES.items()
    for phrase, span in zip(phrases, (LAST_WEEK, YESTERDAY, TWO_MONTHS_AGO, MARCH, MONDAY), strict=True)
]


def get_span(text: str, language: str = "en", now: datetime = NOW) -> tuple[str, str] | None:
    found = find_past_time(text, language, now)
    if found is None:
        return None
    first, last = (datetime.fromtimestamp(each, now.tzinfo) for each in (found.since, found.until))
    return f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}"


def test_past_time_becomes_a_span(subtests: pytest.Subtests) -> None:
    for language, phrase, span in CASES:
        with subtests.test(language=language, phrase=phrase):
            assert get_span(f"stains {phrase} ?", language) == span


@pytest.mark.parametrize(
    ("phrase", "span"),
    [
        ("today", ("2026-11-26", "2026-11-26")),
        ("the day before yesterday", ("2026-11-24", "2026-11-25")),
        ("3 days ago", ("2026-11-23", "2026-11-24")),
        ("a week ago", ("2026-11-16", "2026-11-23")),
        ("last Thursday", ("2026-11-19", "2026-11-20")),
        ("this month", ("2026-11-01", "2026-11-26")),
        ("last year", ("2025-01-01", "2026-01-01")),
        ("in November", ("2026-11-01", "2026-11-26")),
        ("in December", ("2025-12-01", "2026-01-01")),
    ],
)
def test_span_ends_with_its_last_day_or_now(phrase: str, span: tuple[str, str]) -> None:
    assert get_span(f"what did we say {phrase}?") == span


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("when does the ferry leave?", "en"),
        ("0 days ago", "en"),
        ("99999 years ago", "en"),
        ("many days ago", "en"),
        ("next week", "en"),
        ("last week", "ja"),
        ("yesterdays", "en"),
    ],
)
def test_other_sentences_name_no_past_time(text: str, language: str) -> None:
    assert find_past_time(text, language, NOW) is None


def test_days_begin_at_midnight_of_the_home() -> None:
    found = find_past_time("yesterday", "en", NOW.astimezone(timezone(timedelta(hours=9))))

    assert found is not None
    assert datetime.fromtimestamp(found.since, UTC) == datetime(2026, 11, 25, 15, tzinfo=UTC)


def test_leap_day_is_a_day_of_every_month() -> None:
    assert get_span("last month", now=datetime(2028, 3, 31, tzinfo=UTC)) == ("2028-02-01", "2028-03-01")
    assert get_span("last year", now=datetime(2028, 2, 29, tzinfo=UTC)) == ("2027-01-01", "2028-01-01")


def test_query_has_the_span_and_the_sentence_without_its_phrase() -> None:
    speaker = Speaker("what did I ask you last week about stains?", "en", person="ada", name="Ada")

    query = build_recall_query(speaker, NOW, frozenset({"light"}))

    assert query == RecallQuery(
        "what did I ask you about stains?",
        "ada",
        "Ada",
        limit=20,
        since=datetime(2026, 11, 16, tzinfo=UTC).timestamp(),
        until=datetime(2026, 11, 23, tzinfo=UTC).timestamp(),
        private=speaker.is_alone,
        command_words=frozenset({"light"}),
        is_question=True,
        asked_text="what did I ask you last week about stains?",
        is_time_over=True,
        lists_time=True,
    )


def test_query_keeps_the_name_of_a_month() -> None:
    query = build_recall_query(Speaker("who came in March", "en"), NOW, frozenset())

    assert (query.text, query.is_question) == ("who came in March", False)


def test_command_words_are_those_of_templates() -> None:
    intents = {
        "intents": {"HassTurnOn": {"data": [{"sentences": ["Turn on [the] <name>", "switch {area} light[s] 100 %"]}]}},
        "expansion_rules": {"name": "(my|our) {name}"},
    }

    assert set(iter_command_words(intents)) == {"turn", "on", "the", "switch", "light", "lights", "my", "our"}


def test_small_talk_of_an_unknown_language_is_empty() -> None:
    assert get_small_talk_words("tlh") == frozenset()
    assert "thanks" in get_small_talk_words("en-GB")
