"""Makes an answer that arrives in pieces plain: without the links of a web search, and without marks for speech.

The marks are those that text-to-speech would read aloud: Markdown, URLs, citations, and emoji.
"""

from abc import ABC, abstractmethod
import html
import re

from .code_blocks import CodeFilter

# A longer text is not held, because no link or picture is that long.
MAX_HELD_CHARS = 4_000

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
_LINK_FLAGS = re.IGNORECASE | re.ASCII

# Citations in a row, or a link with its text.
_LINK_PATTERN = re.compile(rf"(?:{_CITATION})+|(?P<link>{_LINK})", _LINK_FLAGS)
_URL_PATTERN = re.compile(_URL, _LINK_FLAGS)
# The end of a text that the next characters may make a link, or that they end.
_HELD_LINK_PATTERN = re.compile(
    rf"(?:{_CITATION}|{_LINK})*(?:{_SPACE}(?:\({_SPACE}(?:{_LINK}[,;]?{_SPACE})*+(?:{_BEGUN_LINK})?"
    rf"|[(<]?{_SPACE}(?:{_BEGUN_URL})?{_SPACE})|{_BEGUN_LINK})\Z",
    _LINK_FLAGS,
)

# A longer text is not held, because no mark is that long.
_MAX_HELD_MARK_CHARS = 2_000

_EMOJI = (
    "\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\ufe0f\u200d\u20e3\U000e0020-\U000e007f\u231a-\u23ff\u3030\u303d"
)
# Stands for something that was removed between words, until the white space around it is joined.
_REMOVED = "\0"

# Stands before the text of a heading, of a list's item, or of a table's row.
_ITEM = "\1"
_CLOSED_PATTERN = re.compile(r"[.!?:;,\u2026\u060c\u061f\u0964\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]\W?\Z")
_IDEOGRAPH_PATTERN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]\W?\Z")

_FORMULA_PATTERN = re.compile(
    r"\\\((?P<round>[^\n]{0,300}?)\\\)|\\\[(?P<square>[\s\S]{0,1000}?)\\\]|\$\$(?P<double>[^$]{1,1000}+)\$\$"
    r"|(?<![\w$])\$(?P<single>(?![\s\d])[^$\n\\^_{=]{0,300}+[\\^_{=][^$\n]{0,300}+)\$(?!\w)"
)
_FORMULA_REPLACEMENTS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\d?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"\1/\2"),
        (r"\\sqrt\s*\{([^{}]*)\}", "\u221a\\1"),
        (r"\\(?:times|cdot)\b", "\u00d7"),
        (r"\\div\b", "\u00f7"),
        (r"\\pm\b", "\u00b1"),
        (r"\\approx\b", "\u2248"),
        (r"\\leq?\b", "\u2264"),
        (r"\\geq?\b", "\u2265"),
        (r"\\neq?\b", "\u2260"),
        (r"\\pi\b", "\u03c0"),
        (r"\^\{?\\circ\}?", "\u00b0"),
        (r"\^\{?2\}?(?!\d)", "\u00b2"),
        (r"\^\{?3\}?(?!\d)", "\u00b3"),
        (r"\\[,;:! \\]", " "),
        (r"\\(?=[%$&#])|\\[A-Za-z]+\*?|[{}_&]", ""),
    )
)
_ENTITY_PATTERN = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

_LINK_MARKS = r"!?\[([^\[\]\n]*+)\]\((?:[^()\n]|\([^()\n]*+\))*+\)"
# Marks after whose end no other can begin before it.
_WHOLE_PATTERN = re.compile(f"{_FORMULA_PATTERN.pattern}|{_LINK_MARKS}")

_LINE_BREAK_TAG_PATTERN = re.compile(r"<br ?/?>", re.IGNORECASE)
_TABLE_ROW_PATTERN = re.compile(r"^[ \t]*+\|(.*)$", re.MULTILINE)

