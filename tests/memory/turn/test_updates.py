"""Tests of updates: which earlier fact a new one replaces, may replace, or leaves true as well."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from custom_components.windowed_conversation.memory.core import Memory
from custom_components.windowed_conversation.memory.turn.remember_requests import (
    MemoryReply,
    ReplyKey,
    correct_fact,
    remember_statement,
    undo_correction,
)
from custom_components.windowed_conversation.memory.turn.speaker import Speaker

REPLACED, ASKED, BOTH_TRUE = (ReplyKey.REPLACES,), (ReplyKey.ASK_TO_REPLACE,), ()

# The language, both facts, and what memory says about the old one after the new one.
PAIRS: list[tuple[str, str, str, tuple[ReplyKey, ...]]] = [
    ("en", "my mother takes insulin", "my mother now takes vitamins", ASKED),
    ("en", "my mother is on insulin", "my mother is in Rome now", ASKED),
    ("en", "my mother is diabetic", "my mother is in Rome", BOTH_TRUE),
    ("en", "Leo is allergic to hazelnuts", "Leo is afraid of the cellar", BOTH_TRUE),
    ("en", "Leo likes fish", "Leo doesn't like fish with bones", ASKED),
    ("en", "Leo likes fish", "Leo doesn't like meat", BOTH_TRUE),
    ("en", "the bins go out on Wednesday", "the bins don't go out on Friday", BOTH_TRUE),
    ("en", "I work at Siemens", "I now work on Tuesdays", BOTH_TRUE),
    ("en", "we live in Leeds", "Tom moved to York", BOTH_TRUE),
    ("en", "we have a living room", "we have moved", BOTH_TRUE),
    ("en", "the cat is fed in the morning", "the cat is fed in the evening", ASKED),
    ("en", "the cat is fed at 7", "the cat is fed at 8", REPLACED),
    ("en", "we have a dog, Max", "we have a new dog, Rex", ASKED),
    ("en", "the school bus comes at 7:40", "the school bus comes at 13:10", ASKED),
    ("en", "the tablet at 8 is for the heart", "the tablet at 20 is for the kidneys", ASKED),
    ("en", "Grandpa takes 2 pills in the morning", "Grandpa takes 1 pill in the evening", ASKED),
    ("en", "Tom's class 3 swims on Monday", "Tom's class 4 swims on Tuesday", BOTH_TRUE),
    ("en", "the 12 leaves at 7:40", "the 14 leaves at 7:55", BOTH_TRUE),
    ("en", "bus 12 leaves at 7:40", "bus 12 leaves at 7:55", REPLACED),
    ("en", "Leo turns 8 in May", "Leo turns 9 in May", REPLACED),
    ("zh", "12路车7点40分开", "14路车7点55分开", BOTH_TRUE),
    ("ja", "バス12は7時40分に出る", "バス14は7時55分に出る", BOTH_TRUE),
    ("en", "the wifi password is sunflower", "the wifi password is now tulip", REPLACED),
    ("sv", "vi bor i Lund", "vi har flyttat till Malmö", REPLACED),
    ("sv", "städaren kommer på måndag", "städaren kommer också på tisdag", BOTH_TRUE),
    ("da", "vi bor i Odense", "vi er flyttet til Aarhus", REPLACED),
    ("da", "nøgle 3 er til kælderen om mandagen", "nøgle 4 er til kælderen om tirsdagen", BOTH_TRUE),
    ("nb", "nøkkelen ligger i skuffen", "nøkkelen ligger nå i skapet", REPLACED),
    ("nb", "hushjelpen kommer mandag", "hushjelpen kommer også fredag", BOTH_TRUE),
    ("pt", "moramos no Porto", "mudámos para Braga", REPLACED),
    ("pt", "o jardineiro vem na terça", "o jardineiro vem também na sexta", BOTH_TRUE),
    ("pl", "mieszkamy w Łodzi", "przeprowadziliśmy się do Gdyni", REPLACED),
    ("pl", "autobus 12 odjeżdża o 7:40", "autobus 14 odjeżdża o 7:55", BOTH_TRUE),
    ("cs", "uklízečka chodí v pondělí", "uklízečka chodí taky ve středu", BOTH_TRUE),
    ("uk", "ми живемо у Львові", "ми переїхали до Одеси", REPLACED),  # noqa: RUF001 - Cyrillic
    ("ja", "ゴミは月曜日に出す", "ゴミは木曜日にも出す", BOTH_TRUE),
    ("zh", "阿姨周一来打扫", "阿姨周四也来打扫", BOTH_TRUE),
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    memory = Memory(tmp_path / "memory.db", ("en", "de"))
    yield memory
    memory.close()


def anna(text: str, language: str = "en") -> Speaker:
    return Speaker(text, language, "anna-id", "Anna", is_alone=True)


def told(memory: Memory, text: str, language: str = "en") -> MemoryReply:
    return remember_statement(memory, anna(text, language), text, text)


def known(memory: Memory) -> list[str]:
    return [fact.text for fact in memory.get_facts("anna-id")]


def test_newer_fact_replaces_only_what_it_makes_untrue(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for number, (language, old, new, said) in enumerate(PAIRS):
        memory = Memory(tmp_path / f"{number}.db", (language, "en"))
        told(memory, old, language)
        with subtests.test(new=new):
            assert tuple(each.phrase for each in told(memory, new, language).others) == said
        memory.close()


def test_fact_that_may_be_replaced_stays_until_a_yes(memory: Memory) -> None:
    told(memory, "the spare key is under the mat")
    asked = told(memory, "the spare key is in the shed")
    before = known(memory)
    assert asked.on_yes is not None

    reply = asked.on_yes(memory)
    undone = undo_correction(memory, anna("undo that"), reply.named_fact_ids)

    assert before == ["the spare key is in the shed", "the spare key is under the mat"]
    assert (reply.phrase, reply.fact_texts) == (ReplyKey.REPLACES, ("the spare key is under the mat",))
    assert undone is not None
    assert known(memory) == ["the spare key is under the mat"]


def test_yes_after_the_old_fact_is_gone_replaces_nothing(memory: Memory) -> None:
    old = told(memory, "the spare key is under the mat").named_fact_ids[0]
    asked = told(memory, "the spare key is in the shed")
    assert old is not None
    assert asked.on_yes is not None
    memory.forget(ids=[("fact", old)])

    assert asked.on_yes(memory).phrase is ReplyKey.NOT_FOUND


def test_replacement_that_was_undone_is_not_made_again(memory: Memory) -> None:
    old = memory.add_fact("the spare key is under the mat")
    memory.add_fact("the spare key is in the shed", replaces=old)
    memory.undo_replacement(memory.get_replacements()[0])
    again = memory.add_fact("the spare key is in the shed")

    assert not memory.replace_fact(old, again)


def test_fact_never_replaces_one_of_another_owner(memory: Memory) -> None:
    old, new = memory.add_fact("the key is here"), memory.add_fact("the key is there", person="anna-id")

    assert not memory.replace_fact(old, new)


def test_correction_with_i_of_a_fact_of_the_home_stays_the_homes(memory: Memory) -> None:
    told(memory, "the spare key is next door")
    text = "I've got the spare key back from next door"

    reply = correct_fact(memory, anna(f"that's wrong, {text}"), text, is_sure=False)

    assert reply is not None
    assert [(fact.text, fact.person, fact.private) for fact in memory.get_facts()] == [(text, None, False)]


def test_model_that_names_a_fact_of_the_home_corrects_it_for_everybody(memory: Memory) -> None:
    told(memory, "the spare key is next door")
    text = "I've got the spare key back from next door"

    remember_statement(memory, anna(text), text, text, source="tool", replaces="the spare key is next door")

    assert [(fact.text, fact.person) for fact in memory.get_facts()] == [(text, None)]


def test_fact_that_announces_a_change_is_as_private_as_before(memory: Memory) -> None:
    told(memory, "trabajo en Correos", "es")

    told(memory, "ahora trabajo en Telefónica", "es")

    assert [(fact.text, fact.person) for fact in memory.get_facts("anna-id")] == [
        ("ahora trabajo en Telefónica", "anna-id")
    ]
