"""Removes blocks of code and JSON from an answer for speech, because nobody can listen to them."""

import re

# A line of a block is not held beyond this length, because no line that ends a block is that long.
_MAX_HELD_CHARS = 200

# A longer string in JSON counts as ended.
_MAX_STRING_CHARS = 10_000

_KEY = r'\{\s{0,20}"[^"\n]{1,80}"'
_BLOCK_PATTERN = re.compile(
    rf"(?<![^\n])[ \t]*+(?P<fence>`{{3,}}+|~{{3,}}+)[^\n`]*+\n|(?P<json>(?:\[\s{{0,20}})?{_KEY}\s{{0,20}}:)"
)
# The end of a text that the next characters may make the beginning of a block.
_BEGUN_PATTERN = re.compile(
    r"(?:(?<![^\n])[ \t]*+(?:`++|~++)[^\n`]*+|(?:\[\s{0,20})?\{\s{0,20}"
    r'(?:"[^"\n]{0,80}(?:"\s{0,20})?)?|\[\s{0,20})\Z'
)
_JSON_MARK_PATTERN = re.compile(r'"(?:\\.|[^"\\])*+(?:"|(?P<begun>\\?\Z))|[{}\[\]]', re.DOTALL)
_DEPTH_BY_BRACKET = {"{": 1, "[": 1, "}": -1, "]": -1}


class CodeFilter:
    """Removes blocks of code and JSON from an answer that arrives in pieces."""

    def __init__(self) -> None:
        self._pending = ""
        # the character before the pending text
        self._last = "\n"
        # the marks that opened the block of code, and the number of open brackets of the JSON
        self._fence = ""
        self._depth = 0

    def feed(self, text: str) -> str:
        """Return the text outside of blocks that is ready after another piece."""
        self._pending += text
        shown: list[str] = []
        goes_on = True
        while goes_on:
            if self._fence:
                goes_on = self._skip_code()
            elif self._depth:
                goes_on = self._skip_json()
            else:
                text, goes_on = self._read_text()
                shown.append(text)
        return "".join(shown)

    def flush(self) -> str:
        """Return the rest of the text, without a block that has not ended."""
        text, self._pending = self._pending, ""
        return "" if self._fence or self._depth else text

    def _read_text(self) -> tuple[str, bool]:
        """Return the text before the next block, or else the text that is ready, and whether a block has begun."""
        text = self._last + self._pending
        if found := _BLOCK_PATTERN.search(text, 1):
            self._fence, self._depth = found["fence"] or "", (found["json"] or "").count("{")
            self._depth += (found["json"] or "").startswith("[")
            self._last, self._pending = found[0][-1], text[found.end() :]
            return text[1 : found.start()], True
        begun = _BEGUN_PATTERN.search(text, max(1, len(text) - _MAX_HELD_CHARS))
        start = begun.start() if begun else len(text)
        self._last, self._pending = text[start - 1], text[start:]
        return text[1:start], False

    def _skip_code(self) -> bool:
        """Skip code up to the line that ends it, and return whether it has ended."""
        end = re.compile(rf"(?<![^\n])[ \t]*+{self._fence[0]}{{{len(self._fence)},}}+[ \t\r]*+\n")
        text = self._last + self._pending
        if found := end.search(text, 1):
            self._fence, self._last, self._pending = "", "\n", text[found.end() :]
            return True
        start = max(1, text.rfind("\n") + 1)
        if len(text) - start > _MAX_HELD_CHARS:
            start = len(text)
        self._last, self._pending = text[start - 1], text[start:]
        return False

    def _skip_json(self) -> bool:
        """Skip JSON up to the bracket that ends it, and return whether it has ended."""
        for found in _JSON_MARK_PATTERN.finditer(self._pending):
            if found["begun"] is not None:
                self._pending = found[0] if len(found[0]) <= _MAX_STRING_CHARS else ""
                return False
            self._depth += _DEPTH_BY_BRACKET.get(found[0], 0)
            if not self._depth:
                self._last, self._pending = found[0], self._pending[found.end() :]
                return True
        self._pending = ""
        return False