# Applied in this order. The text begins with the character before it.
_REPLACEMENTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        # rules, and the rules of tables and headings
        (r"^[ \t]*+\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t:-]*+)++(?:\n|\Z)", ""),
        (r"^[ \t]*+(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,}|={3,}[ \t]*)(?:\n|\Z)", ""),
        # headings, quotes, and items of lists
        (r"^[ \t]*+#{1,6}[ \t]+", _ITEM),
        (r"(?<![ \t])[ \t]+#+[ \t]*$", ""),
        (r"^[ \t]*+(?:>[ \t]?)+", ""),
        (r"^[ \t]*+[-*+\u2022\u2023\u25e6][ \t]+(?:\[[ xX]\][ \t]+)?", _ITEM),
        (r"(?<=\n)(?=[ \t]*+\d{1,3}[.)](?:[ \t]|\Z))", _ITEM),
        # the references of links
        (r"^[ \t]*+\[[^\[\]\n]++\]:?[ \t]++(?:<[^<>\n]*+>|(?:[A-Za-z][\w+.-]++:|/)\S++)[ \t]*+(?:\n|\Z)", ""),
        # citations, images, and links
        (r"\u3010[^\u3010\u3011\n]*\u3011", _REMOVED),
        (_LINK_MARKS, r"\1"),
        (r"\[([^\[\]\n]*[^\W\d][^\[\]\n]*)\]\[[^\[\]\n]*\]", r"\1"),
        (r"\[\^?\d{1,3}(?:[,;\u2013-] ?\^?\d{1,3})*\]", _REMOVED),
        (r"<?(?:\b(?:https?://|www\.)|(?<![\w:/])//(?=\w))[^\s<>\])]*[^\s<>\]).,;:!?*_`'\"]>?", _REMOVED),
        (r"</?[A-Za-z][A-Za-z0-9]*(?: [^<>\n]*)?/?>", ""),
        # emphasis, struck text, and code
        (r"`+", ""),
        (r"~~", ""),
        (r"(?<!\d)\*{2,}|\*{2,}(?!\d)|(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])", ""),
        (r"(?<!\w)_{1,3}(?=\w)|(?<=[\w.,;:!?)])_{1,3}(?!\w)", ""),
        (rf"[{_EMOJI}]+", _REMOVED),
        # the white space around removed text
        (r"\([ \t]*\0[ \t\0]*\)", _REMOVED),
        (r"(?<![ \t\0])[ \t]*\0[ \t\0]*+(?=[.,;:!?)\n]|\Z)", ""),
        (r"(?<=[\n(\1])\0[ \t\0]*", ""),
        (r"(?<![ \t\0])[ \t]+\0[ \t\0]*+|(?<!\0)\0+[ \t][ \t\0]*+", " "),
        (r"\0", ""),
    )
)

# The end of a text in which the next characters may complete a mark. White space belongs to the text after it.
_HELD_MARK_PATTERN = re.compile(
    rf"""(?:
        (?<![^\n])[ \t]*+(?:
            \|[^\n]*+                                            # a row of a table
          | (?:`{{3,}}|~{{3,}})[^\n]*+                            # a fence
          | \d{{1,3}}+[.)]?                                      # the number of a step
          | \[[^\[\]\n]*+(?:\]:?[ \t]*+(?:\S++[ \t]*+)?)?       # a reference
          | [-*+=_~`#>:|\[\]xX\u2022\u2023\u25e6\ \t]++           # other beginnings of a line
        )
      | [ \t]*+(?:
            !?\[[^\[\]\n]*+(?:\](?:\((?:[^()\n]|\([^()\n]*+\)?)*+\)?|(?:\[[^\[\]\n]*+\]?)*+))?
          | \u3010[^\u3010\u3011\n]*+
          | <[^<>\n]*+
          | \(?(?<!\w)(?:h|ht|htt|https?|https?:|https?:/|https?://[^\s<>]*+|w|ww|www|www\.[^\s<>]*+)
          | \(?(?<![\w:/])/(?:/[^\s<>]*+)?
          | \(
          | \#+
          | [*_~`!]+
          | \\(?:\((?:[^\n\\]|\\[^\n)])*+\\?|\[(?:[^\\]|\\[^\]])*+\\?)?      # a formula
          | \$(?:\$[^$]*+\$?|(?![\s\d])[^$\n]*+)?
          | &(?:\#?\w{{0,31}}+)?
        )?
    )[ \t]*+(?:[{_EMOJI}]++[ \t]*+)*+\Z""",
    re.VERBOSE,
)


class TextFilter(ABC):
    """Changes a text that arrives in pieces. An end of it that the next piece may make a mark is held until then."""

    # Matches such an end.
    held_pattern: re.Pattern[str]

    def __init__(self) -> None:
        self._pending = ""

    def feed(self, text: str) -> str:
        """Return the text that is ready after another piece."""
        text = self._pending + text
        found = self.held_pattern.search(text, max(0, len(text) - MAX_HELD_CHARS))
        start = found.start() if found else len(text)
        self._pending = text[start:]
        return self._change(text[:start])

    def flush(self) -> str:
        """Return the rest of the text."""
        text, self._pending = self._pending, ""
        return self._change(text)

    @abstractmethod
    def _change(self, text: str) -> str:
        """Return a text without its marks."""


