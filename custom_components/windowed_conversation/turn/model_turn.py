"""The model's part of a turn: send requests, forward the answer and run tools, until there are no more calls."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import chain, count

from ..providers import (
    UNSEEN_NOTE,
    AnswerDone,
    Event,
    Incomplete,
    ProviderError,
    RateLimited,
    ReasoningDelta,
    Request,
    Sources,
    TextDelta,
    ToolCallDone,
    Usage,
    count_messages_tokens,
)
from ..window import Exchange, Message, NativeData, Role, ToolCall, Window, count_attachment_tokens
from .attempts import AnswerStream, OpenAttempt, Purpose
from .context import LiveContext, add_context
from .errors import EmptyAnswer
from .limits import Budget, calculate_max_live_tokens, choose_evictions, find_shortfall, free_tokens
from .model import Model, Question
from .repetition import REPETITION_NOTE
from .reply import ReplyDelta
from .request_limit import RequestPermit
from .speech.pictures import MarkBreaker, PictureFilter
from .speech.plain_text import LinkFilter, PlainSpeech
from .speech.speech_filter import SpeechFilter
from .state import Turn
from .tool_names import name_as_offered

# After this many rounds of tool calls, the model must answer without tools.
_MAX_TOOL_ROUNDS = 10

# Longer pieces of text are filtered in parts that yield to the event loop in between: 4 MB of marks take over a second.
_MAX_CHARS_PER_FILTER_STEP = 32 * 1024


class Answer:
    """The model's answer to one request.

    An error does not interrupt the reply: the text so far remains, and the caller raises `error` afterwards.
    """

    def __init__(self, turn: Turn, question: Question, stream: AnswerStream, permit: RequestPermit) -> None:
        turn.begin_answer()
        turn.repetition_detector.begin_round()
        self.error: Exception | None = None
        self.calls: dict[str, ToolCall] = {}
        self.request = stream.request
        self._turn = turn
        self._done_phrase = question.empty_answer_phrase
        self._stream = stream
        self._permit = permit
        self._attempt = stream.attempt or OpenAttempt(
            stream.model, stream.request, Purpose.ANSWER, turn.on_attempt, idle_timer=stream.idle_timer
        )
        self._attempt.on_billed = turn.callbacks.on_billed
        self._native: NativeData | None = None
        self._turn_native: NativeData | None = None
        self._reasoning_tokens = 0
        self.has_text = False
        self._has_reasoning = False
        self._unread_text = ""
        self._speech_filter = SpeechFilter([tool.name for tool in stream.request.tools])
        # The cleaners of the text, in the order in which they are applied.
        self._cleaners: list[PictureFilter | LinkFilter | PlainSpeech | MarkBreaker] = [
            PictureFilter(),
            *([LinkFilter()] if stream.request.settings.web_search else []),
            PlainSpeech() if turn.is_spoken else MarkBreaker(),
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
                if self._stream.is_waiting:
                    attempt.discard()
                    self._stream.attempt = attempt
                    self._turn.waiting_streams.append(self._stream)
            finally:
                # the tools that were called may still be running, and they may send requests to the same server
                self._permit.release()

    def to_stored_message(self, message: Message) -> Message:
        """Return the message to store in the window: an answer gets its residue, a repeated result gets a note."""
        if message.role is not Role.TOOL:
            if message.tool_calls and self._turn_native is not None:
                self._turn.search_residue[message.tool_calls[0].id] = self._turn_native
            return replace(message, native=self._native) if self._native else message
        call = self.calls[message.tool_call_id or ""]
        read_only = True in [tool.read_only for tool in self.request.tools if tool.name == call.name]
        is_repeated = self._turn.repetition_detector.add_call(call, message.content, read_only=read_only)
        return replace(message, content=f"{REPETITION_NOTE}\n{message.content}") if is_repeated else message

    def _on_event(self, event: Event) -> Sequence[ReplyDelta]:
        match event:
            case TextDelta(text):
                self._unread_text = text[_MAX_CHARS_PER_FILTER_STEP:]
                deltas = self._speech_filter.feed(text[:_MAX_CHARS_PER_FILTER_STEP])
                return self._clean_text(deltas)
            case ReasoningDelta():
                self._has_reasoning = True
                return (event,)
            case ToolCallDone(call) if self.request.tools and self.request.may_call:
                self.calls[call.id] = call
                self._turn.on_call(call)
                self._attempt.tool_calls.append(call)
                return (event,)
            case Usage():
                self._reasoning_tokens += event.reasoning
            case Sources(sources):
                self._turn.add_sources(sources)
            case AnswerDone() if event.native_value is not None or event.turn_value is not None:
                self._on_residue(event)
        return ()

    def _on_residue(self, done: AnswerDone) -> None:
        tokens = self._reasoning_tokens if done.native_tokens is None else done.native_tokens
        self._native, self._turn_native = [
            None if value is None else NativeData(self._stream.model.provider.name, self.request.model, value, tokens)
            for value in (done.native_value, done.turn_value)
        ]

    def _clean_text(self, deltas: Iterable[ReplyDelta], *, is_end: bool = False) -> list[ReplyDelta]:
        """Return the deltas without pictures, and for speech without what would be read aloud, such as Markdown."""
        cleaned: list[ReplyDelta] = []
        for delta in deltas:
            if not isinstance(delta, TextDelta):
                cleaned.append(delta)
                continue
            self._has_written_text |= not delta.text.isspace()
            text = delta.text
            for cleaner in self._cleaners:
                text = cleaner.feed(text)
            cleaned.append(TextDelta(text))
        if is_end:
            text = ""
            for cleaner in self._cleaners:
                text = cleaner.feed(text) + cleaner.flush()
            cleaned.append(TextDelta(text))
        return [delta for delta in cleaned if not isinstance(delta, TextDelta) or delta.text]

    def _record_delta(self, delta: ReplyDelta) -> ReplyDelta:
        self._attempt.on_delta(delta)
        if isinstance(delta, TextDelta):
            self._turn.on_text(delta.text, new_message=not self.has_text)
            self.has_text = True
        return delta

    def _flush_deltas(self) -> list[ReplyDelta]:
        """Return the remaining deltas of the answer: if tools ran and it has no text, that counts as success.

        Calls in an answer that must not have any are ignored and do not count as an answer. Neither does a call that is
        written as text: a model that ran tools and then wrote one was not finished. Raises `EmptyAnswer`.
        """
        rest = self._clean_text(self._speech_filter.flush(), is_end=True)
        deltas: list[ReplyDelta] = [self._record_delta(delta) for delta in rest]
        if self.has_text or self.calls:
            return deltas
        wanted_more = self._speech_filter.has_call and self.request.may_call
        if wanted_more or not (self._turn.tool_calls or self._has_written_text):
            raise EmptyAnswer("no text and no tool call", is_unexplained=not (wanted_more or self._has_reasoning))
        return [*deltas, self._record_delta(TextDelta(self._done_phrase))]


async def ask_model(turn: Turn, question: Question) -> None:
    """Get an answer for the open exchange from the question's model. Raises `ProviderError` and `TurnError`."""
    for iteration in count():
        may_call = iteration < _MAX_TOOL_ROUNDS and not turn.repetition_detector.is_note_ignored
        answer = await _send_request(turn, question, may_call=may_call)
        if answer.error is not None and not turn.has_raised_answer_limit and _can_raise_answer_limit(answer, question):
            turn.has_raised_answer_limit = True
            answer = await _send_request(turn, question, may_call=may_call)
        if answer.error is not None:
            raise answer.error
        _learn_from_answer(turn, question.model)
        if not answer.calls:
            return


