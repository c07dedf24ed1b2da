"""The texts of a language, the terms that Home Assistant uses in it, and the findings that are right as they are."""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
import json
from pathlib import Path
import re
from typing import Any

from tests.repository_files import PACKAGE, TEXTS, flat

FOLDER = Path(__file__).parent
TRANSLATIONS = PACKAGE / "translations"
ENGLISH = dict(flat(TEXTS))

# The languages that this integration is translated into, besides English.
LANGUAGES = (
    "cs", "da", "de", "es", "fr", "it", "ja", "nb", "nl", "pl", "pt", "pt-BR", "sv", "uk", "zh-Hans",
)  # fmt: skip

# Texts that may be spoken. All others are read, most of them on a phone.
SPOKEN = ("common.", "exceptions.")
SENTENCE_ENDS = tuple(".?!:…。？！：")  # noqa: RUF001 - of several scripts


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, or an empty dictionary if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


TERMS: dict[str, dict[str, dict[str, Any]]] = read_json(FOLDER / "terms.json")


def is_label(text: str) -> bool:
    """Return whether an English text is no sentence, so that it has to fit in a row of a phone."""
    return not text.endswith(SENTENCE_ENDS)


@dataclass(frozen=True, slots=True)
class Exceptions:
    """Texts that are right in a language although a check objects."""

    # English texts that the language shares.
    same: frozenset[str]
    # Words that no number changes.
    after_numbers: frozenset[str]
    # The reason for each other exception, by the pattern of its keys and the name of its check.
    reasons: dict[str, dict[str, str]]
    # The exceptions of all languages.
    shared: dict[str, dict[str, str]] = field(default_factory=dict)
    # Collects the exceptions that were needed.
    used: set[tuple[str, str]] = field(default_factory=set)

    def allow(self, key: str, check: str) -> bool:
        """Return whether a finding has a reason in the file of exceptions."""
        needed = {pattern for pattern, checks in self.reasons.items() if check in checks and fnmatchcase(key, pattern)}
        self.used.update((pattern, check) for pattern in needed)
        return bool(needed) or check in self.shared.get(key, {})

    def list_unused(self) -> list[tuple[str, str]]:
        """Return the pattern and the check of each exception that no finding needed."""
        every = {(pattern, check) for pattern, checks in self.reasons.items() for check in checks}
        return sorted(every - self.used)


@dataclass(frozen=True, slots=True)
class Language:
    """The texts of a language by their keys, with the exceptions for them."""

    code: str
    texts: dict[str, str]
    exceptions: Exceptions

    def accepted_forms(self, section: str, term: str) -> list[str]:
        """Return the forms of an English term that this language may use, or an empty list if none are known."""
        forms: list[str] = TERMS[section][term].get(self.code, [])
        return forms

    @property
    def is_english(self) -> bool:
        """Return whether this is the language that all others are translated from."""
        return self.code == "en"


def load_language(code: str) -> Language:
    """Return the texts and the exceptions of a language. Both may be missing."""
    return Language(code, dict(flat(read_json(TRANSLATIONS / f"{code}.json"))), load_exceptions(code))


def load_exceptions(code: str) -> Exceptions:
    """Return the exceptions of a language. Words that are the same in all languages are in `all.json`."""
    every, own = (read_json(FOLDER / "exceptions" / f"{name}.json") for name in ("all", code))
    return Exceptions(
        same=frozenset(every.get("same", [])) | frozenset(own.get("same", [])),
        after_numbers=frozenset(every.get("after_numbers", [])) | frozenset(own.get("after_numbers", [])),
        reasons=own.get("findings", {}),
        shared=every.get("findings", {}),
    )


def strip_markup(text: str) -> str:
    """Return a text without placeholders, code, and the targets of its links."""
    return re.sub(r"`[^`]*`|\{[^}]*\}|(?<=\])\([^)]*\)", "·", text)
