"""How an exchange ends whose turn failed or was interrupted: the messages that tell the next request about it."""

from collections.abc import Iterable, Iterator

from .exchange import OpenExchange
from .messages import Message, ToolCall

# Stands for a result that never came. Short enough that no stub replaces it.
INTERRUPTED_CALL = "[Interrupted before the result came: this call may or may not have been carried out.]"
# The last line of an answer that was interrupted.
INTERRUPTED_ANSWER = "[The answer was interrupted here.]"


def ending(exchange: OpenExchange, said: str, calls: Iterable[ToolCall]) -> Iterator[Message]:
    """Yield the messages that complete an exchange: results for all calls, then what was said.

    `said` and `calls` belong to the answer that was being written. Calls without an id, or with an id that is not new,
    are skipped.
    """
    yield from map(_interrupted, exchange.unanswered)
    called = exchange.acceptable(calls)
    if called:
        yield Message.assistant(tool_calls=called)
        yield from map(_interrupted, called)
    yield Message.assistant("\n".join(filter(None, (said.rstrip(), INTERRUPTED_ANSWER))))


def _interrupted(call: ToolCall) -> Message:
    return Message.tool(call.id, call.name, INTERRUPTED_CALL)
