"""States of the home in exchanges: which ones an eviction makes outdated, and how to remove them."""

from collections.abc import Iterable
from itertools import takewhile

from .entry import rewritten
from .exchange import Exchange
from .messages import Message, Remembered, Told
from .tokens import MESSAGE_OVERHEAD


def told_by(exchange: Exchange) -> Told | None:
    """Return what an exchange tells about the home, or None."""
    return exchange.messages[0].told


def outdated(exchanges: Iterable[Exchange], evicted: Iterable[Exchange]) -> list[Exchange]:
    """Return those of the exchanges, oldest first, that tell older states of the home than one of `evicted`.

    With the newer states evicted, they would contradict the present.
    """
    numbers = {exchange.number for exchange in evicted if told_by(exchange)}
    if not numbers:
        return []
    newest = max(numbers)
    older = takewhile(lambda exchange: exchange.number < newest, exchanges)
    return [exchange for exchange in older if told_by(exchange) and exchange.number not in numbers]


def without_told(exchange: Exchange) -> Exchange:
    """Return an exchange without what it tells about the home."""
    question = exchange.messages[0]
    told = question.told
    if told is None:
        return exchange
    content = question.content[: told.start] + question.content[told.end :]
    before = question.tokens or 0
    tokens = max(MESSAGE_OVERHEAD, before - told.tokens)
    shorter = rewritten(question, content, tokens, _moved(question, told))
    return exchange._replace(messages=(shorter, *exchange.messages[1:]), tokens=exchange.tokens - before + tokens)


def _moved(question: Message, told: Told) -> Remembered | None:
    """Return the position of the recalled lines once the states are removed."""
    recalled, length = question.remembered, told.end - told.start
    if recalled is None or recalled.start < told.end:
        return recalled
    return recalled._replace(start=recalled.start - length, end=recalled.end - length)
