"""What a window is made of at rest, to be kept somewhere and made into a window again."""

from dataclasses import replace
from typing import NamedTuple

from .exchange import Exchange
from .messages import Message
from .stats import Evicted
from .tokens import TokenCounter, message_tokens


class Snapshot(NamedTuple):
    """A window between two turns; all of it is immutable, so that it can be read in another thread."""

    conversation_id: str
    system: Message | None = None
    exchanges: tuple[Exchange, ...] = ()
    evicted: Evicted = Evicted()


def recounted(exchange: Exchange, counter: TokenCounter) -> Exchange:
    """Return the exchange with the tokens of its messages counted anew, whatever they are said to cost."""
    messages = tuple(replace(each, tokens=message_tokens(each, counter)) for each in exchange.messages)
    return exchange._replace(messages=messages, tokens=sum(message.tokens or 0 for message in messages))
