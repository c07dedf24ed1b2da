"""The model's answer to one request: its text and calls for the reply, and its messages for the window."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import islice

from ..providers import (
    AnswerDone,
    Event,
    ProviderError,
    ReasoningDelta,
    Sources,
    TextDelta,
    ToolCallDone,
    Usage,
)
from ..window import Message, NativeData, Role, ToolCall
from .attempts import AnswerStream, RequestState
from .errors import EmptyAnswer
from .repetition import REPETITION_NOTE
from .speech.pictures import MarkBreaker, PictureFilter
from .speech.plain_text import LinkFilter, PlainSpeech, TextFilter
from .speech.speech_filter import SpeechFilter
from .state import ModelRun, ReplyDelta
from .text_calls import read_text_calls
from .tool_names import resolve_tool_name, unwrap_call

# Longer pieces of text are filtered in parts that yield to the event loop in between: 4 MB of marks take over a second.
_MAX_CHARS_PER_FILTER_STEP = 32 * 1024

# More calls that are written as text are not carried out.
_MAX_TEXT_CALLS = 8


class Answer:
    """The model's answer to one request.

    An error does not interrupt the reply: the text so far remains, and the caller raises `error` afterwards.
    """

    def __init__(self, run: ModelRun, stream: AnswerStream, permit: AsyncExitStack) -> None:
        run.begin_answer()
        run.repetition_detector.begin_round()
        self.error: Exception | None = None
        self.calls: dict[str, ToolCall] = {}
        self.request = stream.attempt.request
        # All tools that the model may call.
        self._tools = (*self.request.tools, *self.request.deferred_tools)
        self._run = run
        self._turn = run.turn
        self._stream = stream
        self._permit = permit
        self._attempt = stream.attempt
        self._native: NativeData | None = None
        self._turn_native: NativeData | None = None
        self._reasoning_tokens = 0
        self.has_text = False
        self._has_reasoning = False
        self._unread_text = ""
        self._speech_filter = SpeechFilter([tool.name for tool in self.request.tools])
        # The cleaners of the text, in the order in which they are applied.
        self._cleaners: list[TextFilter | PlainSpeech] = [
            PictureFilter(),
            *([LinkFilter()] if self.request.settings.web_search else []),
            PlainSpeech() if run.question.is_spoken else MarkBreaker(),
        ]
        # whether the model wrote text of which nothing may be left for speech
        self._has_written_text = False

    async def iter_deltas(self, events: AsyncIterator[Event]) -> AsyncGenerator[ReplyDelta]:
        """Yield the deltas for the user and the calls to run. An error ends the iteration and is stored in `error`."""
        with self._attempt as attempt:
            try:
                async for event in events:
                    attempt.on_event(event)
                    for delta in self._on_event(event):
                        yield self._record_delta(delta)
                    while self._unread_text:
                        await asyncio.sleep(0)
                        for delta in self._on_event(TextDelta(self._unread_text)):
                            yield self._record_delta(delta)
                for delta in self._flush_deltas():
                    yield delta
            except (ProviderError, EmptyAnswer) as err:
                self.error = attempt.error = err
                if attempt.state is RequestState.WAITING:
                    self._run.late_streams.append(self._stream)
            finally:
                # the tools that were called may still be running, and they may send requests to the same server
                await self._permit.aclose()

    def to_stored_message(self, message: Message) -> Message:
        """Return the message to store in the window: an answer gets its residue, a repeated result gets a note."""
        if message.role is not Role.TOOL:
            if message.tool_calls and self._turn_native is not None:
                self._run.search_residue[message.tool_calls[0].id] = self._turn_native
            return replace(message, native=self._native) if self._native else message
        call = self.calls[message.tool_call_id or ""]
        read_only = True in [tool.read_only for tool in self._tools if tool.name == call.name]
        is_repeated = self._run.repetition_detector.add_call(call, message.content, read_only=read_only)
        return replace(message, content=f"{REPETITION_NOTE}\n{message.content}") if is_repeated else message

    def _on_event(self, event: Event) -> Sequence[ReplyDelta]:
        match event:
            case TextDelta(text):
                self._unread_text = text[_MAX_CHARS_PER_FILTER_STEP:]
                deltas = self._speech_filter.feed(text[:_MAX_CHARS_PER_FILTER_STEP])
                return self._clean_text(deltas)
            case ReasoningDelta():
                self._has_reasoning = True
                return () if self.request.requires_call else (event,)
            case ToolCallDone():
                deferred = self.request.deferred_tools
                call = unwrap_call(event.call, deferred) if deferred else event.call
                return (self._add_call(call),) if self._may_carry_out(call) else ()
            case Usage():
                self._reasoning_tokens += event.reasoning
            case Sources(sources):
                self._turn.add_sources(sources)
            case AnswerDone() if event.native_value is not None or event.turn_value is not None:
                # where a call is required, the residue has more than the calls that are passed on
                if not self.request.requires_call:
                    self._on_residue(event)
        return ()

    def _may_carry_out(self, call: ToolCall) -> bool:
        """Return whether a call is passed on. Where one is required, those that change nothing are not."""
        if not self.request.requires_call:
            return bool(self.request.tools) and self.request.may_call
        name = resolve_tool_name(call.name, [tool.name for tool in self._tools])
        return name in [tool.name for tool in self._tools if not tool.read_only]

    def _add_call(self, call: ToolCall) -> ToolCallDone:
        self.calls[call.id] = call
        self._run.on_call(call)
        self._attempt.tool_calls.append(call)
        return ToolCallDone(call)

    def _read_text_calls(self) -> list[ReplyDelta]:
        """Return the calls that the model has written as text, unless it also made calls or must not make any.

        The residue is dropped, because it does not contain them.
        """
        if self.calls or not self.request.may_call:
            return []
        texts, deferred = self._speech_filter.call_texts, self.request.deferred_tools
        found = [unwrap_call(each, deferred) for each in read_text_calls(texts, self.request.tools)]
        calls = islice(filter(self._may_carry_out, found), _MAX_TEXT_CALLS)
        deltas: list[ReplyDelta] = [self._record_delta(self._add_call(call)) for call in calls]
        if deltas:
            self._native = self._turn_native = None
        return deltas

    def _on_residue(self, done: AnswerDone) -> None:
        tokens = self._reasoning_tokens if done.native_tokens is None else done.native_tokens
        self._native, self._turn_native = [
            None if value is None else NativeData(self._attempt.model.provider.name, self.request.model, value, tokens)
            for value in (done.native_value, done.turn_value)
        ]

    def _clean_text(self, deltas: Sequence[ReplyDelta], *, is_end: bool = False) -> list[ReplyDelta]:
        """Return the deltas without pictures, and for speech without marks that would be read aloud, such as Markdown.

        Where a call is required, no text is passed on.
        """
        if self.request.requires_call:
            return []
        text = "".join([delta.text for delta in deltas if isinstance(delta, TextDelta)])
        others: list[ReplyDelta] = [delta for delta in deltas if not isinstance(delta, TextDelta)]
        self._has_written_text = self._has_written_text or bool(text.strip())
        for cleaner in self._cleaners:
            text = cleaner.feed(text) + (cleaner.flush() if is_end else "")
        return [TextDelta(text), *others] if text else others

    def _record_delta(self, delta: ReplyDelta) -> ReplyDelta:
        self._attempt.on_delta(delta)
        if isinstance(delta, TextDelta):
            self._turn.on_text(delta.text, new_message=not self.has_text)
            self.has_text = True
        return delta

    def _flush_deltas(self) -> list[ReplyDelta]:
        """Return the remaining deltas of the answer: if tools ran and it has no text, that counts as success.

        Calls in an answer that must not have any are ignored and do not count as an answer. Neither does text that only
        resembles a call: a model that ran tools and then wrote it was not finished. Raises `EmptyAnswer`.
        """
        rest = self._clean_text(self._speech_filter.flush(), is_end=True)
        deltas = [*[self._record_delta(delta) for delta in rest], *self._read_text_calls()]
        if self.has_text or self.calls or self.request.requires_call:
            return deltas
        wanted_more = self._speech_filter.has_call and self.request.may_call
        if wanted_more or not (self._turn.tool_calls or self._has_written_text):
            raise EmptyAnswer("no text and no tool call", is_unexplained=not (wanted_more or self._has_reasoning))
        return [*deltas, self._record_delta(TextDelta(self._run.question.empty_answer_phrase))]
