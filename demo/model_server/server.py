"""The HTTP server: connections, keys, models, and the way of a request from the wire to the skills and back.

It knows only what it is sent. Formats, skills, faults, validation and the control API have modules of their own.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
import json
from typing import Any, Self, override

from aiohttp import web
from aiohttp.typedefs import Handler

from . import skills
from .chat_completions import ChatCompletions, models_body
from .control import CONTROL_PATH, control_routes
from .delivery import Delivery
from .faults import NO_SUCH_MODEL, WRONG_KEY, ArmedFault, Refusal, RefusedError, fault_asked_for
from .request_log import Outcome, Record
from .settings import ModelChoice
from .state import State
from .usage import Usage, completion_tokens, tokens
from .wire import Prompt, Reply, WireFormat

_MAX_BODY_BYTES = 64 * 1024 * 1024
_SHUTDOWN_SECONDS = 1.0

type _Work = Callable[[web.Request, Record], Awaitable[web.StreamResponse]]


class ModelServer(State):
    """A scripted model behind a real HTTP server. Options are the fields of `Settings`.

    Used as `async with ModelServer(delay=0.02) as server`, or with `start` and `stop`. `start` raises OSError when
    the address is taken, the constructor ValueError when an option is impossible.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._answering: set[asyncio.Task[Any]] = set()
        self._control_transports: set[asyncio.BaseTransport] = set()
        self._stopping = False
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def address(self) -> str:
        """The address without a path."""
        return f"http://{self.settings.host}:{self._port}"

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"{self.address}/v1"

    @property
    def control_url(self) -> str:
        """The URL of the control API."""
        return f"{self.address}{CONTROL_PATH}"

    @property
    @override
    def open_streams(self) -> int:
        return len(self._answering)

    @property
    @override
    def open_connections(self) -> int:
        return len(self._transports() - self._control_transports)

    async def start(self) -> None:
        """Listen; `address` is valid from here on."""
        app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[self._note_control])
        wire = ChatCompletions()
        app.router.add_get("/v1/models", self._recorded(wire, self._list_models))
        app.router.add_post("/v1/chat/completions", self._recorded(wire, self._answer(wire)))
        app.router.add_routes(control_routes(self))
        # A handler that is cancelled knows at once that its client has hung up.
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_SECONDS
        )
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self.settings.host, self.settings.port).start()
        except OSError:
            await self._runner.cleanup()
            raise
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Break off what is being answered and close every connection."""
        self._stopping = True
        answering = set(self._answering)
        for transport in self._transports():
            transport.abort()
        if answering:
            await asyncio.wait(answering)
        if self._runner:
            await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _transports(self) -> set[asyncio.Transport]:
        server = self._runner.server if self._runner else None
        transports = (connection.transport for connection in server.connections) if server else ()
        return {each for each in transports if isinstance(each, asyncio.Transport) and not each.is_closing()}

    @web.middleware
    async def _note_control(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Remember which connections are not a model's client."""
        if request.path.startswith(CONTROL_PATH) and request.transport:
            self._control_transports &= self._transports()
            self._control_transports.add(request.transport)
        return await handler(request)

    def _recorded(self, wire: WireFormat, work: _Work) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return the handler around `work`: the record, refusals, and what became of the request."""

        async def handler(http: web.Request) -> web.StreamResponse:
            record = self.log.open(http.method, http.path, http.headers)
            task = asyncio.current_task()
            assert task
            self._answering.add(task)
            try:
                response = await work(http, record)
                record.end(Outcome.ANSWERED)
            except RefusedError as error:
                response = _refused(error.refusal, record, wire)
            except asyncio.CancelledError, ConnectionError:
                record.end(Outcome.STOPPED if self._stopping else Outcome.CLIENT_LEFT)
                raise
            finally:
                self._answering.discard(task)
            return response

        return handler

    async def _list_models(self, http: web.Request, record: Record) -> web.StreamResponse:
        await self._fail_early(http, record, self.faults.take(whole_answer=False))
        self._check_key(http)
        record.status = 200
        return web.json_response(models_body(self.settings.listed_models()))

    def _answer(self, wire: WireFormat) -> _Work:
        async def work(http: web.Request, record: Record) -> web.StreamResponse:
            prompt = await self._read(http, record, wire)
            choice = self.settings.choice(prompt.model)
            armed = self._armed(prompt, choice)
            await self._fail_early(http, record, armed)
            self._check_key(http)
            if choice is None:
                raise RefusedError(NO_SUCH_MODEL)
            self._check_request(prompt, record)
            reply = self._reply(prompt, choice, armed)
            record.usage = asdict(reply.usage)
            content_type = "text/event-stream; charset=utf-8" if reply.stream else "application/json"
            delivery = Delivery(http, record, self.settings.delay, armed)
            return await delivery.send(wire.frames(reply), content_type, wire)

        return work

    async def _read(self, http: web.Request, record: Record, wire: WireFormat) -> Prompt:
        raw = await http.read()
        record.size = len(raw)
        try:
            record.body = json.loads(raw)
        except ValueError as error:
            message = "We could not parse the JSON body of your request."
            raise RefusedError(Refusal(400, "invalid_request_error", None, message)) from error
        record.violations = wire.violations(record.body)
        return wire.read(record.body)

    def _armed(self, prompt: Prompt, choice: ModelChoice | None) -> ArmedFault | None:
        """Return the fault that was set from outside, else the model id's, else the one that the user asks for."""
        name = (choice.fault if choice else None) or fault_asked_for(prompt.conversation.newest.said)
        return self.faults.take(whole_answer=True) or (ArmedFault(name) if name else None)

    async def _fail_early(self, http: web.Request, record: Record, armed: ArmedFault | None) -> None:
        """Do what the fault does before an answer is begun; returns where that is nothing."""
        if armed is None:
            return
        record.fault = armed.name
        if armed.fault.refusal:
            raise RefusedError(armed.fault.refusal)
        await Delivery(http, record, 0, armed).before_headers()

    def _check_key(self, http: web.Request) -> None:
        key = self.settings.key
        if key is not None and http.headers.get("Authorization") != f"Bearer {key}":
            raise RefusedError(WRONG_KEY)

    def _check_request(self, prompt: Prompt, record: Record) -> None:
        if self.settings.strict and record.violations:
            broken = "; ".join(f"{each.rule} at {each.where}: {each.text}" for each in record.violations)
            raise RefusedError(Refusal(400, "invalid_request_error", None, f"Invalid request: {broken}."))
        size, limit = tokens(prompt.cached_form), self.settings.context_size
        if limit is not None and size > limit:
            message = f"This model's maximum context length is {limit} tokens. Your messages resulted in {size} tokens."
            raise RefusedError(Refusal(400, "invalid_request_error", "context_length_exceeded", message))

    def _reply(self, prompt: Prompt, choice: ModelChoice, armed: ArmedFault | None) -> Reply:
        answer = skills.answer(prompt.conversation)
        if armed and armed.fault.bend:
            answer = armed.fault.bend(answer, prompt.conversation)
        reasoning = completion_tokens(answer.reasoning, ())
        written = completion_tokens(answer.text + answer.refusal, (call.arguments for call in answer.calls))
        usage = Usage(
            prompt=tokens(prompt.cached_form),
            cached=self.cache.cached_tokens(str(prompt.model), prompt.cached_form),
            completion=reasoning + written,
            reasoning=reasoning,
        )
        return Reply(
            model=str(prompt.model),
            answer=answer,
            usage=usage,
            shapes=choice.shapes,
            stream=prompt.stream,
            stream_usage=prompt.stream_usage,
        )


def _refused(refusal: Refusal, record: Record, wire: WireFormat) -> web.Response:
    record.status = refusal.status
    record.end(Outcome.REFUSED)
    if refusal.html:
        page = f"<html><head><title>{refusal.status}</title></head><body><h1>{refusal.message}</h1></body></html>"
        return web.Response(status=refusal.status, text=page, content_type="text/html")
    headers = {} if refusal.retry_after is None else {"Retry-After": f"{refusal.retry_after:g}"}
    return web.json_response(wire.error_body(refusal), status=refusal.status, headers=headers)
