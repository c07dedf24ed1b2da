"""The HTTP server: its address, its connections, its start and stop.

`endpoints` answers requests. Formats, skills, faults, validation and the control API are in other modules.
"""

import asyncio
from typing import Any, Self, override

from aiohttp import web
from aiohttp.typedefs import Handler

from .control import CONTROL_PATH, build_control_routes
from .endpoints import Endpoints
from .routes import build_model_routes
from .state import ServerState

_MAX_BODY_BYTES = 64 * 1024 * 1024
_SHUTDOWN_TIMEOUT = 1.0


class ModelServer(ServerState):
    """A scripted model behind a real HTTP server. Options are the fields of `Settings`.

    Use `async with ModelServer(delay=0.02) as server`, or call `start` and `stop`. `start` raises OSError if the
    address is in use, and the constructor raises ValueError if an option is invalid.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._endpoints = Endpoints(self)
        self._control_transports: set[asyncio.BaseTransport] = set()
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def address(self) -> str:
        """The server's address without a path."""
        return f"http://{self.settings.host}:{self._port}"

    @property
    def url(self) -> str:
        """The base URL for a client of OpenAI or of a compatible server."""
        return f"{self.address}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for Anthropic's client, which adds `/v1/messages` itself."""
        return self.address

    @property
    def gemini_url(self) -> str:
        """The base URL for Gemini's client, which adds `/v1beta/` itself."""
        return self.address

    @property
    def azure_url(self) -> str:
        """The endpoint of the Azure resource, without `/openai/`."""
        return self.address

    @property
    def control_url(self) -> str:
        """The URL of the control API."""
        return f"{self.address}{CONTROL_PATH}"

    @property
    @override
    def open_streams(self) -> int:
        return len(self._endpoints.answer_tasks)

    @property
    @override
    def open_connections(self) -> int:
        return len(self._get_open_transports() - self._control_transports)

    async def start(self) -> None:
        """Start listening, also after `stop`; `address` is valid once this returns."""
        self._endpoints.is_stopping = False
        app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[self._track_control_connections])
        app.router.add_routes(build_model_routes(self._endpoints))
        app.router.add_routes(build_control_routes(self))
        # A cancelled handler knows immediately that its client has disconnected.
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_TIMEOUT
        )
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self.settings.host, self.settings.port).start()
        except OSError:
            await self._runner.cleanup()
            raise
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Abort all answers and close all connections."""
        self._endpoints.is_stopping = True
        answering = set(self._endpoints.answer_tasks)
        for transport in self._get_open_transports():
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

    def _get_open_transports(self) -> set[asyncio.Transport]:
        server = self._runner.server if self._runner else None
        transports = (connection.transport for connection in server.connections) if server else ()
        return {each for each in transports if isinstance(each, asyncio.Transport) and not each.is_closing()}

    @web.middleware
    async def _track_control_connections(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Remember which connections belong to the control API and not to a client of the model."""
        if request.path.startswith(CONTROL_PATH) and request.transport:
            self._control_transports &= self._get_open_transports()
            self._control_transports.add(request.transport)
        return await handler(request)
