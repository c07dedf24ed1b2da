"""Tests for what a satellite speaks: an answer without Markdown, URLs, citations and emoji, however it arrives."""

import random

from hypothesis import given, strategies as st
import pytest
from sentence_stream import stream_to_sentences

from custom_components.windowed_conversation.turn.speech.plain_text import PlainSpeech, clean_speech

CASES = {
    "**Bold** and *italic* text.": "Bold and italic text.",
    "***Both*** and __bold__ and _it_ too": "Both and bold and it too",
    "# Heading\nText": "Heading.\nText",
    "## Heading ##\nText": "Heading.\nText",
    "Heading\n===\nText": "Heading\nText",
    "- one\n* two\n+ three\n• four": "one.\ntwo.\nthree.\nfour",
    "  - nested\n    - deeper": "nested.\ndeeper",
    "- [ ] open\n- [x] done": "open.\ndone",
    "1. first\n2. second": "1. first.\n2. second",
    "> quoted\n> > twice": "quoted\ntwice",
    "See [the page](https://example.org/a_(b)) now.": "See the page now.",
    "![a cat](http://example.org/cat.png) sits": "a cat sits",
    "See [a note][1] and [^2] there": "See a note and there",
    "It is warm [1][2].": "It is warm.",
    "Known [1, 2] and [3–5] facts": "Known and facts",  # noqa: RUF001 - as models write it
    "As said 【4†source】 here": "As said here",
    "Look at https://example.org/path?x=1, please.": "Look at, please.",
    "Go to www.example.org.": "Go to.",
    "It costs 5 euros (see https://example.org/a).": "It costs 5 euros (see).",
    "A site (https://example.org) too": "A site too",
    "<https://example.org> is it": "is it",
    "Use `code` and ``more``": "Use code and more",
    "```python\nprint(1)\n```\nDone": "Done",
    "~~~\nprint(1)\n~~~\nDone": "Done",
    "~~gone~~ kept": "gone kept",
    "---\nText\n***\nMore\n_ _ _\nEnd": "Text\nMore\nEnd",
    "| A | B |\n|---|:-:|\n| 1 | 2 |\nEnd": "A, B.\n1, 2.\nEnd",
    "A | B\n--- | ---\n1 | 2": "A | B\n1 | 2",
    "<b>fat</b>, <br>new": "fat, \nnew",
    "Hello 😀 there 👍🏽!": "Hello there!",
    "✅ Done": "Done",
    "👨‍👩‍👧 family": "family",
    "你好，**世界**。": "你好，世界。",  # noqa: RUF001 - Chinese
    "Heute [sonnig](https://example.org).": "Heute sonnig.",
    "Heute [sonnig](https://example.org)* und **[warm](https://example.org)**!": "Heute sonnig und warm!",
    "You need:\n- Milk\n- Eggs (six)\n- Is there bread?\n- Salt,\n\nThat is all": (
        "You need:\nMilk.\nEggs (six).\nIs there bread?\nSalt,\n\nThat is all"
    ),
    "1. **Open** the lid\n2. Add water  \n3) Wait": "1. Open the lid.\n2. Add water.\n3) Wait",
    "- 😀 Milk 😀\n- [ ] *Eggs*\nEnd": "Milk.\nEggs.\nEnd",
    "- 牛乳\n- 卵「六個」\n": "牛乳。\n卵「六個」。\n",
    "# Soup\n| Room | Temp |\n|---|---|\n| Bath | 23 °C |\n": "Soup.\nRoom, Temp.\nBath, 23 °C.\n",
    "Put this:\n```yaml\n- a: [b]\n  # c\n````\nThere": "Put this:\nThere",
    "~~~~\n~~~\nstill code\n~~~~\nDone\n```\nnever ends": "Done\n",
    '{"state": "on", "list": [1, {"a": "}\\""}]}': "",
    'It is:\n[{"a": 1}, {"b": 2}]\nnow': "It is:\n\nnow",
    "So \\(x = 5\\) and \\[\n\\frac{1}{2} \\times \\sqrt{9}\n\\]": "So x = 5 and 1/2 × √9",  # noqa: RUF001 - the sign
    "$$E = mc^2$$ holds, and $x_1 \\leq 3$.": "E = mc² holds, and x1 ≤ 3.",
    "It is $5, or $10 and US$ 3": "It is $5, or $10 and US$ 3",
    "Tom &amp; Jerry: 5&nbsp;&lt; 6, caf&#233; &#x20AC;1 &unknown; R&D": "Tom & Jerry: 5 < 6, café €1 &unknown; R&D",
    "2**3 = 8": "2**3 = 8",
    "See [a note][1].\n\n[1]: /config/users\n[2]: mailto:a@b.c\n[Anna]: 10:30": "See a note.\n\n[Anna]: 10:30",
    "👍": "",
    "**": "",
}
KEPT = (
    "The lights are on. It is 20.5 °C – nice…",  # noqa: RUF001 - as models write it
    "snake_case and a_b_c stay",
    "2 * 3 = 6 and 2*3 = 6",
    "5 < 6 and 7 > 3",
    "C# and F#, number #1",
    "Was it 3-4? Yes - it was.",
    "wow, how http works",
    "[sic] and a (bracket)",
    "Line one\n\nLine two",
    "It's “quoted” & 100 % sure!",
    "5. Mai",
    "",
)
MARKS = (
    *("**", "__", "~~", "`", "```", "# ", "## ", "> ", "- ", "* ", "[1]", "[", "](", ")", "【", "】", "†"),
    *("http", "https://", "www.", "|", " ", "---", "===", "<b>", "<", "😀", "👍", "✅"),
)


