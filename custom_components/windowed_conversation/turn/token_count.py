"""What a provider itself counts of a request, beside what is counted here: to check that, never on the path of a turn.

Who wants to know, and of which request, is decided elsewhere.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from ..providers.errors import DeadlineExceeded
from ..providers.events import CountsTokens
from ..window import Message
from ..window.tokens import KindCounter, TextKind, message_tokens
from .errors import NoTokenCount
from .ports import Question


@dataclass(frozen=True, slots=True)
class TokenCount:
    """The input tokens of a request: as its provider counts them, and as they are counted here."""

    counted: int
    estimated: int

    def as_dict(self) -> dict[str, Any]:
        """Return both, and the difference in percent of what the provider counted, None where that is nothing."""
        difference = 100 * (self.estimated - self.counted) / self.counted if self.counted else None
        return {
            "counted": self.counted,
            "estimated": self.estimated,
            "difference": None if difference is None else round(difference, 1),
        }


async def count_request(
    question: Question, messages: tuple[Message, ...], counter: KindCounter, deadline: float
) -> TokenCount:
    """Count a request of these messages and of the question's tools; the deadline is in seconds.

    Raises `ProviderError`, and `NoTokenCount` where the provider has no endpoint for it.
    """
    provider = question.model.provider
    if not isinstance(provider, CountsTokens):
        raise NoTokenCount("the provider does not count tokens")
    try:
        async with asyncio.timeout(deadline), question.model.limit.permit():
            counted = await provider.count_tokens(question.request(messages, question.tools))
    except TimeoutError as err:
        raise DeadlineExceeded(f"no count in {deadline:g} seconds") from err
    estimated = sum(message_tokens(m, counter) if m.tokens is None else m.tokens for m in messages)
    for tool in question.tools:
        estimated += counter.count_as(TextKind.FIXED, tool.text)
    return TokenCount(counted, estimated)
