"""States of the home in exchanges: which ones an eviction makes outdated, and how to remove them."""

from collections.abc import Iterable, Iterator
from itertools import takewhile

from .entry import rewritten
from .exchange import Exchange
from .messages import Message, Remembered, Told
from .tokens import MESSAGE_OVERHEAD


def told_by(exchange: Exchange) -> Told | None:
    """Return what the question of an exchange tells about the home, or None."""
    return exchange.messages[0].told


def all_told(exchange: Exchange) -> Iterator[Told]:
    """Yield what an exchange tells about the home, results of tools included."""
    return (message.told for message in exchange.messages if message.told)


def tells(exchange: Exchange) -> bool:
    """Return whether an exchange tells about the home."""
    return any(all_told(exchange))


def outdated(exchanges: Iterable[Exchange], evicted: Iterable[Exchange]) -> list[Exchange]:
    """Return those of the exchanges, oldest first, that tell older states of the home than one of `evicted`.

    With the newer states evicted, they would contradict the present.
    """
    numbers = {exchange.number for exchange in evicted if tells(exchange)}
    if not numbers:
        return []
    newest = max(numbers)
    older = takewhile(lambda exchange: exchange.number < newest, exchanges)
    return [exchange for exchange in older if exchange.number not in numbers and tells(exchange)]


def without_told(exchange: Exchange) -> Exchange:
    """Return an exchange without what it tells about the home."""
    messages = tuple(_without(message) for message in exchange.messages)
    less = sum(
        (before.tokens or 0) - (after.tokens or 0) for before, after in zip(exchange.messages, messages, strict=True)
    )
    return exchange._replace(messages=messages, tokens=exchange.tokens - less)


def unstated(content: str, told: Told | None) -> str:
    """Return the content of a message without what it tells about the home."""
    return content if told is None else content[: told.start] + content[told.end :]


def _without(message: Message) -> Message:
    told = message.told
    if told is None:
        return message
    tokens = max(MESSAGE_OVERHEAD, (message.tokens or 0) - told.tokens)
    return rewritten(message, unstated(message.content, told), tokens, _moved(message, told))


def _moved(message: Message, told: Told) -> Remembered | None:
    """Return the position of the recalled lines once the states are removed."""
    recalled, length = message.remembered, told.end - told.start
    if recalled is None or recalled.start < told.end:
        return recalled
    return recalled._replace(start=recalled.start - length, end=recalled.end - length)
