"""The end of an exchange whose turn failed or was interrupted: what is added so that the next request knows of it."""

from collections.abc import Iterable, Iterator

from .exchange import OpenExchange
from .messages import Message, ToolCall

# In the place of a result that never came. No longer than a result may be that has no stub.
INTERRUPTED_CALL = "[Interrupted before the result came: this call may or may not have been carried out.]"
# The last line of an answer that was interrupted.
INTERRUPTED_ANSWER = "[The answer was interrupted here.]"


def ending(exchange: OpenExchange, said: str, calls: Iterable[ToolCall]) -> Iterator[Message]:
    """Go through the messages that make an exchange whole: results for all calls, then what was said.

    `said` and `calls` are of the answer that was under way. Calls without an id, or with one that is not new, are not
    among the messages.
    """
    yield from map(_interrupted, exchange.unanswered)
    called = exchange.acceptable(calls)
    if called:
        yield Message.assistant(tool_calls=called)
        yield from map(_interrupted, called)
    yield Message.assistant("\n".join(filter(None, (said.rstrip(), INTERRUPTED_ANSWER))))


def _interrupted(call: ToolCall) -> Message:
    return Message.tool(call.id, call.name, INTERRUPTED_CALL)
