"""One answer of the model on its way to the user."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from dataclasses import replace

from ..providers import Event, Finished, Incomplete, ProviderError, ReasoningDelta, TextDelta, ToolCallDone, Usage
from ..window import Message, Native, Role, ToolCall
from .answer_stream import AnswerStream
from .attempts import OpenAttempt, Purpose, taken_down
from .errors import EmptyAnswer
from .ports import Billed, Question, Spoken
from .progress import Progress
from .repetition import REPEATED
from .request_limit import Permit
from .speech_filter import SpeechFilter

# A longer piece of text is read in parts, between which others have the event loop.
_LONGEST_TEXT = 32 * 1024


class Answer:
    """The model's answer to one request.

    An error does not interrupt the reply: what was said remains, and the error is raised afterwards.
    """

    def __init__(self, stream: AnswerStream, question: Question, progress: Progress, permit: Permit) -> None:
        progress.begin_answer()
        progress.repetition.begin_round()
        self.calls: dict[str, ToolCall] = {}
        self.stream = stream
        self.request = request = stream.request
        self.model = stream.model
        self.progress = progress
        self._permit = permit
        self._done = question.done
        self._native: Native | None = None
        self._reasoning_tokens = 0
        self._text = False
        self._has_thought = False
        self._is_cut = False
        self._error: Exception | None = None
        self._speech = SpeechFilter(tool.name for tool in request.tools)

    async def deltas(self, events: AsyncIterator[Event]) -> AsyncGenerator[Spoken]:
        """Yield the deltas for the user and the calls to run. An error ends this and is stored."""
        progress = self.progress
        opened = self.stream.attempt or OpenAttempt(self.model, self.request)
        opened.on_billed = self._on_billed
        with taken_down(opened, Purpose.ANSWER, progress.attempts.append) as asked:
            try:
                async with aclosing(self._read(events, asked)) as deltas:
                    async for delta in deltas:
                        yield delta
            except (ProviderError, EmptyAnswer) as err:
                self._error = asked.error = err
                if self.stream.is_waiting:
                    self.stream.attempt = asked.suspended()
                    progress.waiting.append(self.stream)
            finally:
                # the tools that were called may still run, and they may ask the same server
                self._permit.release()

    async def _read(self, events: AsyncIterator[Event], asked: OpenAttempt) -> AsyncGenerator[Spoken]:
        async for event in events:
            asked.on_event(event)
            if not isinstance(event, TextDelta):
                told: Iterable[Spoken] = self._on_event(event, asked)
            elif len(event.text) <= _LONGEST_TEXT:
                told = self._speech.feed(event)
            else:
                told = ()
                async with aclosing(self._read_slowly(event.text)) as parts:
                    async for delta in parts:
                        yield self._passed(delta, asked)
            for delta in told:
                yield self._passed(delta, asked)
        for ending in self._ending(asked):
            yield ending

    def kept(self, message: Message) -> Message:
        """Return the message as the window stores it: an answer with its residue, a repetition with a note."""
        if message.role is not Role.TOOL:
            return replace(message, native=self._native) if self._native else message
        return replace(message, content=f"{REPEATED}\n{message.content}") if self._is_repeated(message) else message

    @property
    def is_cut_reasoning(self) -> bool:
        """Whether the answer was cut off before its first word or call."""
        return isinstance(self._error, Incomplete) and not (self._text or self.calls)

    def raise_error(self) -> None:
        """Raise the error that ended the answer, if there was one."""
        if self._error:
            raise self._error

    def _on_billed(self, billed: Billed) -> None:
        """Find out whether the server has read the whole request, and pass the bill on."""
        self._is_cut = self.model.size.on_billed(billed.request, billed.usage, billed.server)
        self.progress.is_cut |= self._is_cut
        self.progress.on_billed(replace(billed, is_cut=self._is_cut))

    def _on_event(self, event: Event, asked: OpenAttempt) -> list[Spoken]:
        match event:
            case ReasoningDelta():
                self._has_thought = True
                return [event]
            case ToolCallDone(call) if self.request.tools and self.request.may_call:
                self.calls[call.id] = call
                self.progress.on_call(call)
                asked.on_call(call)
                return [event]
            case Usage():
                self._reasoning_tokens += event.reasoning
            case Finished(residue=residue, residue_tokens=tokens) if residue is not None:
                tokens = self._reasoning_tokens if tokens is None else tokens
                self._native = Native(self.model.provider.name, self.request.model, residue, tokens)
        return []

    async def _read_slowly(self, text: str) -> AsyncGenerator[Spoken]:
        for at in range(0, len(text), _LONGEST_TEXT):
            for delta in self._speech.feed(TextDelta(text[at : at + _LONGEST_TEXT])):
                yield delta
            await asyncio.sleep(0)

    def _passed(self, delta: Spoken, asked: OpenAttempt) -> Spoken:
        asked.on_delta(delta)
        if isinstance(delta, TextDelta):
            self.progress.on_text(delta.text, new_message=not self._text)
            self._text = True
        return delta

    def _is_repeated(self, result: Message) -> bool:
        call = self.calls[result.tool_call_id or ""]
        read_only = any(tool.read_only for tool in self.request.tools if tool.name == call.name)
        return self.progress.repetition.add(call, result.content, read_only=read_only)

    def _ending(self, asked: OpenAttempt) -> list[Spoken]:
        """Return the deltas that remain at the end: a model that acted and said nothing has succeeded.

        Calls in an answer that must not have any are not passed on and do not count as an answer. Neither does a call
        that is written as text: a model that acted and then wrote one wanted to do more.
        """
        held: list[Spoken] = [self._passed(delta, asked) for delta in self._speech.flush()]
        if self._text or self.calls:
            return held
        wanted_more = self._speech.has_call and self.request.may_call
        if wanted_more or self._is_cut or not self.progress.tool_calls:
            is_nothing = not (wanted_more or self._has_thought)
            raise EmptyAnswer("no text and no tool call", is_unexplained=self._is_cut or is_nothing)
        return [*held, self._passed(TextDelta(self._done), asked)]
