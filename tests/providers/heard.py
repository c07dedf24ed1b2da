"""A collector for the events of a provider's stream."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import ProviderError
from custom_components.windowed_conversation.providers.events import (
    AnswerDone,
    Event,
    ReasoningDelta,
    TextDelta,
    ToolCallDone,
    Usage,
)
from custom_components.windowed_conversation.window import ToolCall

type ErrorTypes = type[ProviderError] | tuple[type[ProviderError], ...]


def closing(stream: AsyncIterator[Event]) -> aclosing[AsyncGenerator[Event]]:
    """Return a context manager that closes a provider's stream on exit."""
    assert isinstance(stream, AsyncGenerator)
    return aclosing(stream)


@dataclass
class Heard:
    """The events in order of arrival, and the error that ended the stream, if any."""

    events: list[Event] = field(default_factory=list)
    error: Any = None

    async def read(self, stream: AsyncIterator[Event]) -> Heard:
        """Read a stream up to its end or its failure."""
        async for event in stream:
            self.events.append(event)
        return self

    async def fail(self, stream: AsyncIterator[Event], error: ErrorTypes = ProviderError) -> Heard:
        """Read a stream up to its failure, which has to be one of these errors or a subclass."""
        with pytest.raises(error) as caught:
            await self.read(stream)
        self.error = caught.value
        return self

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, TextDelta)]

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def reasoning(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))

    @property
    def calls(self) -> list[ToolCall]:
        return [event.call for event in self.events if isinstance(event, ToolCallDone)]

    @property
    def called(self) -> list[tuple[str, dict[str, Any]]]:
        """The names and arguments of the calls, without ids."""
        return [(call.name, dict(call.arguments)) for call in self.calls]

    @property
    def ids(self) -> list[str]:
        return [call.id for call in self.calls]

    @property
    def usages(self) -> list[Usage]:
        return [event for event in self.events if isinstance(event, Usage)]

    @property
    def done_events(self) -> list[AnswerDone]:
        return [event for event in self.events if isinstance(event, AnswerDone)]
