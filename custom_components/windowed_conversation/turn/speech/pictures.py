"""Removes pictures, and links to anything but a web page, from an answer for the chat dialog.

The dialog renders Markdown and HTML, and a picture asks its server at once. A text from the web can make a model write
one whose address contains the model's knowledge of the home.
"""

import re

from .plain_text import MAX_HELD_CHARS, TextFilter

# How far the path of a link is looked for in a form that was not foreseen.
_MAX_TARGET_CHARS = 100

_LABEL_CHAR = r"\\.|[^\[\]\\\n]|\n(?![ \t]*\n)"
_LABEL = rf"\[(?:{_LABEL_CHAR}|\[(?:{_LABEL_CHAR}|\[(?:{_LABEL_CHAR})*+\])*+\])*+\]"
_BEGUN_LABEL = (
    rf"\[(?:{_LABEL_CHAR}|\[(?:{_LABEL_CHAR}|\[(?:{_LABEL_CHAR})*+\])*+\])*+"
    rf"(?:\[(?:{_LABEL_CHAR}|\[(?:{_LABEL_CHAR})*+\])*+(?:\[(?:{_LABEL_CHAR})*+)?)?\\?"
)
_TARGET_CHARS = r"(?:[^()\n]|\([^()\n]*+\))*+"
_WEB = "https?://"
_BEGUN_WEB = "h|ht|htt|https?|https?:|https?:/"
# The tags that load something in Home Assistant's dialog, or would in a browser.
_MEDIA = (
    "img|image|picture|source|track|audio|video|svg|iframe|frame|embed|object|input|link|base|style|script|ha-qr-code"
)
_BARE = rf"[^>\"']{{0,{MAX_HELD_CHARS}}}+"
_ATTRIBUTES = rf"{_BARE}(?:(?:\"[^\"]*+\"|'[^']*+'){_BARE})*+"
_LINE_START = r"(?<![^\n])[ \t>*+\d.)-]*+"


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.ASCII | re.MULTILINE | re.DOTALL)


def _remove_brackets(found: re.Match[str]) -> str:
    return found[1][1:-1]


# Applied in this order. The text begins with the character before it.
_REPLACEMENTS = (
    # pictures, whose description stays
    (_compile(rf"!({_LABEL})(?:\({_TARGET_CHARS}\)|\[[^\[\]]*+\])"), _remove_brackets),
    # links, except for `calls[name](value)` in code
    (
        _compile(rf"((?<!\w){_LABEL})\([ \t]*+(?!{_WEB}|<{_WEB}){_TARGET_CHARS}\)"),
        _remove_brackets,
    ),
    # the references that a link may have
    (_compile(rf"({_LINE_START}{_LABEL}):(?=\s*+(?!{_WEB}|<{_WEB})\S)"), r"\1"),
    # tags
    (_compile(rf"</?(?:{_MEDIA})\b(?:{_ATTRIBUTES}|[^>]{{0,{MAX_HELD_CHARS}}}+)>"), ""),
    (_compile(rf"<a\b(?!\s++href=([\"']?){_WEB}[^\s\"'<>]*+\1\s*+>)[^>]{{0,{MAX_HELD_CHARS}}}+>"), ""),
    (_compile(rf"<(?!{_WEB})(?:mailto:([^\s<>]*+)|[a-z][a-z0-9+.-]*+:[^\s<>]*+)>"), r"\1"),
)

# The end of a text that the next characters may make one of these marks.
_HELD_PATTERN = _compile(
    rf"(?:(?<!\\)!?{_BEGUN_LABEL}"
    rf"|!?{_LABEL}(?:\({_TARGET_CHARS}(?:\([^()\n]*+)?|\[[^\[\]]*+\]?|:\s*+<?(?:{_BEGUN_WEB})?)?"
    rf"|!|\](?:\([^\s()]*+)?"
    rf"|</?(?:[a-z][a-z0-9-]*+)?|</?(?:{_MEDIA}|a)\b{_ATTRIBUTES}(?:\"[^\"]*+|'[^']*+)?|<[a-z][a-z0-9+.-]*+:[^\s<>]*+"
    r")\Z"
)


# Marks that may be left, or that have come together when a text was removed.
_BREAKS = (
    (_compile(r"!(?=\[)"), "! "),
    (_compile(rf"<(?=/?(?:{_MEDIA})\b|a\b(?!\s++href=[\"']?{_WEB}[^\s\"'<>]*+[\"'>]))"), "< "),
    (_compile(rf"\](?=\([ \t]*+(?!{_WEB}|<{_WEB})[^\s)]{{0,{_MAX_TARGET_CHARS}}}[/\\:&])"), "] "),
)
_BEGUN_BREAK_PATTERN = _compile(
    rf"(?:!|</?(?:[a-z][a-z-]*+)?|<a\s[^>]*+|\](?:\([ \t]*+[^\s)]{{0,{_MAX_TARGET_CHARS}}})?)\Z"
)


class PictureFilter(TextFilter):
    """Removes pictures and links. `MarkBreaker` breaks one that is too long to be held."""

    held_pattern = _HELD_PATTERN

    def __init__(self) -> None:
        super().__init__()
        # the character before the pending text
        self._last = "\n"

    def _change(self, text: str) -> str:
        if not text:
            return ""
        shown = self._last + text
        for pattern, replacement in _REPLACEMENTS:
            shown = pattern.sub(replacement, shown)
        self._last = text[-1]
        return shown[1:]


class MarkBreaker(TextFilter):
    """Breaks with a space any mark that would still load in the chat dialog. It comes after all that removes a text."""

    held_pattern = _BEGUN_BREAK_PATTERN

    def _change(self, text: str) -> str:
        for pattern, replacement in _BREAKS:
            text = pattern.sub(replacement, text)
        return text


def drop_pictures(text: str) -> str:
    """Return a whole answer without pictures and without links to anything but a web page."""
    pictures, breaker = PictureFilter(), MarkBreaker()
    return breaker.feed(pictures.feed(text) + pictures.flush()) + breaker.flush()
