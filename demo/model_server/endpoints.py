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
from .answer_schema_validation import SCHEMA_RULE_PREFIX
from .answer_schemas import check_schema_parameter, match_schema, separate_schema
from .chat_completions import ChatCompletionsFormat
from .chat_demands import check_demands
from .conversation import Answer, Conversation
from .delivery import AnswerDelivery
from .faults import ArmedFault, find_requested_fault
from .home_history import find_home_violations
from .orders import obey_orders
from .refusal import (
    NO_SUCH_MODEL_REFUSAL,
    WRONG_KEY_REFUSAL,
    Refusal,
    RefusalReason,
    RefusedError,
    build_overflow_refusal,
)
from .request_log import RequestOutcome, RequestRecord
from .settings import ModelChoice
from .shapes import THINKING_SHAPES
from .state import ServerState
from .usage import SEARCH_TOKENS, Usage, estimate_completion_tokens, estimate_tokens
from .wire import Prompt, Reply, WireFormat

_THOUGHT_TEXT = "The user wants an answer. I think about it, briefly. "

# Rules that apply only to requests for an answer, not to those for a token count or a compaction.
_ANSWER_ONLY_RULES = frozenset({"ends_with_user", "ends_with_user_or_tool", "max_tokens"})

type WireFactory = Callable[[web.Request], WireFormat]
type ModelsBodyBuilder = Callable[[web.Request, ServerState], dict[str, Any]]
type Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Endpoints:
    """The handlers for each kind of request. `answer_tasks` contains the tasks of the current answers."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self.answer_tasks: set[asyncio.Task[Any]] = set()
        self.is_stopping = False

    def build_answer_handler(self, wires: WireFactory) -> Handler:
        """Return a handler that answers as the model."""

        async def respond(http: web.Request, record: RequestRecord, wire: WireFormat) -> web.StreamResponse:
            prompt = separate_schema(self._truncate_prompt(await self._parse_request(http, record, wire), wire))
            choice = self._state.settings.parse_model_id(prompt.model)
            armed = self._find_fault(prompt, choice)
            await asyncio.sleep(self._state.settings.latency)
            await self._apply_early_fault(http, record, armed)
            self._check_headers(http, wire)
            if choice is None:
                raise RefusedError(NO_SUCH_MODEL_REFUSAL)
            check_schema_parameter(prompt.body, choice.shapes)
            self._check_request(prompt, record)
            if record.format == ChatCompletionsFormat.name:
                check_demands(prompt.body, choice.shapes)
            reply = self._build_reply(prompt, choice, armed)
            record.usage = asdict(reply.usage)
            settings, hold = self._state.settings, self._state.current_hold
            delivery = AnswerDelivery(http, record, settings.delay, armed, hold, search_delay=settings.search_delay)
            return await delivery.send_answer(reply, wire)

        return self._build_recorded_handler(wires, respond, for_answer=True)

    def build_document_handler(self, wires: WireFactory, write: Callable[[Prompt], Any]) -> Handler:
        """Return a handler that responds with a document about the request: a token count or a compaction."""

        async def respond(http: web.Request, record: RequestRecord, wire: WireFormat) -> web.StreamResponse:
            prompt = await self._parse_request(http, record, wire)
            record.violations = [each for each in record.violations if each.rule not in _ANSWER_ONLY_RULES]
            await self._apply_early_fault(http, record, self._state.faults.take_fault(for_answer=False))
            self._check_headers(http, wire)
            if self._state.settings.parse_model_id(prompt.model) is None:
                raise RefusedError(NO_SUCH_MODEL_REFUSAL)
            if self._state.settings.strict:
                _refuse_invalid(record)
            record.status = 200
            return web.json_response(write(prompt))

        return self._build_recorded_handler(wires, respond)

    def build_list_handler(self, wires: WireFactory, write: ModelsBodyBuilder) -> Handler:
        """Return a handler that responds with a document about the models."""

        async def respond(http: web.Request, record: RequestRecord, wire: WireFormat) -> web.StreamResponse:
            await self._apply_early_fault(http, record, self._state.faults.take_fault(for_answer=False))
            self._check_headers(http, wire)
            record.status = 200
            return web.json_response(write(http, self._state))

        return self._build_recorded_handler(wires, respond)

    def _build_recorded_handler(
        self,
        wires: WireFactory,
        work: Callable[[web.Request, RequestRecord, WireFormat], Awaitable[web.StreamResponse]],
        *,
        for_answer: bool = False,
    ) -> Handler:
        """Return a handler that calls `work`, logs the request and its outcome, and responds to refusals."""

        async def handler(http: web.Request) -> web.StreamResponse:
            wire = wires(http)
            record = self._state.log.open_record(http, wire.name, for_answer=for_answer)
            task = asyncio.current_task()
            assert task
            self.answer_tasks.add(task)
            try:
                response = await work(http, record, wire)
                record.end(RequestOutcome.ANSWERED)
            except RefusedError as error:
                response = _build_refusal_response(wire.convert_refusal(error.refusal), record, wire)
            except asyncio.CancelledError, ConnectionError:
                record.end(RequestOutcome.STOPPED if self.is_stopping else RequestOutcome.CLIENT_LEFT)
                raise
            finally:
                self.answer_tasks.discard(task)
            return response

        return handler

    async def _parse_request(self, http: web.Request, record: RequestRecord, wire: WireFormat) -> Prompt:
        record.raw = await http.read()
        record.size = len(record.raw)
        try:
            record.body = json.loads(record.raw)
        except ValueError as error:
            message = "We could not parse the JSON body of your request."
            raise RefusedError(Refusal(400, "invalid_request_error", None, message)) from error
        record.violations = wire.find_violations(record.body)
        prompt = wire.parse_request(record.body)
        record.violations += find_home_violations(prompt.conversation.turns, self._state.home_history)
        return prompt

    def _truncate_prompt(self, prompt: Prompt, wire: WireFormat) -> Prompt:
        """Return the request reduced to the part that the server reads."""
        dropping = self._state.truncation
        return prompt if dropping is None else wire.parse_request(dropping.truncate(prompt.body))

    def _find_fault(self, prompt: Prompt, choice: ModelChoice | None) -> ArmedFault | None:
        """Return the fault set from outside, or else the model id's, or else the one that the user's text requests."""
        name = (choice.fault if choice else None) or find_requested_fault(
            prompt.conversation.newest_user_turn.plain_text
        )
        return self._state.faults.take_fault(for_answer=True) or (ArmedFault(name) if name else None)

    async def _apply_early_fault(self, http: web.Request, record: RequestRecord, armed: ArmedFault | None) -> None:
        """Carry out a fault that occurs before the answer; return if there is no such fault."""
        if armed is None:
            return
        record.fault = armed.name
        if armed.fault.refusal:
            raise RefusedError(armed.fault.refusal)
        await AnswerDelivery(http, record, 0, armed).break_before_headers()

    def _check_headers(self, http: web.Request, wire: WireFormat) -> None:
        key = self._state.settings.key
        if key is not None and wire.read_api_key(http.headers) != key:
            raise RefusedError(WRONG_KEY_REFUSAL)
        wire.check_headers(http.headers)

    def _check_request(self, prompt: Prompt, record: RequestRecord) -> None:
        broken = any(each.rule.startswith(SCHEMA_RULE_PREFIX) for each in record.violations)
        if self._state.settings.strict or broken:
            _refuse_invalid(record)
        size, settings = estimate_tokens(prompt.cache_bytes), self._state.settings
        if settings.context_size is not None and size > settings.context_size:
            raise RefusedError(build_overflow_refusal(size, settings.context_size, settings.overflow_report))

    def _answer(self, conversation: Conversation) -> Answer:
        return skills.answer(obey_orders(conversation) if self._state.settings.obedient else conversation)

    def _build_reply(self, prompt: Prompt, choice: ModelChoice, armed: ArmedFault | None) -> Reply:
        answer = self._state.answer_script.pop_answer(prompt.conversation) or match_schema(
            self._answer(prompt.conversation), prompt, choice.shapes
        )
        if THINKING_SHAPES.intersection(choice.shapes) or prompt.must_think:
            answer = replace(answer, reasoning=answer.reasoning or _THOUGHT_TEXT)
        if not prompt.can_think:
            answer = replace(answer, reasoning="")
        if not prompt.conversation.can_search:
            answer = replace(answer, search=None)
        if armed and armed.fault.bend:
            answer = armed.fault.bend(answer, prompt.conversation)
        cached = self._state.cache.use_cache(prompt.model, prompt.cache_bytes, prompt.cache_rules)
        reasoning, written = _count_completion_tokens(answer)
        searches = len(answer.search.queries) if answer.search else 0
        usage = Usage(
            prompt=estimate_tokens(prompt.cache_bytes) + searches * SEARCH_TOKENS,
            cached=cached.read_tokens,
            completion=reasoning + written,
            reasoning=reasoning,
            written=cached.written_tokens,
            written_long=cached.long_written_tokens,
            searches=searches,
        )
        figures, dropping = self._state.settings.figures, self._state.truncation
        shapes = (*choice.shapes, *(("ollama",) if dropping else ()))
        return Reply(prompt=prompt, answer=answer, usage=usage, shapes=shapes, figures=figures)


def _count_completion_tokens(answer: Answer) -> tuple[int, int]:
    """Return the number of tokens of the thoughts, and of the text and calls."""
    calls = (call.arguments for call in answer.calls)
    return estimate_completion_tokens(answer.reasoning, ()), estimate_completion_tokens(
        answer.text + answer.refusal, calls
    )


def _refuse_invalid(record: RequestRecord) -> None:
    """Raise RefusedError if the request violates a rule of its format."""
    if not record.violations:
        return
    broken = "; ".join(f"{each.rule} at {each.where}: {each.text}" for each in record.violations)
    foreign = any(each.rule == "residue_foreign" for each in record.violations)
    reason = RefusalReason.INVALID_SIGNATURE if foreign else RefusalReason.INVALID
    raise RefusedError(Refusal(400, "invalid_request_error", None, f"Invalid request: {broken}.", reason=reason))


def _build_refusal_response(refusal: Refusal, record: RequestRecord, wire: WireFormat) -> web.Response:
    record.status = refusal.status
    record.end(RequestOutcome.REFUSED)
    if refusal.is_html:
        page = f"<html><head><title>{refusal.status}</title></head><body><h1>{refusal.message}</h1></body></html>"
        return web.Response(status=refusal.status, text=page, content_type="text/html")
    headers = {} if refusal.retry_after is None else {"Retry-After": f"{refusal.retry_after:g}"}
    return web.json_response(wire.build_error_body(refusal), status=refusal.status, headers=headers)
