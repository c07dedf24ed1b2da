"""Tests for the text of an answer with a web search: no links and no citations, however the answer arrives."""

import re

from hypothesis import given, strategies as st
import pytest

from custom_components.windowed_conversation.turn.speech.plain_text import LinkFilter

CASES = {
    "It is sunny ([bbc.com](https://www.bbc.com/w?utm_source=openai)). Rain later.": "It is sunny. Rain later.",
    "Two ([a.b](https://a.b/1), [c.d](https://c.d/2)) agree.": "Two agree.",
    "It is warm ([wiki](https://en.wikipedia.org/wiki/Warm_(word))).": "It is warm.",
    "Today.([a.b](https://a.b))Tomorrow.": "Today. Tomorrow.",
    "See [the page](https://a.b/c_(d)) now.": "See the page now.",
    "See [[1]](https://a.b) now.": "See [1] now.",
    'A [titled](https://a.b "Title") link': "A titled link",
    "[https://a.b](https://a.b) is it": " is it",
    "Look at https://a.b/c?d=1, please.": "Look at, please.",
    "A site (https://a.b) too": "A site too",
    "Mail <https://a.b> it": "Mail it",
    "明日は https://a.b/c。雨": "明日は。雨",
}
UNCHANGED = (
    "The list [a, b] and (c) are short.",
    "A [note](#place) and [mail](mailto:a@b.c) stay.",
    "  Two spaces, h, ht, and http alone\n\n- item (",
    "[unfinished](https",
    "",
)
PIECES = (
    *("Sunny", "It is", " ", "  ", ".", ", ", "\n", "(", "[", ")", "]", "!", "h", "http", "hot ", "<b>", "w(x)", "[1]"),
    *CASES,
    *("(see [x](https://y.z) now)", "明日は", "[note](#x)", "([x](https://y.z"),
)


def cut_links(*pieces: str) -> str:
    """Return the text that remains of an answer in these pieces."""
    links = LinkFilter()
    return "".join(map(links.feed, pieces)) + links.flush()


@pytest.mark.parametrize(("text", "expected"), CASES.items())
def test_citations_go_and_links_become_their_text(text: str, expected: str) -> None:
    assert cut_links(text) == expected


@pytest.mark.parametrize("text", UNCHANGED)
def test_text_without_links_is_unchanged(text: str) -> None:
    assert cut_links(*text) == text


@given(st.text(alphabet="abht ()[]<>.:/\n1!"))
def test_text_without_a_url_is_unchanged_however_it_arrives(text: str) -> None:
    assert cut_links(*text) == text or "http" in text


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.data())
def test_every_split_of_a_text_gives_the_same_without_a_url(text: str, data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=12)))
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]

    whole = cut_links(text)

    assert cut_links(*pieces) == cut_links(*text) == whole
    assert not re.search(r"https?://\w", whole, re.ASCII)


def test_text_that_cannot_be_a_link_is_not_held() -> None:
    links = LinkFilter()

    assert links.feed("It is sunny (and warm") == "It is sunny (and warm"
    assert links.feed(" today") == " today"


def test_link_that_never_ends_is_held_only_so_long() -> None:
    links = LinkFilter()

    assert len(links.feed("[" + "a" * 10_000)) > 5_000