async def _send_request(turn: Turn, question: Question, *, may_call: bool) -> Answer:
    """Send one request. Return its answer, which may contain an error, after its calls have run."""
    model = question.model
    async with model.request_limiter.acquire_permit() as permit:
        if permit.had_to_wait and (left := model.pause.requested_seconds):
            raise RateLimited("the server asked for a pause meanwhile", left)
        stream, turn.resumed_stream = turn.resumed_stream, None
        if stream is None:
            stream = AnswerStream(model, _build_request(turn, question, may_call=may_call), turn.limits)
        answer = Answer(turn, question, stream, permit)
        try:
            async with (
                aclosing(stream.iter_events(None if turn.tool_calls else turn.fallback_timeout)) as events,
                aclosing(answer.iter_deltas(events)) as deltas,
                aclosing(turn.reply.add_deltas(deltas)) as messages,
            ):
                async for message in messages:
                    turn.failed_tool_calls = turn.reply.failed_call_count
                    turn.window.add(answer.to_stored_message(message))
                    turn.begin_answer()
        finally:
            if not stream.is_waiting:
                await stream.aclose()
    return answer


def _can_raise_answer_limit(answer: Answer, question: Question) -> bool:
    """Return whether an answer without text or calls may succeed with the higher limit for models that reason."""
    if answer.has_text or answer.calls or not isinstance(answer.error, Incomplete):
        return False
    request = answer.request
    return (question.build_request(request.messages, request.tools).answer_limit or 0) > (request.answer_limit or 0)


