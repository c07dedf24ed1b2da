"""The scripted model: the first rule that matches the newest user message answers. It stores nothing between requests.

`phrases` has the table of phrases for users. Prefixes of a phrase: "quietly, " makes the model say nothing after tool
calls, "say one moment, then " makes it speak before a tool call, "think first, then " makes it think before the answer
and before each call.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
import re

from .conversation import Answer, Conversation
from .everyday import answer_everyday, names_known_thing, recall_everyday
from .facts import FACT_RULES, RECALL_RULE
from .home import HOME_RULES
from .memory import MEMORY_RULES
from .phrases import EXAMPLE_PHRASES
from .rules import Rule, compile_pattern
from .talk import TALK_RULES
from .tool_search import TOOL_SEARCH_RULES
from .web_search import SEARCH_RULES

_HELP_PATTERN = compile_pattern(r"help(?: me)?|what can you do.*")

_RULES: tuple[Rule, ...] = (
    *TOOL_SEARCH_RULES,
    *FACT_RULES,
    *SEARCH_RULES,
    *TALK_RULES,
    *MEMORY_RULES,
)


def _make_quiet(answer: Answer, conversation: Conversation) -> Answer:
    return replace(answer, text="") if conversation.tool_rounds else answer


def _add_announcement(answer: Answer, _conversation: Conversation) -> Answer:
    return replace(answer, text=f"One moment. {answer.text}") if answer.calls else answer


def _add_thought(answer: Answer, _conversation: Conversation) -> Answer:
    return replace(answer, reasoning=f"The user wants me to think first. I do so, briefly. {answer.reasoning}")


type _AnswerChange = Callable[[Answer, Conversation], Answer]

_CHANGE_BY_PREFIX: tuple[tuple[re.Pattern[str], _AnswerChange], ...] = (
    (re.compile(r"quietly,? ", re.IGNORECASE), _make_quiet),
    (re.compile(r"say one moment,? (?:and |then )*", re.IGNORECASE), _add_announcement),
    (re.compile(r"think first,? (?:and |then )*", re.IGNORECASE), _add_thought),
)


def answer(conversation: Conversation) -> Answer:
    """Return the model's answer to the request."""
    said, manners = _split_prefixes(conversation.newest_user_turn.plain_text)
    answered = _apply_first_rule(said, conversation)
    for manner in manners:
        answered = manner(answered, conversation)
    return answered


def _split_prefixes(said: str) -> tuple[str, list[_AnswerChange]]:
    manners: list[_AnswerChange] = []
    while found := next(_match_prefixes(said), None):
        length, manner = found
        said = said[length:]
        manners.append(manner)
    return said, manners


def _match_prefixes(said: str) -> Iterator[tuple[int, _AnswerChange]]:
    for start, manner in _CHANGE_BY_PREFIX:
        if found := start.match(said):
            yield found.end(), manner


def _answer_about_home(said: str, conversation: Conversation) -> Answer | None:
    """Return the answer of a rule of the home, or of the reading of everyday sentences; None if neither matches.

    Rules take any words for a name, so one with a name that the home does not have comes second.
    """
    matches = ((rule, rule.match_text(said, conversation)) for rule in HOME_RULES)
    rule, found = next(((rule, found) for rule, found in matches if found), (None, None))
    if rule is None or found is None:
        return answer_everyday(said, conversation)
    is_named = {"name", "names"} & found.groupdict().keys()
    understood = answer_everyday(said, conversation) if is_named and not names_known_thing(said, conversation) else None
    return understood or rule.build_answer(found, conversation)


def _apply_first_rule(said: str, conversation: Conversation) -> Answer:
    if _HELP_PATTERN.fullmatch(said):
        return Answer(text="Try: " + "; ".join(f'"{phrase}"' for phrase, _ in EXAMPLE_PHRASES) + ".")
    for rule in _RULES:
        if found := rule.match_text(said, conversation):
            return rule.build_answer(found, conversation)
    if answered := _answer_about_home(said, conversation):
        return answered
    if found := RECALL_RULE.match_text(said, conversation):
        return RECALL_RULE.build_answer(found, conversation)
    return recall_everyday(said, conversation) or Answer(
        text="I am a scripted model and know only a few things. Tell me your name and ask for it later, "
        "ask for a story, or ask me what I can do."
    )
