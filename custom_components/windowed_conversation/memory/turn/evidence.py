"""Evidence in sentences: the clause of a user that a model may store, and a request to forget something."""

from collections.abc import Collection
from functools import cache
from itertools import takewhile
import re

from ...turn.names import SENTENCE_MARKS
from ...turn.routing import is_question
from ..core import MAX_FACT_CHARS, base_language
from .speaker import (
    Speaker,
    get_word_boundary,
    is_about_speaker,
    is_quote_from,
    is_spoken_question,
    is_supported_by,
    iter_tokens,
    load_language,
)

# The minimum share of a fact's words that the user's clause must contain, else the clause is stored instead of it.
_MIN_OWN_SHARE = 0.8
# The share of the clause's words that such a fact must contain: without "Ben said", a clause means something else.
_COVERED_SHARE = 1.0

_CLAUSE_PATTERN = re.compile(r"(?:[^.!?:;,\n。！？：；，、]|[.:,](?=\S))+[.!?]*")  # noqa: RUF001 - of several scripts
SENTENCE_PATTERN = re.compile(r"(?:[^.!?\n。！？]|[.](?=\S))+[.!?。！？]*")  # noqa: RUF001 - of several scripts
_HEADING_PATTERN = re.compile(r"[:：\n]")  # noqa: RUF001 - of several scripts
_QUOTED_PATTERN = re.compile('["“„«「『][^"“”»」』]*["“”»」』]?')
# Characters of Markdown and HTML that may hide what follows, and those that reverse it.
_HIDING_PATTERN = re.compile("[<`|~\u202a-\u202e\u2066-\u2069]|\\]\\s*[(:]")
_OPENING_QUOTES, _CLOSING_QUOTES, _PLAIN_QUOTE = "“„«「『", "”»」』", '"'
_MARK = "\N{OBJECT REPLACEMENT CHARACTER}"


def find_statement(quote: str, said: str, language: str) -> str | None:
    """Return the clauses of a sentence that contain a quote, or None if they are no statement of the user's own.

    A question, a request to the assistant, words between quotation marks, and a text that a request introduces
    ("translate this: ...") state nothing. In a sentence that asks something ("..., is that true?"), only what is about
    the speaker is stated.
    """
    if not is_quote_from(quote, said):
        return None
    clauses = list(_CLAUSE_PATTERN.finditer(said))
    tokens = [(token, clause) for clause in clauses for token in iter_tokens(clause.group())]
    found, wanted = [token for token, _ in tokens], list(iter_tokens(quote))
    starts = range(len(found) - len(wanted) + 1)
    first = next((start for start in starts if found[start : start + len(wanted)] == wanted), None)
    if first is None:
        return None
    start, end = tokens[first][1].start(), tokens[first + len(wanted) - 1][1].end()
    sentences = [each.group() for each in SENTENCE_PATTERN.finditer(said) if each.start() < end and start < each.end()]
    clause = said[start:end].strip(SENTENCE_MARKS)
    is_own = is_about_speaker(clause, language)
    is_asked = any(is_question(each) and (not is_own or _is_request(each, language)) for each in sentences)
    heading = _HEADING_PATTERN.split(said[:start])[0] if _HEADING_PATTERN.search(said[:start]) else ""
    if is_asked or is_question(clause) or _is_request(clause, language) or _is_quoted(said[:start], clause, quote):
        return None
    return None if _is_request(heading, language) or len(clause) > MAX_FACT_CHARS else clause


def choose_fact_text(text: str, statement: str, speaker: Speaker) -> str | None:
    """Return the text to store for a statement, or None if the model's text says something else.

    It is the model's text if nearly all of its words are the user's, it leaves out none but small ones, and it has as
    many negations and conditions. Otherwise, it is the statement itself.
    """
    words, name = speaker.build_words(), speaker.name
    if not is_supported_by(text, statement, name, words):
        return None
    is_own = is_supported_by(text, statement, name, words, _MIN_OWN_SHARE)
    is_whole = is_supported_by(statement, text, name, words, _COVERED_SHARE)
    limits = [compile_words(each, base_language(speaker.language)) for each in ("negations", "conditions")]
    counts = [[len(each.findall(said.casefold())) for each in limits] for said in (text, statement)]
    return text if is_own and is_whole and counts[0] == counts[1] else statement