def _build_request(turn: Turn, question: Question, *, may_call: bool) -> Request:
    """Return the next request: select the exchanges that it sends, then add the live context in the remaining room."""
    window, model, budget = turn.window, question.model, question.model.planned_budget
    has_files = bool(turn.files or turn.pictures)
    if has_files:
        tokens = sum([count_attachment_tokens(each) for each in (*turn.files, *turn.pictures.values()) if each])
        budget = replace(budget, schema_tokens=budget.schema_tokens + tokens)
    sent = (
        _select_fitting_exchanges(window, budget)
        if _sends_partial_window(turn, question)
        else _trim_history(turn, budget)
    )
    live = _get_live_context(turn, question, budget, sent)
    all_messages, closed = window.messages(), window.exchanges()
    system = all_messages[:1] if all_messages[0].role is Role.SYSTEM else ()
    newest = all_messages[len(system) + sum([len(exchange.messages) for exchange in closed]) :]
    if residue := turn.search_residue:
        newest = tuple([_replace_residue(message, residue) for message in newest])
    shown = [_attach_files(each, turn) for each in newest] if has_files else newest
    messages = (*system, *chain.from_iterable([exchange.messages for exchange in sent]), *shown)
    messages = name_as_offered(messages, [tool.name for tool in question.tools])
    messages = model.plain_exchanges.apply_marks(window, add_context(messages, question.stamp_prefix, live))
    turn.request_tokens = count_messages_tokens(messages) + model.budget.schema_tokens
    request = question.build_request(messages, question.tools, may_call=may_call)
    return replace(request, has_search_results=True) if residue else request


def _replace_residue(message: Message, residue: Mapping[str, NativeData]) -> Message:
    """Return a message with the residue that also has the results of its searches."""
    first_call = message.tool_calls[0].id if message.tool_calls else ""
    return replace(message, native=residue.get(first_call, message.native))


def _attach_files(message: Message, turn: Turn) -> Message:
    """Return a message of the open exchange: the input with its files, and the result of a look with its picture.

    A note stands for a file that cannot be sent.
    """
    files = turn.files if message.role is Role.USER else (turn.pictures.get(message.tool_call_id or ""),)
    attached = tuple([each for each in files if each])
    notes = [UNSEEN_NOTE] * (len(files) - len(attached)) if message.role is Role.USER else []
    tokens = (message.tokens or 0) + sum([count_attachment_tokens(each) for each in attached])
    return replace(message, content="\n\n".join([message.content, *notes]), attachments=attached, tokens=tokens)


def _get_live_context(turn: Turn, question: Question, budget: Budget, sent: Sequence[Exchange]) -> LiveContext:
    """Return the turn's live context; it is rebuilt if a request has less room or sends fewer exchanges."""
    window, numbers = turn.window, frozenset([exchange.number for exchange in sent])
    tokens = window.open_tokens + sum([exchange.tokens for exchange in sent])
    limit = calculate_max_live_tokens(budget, window.stats().prefix_tokens, tokens)
    if turn.context is None or turn.context.tokens > limit or not numbers >= turn.live_exchange_numbers:
        turn.context, turn.live_exchange_numbers = question.build_live_context(sent, limit), numbers
        window.add_sources(turn.context.source_ids)
    return turn.context


def _learn_from_answer(turn: Turn, model: Model) -> None:
    """Learn from the newest request, which was answered."""
    newest = turn.attempts[-1]
    usage = newest.billed_request.usage if newest.billed_request else Usage()
    model.plain_exchanges.on_answered(turn.window, newest.request.messages)
    # the size of a request with pictures is only a guess, and so is that with results of a search
    if newest.request.has_own_size(usage):
        model.size.on_answered(turn.request_tokens, billed=usage.input, refused=turn.refused_tokens)
    turn.refused_tokens = None


def _sends_partial_window(turn: Turn, question: Question) -> bool:
    """Return whether the request sends only part of the window without evicting the rest."""
    return bool(turn.failures) or question.model.budget.max_sent_tokens is not None


def _trim_history(turn: Turn, budget: Budget) -> Sequence[Exchange]:
    """Evict history for which the model has no room. If that is not enough, record the shortfall and send the rest."""
    window = turn.window
    window.set_turn_limit(free_tokens(budget, window.stats().prefix_tokens))
    stats = window.stats()
    turn.shortfall = find_shortfall(budget, stats.prefix_tokens, stats.current_tokens) or turn.shortfall
    return window.exchanges()


def _select_fitting_exchanges(window: Window, budget: Budget) -> Sequence[Exchange]:
    """Return the closed exchanges that fit, without evicting any.

    The window belongs to the agent's own model, so another model or a single refusal must not remove history from it.
    """
    closed = window.exchanges()
    limits = (budget.policy.history_tokens, free_tokens(budget, window.stats().prefix_tokens), budget.max_sent_tokens)
    allowed = min(limit for limit in limits if limit is not None)
    evicted = choose_evictions(closed, allowed - window.open_tokens - sum(each.tokens for each in closed))
    return [each for each in closed if each.number not in evicted]
