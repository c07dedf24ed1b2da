"""One answer of the model on its way to the user."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace

from ..providers import Event, Finished, Incomplete, ProviderError, ReasoningDelta, TextDelta, ToolCallDone, Usage
from ..window import Message, Native, Role, ToolCall
from .answer_stream import AnswerStream
from .attempts import OpenAttempt, Purpose
from .errors import EmptyAnswer
from .ports import BilledRequest, Question, Spoken
from .progress import Turn
from .repetition import REPEATED
from .request_limit import Permit
from .speech_filter import SpeechFilter

# A longer piece of text is read in parts, between which others have the event loop: 4 MB of marks take over a second.
_LONGEST_TEXT = 32 * 1024


class Answer:
    """The model's answer to one request.

    An error does not interrupt the reply: the text so far remains, and the caller raises `error` afterwards.
    """

    def __init__(self, turn: Turn, question: Question, stream: AnswerStream, permit: Permit) -> None:
        turn.begin_answer()
        turn.repetition.begin_round()
        self.error: Exception | None = None
        self.calls: dict[str, ToolCall] = {}
        self.request = stream.request
        self._turn = turn
        self._done = question.done
        self._stream = stream
        self._permit = permit
        self._attempt = stream.attempt or OpenAttempt(
            stream.model, stream.request, Purpose.ANSWER, turn.attempts.append
        )
        self._attempt.on_billed = self._on_billed
        self._native: Native | None = None
        self._reasoning_tokens = 0
        self._has_text = False
        self._has_thought = False
        self._is_cut = False
        self._unread = ""
        self._speech = SpeechFilter([tool.name for tool in stream.request.tools])

    async def deltas(self, events: AsyncIterator[Event]) -> AsyncGenerator[Spoken]:
        """Yield the deltas for the user and the calls to run. An error ends this and is stored."""
        with self._attempt as attempt:
            try:
                async for event in events:
                    attempt.on_event(event)
                    for delta in self._on_event(event):
                        yield self._passed(delta)
                    while self._unread:
                        await asyncio.sleep(0)
                        for delta in self._read_text(self._unread):
                            yield self._passed(delta)
                for delta in self._last_deltas():
                    yield delta
            except (ProviderError, EmptyAnswer) as err:
                self.error = attempt.error = err
                if self._stream.is_waiting:
                    attempt.discard()
                    self._stream.attempt = attempt
                    self._turn.waiting.append(self._stream)
            finally:
                # the tools that were called may still run, and they may ask the same server
                self._permit.release()

    def for_window(self, message: Message) -> Message:
        """Return the message as the window stores it: an answer with its residue, a repetition with a note."""
        if message.role is not Role.TOOL:
            return replace(message, native=self._native) if self._native else message
        call = self.calls[message.tool_call_id or ""]
        read_only = any(tool.read_only for tool in self.request.tools if tool.name == call.name)
        is_repeated = self._turn.repetition.add(call, message.content, read_only=read_only)
        return replace(message, content=f"{REPEATED}\n{message.content}") if is_repeated else message

    @property
    def is_cut_reasoning(self) -> bool:
        """Whether the answer was cut off before its first word or call."""
        return isinstance(self.error, Incomplete) and not (self._has_text or self.calls)

    def _on_billed(self, billed: BilledRequest) -> None:
        """Find out whether the server has read the whole request, and pass the bill on."""
        self._is_cut = billed.model.size.on_billed(billed.request, billed.usage, billed.server)
        self._turn.is_cut |= self._is_cut
        self._turn.handlers.on_billed(replace(billed, is_cut=self._is_cut))

    def _on_event(self, event: Event) -> Sequence[Spoken]:
        """Take in an event, and return the deltas of it that are passed on."""
        match event:
            case TextDelta(text):
                return self._read_text(text)
            case ReasoningDelta():
                self._has_thought = True
                return (event,)
            case ToolCallDone(call) if self.request.tools and self.request.may_call:
                self.calls[call.id] = call
                self._turn.on_call(call)
                self._attempt.on_call(call)
                return (event,)
            case Usage():
                self._reasoning_tokens += event.reasoning
            case Finished(residue=residue, residue_tokens=tokens) if residue is not None:
                tokens = self._reasoning_tokens if tokens is None else tokens
                self._native = Native(self._stream.model.provider.name, self.request.model, residue, tokens)
        return ()

    def _read_text(self, text: str) -> Sequence[Spoken]:
        self._unread = text[_LONGEST_TEXT:]
        return self._speech.feed(text[:_LONGEST_TEXT])

    def _passed(self, delta: Spoken) -> Spoken:
        self._attempt.on_delta(delta)
        if isinstance(delta, TextDelta):
            self._turn.on_text(delta.text, new_message=not self._has_text)
            self._has_text = True
        return delta

    def _last_deltas(self) -> list[Spoken]:
        """Return the deltas that remain at the end: a model that acted and said nothing has succeeded.

        Calls in an answer that must not have any are not passed on and do not count as an answer. Neither does a call
        that is written as text: a model that acted and then wrote one wanted to do more. Raises `EmptyAnswer`.
        """
        deltas: list[Spoken] = [self._passed(delta) for delta in self._speech.flush()]
        if self._has_text or self.calls:
            return deltas
        wanted_more = self._speech.has_call and self.request.may_call
        if wanted_more or self._is_cut or not self._turn.tool_calls:
            is_nothing = not (wanted_more or self._has_thought)
            raise EmptyAnswer("no text and no tool call", is_unexplained=self._is_cut or is_nothing)
        return [*deltas, self._passed(TextDelta(self._done))]
