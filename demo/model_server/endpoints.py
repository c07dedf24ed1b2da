"""The handling of a request from wire format to skills and back: API key, model, faults, usage, request log.

Each wire format has its own module; the paths are in `routes`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
import json
from typing import Any

from aiohttp import web

from . import skills
from .chat_completions import ChatCompletions
from .chat_demands import check_demands
from .conversation import Answer
from .delivery import Delivery
from .faults import ArmedFault, fault_asked_for
from .home_history import home_violations
from .refusal import NO_SUCH_MODEL, WRONG_KEY, Reason, Refusal, RefusedError
from .request_log import Outcome, Record
from .settings import ModelChoice
from .shapes import THINKING
from .state import State
from .usage import Usage, completion_tokens, tokens
from .wire import Prompt, Reply, WireFormat

_THOUGHT = "The user wants an answer. I think about it, briefly. "

# Rules that apply only to requests for an answer, not to those for a token count or a compaction.
_RULES_OF_ANSWERS = frozenset({"ends_with_user", "ends_with_user_or_tool", "max_tokens"})

type Wires = Callable[[web.Request], WireFormat]
type ModelsBody = Callable[[web.Request, State], dict[str, Any]]
type Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Endpoints:
    """The handlers for each kind of request. `answering` contains the tasks of the current answers."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.answering: set[asyncio.Task[Any]] = set()
        self.stopping = False

    def answers(self, wires: Wires) -> Handler:
        """Return a handler that answers as the model."""

        async def work(http: web.Request, record: Record, wire: WireFormat) -> web.StreamResponse:
            prompt = self._as_read(await self._read(http, record, wire), wire)
            choice = self._state.settings.choice(prompt.model)
            armed = self._armed(prompt, choice)
            await self._fail_early(http, record, armed)
            self._check(http, wire)
            if choice is None:
                raise RefusedError(NO_SUCH_MODEL)
            self._check_request(prompt, record)
            if record.format == ChatCompletions.name:
                check_demands(prompt.body, choice.shapes)
            reply = self._reply(prompt, choice, armed)
            record.usage = asdict(reply.usage)
            return await Delivery(http, record, self._state.settings.delay, armed, self._state.held).send(reply, wire)

        return self._recorded(wires, work, for_answer=True)

    def documents(self, wires: Wires, write: Callable[[Prompt], Any]) -> Handler:
        """Return a handler that responds with a document about the request: a token count or a compaction."""

        async def work(http: web.Request, record: Record, wire: WireFormat) -> web.StreamResponse:
            prompt = await self._read(http, record, wire)
            record.violations = [each for each in record.violations if each.rule not in _RULES_OF_ANSWERS]
            await self._fail_early(http, record, self._state.faults.take(whole_answer=False))
            self._check(http, wire)
            if self._state.settings.choice(prompt.model) is None:
                raise RefusedError(NO_SUCH_MODEL)
            if self._state.settings.strict:
                _refuse_invalid(record)
            record.status = 200
            return web.json_response(write(prompt))

        return self._recorded(wires, work)

    def lists(self, wires: Wires, write: ModelsBody) -> Handler:
        """Return a handler that responds with a document about the models."""

        async def work(http: web.Request, record: Record, wire: WireFormat) -> web.StreamResponse:
            await self._fail_early(http, record, self._state.faults.take(whole_answer=False))
            self._check(http, wire)
            record.status = 200
            return web.json_response(write(http, self._state))

        return self._recorded(wires, work)

    def _recorded(
        self,
        wires: Wires,
        work: Callable[[web.Request, Record, WireFormat], Awaitable[web.StreamResponse]],
        *,
        for_answer: bool = False,
    ) -> Handler:
        """Return a handler that calls `work`, logs the request and its outcome, and responds to refusals."""

        async def handler(http: web.Request) -> web.StreamResponse:
            wire = wires(http)
            record = self._state.log.open(http, wire.name, for_answer=for_answer)
            task = asyncio.current_task()
            assert task
            self.answering.add(task)
            try:
                response = await work(http, record, wire)
                record.end(Outcome.ANSWERED)
            except RefusedError as error:
                response = _refused(wire.in_own_words(error.refusal), record, wire)
            except asyncio.CancelledError, ConnectionError:
                record.end(Outcome.STOPPED if self.stopping else Outcome.CLIENT_LEFT)
                raise
            finally:
                self.answering.discard(task)
            return response

        return handler

    async def _read(self, http: web.Request, record: Record, wire: WireFormat) -> Prompt:
        record.raw = await http.read()
        record.size = len(record.raw)
        try:
            record.body = json.loads(record.raw)
        except ValueError as error:
            message = "We could not parse the JSON body of your request."
            raise RefusedError(Refusal(400, "invalid_request_error", None, message)) from error
        record.violations = wire.violations(record.body)
        prompt = wire.read(record.body)
        record.violations += home_violations(prompt.conversation.turns, self._state.home)
        return prompt

    def _as_read(self, prompt: Prompt, wire: WireFormat) -> Prompt:
        """Return the request reduced to the part that the server reads."""
        dropping = self._state.dropping
        return prompt if dropping is None else wire.read(dropping.read(prompt.body))

    def _armed(self, prompt: Prompt, choice: ModelChoice | None) -> ArmedFault | None:
        """Return the fault set from outside, or else the model id's, or else the one that the user's text requests."""
        name = (choice.fault if choice else None) or fault_asked_for(prompt.conversation.newest.said)
        return self._state.faults.take(whole_answer=True) or (ArmedFault(name) if name else None)

    async def _fail_early(self, http: web.Request, record: Record, armed: ArmedFault | None) -> None:
        """Carry out a fault that occurs before the answer; return if there is no such fault."""
        if armed is None:
            return
        record.fault = armed.name
        if armed.fault.refusal:
            raise RefusedError(armed.fault.refusal)
        await Delivery(http, record, 0, armed).before_headers()

    def _check(self, http: web.Request, wire: WireFormat) -> None:
        key = self._state.settings.key
        if key is not None and wire.sent_key(http.headers) != key:
            raise RefusedError(WRONG_KEY)
        wire.check(http.headers)

    def _check_request(self, prompt: Prompt, record: Record) -> None:
        if self._state.settings.strict:
            _refuse_invalid(record)
        size, limit = tokens(prompt.cached_form), self._state.settings.context_size
        if limit is not None and size > limit:
            message = f"This model's maximum context length is {limit} tokens. Your messages resulted in {size} tokens."
            too_long = Refusal(400, "invalid_request_error", "context_length_exceeded", message, reason=Reason.TOO_LONG)
            raise RefusedError(replace(too_long, size=size, limit=limit))

    def _reply(self, prompt: Prompt, choice: ModelChoice, armed: ArmedFault | None) -> Reply:
        answer = self._state.scripted.answer(prompt.conversation) or skills.answer(prompt.conversation)
        if THINKING.intersection(choice.shapes) or prompt.always_thinks:
            answer = replace(answer, reasoning=answer.reasoning or _THOUGHT)
        if not prompt.thinks:
            answer = replace(answer, reasoning="")
        if armed and armed.fault.bend:
            answer = armed.fault.bend(answer, prompt.conversation)
        cached = self._state.cache.use(prompt.model, prompt.cached_form, prompt.caching)
        reasoning, written = _completion(answer)
        usage = Usage(
            prompt=tokens(prompt.cached_form),
            cached=cached.read,
            completion=reasoning + written,
            reasoning=reasoning,
            written=cached.written,
            written_long=cached.written_long,
        )
        figures, dropping = self._state.settings.figures, self._state.dropping
        shapes = (*choice.shapes, *(("ollama",) if dropping and dropping.is_ollama else ()))
        return Reply(prompt=prompt, answer=answer, usage=usage, shapes=shapes, figures=figures)


