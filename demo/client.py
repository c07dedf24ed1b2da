"""Client for Home Assistant's REST and websocket interfaces, as the frontend uses them.

Areas, agents and turns are handled by the modules that use this client.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from itertools import count
from types import TracebackType
from typing import Any, Self

import aiohttp

Json = dict[str, Any]

# Seconds. This is far more than any request needs, so that a wait that would never end raises an error instead.
ANSWER_TIMEOUT = 60.0
START_TIMEOUT = 120.0


class RefusedError(Exception):
    """Home Assistant returned an error: an HTTP status above 299, or a failed websocket command."""


class Client:
    """A logged-in connection to the Home Assistant at `url`; leaving the context closes it.

    `tokens` is the response of /auth/token, as returned by `log_in_or_onboard`.
    """

    def __init__(self, url: str, tokens: Mapping[str, Any]) -> None:
        """Store the address and the tokens; entering the context connects."""
        self.url = url
        self.tokens = tokens
        self._message_ids = count(1)
        self._queue_by_id: dict[int, asyncio.Queue[Json | None]] = {}

    async def __aenter__(self) -> Self:
        """Open the websocket and authenticate."""
        self._session = aiohttp.ClientSession(headers={"Authorization": f"Bearer {self.tokens['access_token']}"})
        try:
            self._websocket = await self._session.ws_connect(f"{self.url}/api/websocket", max_msg_size=0)
            await self._authenticate()
        except BaseException:
            await self._session.close()
            raise
        self._reader_task = asyncio.create_task(self._distribute_messages())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the websocket and the session."""
        await self._websocket.close()
        await self._reader_task
        await self._session.close()

    async def get(self, path: str) -> Any:
        """Return the JSON document at `path`. Raises RefusedError."""
        return await self._request("GET", path)

    async def post(self, path: str, body: Json | None = None) -> Any:
        """Send `body` to `path` and return the JSON response. Raises RefusedError."""
        return await self._request("POST", path, body or {})

    async def delete(self, path: str) -> Any:
        """Send a DELETE request and return the JSON response. Raises RefusedError."""
        return await self._request("DELETE", path)

    async def call_action(self, action: str, entity_id: str, **data: Any) -> None:
        """Call `action`, such as light.turn_on, for an entity. Raises RefusedError."""
        await self.post(f"/api/services/{action.replace('.', '/')}", {"entity_id": entity_id, **data})

    async def fetch_states(self) -> dict[str, Json]:
        """Return every state by entity id."""
        return {state["entity_id"]: state for state in await self.get("/api/states")}

    async def send_command(self, kind: str, **fields: Any) -> Any:
        """Send one websocket command and return its result. Raises RefusedError."""
        at, inbox = await self._send_message(kind, fields)
        try:
            return _get_result(kind, await self._receive_message(inbox))
        finally:
            del self._queue_by_id[at]

    async def iter_events(self, kind: str, **fields: Any) -> AsyncGenerator[Json]:
        """Send a websocket command and yield its events until the generator is closed. Raises RefusedError."""
        at, inbox = await self._send_message(kind, fields)
        subscribed = False
        try:
            _get_result(kind, await self._receive_message(inbox))
            subscribed = True
            while True:
                yield (await self._receive_message(inbox))["event"]
        finally:
            del self._queue_by_id[at]
            if subscribed and not self._websocket.closed:
                await self.send_command("unsubscribe_events", subscription=at)

    async def send_audio(self, handler_id: int, samples: bytes) -> None:
        """Send audio to the pipeline run with this handler id; empty `samples` end the audio."""
        await self._websocket.send_bytes(bytes([handler_id]) + samples)

    async def iter_audio(self, path: str) -> AsyncGenerator[bytes]:
        """Yield the audio at `path` in chunks, as they arrive. Raises RefusedError."""
        async with self._session.get(self.url + path) as answer:
            if answer.status >= 300:
                raise RefusedError(f"{path}: {answer.status}")
            async for chunk in answer.content.iter_any():
                yield chunk

    async def wait_until_running(self) -> None:
        """Wait until Home Assistant has started completely, not only its HTTP server. Raises TimeoutError."""
        for _ in range(int(START_TIMEOUT * 10)):
            if (await self.get("/api/config"))["state"] == "RUNNING":
                return
            await asyncio.sleep(0.1)
        raise TimeoutError("it did not start everything in time")

    async def _authenticate(self) -> None:
        await self._websocket.receive_json(timeout=ANSWER_TIMEOUT)
        await self._websocket.send_json({"type": "auth", "access_token": self.tokens["access_token"]})
        answer = await self._websocket.receive_json(timeout=ANSWER_TIMEOUT)
        if answer["type"] != "auth_ok":
            raise RefusedError(f"websocket: {answer.get('message')}")

    async def _request(self, method: str, path: str, body: Json | None = None) -> Any:
        timeout = aiohttp.ClientTimeout(total=ANSWER_TIMEOUT)
        async with self._session.request(method, self.url + path, json=body, timeout=timeout) as answer:
            return await _read_json(answer, path)

    async def _send_message(self, kind: str, fields: Json) -> tuple[int, asyncio.Queue[Json | None]]:
        at, inbox = next(self._message_ids), asyncio.Queue[Json | None]()
        self._queue_by_id[at] = inbox
        await self._websocket.send_json({"id": at, "type": kind, **fields})
        return at, inbox

    async def _receive_message(self, queue: asyncio.Queue[Json | None]) -> Json:
        async with asyncio.timeout(ANSWER_TIMEOUT):
            message = await queue.get()
        if message is None:
            raise RefusedError("Home Assistant closed the websocket")
        return message

    async def _distribute_messages(self) -> None:
        async for message in self._websocket:
            content = message.json()
            for one in content if isinstance(content, list) else [content]:
                if inbox := self._queue_by_id.get(one.get("id")):
                    inbox.put_nowait(one)
        for inbox in self._queue_by_id.values():
            inbox.put_nowait(None)


