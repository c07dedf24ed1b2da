"""Exact counts: those of tiktoken, on any text, and never for long."""

import json
from pathlib import Path
import random
from string import ascii_lowercase
from typing import override

from hypothesis import given, settings, strategies as st
import pytest

from custom_components.windowed_conversation.window.byte_pairs import BytePairCounter, read_ranks
from tests.exact_tokens import ENCODINGS, counter, exact_count, vocabulary

COUNTED = json.loads(Path(__file__).with_name("counted_texts.json").read_text("utf-8"))

# What the encodings' patterns tell apart, from many alphabets.
KINDS = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ",
    "'s't're've'm'll'd'S'RE'Ve'\u017f",
    " \t\r\n\v\f\x1c\x1f\x85\xa0\u2003\u3000",
    "0123456789٣४½²",
    ".,;:!?/-_(){}[]<>\"'`~@#$%^&*+=|\\",
    "äöüßÄÖéèñçœ\u017f\u0131KÅİǅǈʰªº",
    "абвгдеёжїґАБВ",
    "漢字仮名交日本語文简体ひらがなカタカナー안녕하세요",
    "สวัสดีครับनमस्तेمرحبا",
    "\u0301\u0308\u20dd",
    "😀👍🏽👨‍👩‍👧𝒜𝓫𝟘𠀀𐐀𐐨",
)
mixed = st.lists(st.sampled_from([*map(st.sampled_from, KINDS)]).flatmap(lambda kind: kind), max_size=80).map("".join)

encodings = pytest.mark.parametrize("encoding", ENCODINGS)


@encodings
@pytest.mark.parametrize("counted", COUNTED, ids=[counted["what"] for counted in COUNTED])
def test_text_has_the_tokens_that_tiktoken_finds(encoding: str, counted: dict[str, str]) -> None:
    assert counter(encoding).count(counted["text"]) == exact_count(encoding, counted["text"])


@encodings
@given(text=mixed | st.text())
@settings(deadline=None, max_examples=500)
def test_any_text_has_the_tokens_that_tiktoken_finds(encoding: str, text: str) -> None:
    assert counter(encoding).count(text) == exact_count(encoding, text)


@encodings
def test_every_character_is_in_the_class_in_which_tiktoken_has_it(encoding: str) -> None:
    codes = [code for code in range(0x20000) if not 0xD800 <= code < 0xE000]
    blocks = [codes[begin : begin + 64] for begin in range(0, len(codes), 64)]
    texts = ["".join(f"a{chr(code)}b 1{chr(code)}2 {chr(code) * 2}\n" for code in block) for block in blocks]

    assert [f"{text[1]!a}" for text in texts if counter(encoding).count(text) != exact_count(encoding, text)] == []


@encodings
@pytest.mark.parametrize("text", ["", " ", "<|endoftext|>", "\ud83d\ude00", "half \ud83d", " " * 500])
def test_unusual_text_has_the_tokens_that_tiktoken_finds(encoding: str, text: str) -> None:
    assert counter(encoding).count(text) == exact_count(encoding, text)


@encodings
def test_text_has_the_same_tokens_when_it_comes_again(encoding: str) -> None:
    text = "Lichtschalterabdeckungen, Lichtschalterabdeckungen"

    assert counter(encoding).count(text) == counter(encoding).count(text) == exact_count(encoding, text)


class Watched(dict[bytes, int]):
    """Ranks that count how many bytes were looked up."""

    looked_up = 0

    @override
    def get(self, key, default=None):
        self.looked_up += len(key)
        return super().get(key, default)


@pytest.fixture(scope="module")
def watched() -> Watched:
    """Return the ranks of o200k_base."""
    return Watched(read_ranks(vocabulary("o200k_base")))


def letters(amount: int) -> str:
    """Return random letters without a space."""
    return "".join(random.Random(5).choices(ascii_lowercase, k=amount))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(letters(100_000), id="letters"),
        pytest.param(" ".join(letters(60_000)[begin : begin + 12] for begin in range(0, 60_000, 12)), id="words"),
        pytest.param("".join(map(chr, random.Random(5).choices(range(0x4E00, 0x9FFF), k=30_000))), id="ideographs"),
        pytest.param("a" * 100_000, id="one letter"),
        pytest.param(" " * 100_000 + ".", id="spaces"),
    ],
)
def test_text_without_words_is_counted_in_part_and_nearly_right(text: str) -> None:
    fresh = BytePairCounter("o200k_base", read_ranks(vocabulary("o200k_base")))

    assert fresh.count(text) == pytest.approx(exact_count("o200k_base", text), rel=0.02)


def test_text_without_words_takes_no_more_work_however_long_it_is(watched: Watched) -> None:
    fresh = BytePairCounter("o200k_base", watched)
    fresh.count(letters(20_000))
    work, watched.looked_up = watched.looked_up, 0

    fresh.count(letters(200_000))

    assert watched.looked_up == work


def test_counter_forgets_rather_than_to_grow_without_end() -> None:
    fresh = BytePairCounter("o200k_base", {})
    for number in range(40_000):
        fresh.count(f"{number}x" * 2)
    fresh.count("x" * 10_000)

    assert len(fresh._pieces) <= 32_768
    assert max(map(len, fresh._pieces)) <= 100


@pytest.mark.parametrize("damaged", [b"IQ==\n", b"IQ== one\n", b"I 0\n", b"<html></html>"])
def test_vocabulary_in_another_form_is_refused(damaged: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whichever of them says it
        read_ranks(damaged)


def test_unknown_encoding_is_refused() -> None:
    with pytest.raises(LookupError):
        BytePairCounter("p50k_base", {})