class LinkFilter(TextFilter):
    """Removes URLs and citations, and replaces each link by its text."""

    held_pattern = _HELD_LINK_PATTERN

    def _change(self, text: str) -> str:
        return _LINK_PATTERN.sub(_replace_link, text)


def _replace_link(found: re.Match[str]) -> str:
    if found["link"]:
        return _URL_PATTERN.sub("", found["link"][1:].rpartition("](")[0])
    # A word may follow at once.
    return " " if found.string[found.end() : found.end() + 1].isalnum() else ""


class PlainSpeech:
    """Cleans an answer that arrives in pieces. A possible beginning of a mark is held until the mark is whole."""

    def __init__(self) -> None:
        self._code = CodeFilter()
        self._pending = ""
        # a substitute for the text before the pending one: "\n" if that begins a line, a digit, a word, or punctuation
        self._context = "\n"
        # the end of the cleaned text, and whether its last line is an item
        self._end = " "
        self._is_item = False

    def feed(self, text: str) -> str:
        """Return the cleaned text that is ready after another piece."""
        return self._feed(self._code.feed(text))

    def flush(self) -> str:
        """Return the rest of the cleaned text."""
        ready = self._feed(self._code.flush())
        text, self._pending = self._pending, ""
        return f"{ready}{self._clean(text)}".rstrip(" \t")

    def _feed(self, text: str) -> str:
        text = self._pending + text
        shown = self._context + text
        places = [1, len(shown) - _MAX_HELD_MARK_CHARS, *[each.end() for each in _WHOLE_PATTERN.finditer(shown)]]
        found = _HELD_MARK_PATTERN.search(shown, max(places))
        start = found.start() - 1 if found else len(text)
        self._pending = text[start:]
        return self._clean(text[:start])

    def _clean(self, text: str) -> str:
        if not text:
            return ""
        cleaned = _remove_marks(text, self._context)
        last = text[-1]
        self._context = "\n" if last == "\n" else "0" if last.isdigit() else "x" if last.isalnum() else "."
        if self._end[-1].isspace():
            cleaned = re.sub(rf"\A({_ITEM}*)[ \t]+", r"\1", cleaned)
        *lines, rest = cleaned.split("\n")
        return "".join([*[f"{self._end_line(line)}\n" for line in lines], self._add(rest)])

    def _end_line(self, line: str) -> str:
        """Return the end of a line. An item ends with a full stop, because text-to-speech does not pause otherwise."""
        line = self._add(line.rstrip(" \t")) if _ITEM in line or self._is_item else self._add(line)
        if self._is_item and not self._end[-1].isspace() and not _CLOSED_PATTERN.search(self._end):
            line += "\u3002" if _IDEOGRAPH_PATTERN.search(self._end) else "."
        self._is_item, self._end = False, "\n"
        return line

    def _add(self, text: str) -> str:
        self._is_item |= _ITEM in text
        text = text.replace(_ITEM, "")
        self._end = (self._end + text)[-2:]
        return text


def clean_speech(text: str) -> str:
    """Return a whole answer without marks."""
    speech = PlainSpeech()
    return speech.feed(text) + speech.flush()


def _remove_marks(text: str, context: str) -> str:
    """Return a text without marks; `context` stands for the text before it (see `PlainSpeech`)."""
    shown = _FORMULA_PATTERN.sub(_read_formula, context + _LINE_BREAK_TAG_PATTERN.sub("\n", text))
    shown = _TABLE_ROW_PATTERN.sub(_join_cells, shown)
    for pattern, replacement in _REPLACEMENTS:
        shown = pattern.sub(replacement, shown)
    return _ENTITY_PATTERN.sub(lambda found: html.unescape(found[0]).replace("\xa0", " "), shown[1:])


def _read_formula(found: re.Match[str]) -> str:
    """Return a formula without the marks of LaTeX."""
    shown = next(filter(None, found.groups()), "").strip()
    for pattern, replacement in _FORMULA_REPLACEMENTS:
        shown = pattern.sub(replacement, shown)
    return " ".join(shown.split())


def _join_cells(row: re.Match[str]) -> str:
    cells = [cell.strip() for cell in row[1].split("|")]
    return _ITEM + ", ".join(filter(None, cells)) if any(cell.strip(":- ") for cell in cells) else row[0]
