"""Removes the links that a provider's web search writes into an answer. The answer arrives in pieces."""

import re

# A longer text is not held, because no link is that long.
_MAX_HELD_CHARS = 4_000

_SPACE = r"[ \t]*+"
_LABEL = r"\[(?:[^\[\]\n]|\[[^\[\]\n]*+\])*+"
_LINKED_CHARS = r"(?:[^\s<>()]|\([^\s<>()]*+\))*+"
_LINK = rf'{_LABEL}\]\({_SPACE}https?://{_LINKED_CHARS}(?:{_SPACE}"[^"\n]*+")?{_SPACE}\)'
_URL_GROUP = r"\([!-'*-;=?-Z\\^-~]*+\)"
_URL_CHARS = rf"(?:[!-'*-;=?-Z\\^-~]|{_URL_GROUP})*"
# Punctuation after a URL is not part of it.
_URL = rf"https?://{_URL_CHARS}(?:[\w/#&=%+~$@-]|{_URL_GROUP})"
_CITATION = rf"{_SPACE}(?:\({_SPACE}(?:{_LINK}[,;]?{_SPACE})++\)|\({_SPACE}{_URL}{_SPACE}\)|<{_URL}>|{_URL})"

_BEGUN_SCHEME = "h|ht|htt|https?|https?:|https?:/"
_BEGUN_LINK = (
    rf"{_LABEL}(?:\[[^\[\]\n]*+|\](?:\({_SPACE}(?:{_BEGUN_SCHEME}|https?://{_LINKED_CHARS}(?:\([^\s<>()]*+)?"
    rf'(?:{_SPACE}"[^"\n]*+"?)?{_SPACE}\)?)?)?)?'
)
_BEGUN_URL = rf"{_BEGUN_SCHEME}|https?://{_URL_CHARS}(?:\([!-'*-;=?-Z\\^-~]*+)?"
_FLAGS = re.IGNORECASE | re.ASCII

# Citations in a row, or a link with its text.
_LINK_PATTERN = re.compile(rf"(?:{_CITATION})+|(?P<link>{_LINK})", _FLAGS)
_URL_PATTERN = re.compile(_URL, _FLAGS)
# The end of a text that the next characters may make a link, or that they end.
_HELD_PATTERN = re.compile(
    rf"(?:{_CITATION}|{_LINK})*(?:{_SPACE}(?:\({_SPACE}(?:{_LINK}[,;]?{_SPACE})*+(?:{_BEGUN_LINK})?"
    rf"|[(<]?{_SPACE}(?:{_BEGUN_URL})?{_SPACE})|{_BEGUN_LINK})\Z",
    _FLAGS,
)


class LinkFilter:
    """Removes URLs and citations, and replaces each link by its text. A possible link is held until it is whole."""

    def __init__(self) -> None:
        self._pending = ""

    def feed(self, text: str) -> str:
        """Return the text without links that is ready after another piece."""
        text = self._pending + text
        found = _HELD_PATTERN.search(text, max(0, len(text) - _MAX_HELD_CHARS))
        start = found.start() if found else len(text)
        self._pending = text[start:]
        return _LINK_PATTERN.sub(_replace, text[:start])

    def flush(self) -> str:
        """Return the rest of the text."""
        text, self._pending = self._pending, ""
        return _LINK_PATTERN.sub(_replace, text)


def _replace(found: re.Match[str]) -> str:
    if found["link"]:
        return _URL_PATTERN.sub("", found["link"][1:].rpartition("](")[0])
    # A word may follow at once.
    return " " if found.string[found.end() : found.end() + 1].isalnum() else ""