def _completion(answer: Answer) -> tuple[int, int]:
    """Return the number of tokens of the thoughts, and of the text and calls."""
    calls = (call.arguments for call in answer.calls)
    return completion_tokens(answer.reasoning, ()), completion_tokens(answer.text + answer.refusal, calls)


def _refuse_invalid(record: Record) -> None:
    """Raise RefusedError if the request violates a rule of its format."""
    if not record.violations:
        return
    broken = "; ".join(f"{each.rule} at {each.where}: {each.text}" for each in record.violations)
    foreign = any(each.rule == "residue_foreign" for each in record.violations)
    reason = Reason.FOREIGN_RESIDUE if foreign else Reason.INVALID
    raise RefusedError(Refusal(400, "invalid_request_error", None, f"Invalid request: {broken}.", reason=reason))


def _refused(refusal: Refusal, record: Record, wire: WireFormat) -> web.Response:
    record.status = refusal.status
    record.end(Outcome.REFUSED)
    if refusal.html:
        page = f"<html><head><title>{refusal.status}</title></head><body><h1>{refusal.message}</h1></body></html>"
        return web.Response(status=refusal.status, text=page, content_type="text/html")
    headers = {} if refusal.retry_after is None else {"Retry-After": f"{refusal.retry_after:g}"}
    return web.json_response(wire.error_body(refusal), status=refusal.status, headers=headers)
