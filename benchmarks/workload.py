"""The conversation that every benchmark of the window goes through, and the cheap counter that they all count with.

About 295 tokens and 2.5 messages a turn: a question, an answer, and in every fourth turn a tool call with a result of
about 580 tokens. Nobody's form of a message: whoever is measured has to make its own, in its own time.
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
# Tokens of one text, from and to.
_QUESTION, _ANSWER, _RESULT = (8, 48), (47, 171), (400, 760)
_VOCABULARY = (
    "the light in kitchen is on and off at warm bedroom door window open closed temperature seven degrees outside "
    "please what about tomorrow morning set heating to twenty living room now cover garage washing machine done music "
    "playing timer for pasta ten minutes good night everything locked battery of sensor low nobody home since eight"
)
_WORDS = _VOCABULARY.split()


class Said(NamedTuple):
    """One message: `call_id` and `arguments`, a JSON text, are those of the tool call that it makes or answers."""

    role: str
    text: str
    call_id: str = ""
    arguments: str = ""


type Turn = tuple[Said, ...]


def cheap_count(text: str) -> int:
    """Return a quarter of the text's length: nothing that counts tokens does less work."""
    return len(text) // 4


def cheap_tokens(said: Said) -> int:
    """Return the cost of a message, in tokens."""
    return MESSAGE_OVERHEAD + cheap_count(said.text) + cheap_count(said.arguments)


def system_prompt() -> str:
    """Return a system prompt of 500 tokens, its message's four included."""
    return _text(Random(0), SYSTEM_TOKENS - MESSAGE_OVERHEAD)


def conversation(turns: int, seed: int = 1) -> tuple[Turn, ...]:
    """Return a conversation, the same one for the same seed."""
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
    """Return words, four characters to a token."""
    words = " ".join(random.choices(_WORDS, k=2 * tokens))
    return words[: 4 * tokens]