def _get_result(kind: str, message: Json) -> Any:
    if not message["success"]:
        raise RefusedError(f"{kind}: {message['error']['message']}")
    return message["result"]


async def _read_json(answer: aiohttp.ClientResponse, path: str) -> Any:
    if answer.status >= 300:
        raise RefusedError(f"{path}: {answer.status} {(await answer.text())[:300]}")
    return await answer.json()


@asynccontextmanager
async def _open_session(url: str) -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=ANSWER_TIMEOUT)
    async with aiohttp.ClientSession(base_url=url, timeout=timeout) as session:
        yield session


async def log_in_or_onboard(url: str, username: str, password: str) -> Json:
    """Return the tokens of the user, who becomes the owner if the home has no user yet. Raises RefusedError."""
    async with _open_session(url) as session:
        async with session.get("/auth/providers") as answer:
            has_owner = answer.status == HTTPStatus.OK
        enter_as = _log_in if has_owner else _onboard
        code = await enter_as(session, url, username, password)
        form = {"grant_type": "authorization_code", "code": code, "client_id": f"{url}/"}
        async with session.post("/auth/token", data=form) as answer:
            tokens: Json = await _read_json(answer, "/auth/token")
        return tokens


async def _onboard(session: aiohttp.ClientSession, url: str, username: str, password: str) -> str:
    owner = {
        "name": username.capitalize(),
        "username": username,
        "password": password,
        "client_id": f"{url}/",
        "language": "en",
    }
    async with session.post("/api/onboarding/users", json=owner) as answer:
        code: str = (await _read_json(answer, "/api/onboarding/users"))["auth_code"]
    return code


async def _log_in(session: aiohttp.ClientSession, url: str, username: str, password: str) -> str:
    start = {"client_id": f"{url}/", "handler": ["homeassistant", None], "redirect_uri": f"{url}/"}
    async with session.post("/auth/login_flow", json=start) as answer:
        flow = await _read_json(answer, "/auth/login_flow")
    login = {"client_id": f"{url}/", "username": username, "password": password}
    async with session.post(f"/auth/login_flow/{flow['flow_id']}", json=login) as answer:
        done = await _read_json(answer, "/auth/login_flow")
    if done["type"] != "create_entry":
        raise RefusedError(f"/auth/login_flow: {done.get('errors')}")
    code: str = done["result"]
    return code
