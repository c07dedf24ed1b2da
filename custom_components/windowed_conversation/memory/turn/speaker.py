"""The speaker of a turn, the words of their language, and checks by text alone, as whether a text is about them.

Memory gets the speaker from the caller, never from a model's arguments.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import islice
import json
from pathlib import Path
import re
from typing import Any, Self

from ...turn.names import iter_folded_words
from ...turn.routing import WindowKey, is_question
from ..core import Words, base_language, clean_text, get_function_words, remove_diacritics, split_words

# Each language has one file, with its words and sentences. The folder is listed at import, which Home Assistant does
# outside the event loop.
_LANGUAGES_FOLDER = Path(__file__).parents[2] / "languages"
UNDERSTOOD_LANGUAGES = frozenset([path.stem for path in _LANGUAGES_FOLDER.glob("*.json")])

_NEGATION_WORDS = {"no", "non", "não", "nie"}

# The most words before an indirect question, as in "tell me whether".
_MAX_INTRODUCTION_WORDS = 2
# The most words before a request to be told something, as in "can you please tell me".
_MAX_REQUEST_WORDS = 3

# The minimum share of a fact's words that its quote must contain; the model may phrase the rest freely.
_MIN_SUPPORT_SHARE = 0.5


def load_language(language: str) -> Mapping[str, Any]:
    """Return the words and sentences that are understood in a language, if any. The first call blocks on disk I/O."""
    base = base_language(language)
    return _read_language(base) if base in UNDERSTOOD_LANGUAGES else {}


@cache
def _read_language(base: str) -> Mapping[str, Any]:
    data: dict[str, Any] = json.loads((_LANGUAGES_FOLDER / f"{base}.json").read_text(encoding="utf-8"))
    return data


def get_word_boundary(language: str) -> str:
    """Return the pattern for the beginning or end of a word. It is empty for a script that does not separate words."""
    return "" if load_language(language).get("unspaced") else r"\b"


@cache
def _load_words(base: str, name: str) -> frozenset[str]:
    return frozenset(load_language(base).get(name, "").split())


class SpeakerSource(StrEnum):
    """The source by which a speaker is known."""

    LOGIN = "login"
    PIPELINE = "pipeline"
    SATELLITE = "satellite"
    ENTITY = "entity"
    PREFIX = "prefix"

    @property
    def is_voice(self) -> bool:
        """Whether the voice was recognized."""
        return self in (SpeakerSource.ENTITY, SpeakerSource.PREFIX)


class Permission(StrEnum):
    """The permission of a person, or of the speakers at a satellite."""

    EVERYTHING = "everything"
    NO_LOCKS = "no_locks"
    OWN_AREA = "own_area"
    TALK = "talk"


@dataclass(frozen=True, slots=True)
class Speaker:
    """The speaker of an exchange, with their language and their sentence."""

    text: str
    language: str
    # The user's id, or None for an unknown speaker, who can read and write only the home's facts.
    person: str | None = None
    name: str | None = None
    device: str | None = None
    # Whether nobody else uses the window. Only then may private facts enter it.
    is_alone: bool = False
    # None for an unknown speaker.
    source: SpeakerSource | None = None
    # Whether the source counts like a login for permissions.
    is_trusted: bool = False
    # The permissions that all have to allow an action.
    limits: frozenset[Permission] = frozenset()
    # Whether a device is assigned to this person, so that anyone who speaks there is taken for them.
    owns_device: bool = False
    # The conversation in which they speak, once that is known.
    conversation: str | None = None

    @property
    def is_known_by_device(self) -> bool:
        """Whether the speaker is known without a login, which gives no rights."""
        return self.source not in (None, SpeakerSource.LOGIN)

    @property
    def user_name(self) -> str | None:
        """The name of the signed-in user, for the instructions; None if the speaker is known only by the device."""
        return None if self.is_known_by_device else self.name

    @property
    def name_for_stamp(self) -> str | None:
        """The name for the stamp, with a note if the speaker is known by the device or the voice."""
        if self.source in (None, SpeakerSource.LOGIN) or not self.name:
            return self.name
        return f"{self.name}, {'by voice' if self.source.is_voice else 'by this device'}"

    def for_window(self, key: WindowKey) -> Self:
        """Return the speaker as memory treats them in a window: in another person's window they are unknown.

        Private facts enter only a window that the speaker alone owns. Shared windows, for example an agent's only
        window, have no owner.
        """
        is_alone = key.user is not None and key.user == self.person
        person = self.person if key.user is None or is_alone else None
        return replace(self, person=person, is_alone=is_alone, conversation=key.conversation)

    def build_words(self) -> Words:
        """Return the `Words` that split the speaker's texts. Use the result in one thread only."""
        return Words((self.language, "en"))


