"""Check the translations: `python -m tests.translations.check LANGUAGE...` prints the mistakes of each language."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
import re
from string import Formatter
import sys
from unicodedata import east_asian_width

from .texts import ENGLISH, LANGUAGES, SENTENCE_ENDS, SPOKEN, TERMS, Language, is_label, load_language, strip_markup

# A label may be this much longer than the English one, or by this many columns: Chinese characters take two.
_LENGTH_FACTOR, _EXTRA_COLUMNS = 1.6, 15

# Names and phrases in which a word is not the term that it is elsewhere.
_NOT_TERMS = re.compile(
    r"Home Assistant|Windowed Conversation|Chat Completions|turns? (?:on|off)\b|open this issue"
    r"|Keys and Endpoint|allowlist_external_dirs|conversation ID(?= that)|forgotten on request|requested"
)
# Placeholders that stand for a number which may be 1, and all that stand for a number.
_SMALL_NUMBERS = ("count", "days", "entities", "exchanges", "facts", "more", "summaries", "trims", "turns")
_NUMBERS = (
    *_SMALL_NUMBERS, "cached", "context", "expected", "free", "full", "hours", "input", "minutes", "needed", "output",
    "protected", "seconds", "suggested", "tokens", "total", "used", "window",
)  # fmt: skip
# Languages in which a noun changes with every number, not only after 1.
_MANY_FORMS = {"cs", "pl", "uk"}
# Plural forms of the spoken texts, and the languages that have the form in the middle.
_PLURAL_KEY = re.compile(r"(?<=^common\.)(\w+)_(?:one|few|other)$")
_WITHOUT_PLURAL = {"ja", "zh-Hans"}
# Placeholders that stand for a text in the spoken texts.
_SPOKEN_TEXTS = {"facts", "window"}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong in a text: its key, the name of the check, which an exception names, and an explanation."""

    key: str
    check: str
    message: str

    def __str__(self) -> str:
        """Return the finding as one line."""
        return f"{self.key}: [{self.check}] {self.message}"


type Check = Callable[[Language, str, str, str], Iterator[Finding]]


def check_language(language: Language) -> list[Finding]:
    """Return everything that is wrong in a language and has no reason in its file of exceptions."""
    found = [*_check_keys(language), *_check_plural_forms(language)]
    for key, english in ENGLISH.items():
        if text := language.texts.get(key):
            found += [finding for check in _CHECKS for finding in check(language, key, english, text)]
    kept = [finding for finding in found if not language.exceptions.allow(finding.key, finding.check)]
    unused = language.exceptions.list_unused()
    return [*kept, *(Finding(pattern, check, "this exception is not needed") for pattern, check in unused)]


def _check_keys(language: Language) -> Iterator[Finding]:
    for key in ENGLISH.keys() - language.texts.keys():
        yield Finding(key, "missing", f"not translated: {ENGLISH[key]!r}")
    for key in language.texts.keys() - ENGLISH.keys():
        yield Finding(key, "unknown", "English has no such text")
    for key, text in language.texts.items():
        if not text or text != text.strip():
            yield Finding(key, "blank", "empty, or spaces at the start or the end")


def _check_plural_forms(language: Language) -> Iterator[Finding]:
    """Yield plural forms that differ in a language that has no such form, or do not where it has one."""
    for key in {_PLURAL_KEY.sub(r"\1", key) for key in ENGLISH if _PLURAL_KEY.search(key)}:
        one, few, other = (language.texts.get(f"{key}_{form}", "") for form in ("one", "few", "other"))
        if language.code in _MANY_FORMS and few == other:
            yield Finding(f"{key}_few", "plural", "this language has a form of its own for 2 to 4")
        if language.code not in _MANY_FORMS and few != other:
            yield Finding(f"{key}_few", "plural", "has to be the same as the form _other")
        if language.code in _WITHOUT_PLURAL and one != other:
            yield Finding(f"{key}_one", "plural", "has to be the same as the form _other")


