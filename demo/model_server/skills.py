"""The scripted model: the first rule that matches the newest user message answers. It stores nothing between requests.

`phrases` has the table of phrases for users. Prefixes of a phrase: "quietly, " makes the model say nothing after tool
calls, "say one moment, then " makes it speak before a tool call, "think first, then " makes it think before the answer
and before each call.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
import re

from .conversation import Answer, Conversation
from .facts import FACTS, RECALL
from .home import HOME
from .memory import MEMORY
from .phrases import WHAT_TO_TRY
from .rules import Rule, pattern
from .talk import TALK

_HELP = pattern(r"help(?: me)?|what can you do.*")

_RULES: tuple[Rule, ...] = (*FACTS, *TALK, *MEMORY, *HOME, RECALL)


def _quiet(answer: Answer, conversation: Conversation) -> Answer:
    return replace(answer, text="") if conversation.rounds else answer


def _announced(answer: Answer, _conversation: Conversation) -> Answer:
    return replace(answer, text=f"One moment. {answer.text}") if answer.calls else answer


def _thought(answer: Answer, _conversation: Conversation) -> Answer:
    return replace(answer, reasoning=f"The user wants me to think first. I do so, briefly. {answer.reasoning}")


type _Manner = Callable[[Answer, Conversation], Answer]

_MANNERS: tuple[tuple[re.Pattern[str], _Manner], ...] = (
    (re.compile(r"quietly,? ", re.IGNORECASE), _quiet),
    (re.compile(r"say one moment,? (?:and |then )*", re.IGNORECASE), _announced),
    (re.compile(r"think first,? (?:and |then )*", re.IGNORECASE), _thought),
)


def answer(conversation: Conversation) -> Answer:
    """Return the model's answer to the request."""
    said, manners = _without_manners(conversation.newest.said)
    answered = _plain_answer(said, conversation)
    for manner in manners:
        answered = manner(answered, conversation)
    return answered


def _without_manners(said: str) -> tuple[str, list[_Manner]]:
    manners: list[_Manner] = []
    while found := next(_leading_manners(said), None):
        length, manner = found
        said = said[length:]
        manners.append(manner)
    return said, manners


def _leading_manners(said: str) -> Iterator[tuple[int, _Manner]]:
    for start, manner in _MANNERS:
        if found := start.match(said):
            yield found.end(), manner


def _plain_answer(said: str, conversation: Conversation) -> Answer:
    if _HELP.fullmatch(said):
        return Answer(text="Try: " + "; ".join(f'"{phrase}"' for phrase, _ in WHAT_TO_TRY) + ".")
    for rule in _RULES:
        if found := rule.match(said, conversation):
            return rule.plan(found, conversation)
    return Answer(
        text="I am a scripted model and know only a few things. Tell me your name and ask for it later, "
        "ask for a story, or ask me what I can do."
    )