def speak(pieces: list[str]) -> str:
    """Return the speech for an answer that arrives in these pieces."""
    speech = PlainSpeech()
    return "".join([*map(speech.feed, pieces), speech.flush()])


def cut(text: str, seed: int) -> list[str]:
    """Return the text in pieces of one to six characters."""
    chance = random.Random(seed)
    pieces = []
    while text:
        size = chance.randint(1, 6)
        pieces.append(text[:size])
        text = text[size:]
    return pieces


def test_marks_are_not_spoken(subtests: pytest.Subtests) -> None:
    for text, speech in CASES.items():
        with subtests.test(text=text):
            assert speak([text]) == speech


def test_text_without_marks_is_spoken_as_it_is(subtests: pytest.Subtests) -> None:
    for text in KEPT:
        with subtests.test(text=text):
            assert speak([text]) == text


def test_speech_does_not_depend_on_how_the_answer_arrives(subtests: pytest.Subtests) -> None:
    for text in [*CASES, *KEPT]:
        with subtests.test(text=text):
            whole = speak([text])

            assert {speak(list(text)), *[speak(cut(text, seed)) for seed in range(40)]} == {whole}


def test_whole_answer_is_cleaned_in_the_same_way(subtests: pytest.Subtests) -> None:
    for text, speech in CASES.items():
        with subtests.test(text=text):
            assert clean_speech(text).strip(" ") == speech


def test_list_is_spoken_in_sentences() -> None:
    steps = speak(list("1. Open the lid\n2. Add water\n- Milk\n- Bread\n"))

    assert list(stream_to_sentences([steps])) == ["1.", "Open the lid.", "2.", "Add water.", "Milk.", "Bread."]


@given(st.lists(st.text(alphabet="ab .,:!?\n'", max_size=8), max_size=12))
def test_plain_words_lose_nothing(pieces: list[str]) -> None:
    assert speak(pieces).split() == "".join(pieces).split()


@given(st.lists(st.sampled_from(["word", " ", "\n", ". ", *MARKS]), max_size=30), st.integers(0, 1000))
def test_no_word_is_lost_and_no_emphasis_spoken(parts: list[str], seed: int) -> None:
    speech = speak(cut("".join(parts), seed))

    assert "**" not in speech
    assert "😀" not in speech
    assert "```" not in speech


def test_word_before_a_mark_is_spoken_at_once() -> None:
    speech = PlainSpeech()

    assert [speech.feed(piece) for piece in ("The light", " is **", "on** now")] == ["The light", " is", " on now"]


def test_endless_mark_is_released() -> None:
    speech = PlainSpeech()

    assert len("".join(speech.feed("[a") for _ in range(3_000))) >= 3_000


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "[1]",
        "| ",
        "* ",
        "😀",
        "\0",
        "(",
        "<a ",
        "_ ",
        "> ",
        " ",
        "$",
        "$a",
        "\\(",
        "&",
        '{"a":',
        "```\n",
        "1. ",
        "- a\n",
        '{"',
    ],
)
def test_long_run_of_a_mark_ends(piece: str) -> None:
    speech = PlainSpeech()

    speech.feed(piece * (32_000 // len(piece)) + "a")
    assert isinstance(speech.flush(), str)
