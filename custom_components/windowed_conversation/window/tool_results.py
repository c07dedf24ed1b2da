"""Preparation of messages for a window: counting, dating and tagging them, cutting tool results, building stubs."""

from collections.abc import Mapping
import re

from .exchange import NO_UNCUT_RESULTS, Exchange
from .messages import CALL_TAGS, ROLE_TAGS, Message, Role, ToolCall, check_tags, join_tags, to_message, with_content
from .tokens import TokenCounter, count_message_tokens, dump_arguments

# A text with more characters per token of the limit is too long in any language, because prose has four to six.
_MAX_CHARS_PER_TOKEN = 8
# The share of the limit that a cut aims for, because tokens are not spread evenly over a text.
_CUT_TARGET_SHARE = 0.95

CUT_MARK_PREFIX = "[Cut: these are the first "
_CUT_MARK_PATTERN = re.compile(rf"\n{re.escape(CUT_MARK_PREFIX)}\d+ of (\d+) characters\.\]\Z")
_MAX_CUT_MARK_CHARS = 100
_NO_TOOLS = frozenset[str]()

STUB_PREFIX = "[Shortened result of "
_MAX_QUOTE_CHARS = 100


def cut_content(message: Message, limit: int, counter: TokenCounter) -> tuple[str, int]:
    """Return a tool result's content, cut to at most `limit` tokens, and its tokens. A last line marks a cut.

    A result that is far too long is first cut by its length, so that not all of it is counted. The line replaces the
    mark of an earlier cut.
    """
    content = message.content
    length = limit * _MAX_CHARS_PER_TOKEN
    if len(content) <= length:
        tokens = count_message_tokens(message, counter)
        if tokens <= limit:
            return content, tokens
        length = _estimate_cut_chars(len(content), tokens, limit)
    mark = _CUT_MARK_PATTERN.search(content, max(0, len(content) - _MAX_CUT_MARK_CHARS))
    content, total = (content[: mark.start()], mark[1]) if mark else (content, str(len(content)))
    length = min(length, len(content))
    while True:
        text = f"{content[:length]}\n{CUT_MARK_PREFIX}{length} of {total} characters.]"
        tokens = count_message_tokens(message, counter, text)
        if tokens <= limit or not length:
            return text, tokens
        length = _estimate_cut_chars(length, tokens, limit)


def _estimate_cut_chars(length: int, tokens: int, limit: int) -> int:
    return int(length * _CUT_TARGET_SHARE * limit / tokens)


def stub_tool_results(
    exchange: Exchange,
    counter: TokenCounter,
    originals: Mapping[int, Message] = NO_UNCUT_RESULTS,
    live_tools: frozenset[str] = _NO_TOOLS,
    lasting_tools: frozenset[str] = _NO_TOOLS,
    *,
    only_live: bool = False,
) -> Exchange:
    """Return an exchange with stubs for its tool results.

    A result that is not longer than its stub is kept, as is that of a lasting tool. The stub of a live tool's result
    does not quote the result.
    `originals` are the uncut versions of results that were cut, by message index. With `only_live`, only results of
    live tools are replaced.
    """
    messages, tokens = list(exchange.messages), exchange.tokens
    calls: dict[str | None, ToolCall] = {}
    for place, message in enumerate(messages):
        for call in message.tool_calls:
            calls[call.id] = call
        if message.role != Role.TOOL or message.name in lasting_tools:
            continue
        is_live = message.name in live_tools
        if is_live or (not only_live and len(message.content) > _MAX_QUOTE_CHARS):
            call, original = calls[message.tool_call_id], originals.get(place)
            messages[place] = shorter = build_stub(message, call, counter, original, is_live=is_live)
            tokens += (shorter.tokens or 0) - (message.tokens or 0)
    return Exchange(tuple(messages), exchange.tags, tokens, exchange.number, only_live, exchange.sources)


def stub_older_rounds(exchange: Exchange, counter: TokenCounter, kept_rounds: int) -> Exchange:
    """Return a closed exchange with stubs for the tool results of all but its newest `kept_rounds` tool rounds."""
    end = find_rounds(exchange)[-kept_rounds] if kept_rounds else len(exchange.messages)
    older = stub_tool_results(exchange._replace(messages=exchange.messages[:end]), counter)
    return older._replace(messages=(*older.messages, *exchange.messages[end:]), has_full_results=kept_rounds > 0)


def find_rounds(exchange: Exchange) -> list[int]:
    """Return the indexes at which the tool rounds of a closed exchange begin: those of messages with calls."""
    return [place for place, message in enumerate(exchange.messages) if message.tool_calls]


def build_stub(
    result: Message, call: ToolCall, counter: TokenCounter, original: Message | None = None, *, is_live: bool = False
) -> Message:
    """Return the stub of a tool result, or the result itself if it is a stub or no longer than its stub.

    A result with `is_live` was true only while its exchange was open, so its stub does not quote it, and always
    replaces it.
    """
    if not is_live and (len(result.content) <= _MAX_QUOTE_CHARS or result.content.startswith(STUB_PREFIX)):
        return result
    whole = original or result
    note = "true only at that moment"
    if not is_live:
        note = f"{whole.tokens} tokens, beginning with {_abbreviate(whole.content)}"
    text = f"{STUB_PREFIX}{_abbreviate(call.name)} {_abbreviate(dump_arguments(call))}: {note}]"
    if not is_live and len(text) >= len(result.content):
        return result
    tokens = count_message_tokens(result, counter, text)
    return with_content(result, text, tokens) if is_live or tokens < (result.tokens or 0) else result


def _abbreviate(text: str) -> str:
    """Return the beginning of a text on one line, with each run of white space replaced by a space."""
    beginning = " ".join(text[: 2 * _MAX_QUOTE_CHARS].split())
    if len(beginning) > _MAX_QUOTE_CHARS or len(text) > 2 * _MAX_QUOTE_CHARS:
        return f"{beginning[:_MAX_QUOTE_CHARS]}…"
    return beginning


def prepare_message(message: Message, most: int, counter: TokenCounter, now: float) -> Message:
    """Return a message as a window stores it, a tool result cut to `most` tokens. Raises `InvalidTag`.

    `Message.created` is set to `now`, in seconds since the epoch, unless the message already has a time.
    """
    role, calls = message.role, message.tool_calls
    if role is Role.TOOL:
        content, tokens = cut_content(message, most, counter)
    else:
        content, tokens = message.content, count_message_tokens(message, counter)
    automatic = CALL_TAGS if calls else ROLE_TAGS[role]
    return to_message(
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
