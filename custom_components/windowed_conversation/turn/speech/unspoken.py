"""Parts of a text that are not spoken, read piece by piece."""

import re
from typing import NamedTuple

import regex

_OPENING, _CLOSING_BRACKETS, _CONTINUES = "([{", ")]}", "{"
_SPACE_PATTERN = re.compile(r"\s*")
_OPENING_OR_LINE_PATTERN = re.compile(r"[(\[{\n]")
_BRACKET_OR_QUOTE_PATTERN = re.compile(r"[()\[\]{}\"']")
_QUOTE_OR_ESCAPE_BY_QUOTE = {quote: re.compile(rf"[{quote}\\]") for quote in "\"'"}
_SQUARE_OR_LINE_PATTERN = re.compile(r"[\[\]\n]")


class ReadProgress(NamedTuple):
    """Progress in an unspoken part of a text: where it ends, where to continue reading, and whether it is complete."""

    end_position: int
    next_position: int
    is_complete: bool


class DelimitedText:
    """An unspoken part that ends at the first of these texts. It includes that text unless `keeps_end` is set."""

    def __init__(self, *ends: str, keeps_end: bool = False) -> None:
        self._end_pattern = regex.compile("|".join(map(regex.escape, ends)), regex.IGNORECASE)
        self._keeps_end = keeps_end

    def read(self, text: str, at: int) -> ReadProgress:
        """Read up to the first end text. If there is none, everything read so far is unspoken."""
        found = self._end_pattern.search(text, at, partial=True)
        if found is None:
            return ReadProgress(len(text), len(text), is_complete=False)
        if found.partial:
            return ReadProgress(found.start(), found.start(), is_complete=False)
        return ReadProgress(found.start(), found.start() if self._keeps_end else found.end(), is_complete=True)


class NoteText:
    """The rest of a note in square brackets, up to the closing bracket or the end of the line."""

    def __init__(self) -> None:
        self._depth = 1

    def read(self, text: str, at: int) -> ReadProgress:
        """Read up to the closing bracket or the end of the line."""
        for found in _SQUARE_OR_LINE_PATTERN.finditer(text, at):
            if found[0] == "\n":
                return ReadProgress(found.start(), found.start(), is_complete=True)
            self._depth += 1 if found[0] == "[" else -1
            if not self._depth:
                return ReadProgress(found.end(), found.end(), is_complete=True)
        return ReadProgress(len(text), len(text), is_complete=False)


class CallText:
    """The rest of a tool call: an optional name and a bracketed part, or without brackets, the rest of the line.

    Brackets inside quotes are ignored. Braces that follow immediately also belong to the call: `[ARGS]{...}`. `depth`
    is the number of brackets that are already open.
    """

    def __init__(self, depth: int = 0) -> None:
        self._depth = depth
        self._has_brackets = depth > 0
        self._in_leading_space = True
        self._has_line_break = False
        self._open_quote = ""
        self._skipped_char_count = 0
        self._last_char = ""

    def read(self, text: str, at: int) -> ReadProgress:
        """Read up to the closing bracket, or to the end of the line if there are none."""
        at += self._skipped_char_count
        self._skipped_char_count = 0
        while at < len(text):
            if self._open_quote:
                at = self._read_string(text, at)
            elif self._depth:
                at = self._read_bracketed(text, at)
            else:
                end = self._find_bracket(text, at)
                if end < len(text) and text[end] not in (_CONTINUES if self._has_brackets else _OPENING):
                    return ReadProgress(end, end, is_complete=True)
                if end < len(text):
                    self._depth, self._has_brackets = 1, True
                at = end + 1
        self._skipped_char_count = max(0, at - len(text)) if self._open_quote else 0
        self._last_char = text[-1:] or self._last_char
        return ReadProgress(len(text), len(text), is_complete=False)

    def _find_bracket(self, text: str, at: int) -> int:
        """Return the position of the next opening bracket, or the end of the call or of the text."""
        if self._has_brackets:
            return at
        if self._in_leading_space:
            begins = skip_space(text, at)
            self._has_line_break = self._has_line_break or "\n" in text[at:begins]
            at = begins
            if at == len(text) or self._has_line_break:
                return at
            self._in_leading_space = False
        found = _OPENING_OR_LINE_PATTERN.search(text, at)
        return found.start() if found else len(text)

    def _read_bracketed(self, text: str, at: int) -> int:
        found = _BRACKET_OR_QUOTE_PATTERN.search(text, at)
        if found is None:
            return len(text)
        char = found[0]
        if char in _OPENING:
            self._depth += 1
        elif char in _CLOSING_BRACKETS:
            self._depth -= 1
        elif char == '"' or not _is_word_char(text[found.start() - 1] if found.start() else self._last_char):
            self._open_quote = char
        return found.end()

    def _read_string(self, text: str, at: int) -> int:
        found = _QUOTE_OR_ESCAPE_BY_QUOTE[self._open_quote].search(text, at)
        if found is None:
            return len(text)
        if found[0] == "\\":
            return found.end() + 1
        self._open_quote = ""
        return found.end()


# A part of a text that is not spoken, read piece by piece. If its end is not found, text from
# `ReadProgress.next_position` on is passed again with the next piece.
type UnspokenSpan = DelimitedText | NoteText | CallText


def _is_word_char(char: str) -> bool:
    """Return whether an apostrophe after this character is inside a word, as in "Ada's"."""
    return char.isalnum() or char == "_"


def skip_space(text: str, at: int) -> int:
    """Return the position after the white space at this position."""
    found = _SPACE_PATTERN.match(text, at)
    return found.end() if found else at
