"""Captures of the wildcards of sentence templates, judged by their words: list items, announcements, bare names."""

import re

# A longer name is more likely a wish than a thing: "everything for a carbonara" (measured on real lists).
_ITEM_WORDS = 3
_ITEM_CHARACTERS = 30

# The first words of texts that are to be worked out before they are announced, and not to be read out: questions and
# conditions, by language.
_INSTRUCTION_WORDS = {
    "de": "wer was wann wo warum wieso wie wieviel wieviele welche welcher welches ob wenn falls sobald",
    "en": "who whose what when where why how which whether if as once",
    "es": "quién quiénes qué cuándo dónde cómo cuánto cuánta cuántos cuántas cuál cuáles si cuando",
    "fr": "ce qui quand où pourquoi comment combien quel quelle quels quelles lequel laquelle si lorsque dès",
    "it": "chi che cosa ore quando dove dov perché come quanto quanta quanti quante quale quali se appena",
    "nl": "wie wat wanneer waar waarom hoe hoeveel welke welk of als zodra",
    "pl": "kto co kiedy gdzie dlaczego jak ile który która które czy jeśli jeżeli gdy",
}
# The words that may precede such a word: "at what time the train leaves".
_PREPOSITIONS = frozenset(["a", "at", "à", "de", "di", "da", "um", "bis", "ab", "seit", "om", "op", "o"])
_INSTRUCTIONS = {language: frozenset(words.split()) for language, words in _INSTRUCTION_WORDS.items()}

_LIST_REFERENCE = re.compile(r"\{[^{}]*\}")
_OPTIONAL = re.compile(r"\[[^\[\]]*\]")
_WORDS = re.compile(r"\w+")
_ANY_QUESTION_MARK = re.compile(r"[?？؟;]")
_COMMAS = re.compile("[,，、]")  # noqa: RUF001 - of several scripts


def is_long_name(text: str) -> bool:
    """Return whether the name of a new list item or timer is more than one thing: several, or a wish."""
    return len(text) > _ITEM_CHARACTERS or len(text.split()) > _ITEM_WORDS or bool(_COMMAS.search(text))


def is_instruction(text: str, language: str) -> bool:
    """Return whether a text to announce begins like a question or a condition. `language` is for example "pt-BR"."""
    words = _WORDS.findall(text.casefold())
    if words and words[0] in _PREPOSITIONS:
        words = words[1:]
    return bool(words) and words[0] in _INSTRUCTIONS.get(language.partition("-")[0], ())


def is_bare(template: str) -> bool:
    """Return whether a hassil sentence template has no required word: "[the] {name}"."""
    text = _LIST_REFERENCE.sub("", template)
    while text != (shorter := _OPTIONAL.sub("", text)):
        text = shorter
    return not _WORDS.search(text)


def is_question(text: str) -> bool:
    """Return whether a text has a question mark of any script."""
    return bool(_ANY_QUESTION_MARK.search(text))


def same_words(one: str, other: str) -> bool:
    """Return whether two texts differ only in punctuation and spaces."""
    return _WORDS.findall(one) == _WORDS.findall(other)


def cuts_word(text: str, span: tuple[int, int]) -> bool:
    """Return whether a span begins or ends between two letters, in scripts that put spaces between words."""
    return any(0 < place < len(text) and _is_cased(text[place - 1]) and _is_cased(text[place]) for place in span)


def _is_cased(character: str) -> bool:
    return character.lower() != character.upper()
