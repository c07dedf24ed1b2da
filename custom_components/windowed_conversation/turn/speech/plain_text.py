"""Makes an answer that arrives in pieces plain: without the links of a web search, and without marks for speech.

The marks are those that text-to-speech would read aloud: Markdown, URLs, citations, and emoji.
"""

import re

# A longer text is not held, because no link is that long.
_MAX_HELD_LINK_CHARS = 4_000

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

_LINE_BREAK_TAG_PATTERN = re.compile(r"<br ?/?>", re.IGNORECASE)
_TABLE_ROW_PATTERN = re.compile(r"^[ \t]*+\|(.*)$", re.MULTILINE)

# Applied in this order. The text begins with the character before it.
_REPLACEMENTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        # fences of code, rules, and the rules of tables and headings
        (r"^[ \t]*+(?:`{3,}|~{3,})[^\n`]*(?:\n|\Z)", ""),
        (r"^[ \t]*+\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t:-]*+)++(?:\n|\Z)", ""),
        (r"^[ \t]*+(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,}|={3,}[ \t]*)(?:\n|\Z)", ""),
        # headings, quotes, and items of lists
        (r"^[ \t]*+#{1,6}[ \t]+", ""),
        (r"(?<![ \t])[ \t]+#+[ \t]*$", ""),
        (r"^[ \t]*+(?:>[ \t]?)+", ""),
        (r"^[ \t]*+[-*+\u2022\u2023\u25e6][ \t]+(?:\[[ xX]\][ \t]+)?", ""),
        # the references of links
        (r"^[ \t]*+\[[^\[\]\n]++\]:?[ \t]++(?:<[^<>\n]*+>|[^\s/:]*+[/:]\S*+)[ \t]*+(?:\n|\Z)", ""),
        # citations, images, and links
        (r"\u3010[^\u3010\u3011\n]*\u3011", _REMOVED),
        (r"!?\[([^\[\]\n]*)\]\((?:[^()\n]|\([^()\n]*\))*\)", r"\1"),
        (r"\[([^\[\]\n]*[^\W\d][^\[\]\n]*)\]\[[^\[\]\n]*\]", r"\1"),
        (r"\[\^?\d{1,3}(?:[,;\u2013-] ?\^?\d{1,3})*\]", _REMOVED),
        (r"<?(?:\b(?:https?://|www\.)|(?<![\w:/])//(?=\w))[^\s<>\])]*[^\s<>\]).,;:!?*_`'\"]>?", _REMOVED),
        (r"</?[A-Za-z][A-Za-z0-9]*(?: [^<>\n]*)?/?>", ""),
        # emphasis, struck text, and code
        (r"`+", ""),
        (r"~~", ""),
        (r"\*{2,}|(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?!\w)", ""),
        (r"(?<!\w)_{1,3}(?=\w)|(?<=[\w.,;:!?)])_{1,3}(?!\w)", ""),
        (rf"[{_EMOJI}]+", _REMOVED),
        # the white space around removed text
        (r"\([ \t]*\0[ \t\0]*\)", _REMOVED),
        (r"(?<![ \t\0])[ \t]*\0[ \t\0]*+(?=[.,;:!?)\n]|\Z)", ""),
        (r"(?<=[\n(])\0[ \t\0]*", ""),
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
        )?
    )[ \t]*+(?:[{_EMOJI}]++[ \t]*+)*+\Z""",
    re.VERBOSE,
)


class LinkFilter:
    """Removes URLs and citations, and replaces each link by its text. A possible link is held until it is whole."""

    def __init__(self) -> None:
        self._pending = ""

    def feed(self, text: str) -> str:
        """Return the text without links that is ready after another piece."""
        text = self._pending + text
        found = _HELD_LINK_PATTERN.search(text, max(0, len(text) - _MAX_HELD_LINK_CHARS))
        start = found.start() if found else len(text)
        self._pending = text[start:]
        return _LINK_PATTERN.sub(_replace_link, text[:start])

    def flush(self) -> str:
        """Return the rest of the text."""
        text, self._pending = self._pending, ""
        return _LINK_PATTERN.sub(_replace_link, text)


def _replace_link(found: re.Match[str]) -> str:
    if found["link"]:
        return _URL_PATTERN.sub("", found["link"][1:].rpartition("](")[0])
    # A word may follow at once.
    return " " if found.string[found.end() : found.end() + 1].isalnum() else ""


class PlainSpeech:
    """Cleans an answer that arrives in pieces. A possible beginning of a mark is held until the mark is whole."""

    def __init__(self) -> None:
        self._pending = ""
        # a substitute for the text before the pending one: "\n" if that begins a line, a word, or punctuation
        self._context = "\n"
        # whether the cleaned text so far ends in white space, or is empty
        self._ends_blank = True

    def feed(self, text: str) -> str:
        """Return the cleaned text that is ready after another piece."""
        text = self._pending + text
        found = _HELD_MARK_PATTERN.search(self._context + text, max(1, len(text) + 1 - _MAX_HELD_MARK_CHARS))
        start = found.start() - 1 if found else len(text)
        self._pending = text[start:]
        return self._clean(text[:start])

    def flush(self) -> str:
        """Return the rest of the cleaned text."""
        text, self._pending = self._pending, ""
        return self._clean(text).rstrip(" \t")

    def _clean(self, text: str) -> str:
        if not text:
            return ""
        cleaned = clean_speech(text, self._context)
        self._context = "\n" if text[-1] == "\n" else "x" if text[-1].isalnum() else "."
        if self._ends_blank:
            cleaned = cleaned.lstrip(" \t")
        if cleaned:
            self._ends_blank = cleaned[-1].isspace()
        return cleaned


def clean_speech(text: str, context: str = "\n") -> str:
    """Return a text without marks; `context` stands for the text before it (see `PlainSpeech`)."""
    shown = context + _LINE_BREAK_TAG_PATTERN.sub("\n", text)
    shown = _TABLE_ROW_PATTERN.sub(_join_cells, shown)
    for pattern, replacement in _REPLACEMENTS:
        shown = pattern.sub(replacement, shown)
    return shown[1:]


def _join_cells(row: re.Match[str]) -> str:
    cells = [cell.strip() for cell in row[1].split("|")]
    return ", ".join(filter(None, cells)) if any(cell.strip(":- ") for cell in cells) else row[0]
