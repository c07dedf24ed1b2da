"""The tool rounds of the open exchange, and how their results are shortened when the window is full.

A round is an assistant message with calls and the results of these calls. The model has read a round's results when the
next round begins.
"""

from collections.abc import Iterable

from .entry import rewritten
from .exchange import OpenExchange
from .messages import Message, Role, ToolCall
from .policy import MIN_RESULT_TOKENS
from .tokens import TokenCounter
from .tool_results import capped, stub


def stub_older_rounds(exchange: OpenExchange, low_water: float, counter: TokenCounter) -> bool:
    """Replace results with stubs, oldest round first, until the exchange costs at most `low_water` tokens.

    Keeps the newest round. Returns whether anything changed. Looks at each round only once, however often it is called.
    """
    stubs: dict[int, Message] = {}
    tokens, calls = exchange.tokens, dict[str | None, ToolCall]()
    place = exchange.stubbed
    while place < exchange.newest_round:
        message = exchange.messages[place]
        if message.tool_calls:
            if tokens <= low_water:
                break
            calls = {call.id: call for call in message.tool_calls}
        elif message.role is Role.TOOL:
            shorter = stub(message, calls[message.tool_call_id], counter, exchange.uncut.get(place))
            if shorter is not message:
                stubs[place] = shorter
                tokens -= (message.tokens or 0) - (shorter.tokens or 0)
        place += 1
    exchange.replace(stubs)
    exchange.stubbed = place
    return bool(stubs)


def cut_newest_round(exchange: OpenExchange, limit: int, counter: TokenCounter) -> bool:
    """Cut the results of the newest round until the exchange costs at most `limit` tokens, or each at most 100.

    Small results stay whole. Returns whether anything changed.
    """
    places = range(exchange.newest_round + 1, len(exchange.messages))
    results = {place: exchange.messages[place] for place in places if exchange.messages[place].role is Role.TOOL}
    tokens = [result.tokens or 0 for result in results.values()]
    most = max(_most_each(tokens, limit - exchange.tokens + sum(tokens)), MIN_RESULT_TOKENS)
    cuts: dict[int, Message] = {}
    for place, result in results.items():
        if (result.tokens or 0) > most:
            content, cost = capped(exchange.uncut.get(place, result), most, counter)
            if cost < (result.tokens or 0):
                cuts[place] = rewritten(result, content, cost)
    before = exchange.uncut
    exchange.uncut = {place: before.get(place, exchange.messages[place]) for place in (*before, *cuts)}
    exchange.replace(cuts)
    return bool(cuts)


def _most_each(tokens: Iterable[int], room: int) -> int:
    """Return the largest size for each that lets all fit. Room that small ones leave is shared by the others."""
    larger = sorted(tokens)
    while larger and larger[0] * len(larger) <= room:
        room -= larger.pop(0)
    return room // max(1, len(larger))
