"""The scripted model's knowledge about the user and the home, taken from the request and quotes from memory.

The model does not know any name or fact that is in neither of them.
"""

from collections.abc import Iterator
from itertools import chain
import re

from .conversation import Answer, Conversation, Turn
from .everyday_recall import answer_from_quotes
from .quotes import find_speaker_name, iter_quoted_texts
from .rules import Rule, compile_pattern
from .sentences import Sentence

_NAME_PATTERN = re.compile(r"\b(?:my name is|i am called) (?P<name>[\w'\u2019-]+)", re.IGNORECASE)
_FACT_PATTERN = re.compile(
    r"(?:remember|consider) that (?:the |my )?(?P<key>.+?) is (?P<value>.+?)[.!]*", re.IGNORECASE
)
# Memory stores facts without the words "remember that".
_QUOTED_FACT_PATTERN = re.compile(
    r"(?:(?:remember|consider) that )?(?:the |my )?(?P<key>.+?) is (?P<value>.+?)[.!]*", re.IGNORECASE
)
_SUMMARY_REQUEST_PATTERN = re.compile(r"\[?Summarize the conversation above\b.*", re.IGNORECASE)
_SUMMARY_QUESTION_PATTERN = re.compile(r"\[What was said before\b.*", re.IGNORECASE)
_EARLIER_SUMMARY_PATTERN = re.compile(r"\byour earlier summary: (?P<text>.*?)\]?\Z")
_WORD_LIMIT_PATTERN = re.compile(r"\bat most (?P<words>\d+) words\b")
_SUMMARY_PREFIX = "You told me: "


def _iter_user_texts(turns: tuple[Turn, ...]) -> Iterator[str]:
    """Yield the user's texts and those that summaries attribute to the user, newest first."""
    for turn in reversed(turns):
        if turn.role == "assistant" and turn.plain_text.startswith(_SUMMARY_PREFIX):
            yield from _split_summary(turn.plain_text)
        elif turn.role == "user" and not _SUMMARY_QUESTION_PATTERN.fullmatch(turn.plain_text):
            yield turn.plain_text


def _split_summary(summary: str) -> Iterator[str]:
    yield from summary.removeprefix(_SUMMARY_PREFIX).rstrip(".").split("; ")


def _find_user_name(conversation: Conversation) -> str | None:
    told = chain(_iter_user_texts(conversation.turns), iter_quoted_texts(conversation))
    return next((match["name"] for match in map(_NAME_PATTERN.search, told) if match), None)


def _greet_by_name(match: re.Match[str], _conversation: Conversation) -> Answer:
    return Answer(text=f"Nice to meet you, {match['name']}.")


def _answer_name(_match: re.Match[str], conversation: Conversation) -> Answer:
    name = _find_user_name(conversation)
    return Answer(text=f"Your name is {name}." if name else "I do not know your name.")


def _answer_identity(_match: re.Match[str], conversation: Conversation) -> Answer:
    name = _find_user_name(conversation) or find_speaker_name(conversation)
    return Answer(text=f"You are {name}." if name else "I do not know who you are.")


def _confirm_fact(match: re.Match[str], _conversation: Conversation) -> Answer:
    return Answer(text=f"I will remember that the {match['key']} is {match['value']}.")


def _answer_fact(match: re.Match[str], conversation: Conversation) -> Answer:
    key = match["key"]
    said = map(_FACT_PATTERN.fullmatch, _iter_user_texts(conversation.turns))
    quoted = map(_QUOTED_FACT_PATTERN.fullmatch, iter_quoted_texts(conversation))
    value = next((told["value"] for told in chain(said, quoted) if told and told["key"].lower() == key.lower()), None)
    if value:
        return Answer(text=f"The {key} is {value}.")
    unknown = Answer(text=f"I do not know {match['asked'].lower()} the {key} is.")
    return answer_from_quotes(Sentence(match[0]), conversation) or unknown


def _answer_time(match: re.Match[str], conversation: Conversation) -> Answer:
    """Answer a question about a time from a sentence such as "the bins go out on Friday"."""
    about = re.compile(
        rf"\b(?P<what>{re.escape(match['what'])}s?) (?P<time>(?:at|every|in|on) .+?)[.!]*$", re.IGNORECASE
    )
    told = chain(_iter_user_texts(conversation.earlier_turns), iter_quoted_texts(conversation))
    found = next((found for found in map(about.search, told) if found), None)
    if found:
        return Answer(text=f"The {found['what']} {found['time']}.")
    return answer_from_quotes(Sentence(match[0]), conversation) or Answer(text="I do not know when.")


def _summarize(match: re.Match[str], conversation: Conversation) -> Answer:
    """List the facts that the user mentioned, each once in its newest form, the name first, within the word limit."""
    earlier = _EARLIER_SUMMARY_PATTERN.search(match[0])
    said = [*_iter_user_texts(conversation.earlier_turns), *_split_summary(earlier["text"] if earlier else "")]
    facts: dict[str, str] = {}
    for sentence in said:
        if told := _NAME_PATTERN.search(sentence):
            facts.setdefault("name", f"my name is {told['name']}")
        elif told := _FACT_PATTERN.fullmatch(sentence):
            facts.setdefault(told["key"].lower(), f"remember that the {told['key']} is {told['value']}")
    limit = _WORD_LIMIT_PATTERN.search(match[0])
    text = ""
    for fact in sorted(facts.values(), key=lambda fact: not _NAME_PATTERN.search(fact)):
        longer = f"{text}; {fact}" if text else f"{_SUMMARY_PREFIX}{fact}"
        if limit is None or len(longer.split()) <= int(limit["words"]):
            text = longer
    return Answer(text=f"{text}." if text else "Nothing of importance.")


FACT_RULES: tuple[Rule, ...] = (
    Rule(_SUMMARY_REQUEST_PATTERN, _summarize),
    Rule(
        compile_pattern(r".*\b(?:what(?: is|'s) my name|do you (?:know|remember) my name|what my name is).*"),
        _answer_name,
    ),
    Rule(compile_pattern(r".*\b(?:my name is|i am called) (?P<name>[\w'\u2019-]+).*"), _greet_by_name),
    Rule(compile_pattern(r"who am i"), _answer_identity),
    Rule(_FACT_PATTERN, _confirm_fact),
    Rule(compile_pattern(r"when do(?:es)? (?:the |my )?(?P<what>.+?)"), _answer_time),
)

# This rule is last, because it takes any other question of this form to be about a fact.
RECALL_RULE = Rule(compile_pattern(r"(?P<asked>what|who|where|when)(?: is|'s) (?:the |my )?(?P<key>.+?)"), _answer_fact)
