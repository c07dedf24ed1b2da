"""Preparation of messages for a window: counting, dating and tagging them, cutting tool results, building stubs."""

from collections.abc import Iterator, Sequence
import re

from .exchange import Exchange
from .messages import CALL_TAGS, ROLE_TAGS, Message, Role, ToolCall, check_tags, join_tags, to_message, with_content
from .policy import WindowPolicy
from .tokens import TokenCounter, count_message_tokens, dump_arguments

# A text with more characters per token of the limit is too long in any language, because prose has four to six.
_MAX_CHARS_PER_TOKEN = 8
# The share of the limit that a cut aims for, because tokens are not spread evenly over a text.
_CUT_TARGET_SHARE = 0.95

CUT_MARK_PREFIX = "[Cut: these are the first "
_CUT_MARK_PATTERN = re.compile(rf"\n{re.escape(CUT_MARK_PREFIX)}\d+ of (\d+) characters\.\]\Z")
_MAX_CUT_MARK_CHARS = 100

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


def iter_stubs(
    messages: Sequence[Message],
    places: range,
    counter: TokenCounter,
    closing: WindowPolicy | None = None,
) -> Iterator[tuple[int, Message]]:
    """Yield the index and the stub of each tool result in whole rounds at these places.

    A result that is not longer than its stub is skipped. `closing` is the policy of a window that is closing their
    exchange: results of lasting tools are then skipped, and stubs of live tools quote nothing. If the policy stubs no
    results at close, only live tools get stubs.
    """
    calls: dict[str | None, ToolCall] = {}
    for place in places:
        message = messages[place]
        for call in message.tool_calls:
            calls[call.id] = call
        is_live = closing is not None and message.name in closing.live_tools
        is_kept = closing is not None and (message.name in closing.lasting_tools or not closing.stubs_at_close)
        if message.role is Role.TOOL and (is_live or not is_kept):
            stub = build_stub(message, calls[message.tool_call_id], counter, is_live=is_live)
            if stub is not message:
                yield place, stub


def stub_older_rounds(exchange: Exchange, counter: TokenCounter, kept_rounds: int) -> Exchange:
    """Return a closed exchange with stubs for the tool results of all but its newest `kept_rounds` tool rounds."""
    end = find_rounds(exchange)[-kept_rounds] if kept_rounds else len(exchange.messages)
    messages, tokens = list(exchange.messages), exchange.tokens
    for place, stub in iter_stubs(exchange.messages, range(end), counter):
        tokens += (stub.tokens or 0) - (messages[place].tokens or 0)
        messages[place] = stub
    return exchange._replace(messages=tuple(messages), tokens=tokens, has_full_results=kept_rounds > 0)


def find_rounds(exchange: Exchange) -> list[int]:
    """Return the indexes at which the tool rounds of a closed exchange begin: those of messages with calls."""
    return [place for place, message in enumerate(exchange.messages) if message.tool_calls]


def build_stub(result: Message, call: ToolCall, counter: TokenCounter, *, is_live: bool) -> Message:
    """Return the stub of a tool result, or the result itself if it is a stub or no longer than its stub.

    A result with `is_live` was true only while its exchange was open, so its stub does not quote it, and always
    replaces it.
    """
    if not is_live and (len(result.content) <= _MAX_QUOTE_CHARS or result.content.startswith(STUB_PREFIX)):
        return result
    note = "true only at that moment"
    if not is_live:
        note = f"{result.tokens} tokens, beginning with {_abbreviate(result.content)}"
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
