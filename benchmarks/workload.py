"""The conversation of all benchmarks of the window, and the cheap token counter that all contenders use.

About 295 tokens and 2.5 messages per turn: a question, an answer, and in every fourth turn a tool call with a result of
about 580 tokens. The messages have no library's format: each contender has to convert them during its measured time.
"""

from collections.abc import Iterator
import json
from random import Random
from typing import NamedTuple

SYSTEM_TOKENS = 500
TOKENS_PER_TURN = 295
MESSAGES_PER_TURN = 2.5
MESSAGE_OVERHEAD_TOKENS = 4
TOOL_NAME = "get_states"

_TOOL_TURN_INTERVAL = 4
# Minimum and maximum number of tokens of a text.
_QUESTION_TOKENS, _ANSWER_TOKENS, _RESULT_TOKENS = (8, 48), (47, 171), (400, 760)
_VOCABULARY_TEXT = (
    "the light in kitchen is on and off at warm bedroom door window open closed temperature seven degrees outside "
    "please what about tomorrow morning set heating to twenty living room now cover garage washing machine done music "
    "playing timer for pasta ten minutes good night everything locked battery of sensor low nobody home since eight"
)
_VOCABULARY_WORDS = _VOCABULARY_TEXT.split()


class WorkloadMessage(NamedTuple):
    """One message; a tool call and its result have a `call_id`, and the call has `arguments` as JSON text."""

    role: str
    text: str
    call_id: str = ""
    arguments: str = ""


type Turn = tuple[WorkloadMessage, ...]


def estimate_tokens(text: str) -> int:
    """Return a quarter of the text's length as its tokens: the cheapest possible counter."""
    return len(text) // 4


def estimate_message_tokens(said: WorkloadMessage) -> int:
    """Return the cost of a message, in tokens."""
    return MESSAGE_OVERHEAD_TOKENS + estimate_tokens(said.text) + estimate_tokens(said.arguments)


def build_system_prompt() -> str:
    """Return a system prompt of 500 tokens, including four tokens for its message."""
    return _generate_text(Random(0), SYSTEM_TOKENS - MESSAGE_OVERHEAD_TOKENS)


def build_conversation(turns: int, seed: int = 1) -> tuple[Turn, ...]:
    """Return a conversation of this many turns, always the same one for the same seed."""
    random = Random(seed)
    return tuple(tuple(_iter_messages(random, number)) for number in range(turns))


def _iter_messages(random: Random, number: int) -> Iterator[WorkloadMessage]:
    yield WorkloadMessage("user", _generate_text(random, random.randint(*_QUESTION_TOKENS)))
    if number % _TOOL_TURN_INTERVAL == _TOOL_TURN_INTERVAL - 1:
        call_id = f"c{number:08}"
        arguments = json.dumps({"area": random.choice(_VOCABULARY_WORDS), "domain": random.choice(_VOCABULARY_WORDS)})
        yield WorkloadMessage("assistant", "", call_id, arguments)
        yield WorkloadMessage("tool", _generate_text(random, random.randint(*_RESULT_TOKENS)), call_id)
    yield WorkloadMessage("assistant", _generate_text(random, random.randint(*_ANSWER_TOKENS)))


def _generate_text(random: Random, tokens: int) -> str:
    """Return random words with this many tokens, at four characters per token."""
    words = " ".join(random.choices(_VOCABULARY_WORDS, k=2 * tokens))
    return words[: 4 * tokens]