def _check_placeholders(_: Language, key: str, english: str, text: str) -> Iterator[Finding]:
    """Yield placeholders that differ. Home Assistant compares them in this way, and falls back to English."""
    try:
        own = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
    except ValueError as error:
        yield Finding(key, "braces", f"{error}")
        return
    wanted = [name for _, name, _, _ in Formatter().parse(english) if name is not None]
    if Counter(own) != Counter(wanted):
        yield Finding(key, "placeholders", f"has {sorted(own)}, and English {sorted(wanted)}")


def _check_syntax(_: Language, key: str, __: str, text: str) -> Iterator[Finding]:
    """Yield characters that the frontend's message format takes as syntax."""
    if re.search(r"'[{}<]", text):
        yield Finding(key, "apostrophe", "a straight apostrophe before a brace hides the placeholder")
    if "<" in text:
        yield Finding(key, "html", "< begins a tag")


def _check_markup(_: Language, key: str, english: str, text: str) -> Iterator[Finding]:
    """Yield markup that differs: links, code, emphasis, paragraphs, and lists."""
    for name, pattern in _MARKUP.items():
        own, wanted = (sorted(re.findall(pattern, each)) for each in (text, english))
        if own != wanted:
            yield Finding(key, "markup", f"{name}: has {own}, and English {wanted}")


_MARKUP = {
    "links": r"\]\(([^)]*)\)",
    "code": r"`[^`]*`",
    "emphasis": r"\*+",
    "paragraphs": r"\n+",
    "list items": r"(?m)^- ",
}


def _check_same(language: Language, key: str, english: str, text: str) -> Iterator[Finding]:
    is_word = re.search(r"\w{2}", re.sub(r"\{[^}]*\}", "", english))
    if is_word and text == english and english not in language.exceptions.same and not language.is_english:
        yield Finding(key, "same", f"the same as in English: {text!r}")


def _check_length(_: Language, key: str, english: str, text: str) -> Iterator[Finding]:
    limit = max(_LENGTH_FACTOR * count_columns(english), count_columns(english) + _EXTRA_COLUMNS)
    if is_label(english) and not key.startswith(SPOKEN) and count_columns(text) > limit:
        yield Finding(key, "length", f"{count_columns(text)} columns, at most {limit:.0f}: {text!r} ({english!r})")


