"""Texts that are about their speaker, recognized by their words alone."""

import re

from ..memory import spoken, words_for_oneself
from .speaker import base_language

# Besides the pronouns of `memory`: forms that it does not search by, and verbs where they need no pronoun.
_SELF_WORDS = {
    "en": "im ive id ill",
    "es": "conmigo míos mías soy estoy tengo quiero prefiero necesito odio puedo voy hago nací sé",
    "fr": "miens miennes",
    "it": "ho devo posso voglio vado preferisco bevo mangio dormo odio",
    "pl": "moją moich moi mojego mojemu moimi mną jestem mam lubię mieszkam pracuję piję jem wolę chcę muszę "
    "potrzebuję śpię wstaję nazywam urodziłem urodziłam nienawidzę kocham mogę",
    "pt": "comigo sou estou tenho quero prefiro odeio moro posso vou faço nasci bebo durmo",
}
# Verbs that are also nouns or other persons: they stand for "I" only where a text begins with them.
_VERBS_AT_THE_START = {
    "es": "vivo trabajo como bebo tomo uso duermo desayuno llamo",
    "it": "sono vivo lavoro abito uso amo chiamo",
    "pt": "gosto vivo trabalho como uso preciso chamo",
}
_UNSPACED = ("ja", "zh")
_NEGATIONS = {"no", "non", "não", "nie"}
# "We" begins with the character for "I" where there are no spaces.
_WE = re.compile("我们|我們|私たち|僕たち|俺たち")


def speaks_of_oneself(text: str, language: str) -> bool:
    """Return whether a text is about its speaker. In a language without word lists every text may be."""
    base = base_language(language)
    pronouns = words_for_oneself((base,))
    words = spoken(text).split()
    if not pronouns or not words:
        return not pronouns
    if base in _UNSPACED:
        return not pronouns.isdisjoint(_WE.sub("", text))
    first = words[1] if words[0] in _NEGATIONS and len(words) > 1 else words[0]
    own_words = pronouns.union(_SELF_WORDS.get(base, "").split())
    return not own_words.isdisjoint(words) or first in _VERBS_AT_THE_START.get(base, "").split()