def is_about_speaker(text: str, language: str) -> bool:
    """Return whether a text is about its speaker. In a language without word lists, every text is assumed to be."""
    base = base_language(language)
    pronouns = get_function_words((base,), "self")
    words = clean_text(text).split()
    if not pronouns or not words:
        return not pronouns
    if pattern := load_language(base).get("first_person_pattern"):
        return re.search(pattern, text) is not None
    own_words = pronouns | _load_words(base, "first_person")
    # as in "ahora trabajo"
    skipped = _NEGATION_WORDS.union(load_language(base).get("updates", {}).get("changes", ()))
    first = [*[word for word in words if word not in skipped], words[0]][0]
    return not own_words.isdisjoint(words) or first in _load_words(base, "first_person_at_start")


def is_instruction(text: str, language: str) -> bool:
    """Return whether a text to announce is a question or a condition, by its first word.

    In a script that does not separate words, the word may be anywhere.
    """
    # as in "at what time the train leaves"
    is_preceded = {*islice(iter_folded_words(text), 1)} <= _load_words(base_language(language), "question_prepositions")
    return _begins_with(text, language, "question_words", leading_words=2 if is_preceded else 1)


def is_spoken_question(text: str, language: str, introduction_words: int = _MAX_INTRODUCTION_WORDS) -> bool:
    """Return whether a text without a question mark is a question, as in "is it on" or "tell me whether it is on"."""
    is_indirect = _begins_with(text, language, "question_words", leading_words=introduction_words + 1)
    return is_indirect or _begins_with(text, language, "yes_no_words")


def is_order(text: str, language: str) -> bool:
    """Return whether a text may order something to be done now.

    A question, a request to be told something ("please tell me the state of the lights"), and an order that is negated
    or has a condition ("turn it off at sunset") do not.
    """
    if is_question(text) or is_spoken_question(text, language):
        return False
    data, edge = load_language(language), get_word_boundary(language)
    information, *others = [
        f"(?:{data.get(name, '(?!)')}){edge}" for name in ("asking_phrases", "conditions", "negations")
    ]
    introduction = rf"^\W*(?:\w+\W+){{0,{_MAX_REQUEST_WORDS}}}" if edge else ""
    return not re.search("|".join([introduction + information, *[edge + other for other in others]]), text.casefold())


def _begins_with(text: str, language: str, name: str, *, leading_words: int = 1) -> bool:
    """Return whether one of the first words is in a list of a language. In some scripts, it may be anywhere."""
    wanted = _load_words(base_language(language), name)
    if not get_word_boundary(language):
        return any(word in text for word in wanted)
    return not wanted.isdisjoint(islice(iter_folded_words(text), leading_words))


def is_quote_from(quote: str, said: str) -> bool:
    """Return whether a quote is part of a sentence. Case, accents, punctuation and spaces are ignored.

    A quote of one word must be the complete sentence, because a word such as "the" proves nothing.
    """
    wanted, found = list(iter_tokens(quote)), list(iter_tokens(said))
    if not wanted or len(wanted) < min(2, len(found)):
        return False
    return any(found[start : start + len(wanted)] == wanted for start in range(len(found) - len(wanted) + 1))


def is_supported_by(
    fact: str, quote: str, speaker: str | None, words: Words, share: float = _MIN_SUPPORT_SHARE
) -> bool:
    """Return whether a quote supports a fact: it must contain at least this share of the fact's words.

    The speaker's name in the fact may stand for "I" in the quote.
    """
    names = words.build_term_set(speaker) if speaker else set()
    content = set(words.search_terms(fact).words) - names
    if not content:
        return is_quote_from(fact, quote)
    return len(content & words.build_term_set(quote)) >= share * len(content)


def iter_tokens(text: str) -> Iterator[str]:
    """Yield the words of a text, or the single characters where a script has no spaces."""
    for word, is_spaced in split_words(text):
        if is_spaced:
            yield remove_diacritics(word)
        else:
            yield from word
