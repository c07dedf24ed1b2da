"""A provider's own token count of a request, to compare with ours. Never part of a turn."""

import asyncio
from dataclasses import dataclass
from typing import Any

from ..providers import CountsTokens, DeadlineExceeded, request_tokens
from ..window import KindCounter, Message
from .errors import NoTokenCount
from .ports import Question


@dataclass(frozen=True, slots=True)
class TokenCount:
    """The input tokens of a request, as its provider counts them and as they are counted here."""

    counted: int
    estimated: int

    def as_dict(self) -> dict[str, Any]:
        """Return both, and the difference in percent of the provider's count, or None if that is 0."""
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

    Raises `ProviderError`, and `NoTokenCount` if the provider has no endpoint for it.
    """
    provider = question.model.provider
    if not isinstance(provider, CountsTokens):
        raise NoTokenCount("the provider does not count tokens")
    request = question.request(messages, question.tools)
    try:
        async with asyncio.timeout(deadline), question.model.limit.permit():
            counted = await provider.count_tokens(request)
    except TimeoutError as err:
        raise DeadlineExceeded(f"no count in {deadline:g} seconds") from err
    return TokenCount(counted, request_tokens(request, counter))
