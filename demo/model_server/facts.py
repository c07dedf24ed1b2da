"""The scripted model's knowledge about the user and the home, taken from the request and quotes from memory.

The model does not know any name or fact that is in neither of them.
"""

from collections.abc import Iterator
from itertools import chain
import re

from .conversation import Answer, Conversation, Turn
from .quotes import speaker_name, told_before
from .rules import Rule, pattern

_NAME_TOLD = re.compile(r"\b(?:my name is|i am called) (?P<name>[\w'\u2019-]+)", re.IGNORECASE)
_FACT_TOLD = re.compile(r"(?:remember|consider) that (?:the |my )?(?P<key>.+?) is (?P<value>.+?)[.!]*", re.IGNORECASE)
# Memory stores facts without the words "remember that".
_FACT_QUOTED = re.compile(
    r"(?:(?:remember|consider) that )?(?:the |my )?(?P<key>.+?) is (?P<value>.+?)[.!]*", re.IGNORECASE
)
_SUMMARY_WANTED = re.compile(r"\[?Summarize the conversation above\b.*", re.IGNORECASE)
_SUMMARY_ASKED = re.compile(r"\[What was said before\b.*", re.IGNORECASE)
_EARLIER_SUMMARY = re.compile(r"\byour earlier summary: (?P<text>.*?)\]?\Z")
_MOST_WORDS = re.compile(r"\bat most (?P<words>\d+) words\b")
_SUMMARY_BEGINS = "You told me: "


def _told(turns: tuple[Turn, ...]) -> Iterator[str]:
    """Yield the user's texts and those that summaries attribute to the user, newest first."""
    for turn in reversed(turns):
        if turn.role == "assistant" and turn.said.startswith(_SUMMARY_BEGINS):
            yield from _summarized(turn.said)
        elif turn.role == "user" and not _SUMMARY_ASKED.fullmatch(turn.said):
            yield turn.said


def _summarized(summary: str) -> Iterator[str]:
    yield from summary.removeprefix(_SUMMARY_BEGINS).rstrip(".").split("; ")


def _told_name(conversation: Conversation) -> str | None:
    told = chain(_told(conversation.turns), told_before(conversation))
    return next((match["name"] for match in map(_NAME_TOLD.search, told) if match), None)


def _meet(match: re.Match[str], _conversation: Conversation) -> Answer:
    return Answer(text=f"Nice to meet you, {match['name']}.")


def _name(_match: re.Match[str], conversation: Conversation) -> Answer:
    name = _told_name(conversation)
    return Answer(text=f"Your name is {name}." if name else "I do not know your name.")


def _who(_match: re.Match[str], conversation: Conversation) -> Answer:
    name = _told_name(conversation) or speaker_name(conversation)
    return Answer(text=f"You are {name}." if name else "I do not know who you are.")


def _keep(match: re.Match[str], _conversation: Conversation) -> Answer:
    return Answer(text=f"I will remember that the {match['key']} is {match['value']}.")


def _recall(match: re.Match[str], conversation: Conversation) -> Answer:
    key = match["key"]
    said = map(_FACT_TOLD.fullmatch, _told(conversation.turns))
    quoted = map(_FACT_QUOTED.fullmatch, told_before(conversation))
    value = next((told["value"] for told in chain(said, quoted) if told and told["key"].lower() == key.lower()), None)
    return Answer(text=f"The {key} is {value}." if value else f"I do not know {match['asked'].lower()} the {key} is.")


def _when(match: re.Match[str], conversation: Conversation) -> Answer:
    """Answer a question about a time from a sentence such as "the bins go out on Friday"."""
    about = re.compile(
        rf"\b(?P<what>{re.escape(match['what'])}s?) (?P<time>(?:at|every|in|on) .+?)[.!]*$", re.IGNORECASE
    )
    told = chain(_told(conversation.earlier), told_before(conversation))
    found = next((found for found in map(about.search, told) if found), None)
    return Answer(text=f"The {found['what']} {found['time']}." if found else "I do not know when.")


def _summarize(match: re.Match[str], conversation: Conversation) -> Answer:
    """List the facts that the user mentioned, each once in its newest form, the name first, within the word limit."""
    earlier = _EARLIER_SUMMARY.search(match[0])
    said = [*_told(conversation.earlier), *_summarized(earlier["text"] if earlier else "")]
    facts: dict[str, str] = {}
    for sentence in said:
        if told := _NAME_TOLD.search(sentence):
            facts.setdefault("name", f"my name is {told['name']}")
        elif told := _FACT_TOLD.fullmatch(sentence):
            facts.setdefault(told["key"].lower(), f"remember that the {told['key']} is {told['value']}")
    limit = _MOST_WORDS.search(match[0])
    text = ""
    for fact in sorted(facts.values(), key=lambda fact: not _NAME_TOLD.search(fact)):
        longer = f"{text}; {fact}" if text else f"{_SUMMARY_BEGINS}{fact}"
        if limit is None or len(longer.split()) <= int(limit["words"]):
            text = longer
    return Answer(text=f"{text}." if text else "Nothing of importance.")


FACTS: tuple[Rule, ...] = (
    Rule(_SUMMARY_WANTED, _summarize),
    Rule(pattern(r".*\b(?:what(?: is|'s) my name|do you (?:know|remember) my name|what my name is).*"), _name),
    Rule(pattern(r".*\b(?:my name is|i am called) (?P<name>[\w'\u2019-]+).*"), _meet),
    Rule(pattern(r"who am i"), _who),
    Rule(_FACT_TOLD, _keep),
    Rule(pattern(r"when do(?:es)? (?:the |my )?(?P<what>.+?)"), _when),
)

# This rule is last, because it takes any other question of this form to be about a fact.
RECALL = Rule(pattern(r"(?P<asked>what|who|where|when)(?: is|'s) (?:the |my )?(?P<key>.+?)"), _recall)