def asks_to_forget(text: str, language: str) -> bool:
    """Return whether a text asks to forget something: it has a word of forgetting that is not negated ("don't forget").

    A question, a habit ("I always forget"), words between quotation marks, and a text that a request introduces ask
    for nothing. In a language without words of forgetting, any other text may ask for it.
    """
    base = base_language(language)
    if is_question(text) or is_spoken_question(text, language, introduction_words=0):
        return False
    heading = _HEADING_PATTERN.split(text)[0]
    own = _QUOTED_PATTERN.sub("", heading if _is_request(heading, language) else text).casefold()
    own = compile_words("forgetting_habits", base).sub("", own)
    forgets, negates = compile_words("forgetting_words", base).pattern, compile_words("negations", base).pattern
    # "no longer" is a word of forgetting that is not negated
    ending, gap = (r"\w*", r"\W+(?:\w+\W+)?") if get_word_boundary(base) else ("", ".?")
    marked, count = re.subn(f"{forgets}{ending}", _MARK, own)
    return count > 0 and not re.search(
        rf"{negates}.*{_MARK}|{_MARK}{gap}{negates}|{_MARK}[^.,;!?]*{negates}\W*$", marked, re.DOTALL
    )


def asks_about(texts: Collection[str], answer: str, speaker: Speaker) -> bool:
    """Return whether an answer visibly ends with questions that name each of the texts, by at least half of its words.

    The last one has to name a text, because a yes answers that one.
    """
    if not texts:
        return True
    ending = list(takewhile(is_question, reversed(SENTENCE_PATTERN.findall(answer))))

    def names(question: str, text: str) -> bool:
        return is_supported_by(text, question, speaker.name, speaker.build_words())

    is_last = any(names(ending[0], text) for text in texts) if ending else False
    return is_last and all(names(" ".join(ending), text) for text in texts) and not may_hide(answer)


def may_hide(text: str) -> bool:
    """Return whether a text has marks that may keep a part of it from being seen or heard."""
    return _HIDING_PATTERN.search(text) is not None


def _is_request(text: str, language: str) -> bool:
    base = base_language(language)
    pattern, rest = compile_words("request_words", base), _strip_openers(text, base)
    return bool(pattern.match(rest) if get_word_boundary(base) else pattern.search(rest))


def _is_quoted(before: str, clause: str, quote: str) -> bool:
    """Return whether a quote is between quotation marks, of which the clause may contain the first."""
    before += clause[: max(0, clause.casefold().find(quote.casefold().strip(SENTENCE_MARKS)))]
    opened = sum(map(before.count, _OPENING_QUOTES)) - sum(map(before.count, _CLOSING_QUOTES))
    return opened > 0 or before.count(_PLAIN_QUOTE) % 2 == 1


def _strip_openers(text: str, base: str) -> str:
    data = load_language(base).get("memory", {})
    phrases = [*data.get("openers", ()), *data.get("please", ())]
    found = phrases and re.match(rf"(?:(?:{'|'.join(map(re.escape, phrases))})\b\W*)+", text.casefold())
    return text.casefold()[found.end() if found else 0 :].lstrip(SENTENCE_MARKS)


@cache
def compile_words(name: str, base: str) -> re.Pattern[str]:
    """Return the pattern of a list of words. Words of forgetting may have any ending."""
    edge = get_word_boundary(base)
    words = load_language(base).get(name, "" if name == "forgetting_words" else "(?!)")
    return re.compile(f"{edge}(?:{words}){'' if name == 'forgetting_words' else edge}")
