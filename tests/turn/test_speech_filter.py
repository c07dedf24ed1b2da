"""What is spoken of a model's text, however the stream is cut."""

from itertools import pairwise

from hypothesis import example, given, strategies as st
import pytest

from custom_components.windowed_conversation.providers.events import ReasoningDelta, TextDelta
from custom_components.windowed_conversation.turn.speech_filter import SpeechFilter

MARKS = ("[CONTEXT:", "]", "<think>", "</think>", "<thinking>", "</thinking>", "<|im_end|>", "<|eot_id|>", "<|end|>")
CONTEXT = "[CONTEXT: time: Monday 2026-11-23 08:00; speaker: Ada; area: Attic]"

# Texts that are full of marks, of beginnings of marks, and of white space.
marked_texts = st.lists(
    st.one_of(
        st.sampled_from(MARKS),
        st.sampled_from(MARKS).flatmap(lambda mark: st.integers(1, len(mark)).map(lambda size: mark[:size])),
        st.sampled_from([" ", "\n\n", "word", "e", "<", "[", "\N{GRINNING FACE}"]),
    ),
    max_size=12,
).map("".join)
borders = st.lists(st.integers(0, 200), max_size=30)
plain_texts = st.text(alphabet=st.characters(exclude_characters="<[", exclude_categories=["Cs"]))


def sorted_out(*pieces: str) -> tuple[str, str]:
    """Return what is spoken and what was thought, whole."""
    speech = SpeechFilter()
    deltas = [delta for piece in pieces for delta in speech.feed(TextDelta(piece))] + [*speech.flush()]
    spoken = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    thought = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    return spoken, thought


def cut(text: str, at: list[int]) -> list[str]:
    ends = sorted({0, len(text), *(border for border in at if border < len(text))})
    return [text[start:end] for start, end in pairwise(ends)]


@given(marked_texts, borders)
@example("<think>a</think>b", list(range(20)))
@example(f"{CONTEXT}\n\nhello", list(range(100)))
def test_borders_of_the_pieces_make_no_difference(text: str, at: list[int]) -> None:
    assert sorted_out(*cut(text, at)) == sorted_out(text)


@given(plain_texts, plain_texts, borders)
def test_echo_of_the_context_is_never_spoken(before: str, after: str, at: list[int]) -> None:
    spoken, thought = sorted_out(*cut(f"{before}{CONTEXT}\n\n{after}", at))

    assert "CONTEXT" not in spoken + thought
    assert "Ada" not in (spoken + thought).removeprefix(before.lstrip()).removesuffix(after)


@pytest.mark.parametrize("size", range(1, 12))
@pytest.mark.parametrize("tag", ["think", "thinking"])
def test_thinking_is_kept_apart_at_any_border(tag: str, size: int) -> None:
    text = f"<{tag}>The user says <hello>.\n</{tag}>\n\nHello there!"

    spoken, thought = sorted_out(*(text[at : at + size] for at in range(0, len(text), size)))

    assert spoken == "Hello there!"
    assert thought == "The user says <hello>.\n"


@pytest.mark.parametrize(
    ("text", "spoken", "thought"),
    [
        ("Hello.", "Hello.", ""),
        ("\n\n Hello. ", "Hello. ", ""),
        ("  \n ", "", ""),
        ("One. <think>two</think> Three.", "One. Three.", "two"),
        ("One.<think>two</think> Three.", "One. Three.", "two"),
        ("<think>one</think><think>two</think>Three.", "Three.", "onetwo"),
        ("<think>never closed", "", "never closed"),
        ("Hello.<think></think>", "Hello.", ""),
        ("never opened</think>Hello.", "never openedHello.", ""),
        ("<think>a <thinking> b</think> c", "c", "a <thinking> b"),
        ("Hello.<|im_end|>", "Hello.", ""),
        ("Hello.<|eot_id|><|end|>", "Hello.", ""),
        (f"{CONTEXT}\n\nHello.", "Hello.", ""),
        (f"You wrote: {CONTEXT}\n\nhello", "You wrote: hello", ""),
        (f"<think>{CONTEXT} hm</think>Hello.", "Hello.", f"{CONTEXT} hm"),
        ("[CONTEXT: never closed", "", ""),
        ("[context: other] 2 < 3, a [list], <b>bold</b>", "[context: other] 2 < 3, a [list], <b>bold</b>", ""),
        ("1 <", "1 <", ""),
        ("<thin", "<thin", ""),
    ],
)
def test_spoken_and_thought(text: str, spoken: str, thought: str) -> None:
    assert sorted_out(text) == (spoken, thought)


@given(st.lists(plain_texts.filter(str.strip)))
def test_text_without_marks_passes_unchanged_and_immediately(pieces: list[str]) -> None:
    speech = SpeechFilter()
    pieces = [f"x{piece}" for piece in pieces]

    passed = [list(speech.feed(TextDelta(piece))) for piece in pieces]

    assert passed == [[TextDelta(piece)] for piece in pieces]
    assert list(speech.flush()) == []


@pytest.mark.parametrize(
    ("piece", "passed"),
    [("2 < 3", "2 < 3"), ("see [1]", "see [1]"), ("go <", "go "), ("go <th", "go "), ("a <b", "a <b")],
)
def test_only_what_may_become_a_mark_is_held_back(piece: str, passed: str) -> None:
    assert list(SpeechFilter().feed(TextDelta(piece))) == [TextDelta(passed)]
