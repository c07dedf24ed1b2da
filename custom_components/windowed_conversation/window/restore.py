"""The contents of a window at rest, which can be stored and loaded again."""

from dataclasses import replace
import json
from typing import NamedTuple

from .exchange import Exchange
from .messages import Message, Native
from .tokens import TokenCounter, message_tokens

# Residue has fewer characters than that to a token, in any encoding.
_MOST_CHARACTERS_PER_TOKEN = 16


class EvictionCounts(NamedTuple):
    """Counts of evictions since a window began; `trims` is the number of trims."""

    exchanges: int = 0
    messages: int = 0
    tokens: int = 0
    trims: int = 0

    def after_trim(self, exchanges: int, messages: int, tokens: int) -> EvictionCounts:
        """Return the figures with one more trim."""
        return EvictionCounts(
            self.exchanges + exchanges, self.messages + messages, self.tokens + tokens, self.trims + 1
        )


class Snapshot(NamedTuple):
    """A window between two turns. Immutable, so that another thread can read it.

    `pending_exchanges` are evicted exchanges that wait for a summary; no restored window has any.
    """

    conversation_id: str
    system: Message | None = None
    exchanges: tuple[Exchange, ...] = ()
    evicted: EvictionCounts = EvictionCounts()
    pending_exchanges: tuple[Exchange, ...] = ()


def recount_exchange(exchange: Exchange, counter: TokenCounter) -> Exchange:
    """Return the exchange with the tokens of its messages counted anew."""
    messages = tuple(recount_message(message, counter) for message in exchange.messages)
    return exchange._replace(messages=messages, tokens=sum(message.tokens or 0 for message in messages))


def recount_message(message: Message, counter: TokenCounter) -> Message:
    """Return the message with its tokens counted anew. The tokens of its residue are bounded by its size."""
    counted = replace(message, native=message.native and _plausible(message.native))
    return replace(counted, tokens=message_tokens(counted, counter))


def _plausible(native: Native) -> Native:
    characters = len(json.dumps(native.value))
    return replace(native, tokens=max(min(native.tokens, characters), characters // _MOST_CHARACTERS_PER_TOKEN))
