"""Preparation of messages for a window: counting, dating and tagging them, cutting tool results, building stubs."""

from collections.abc import Mapping
import re
from types import MappingProxyType

from .exchange import Exchange
from .messages import (
    BY_ROLE,
    OUTPUT_AND_CALL,
    Message,
    Role,
    ToolCall,
    check_tags,
    join_tags,
    new_message,
    with_content,
)
from .tokens import TokenCounter, arguments_json, message_tokens

# A text with more characters per token of the limit is too long in any language, because prose has four to six.
_MOST_CHARACTERS_PER_TOKEN = 8
# The share of the limit that a cut aims for, because tokens are not spread evenly over a text.
_AIM = 0.95

CUT_BEGINS = "[Cut: these are the first "
_cut_mark = re.compile(rf"\n{re.escape(CUT_BEGINS)}\d+ of (\d+) characters\.\]\Z")
_LONGEST_CUT_MARK = 100
_NO_TOOLS = frozenset[str]()
_NONE_CUT: Mapping[int, Message] = MappingProxyType({})

STUB_BEGINS = "[Shortened result of "
_LONGEST_PART = 100


def cut_content(message: Message, limit: int, counter: TokenCounter) -> tuple[str, int]:
    """Return a tool result's content, cut to at most `limit` tokens, and its tokens. A last line marks a cut.

    A result that is far too long is first cut by its length, so that not all of it is counted. The line replaces the
    mark of an earlier cut.
    """
    content = message.content
    length = limit * _MOST_CHARACTERS_PER_TOKEN
    if len(content) <= length:
        tokens = message_tokens(message, counter)
        if tokens <= limit:
            return content, tokens
        length = _shorter(len(content), tokens, limit)
    mark = _cut_mark.search(content, max(0, len(content) - _LONGEST_CUT_MARK))
    content, total = (content[: mark.start()], mark[1]) if mark else (content, str(len(content)))
    length = min(length, len(content))
    while True:
        text = f"{content[:length]}\n{CUT_BEGINS}{length} of {total} characters.]"
        tokens = message_tokens(message, counter, text)
        if tokens <= limit or not length:
            return text, tokens
        length = _shorter(length, tokens, limit)


def _shorter(length: int, tokens: int, limit: int) -> int:
    return int(length * _AIM * limit / tokens)


def stub_results(
    exchange: Exchange,
    counter: TokenCounter,
    originals: Mapping[int, Message] = _NONE_CUT,
    live_tools: frozenset[str] = _NO_TOOLS,
    *,
    only_live: bool = False,
) -> Exchange:
    """Return an exchange with stubs for its tool results.

    A result that is not longer than its stub is kept. The stub of a live tool's result does not quote the result.
    `originals` are the uncut versions of results that were cut, by message index. With `only_live`, only results of
    live tools are replaced.
    """
    messages, tokens = list(exchange.messages), exchange.tokens
    calls: dict[str | None, ToolCall] = {}
    for place, message in enumerate(messages):
        for call in message.tool_calls:
            calls[call.id] = call
        if message.role != Role.TOOL:
            continue
        is_live = message.name in live_tools
        if is_live or (not only_live and len(message.content) > _LONGEST_PART):
            call, original = calls[message.tool_call_id], originals.get(place)
            messages[place] = shorter = stub_result(message, call, counter, original, is_live=is_live)
            tokens += (shorter.tokens or 0) - (message.tokens or 0)
    return Exchange(tuple(messages), exchange.tags, tokens, exchange.number, only_live, exchange.sources)


def stub_result(
    result: Message, call: ToolCall, counter: TokenCounter, original: Message | None = None, *, is_live: bool = False
) -> Message:
    """Return the stub of a tool result, or the result itself if it is a stub or no longer than its stub.

    `original` is the result before it was cut, or None if it was not cut; the stub describes the original. A result
    with `is_live` was true only while its exchange was open, so its stub does not quote it, and always replaces it.
    """
    if not is_live and (len(result.content) <= _LONGEST_PART or result.content.startswith(STUB_BEGINS)):
        return result
    whole = original or result
    note = "true only at that moment"
    if not is_live:
        note = f"{whole.tokens} tokens, beginning with {_one_line(whole.content)}"
    text = f"{STUB_BEGINS}{_one_line(call.name)} {_one_line(arguments_json(call))}: {note}]"
    if not is_live and len(text) >= len(result.content):
        return result
    tokens = message_tokens(result, counter, text)
    return with_content(result, text, tokens) if is_live or tokens < (result.tokens or 0) else result


def _one_line(text: str) -> str:
    """Return the beginning of a text on one line, with each run of white space replaced by a space."""
    beginning = " ".join(text[: 2 * _LONGEST_PART].split())
    if len(beginning) > _LONGEST_PART or len(text) > 2 * _LONGEST_PART:
        return f"{beginning[:_LONGEST_PART]}…"
    return beginning


def message_entry(message: Message, most: int, counter: TokenCounter, now: float) -> Message:
    """Return a message as a window stores it, a tool result cut to `most` tokens. Raises `InvalidTag`.

    `created` is set to `now`, in seconds since the epoch, unless the message already has a time.
    """
    role, calls = message.role, message.tool_calls
    if role is Role.TOOL:
        content, tokens = cut_content(message, most, counter)
    else:
        content, tokens = message.content, message_tokens(message, counter)
    automatic = OUTPUT_AND_CALL if calls else BY_ROLE[role]
    return new_message(
        role,
        content,
        calls,
        message.tool_call_id,
        message.name,
        join_tags(automatic, check_tags(message.tags)) if message.tags else automatic,
        now if message.created is None else message.created,
        tokens,
        message.native,
        message.attachments,
    )
