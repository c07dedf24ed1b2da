"""The conversation of all benchmarks of the window, and the cheap token counter that all contenders use.

About 295 tokens and 2.5 messages per turn: a question, an answer, and in every fourth turn a tool call with a result of
about 580 tokens. The messages have no library's format: each contender has to convert them during its measured time.
"""

from collections.abc import Iterator
import json
from random import Random
from typing import NamedTuple

SYSTEM_TOKENS = 500
TURN_TOKENS = 295
TURN_MESSAGES = 2.5
MESSAGE_OVERHEAD = 4
TOOL_NAME = "get_states"

_TOOL_TURN = 4
# Minimum and maximum number of tokens of a text.
_QUESTION, _ANSWER, _RESULT = (8, 48), (47, 171), (400, 760)
_VOCABULARY = (
    "the light in kitchen is on and off at warm bedroom door window open closed temperature seven degrees outside "
    "please what about tomorrow morning set heating to twenty living room now cover garage washing machine done music "
    "playing timer for pasta ten minutes good night everything locked battery of sensor low nobody home since eight"
)
_WORDS = _VOCABULARY.split()


class Said(NamedTuple):
    """One message; a tool call and its result have a `call_id`, and the call has `arguments` as JSON text."""

    role: str
    text: str
    call_id: str = ""
    arguments: str = ""


type Turn = tuple[Said, ...]


def cheap_count(text: str) -> int:
    """Return a quarter of the text's length as its tokens: the cheapest possible counter."""
    return len(text) // 4


def cheap_tokens(said: Said) -> int:
    """Return the cost of a message, in tokens."""
    return MESSAGE_OVERHEAD + cheap_count(said.text) + cheap_count(said.arguments)


def system_prompt() -> str:
    """Return a system prompt of 500 tokens, including four tokens for its message."""
    return _text(Random(0), SYSTEM_TOKENS - MESSAGE_OVERHEAD)


def conversation(turns: int, seed: int = 1) -> tuple[Turn, ...]:
    """Return a conversation of this many turns, always the same one for the same seed."""
    random = Random(seed)
    return tuple(tuple(_turn(random, number)) for number in range(turns))


def _turn(random: Random, number: int) -> Iterator[Said]:
    yield Said("user", _text(random, random.randint(*_QUESTION)))
    if number % _TOOL_TURN == _TOOL_TURN - 1:
        call_id = f"c{number:08}"
        arguments = json.dumps({"area": random.choice(_WORDS), "domain": random.choice(_WORDS)})
        yield Said("assistant", "", call_id, arguments)
        yield Said("tool", _text(random, random.randint(*_RESULT)), call_id)
    yield Said("assistant", _text(random, random.randint(*_ANSWER)))


def _text(random: Random, tokens: int) -> str:
    """Return random words with this many tokens, at four characters per token."""
    words = " ".join(random.choices(_WORDS, k=2 * tokens))
    return words[: 4 * tokens]
