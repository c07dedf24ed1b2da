"""Names and other short texts: on one line of a prompt, and in a form for comparison."""

from collections.abc import Iterator
import re
import unicodedata

# In characters, of a name in a prompt and of one that is compared.
_MAX_NAME_CHARS = 60
_MAX_COMPARED_CHARS = 300
_ELLIPSIS = "…"

# Marks and spaces around a sentence or a clause, in several scripts, without those of a question.
SENTENCE_MARKS = " \t\r\n.,;:!…。，、；：！　"  # noqa: RUF001 - of several scripts
# Translates the apostrophes of several scripts to the plain one.
APOSTROPHE_TABLE = str.maketrans("’‘ʼ", "'''")  # noqa: RUF001 - of several scripts

_WORD_PATTERN = re.compile(r"\w+")
_PREFIX_DELIMITER_PATTERN = re.compile(r"[\[\];\s]+")
_SEPARATOR_PATTERN = re.compile(r"[=|,]+")
_ALLOWED_CONTROL_CHARS = "\n\t"
# Unicode categories of control and format characters and of lone surrogates: they are invisible, and no name needs
# them.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs"})


def clean_name(name: str) -> str:
    """Return the name on one line, without control and format characters such as zero-width and bidirectional ones.

    Joiners are format characters, so an emoji that is joined from several is split into these. White space is
    collapsed.
    """
    # true for almost every text, and takes a hundredth of the time
    if name.isprintable():
        return " ".join(name.split())
    seen = (
        " " if char.isspace() else char
        for char in name
        if char.isspace() or unicodedata.category(char) not in _INVISIBLE
    )
    return " ".join("".join(seen).split())


def remove_delimiters(text: str) -> str:
    """Return the text on one line, without the characters that separate or close parts of the prefix."""
    return _PREFIX_DELIMITER_PATTERN.sub(" ", clean_name(text)).strip()


def remove_control_chars(text: str) -> str:
    """Return the text without control characters, lone surrogates, and surrounding white space."""
    if text.isprintable():
        return text.strip()
    shown = (char for char in text if char in _ALLOWED_CONTROL_CHARS or unicodedata.category(char) not in ("Cc", "Cs"))
    return "".join(shown).strip()


def format_name(text: str, most: int = _MAX_NAME_CHARS) -> str:
    """Return the text as a name: on one line, without separators, and with at most `most` characters."""
    # cut the text first, so that a text of many times that length is not processed to its end
    name = " ".join(_SEPARATOR_PATTERN.sub(" ", remove_delimiters(text[: 4 * most])).split())
    return name if len(name) <= most else f"{name[: most - 1]}{_ELLIPSIS}"


def area_name(text: str) -> str:
    """Return the text as the name of an area, which precedes a colon."""
    return format_name(text.replace(":", " "), _MAX_NAME_CHARS - 20)


def fold_name(name: str) -> str:
    """Return a name with letter case and white space normalized; this is much faster than `format_name`."""
    return " ".join(name[:_MAX_COMPARED_CHARS].casefold().split())


def fold_look_alikes(name: str) -> str:
    """Return a name without invisible characters, letter case, and forms of characters that only look different."""
    return unicodedata.normalize("NFKC", clean_name(name)[:_MAX_COMPARED_CHARS]).casefold()


def iter_folded_words(text: str) -> Iterator[str]:
    """Yield the words of a text, casefolded and without punctuation."""
    return (match[0].casefold() for match in _WORD_PATTERN.finditer(text))
