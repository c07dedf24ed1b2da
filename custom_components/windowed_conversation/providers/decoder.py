"""The base of the decoders of all formats: text, reasoning, tool calls, usage, and the end of an answer."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .calls import Calls
from .characters import SurrogateJoiner
from .errors import BadStream, ProviderError
from .events import Event, Finished, FinishReason, ReasoningDelta, Request, TextDelta, Usage

# The reasons for the end of an answer, in all formats and in those of compatible servers.
_REASONS = (
    "stop length tool_calls content_filter function_call abort eos error insufficient_system_resource model_length "
    "completed end_turn max_tokens stop_sequence tool_use pause_turn compaction refusal model_context_window_exceeded "
    "STOP MAX_TOKENS CONTINUATION BLOCKLIST ESCALATION FUNCTION_CALL IMAGE_OTHER IMAGE_PROHIBITED_CONTENT "
    "IMAGE_RECITATION IMAGE_SAFETY LANGUAGE MALFORMED_FUNCTION_CALL MALFORMED_RESPONSE MISSING_THOUGHT_SIGNATURE "
    "MODEL_ARMOR NO_IMAGE OTHER PROHIBITED_CONTENT RECITATION SAFETY SPII TOO_MANY_TOOL_CALLS "
    "UNEXPECTED_TOOL_CALL"
)


def finish_reason(word: str) -> str:
    """Return a server's reason for the end of an answer, or `other`: an unknown one may repeat the conversation."""
    return word if word in _REASONS.split() else "other"


class Decoder(ABC):
    """Decodes one answer, event by event. `names` maps the names that were sent to the tools' own names.

    `is_complete`: whether the terminal marker has arrived.
    """

    def __init__(self, request: Request, names: Mapping[str, str]) -> None:
        self.is_complete = False
        self._calls = Calls(request, names)
        self._usage: Usage | None = None
        # The server's reason for the end of the answer, see `finish_reason`.
        self._ended = ""
        # The server's name for itself, see `Finished`.
        self._server = ""
        self._text = SurrogateJoiner()
        self._reasoning = SurrogateJoiner()
        # The length of the text so far, in characters.
        self._length = 0
        # The size of the residue, see `Finished`.
        self._residue_tokens: int | None = None

    @abstractmethod
    def on_event(self, event: Any) -> Iterable[Event]:
        """Return our events for an event of the server: JSON in which any value may have any type, or be missing."""

    @abstractmethod
    def as_stream(self, answer: Any) -> Iterable[Any]:
        """Return the events of an answer that the server sent in one piece although a stream was requested."""

    def on_end(self) -> Iterator[Event]:
        """Yield the usage and the terminal event. Raises the `ProviderError` of the answer, if it has one."""
        if self._usage:
            yield self._usage
        if error := self._error():
            raise error
        reason = FinishReason.TOOL_CALLS if self._calls.count else FinishReason.STOP
        residue = self._residue()
        yield Finished(reason, self._ended, residue, self._residue_tokens, self._server)

    def _error(self) -> ProviderError | None:
        """Return the error of the answer after its end, or None."""
        return None if self.is_complete else BadStream("the stream ended without its terminal marker")

    def _residue(self) -> Any:
        """Return the residue to send back to the model with the answer, see `Finished`."""
        return None

    def _on_text(self, text: str) -> Sequence[Event]:
        complete = self._text.feed(text)
        self._length += len(complete)
        return (TextDelta(complete),) if complete else ()

    def _on_reasoning(self, text: str) -> Sequence[Event]:
        complete = self._reasoning.feed(text)
        return (ReasoningDelta(complete),) if complete else ()
