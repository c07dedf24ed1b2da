"""What becomes of tool results: how much of one enters a window, and the line that is left of it as history.

When that happens is the policy's and the window's business.
"""

from collections.abc import Mapping
from dataclasses import replace
import json
import re
from types import MappingProxyType

from .entry import rewritten
from .exchange import Exchange
from .messages import Message, Role, ToolCall
from .tokens import TokenCounter, message_tokens

# Beyond so many characters a text is over the limit by its length alone: prose has four to six characters to a token.
_MOST_CHARACTERS_PER_TOKEN = 8
# How near to the limit a cut aims, as the tokens of a text are not spread evenly over it.
_AIM = 0.95

CUT_BEGINS = "[Cut: these are the first "
_cut_mark = re.compile(rf"\n{re.escape(CUT_BEGINS)}\d+ of (\d+) characters\.\]\Z")
_LONGEST_CUT_MARK = 100
_NONE_CUT: Mapping[int, Message] = MappingProxyType({})

STUB_BEGINS = "[Shortened result of "
_LONGEST_PART = 100
_encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


def capped(message: Message, limit: int, counter: TokenCounter) -> tuple[str, int]:
    """Return the content of a tool result and its tokens, at most `limit`; a line at the end says when it was cut.

    What is many times over the limit is cut by its length before anything is counted. The line of an earlier cut gives
    way to the new one.
    """
    content = message.content
    kept = limit * _MOST_CHARACTERS_PER_TOKEN
    if len(content) <= kept:
        tokens = message_tokens(message, counter)
        if tokens <= limit:
            return content, tokens
        kept = _shorter(len(content), tokens, limit)
    marked = _cut_mark.search(content, max(0, len(content) - _LONGEST_CUT_MARK))
    content, length = (content[: marked.start()], marked[1]) if marked else (content, str(len(content)))
    kept = min(kept, len(content))
    while True:
        text = f"{content[:kept]}\n{CUT_BEGINS}{kept} of {length} characters.]"
        tokens = message_tokens(replace(message, content=text), counter)
        if tokens <= limit or not kept:
            return text, tokens
        kept = _shorter(kept, tokens, limit)


def _shorter(length: int, tokens: int, limit: int) -> int:
    return int(length * _AIM * limit / tokens)


def stubbed(exchange: Exchange, counter: TokenCounter, uncut: Mapping[int, Message] = _NONE_CUT) -> Exchange:
    """Return an exchange with a stub for each of its tool results that is longer than one.

    `uncut` has results as they were before they were cut, by their place.
    """
    messages, tokens = list(exchange.messages), exchange.tokens
    calls: dict[str | None, ToolCall] = {}
    for place, message in enumerate(messages):
        for call in message.tool_calls:
            calls[call.id] = call
        if message.role == Role.TOOL and len(message.content) > _LONGEST_PART:
            messages[place] = shorter = stub(message, calls[message.tool_call_id], counter, uncut.get(place))
            tokens += (shorter.tokens or 0) - (message.tokens or 0)
    return Exchange(tuple(messages), exchange.tags, tokens, exchange.number)


def stub(result: Message, call: ToolCall, counter: TokenCounter, uncut: Message | None = None) -> Message:
    """Return the stub of a tool result, or the result itself if that is no longer, or a stub already.

    `uncut` is the result as it was before it was cut, or None if it was not: the stub is of that.
    """
    whole = uncut or result
    content = whole.content
    if len(result.content) <= _LONGEST_PART or result.content.startswith(STUB_BEGINS):
        return result
    called = f"{_one_line(call.name)} {_one_line(_encode_json(dict(call.arguments)))}"
    text = f"{STUB_BEGINS}{called}: {whole.tokens} tokens, beginning with {_one_line(content)}]"
    if len(text) >= len(result.content):
        return result
    tokens = message_tokens(rewritten(result, text, 0), counter)
    return result if tokens >= (result.tokens or 0) else rewritten(result, text, tokens)


def _one_line(text: str) -> str:
    """Return the beginning of a text, with its white space made single blanks."""
    beginning = " ".join(text[: 2 * _LONGEST_PART].split())
    if len(beginning) > _LONGEST_PART or len(text) > 2 * _LONGEST_PART:
        return f"{beginning[:_LONGEST_PART]}…"
    return beginning