def count_columns(text: str) -> int:
    """Return the width of a text in columns. Chinese and Japanese characters take two."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def _check_end(_: Language, key: str, english: str, text: str) -> Iterator[Finding]:
    if english.endswith(SENTENCE_ENDS) != text.endswith(SENTENCE_ENDS):
        yield Finding(key, "end", f"ends like {text[-1]!r}, and English like {english[-1]!r}")


def _check_numbers(language: Language, key: str, _: str, text: str) -> Iterator[Finding]:
    """Yield numbers before a word that would have to change with them. The spoken plural forms are fine."""
    if _PLURAL_KEY.search(key) or language.code in _WITHOUT_PLURAL:
        return
    numbers: tuple[str, ...] = _NUMBERS if language.code in _MANY_FORMS else _SMALL_NUMBERS
    names = [name for name in numbers if not (key.startswith("common.") and name in _SPOKEN_TEXTS)]
    for name, word in re.findall(rf"\{{({'|'.join(names)})\}}\s(\w{{4,}})", text):
        if word not in language.exceptions.after_numbers:
            yield Finding(key, "number", f"{word!r} changes with {{{name}}}: put the number behind the word")


def _check_terms(language: Language, key: str, english: str, text: str) -> Iterator[Finding]:
    """Yield terms in the English text that the translation does not have in one of their forms."""
    said = strip_markup(text).casefold()
    for section, term in find_terms(english):
        forms = language.accepted_forms(section, term)
        if forms and not any(form.casefold() in said for form in forms):
            yield Finding(key, f"term:{term}", f"none of {forms} in {text!r} ({english!r})")


def find_terms(english: str) -> Iterator[tuple[str, str]]:
    """Yield the section and the name of each known term in an English text, the longest first and none in another."""
    rest = _NOT_TERMS.sub("·", strip_markup(english))
    for section, term in _TERMS_BY_LENGTH:
        rest, count = _TERM_PATTERNS[term].subn("·", rest)
        if count:
            yield section, term
    if english in TERMS["labels"]:
        yield "labels", english
    for quoted in TERMS["frontend"]:
        if quoted in english:
            yield "frontend", quoted


def _compile_term(term: str) -> re.Pattern[str]:
    """Return the pattern of a term in both numbers. A term with a capital is a name, which is written as it is."""
    plural = rf"{re.escape(term[:-1])}ies|" if term.endswith("y") else ""
    return re.compile(rf"\b(?:{plural}{re.escape(term)}s?)\b", re.IGNORECASE if term[0].islower() else 0)


_TERMS_BY_LENGTH = sorted(
    ((section, term) for section in ("words", "project") for term in TERMS[section]), key=lambda each: -len(each[1])
)
_TERM_PATTERNS = {term: _compile_term(term) for _, term in _TERMS_BY_LENGTH}


def _check_address(language: Language, key: str, _: str, text: str) -> Iterator[Finding]:
    if not language.is_english and (wrong := re.search(TERMS["form_of_address"][language.code]["wrong"], text)):
        form = TERMS["form_of_address"][language.code]["form"]
        yield Finding(key, "address", f"{wrong[0]!r}: the form of address is {form}")


def _check_quoted_labels(language: Language, key: str, english: str, text: str) -> Iterator[Finding]:
    """Yield quotations of a label that differ from its translation, and other italics that are translated."""
    for italic in sorted(
        _find_italics(english) - _KEYS_BY_LABEL.keys() - {quoted.strip("*") for quoted in TERMS["frontend"]}
    ):
        if f"*{italic}*" not in text:
            yield Finding(key, f"label:{italic}", f"does not contain *{italic}*")
    for label in sorted(find_quoted_labels(english)):
        forms = {language.texts.get(each, "") for each in _KEYS_BY_LABEL[label]}
        if not any(form and form.casefold() in text.casefold() for form in forms):
            yield Finding(key, f"label:{label}", f"quotes none of {sorted(forms)} ({english!r})")


def find_quoted_labels(english: str) -> set[str]:
    """Return the labels that an English text quotes: in italics, or with a capital within a sentence."""
    quoted = _find_italics(english) & _KEYS_BY_LABEL.keys()
    if is_label(english):
        return quoted
    plain = _NOT_TERMS.sub("·", strip_markup(english))
    quoted |= {label for label, pattern in _LABEL_PATTERNS.items() if pattern.search(plain)}
    return {label for label in quoted if not any(label in other for other in quoted - {label})}


def _find_italics(text: str) -> set[str]:
    return {italic for italic in re.findall(r"\*([^*]+)\*", text.replace("**", "")) if "{" not in italic}


_LABEL_KEY = re.compile(
    r"\.(?:name|title|entry_type)$|\.(?:data|menu_options|options)\.\w+$|^services\.\w+(?:\.fields\.\w+)?\.name$"
)
_KEYS_BY_LABEL: dict[str, list[str]] = {}
for _key, _text in ENGLISH.items():
    if _LABEL_KEY.search(_key) and is_label(_text) and "{" not in _text:
        _KEYS_BY_LABEL.setdefault(_text, []).append(_key)
_LABEL_PATTERNS = {
    label: re.compile(rf"(?<=[a-z,] ){re.escape(label)}\b")
    for label in _KEYS_BY_LABEL
    if re.match(r"[A-Z][a-z]{3}", label)
}

_CHECKS: tuple[Check, ...] = (
    _check_placeholders,
    _check_syntax,
    _check_markup,
    _check_same,
    _check_length,
    _check_end,
    _check_numbers,
    _check_terms,
    _check_address,
    _check_quoted_labels,
)


def main(codes: list[str]) -> int:
    """Print the findings of the languages, or of all, and return 1 if there are any."""
    total = 0
    for code in codes or LANGUAGES:
        found = check_language(load_language(code))
        sys.stdout.writelines(f"{finding}\n" for finding in found)
        sys.stdout.write(f"{code}: {len(found)} findings\n")
        total += len(found)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
