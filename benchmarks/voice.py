"""The gain of a head start by voice: from the recognized text to the first token, with and without a head start.

    .venv/demo/bin/python -m benchmarks.voice

1. A remote server: 50 ms each way, TLS, and a model with 50 ms to the first token. Without a head start, the request
waits for two round trips, one for TCP and one for TLS.

2. A server at home: it loads its model in 2 seconds, reads 4,000 tokens a second, has one slot, and keeps the tokens
that it has read. Before each turn its model is unloaded, as Ollama does after five minutes.

The demo home runs in this process, with the scripted voice; the speech takes four seconds. The two agents of each kind
take turns, each turn is a new conversation, and each agent has its own server. The minimum pause between two head
starts is disabled here, because the benchmark would otherwise take hours.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
import json
from math import inf
from pathlib import Path
import ssl
from statistics import median
import tempfile

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from homeassistant.util.ssl import SSL_ALPN_HTTP11, client_context

from benchmarks.beside_core import run_demo_home
import custom_components
from custom_components.windowed_conversation.agents import server as account_server
from demo.client import Client
from demo.home import set_up_home
from demo.home_assistant import REPOSITORY
from demo.model_server import ModelServer
from demo.model_server.prompt_cache import count_common_bytes
from demo.setup_agent import ModelAccess, add_account, change_agent, ensure_pipeline
from demo.voice import take_voice_turn

_SPEECH_SECONDS = 4.0
_ONE_WAY_SECONDS = 0.05
_MODEL_SECONDS = 0.05
_LOAD_SECONDS = 2.0
_TOKENS_PER_SECOND = 4_000
_BYTES_PER_TOKEN = 4
_MODEL_NAME = "scripted"
_WITHOUT, _WITH = "without a head start", "with a head start"
_QUESTION_PREFIX = "tell me a story in 30 words, number"
# Seconds to wait for an account to be reloaded after its agent was changed.
_RELOAD_SECONDS = 3.0


class LocalModelServer:
    """A server at home with one slot, which loads its model on demand."""

    def __init__(self) -> None:
        self._is_loaded = False
        self._cached_prompt = b""
        self._slot_lock = asyncio.Lock()

    def unload(self) -> None:
        """Unload the model and clear its prompt cache."""
        self._is_loaded, self._cached_prompt = False, b""

    async def handle_models(self, _request: web.Request) -> web.Response:
        """Return the list of models, with its only model."""
        return web.json_response({"object": "list", "data": [{"id": _MODEL_NAME, "object": "model"}]})

    async def handle_chat(self, request: web.Request) -> web.StreamResponse:
        """Load the model, read the prompt, and stream a few words, or fewer if the request limits them."""
        body = await request.json()
        async with self._slot_lock:
            if not self._is_loaded:
                await asyncio.sleep(_LOAD_SECONDS)
                self._is_loaded = True
            prompt = json.dumps([body.get("tools"), *body["messages"]]).encode()
            unread = len(prompt) - count_common_bytes(prompt, self._cached_prompt)
            await asyncio.sleep(unread / _BYTES_PER_TOKEN / _TOKENS_PER_SECOND)
            self._cached_prompt = prompt
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for _ in range(min(body.get("max_tokens", 30), 30)):
                await response.write(_encode_chunk({"content": "word "}, None))
            await response.write(_encode_chunk({}, "stop") + b"data: [DONE]\n\n")
            return response


def _encode_chunk(delta: dict[str, str], finish: str | None) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + json.dumps({"object": "chat.completion.chunk", "choices": choices}).encode() + b"\n\n"


@asynccontextmanager
async def _run_local_server() -> AsyncIterator[tuple[LocalModelServer, str]]:
    server, app = LocalModelServer(), web.Application()
    app.router.add_get("/v1/models", server.handle_models)
    app.router.add_post("/v1/chat/completions", server.handle_chat)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield server, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


class SlowNetwork:
    """A slow network in front of a server; `close_connections` closes all connections, as servers do with idle ones."""

    def __init__(self) -> None:
        self._writers: list[asyncio.StreamWriter] = []

    def close_connections(self) -> None:
        """Close all connections."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def forward_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        """Forward bytes to a local port and back, each delayed by half a round trip."""
        self._writers.append(writer)
        # A connection on loopback is established immediately, so the round trip of TCP is added here.
        await asyncio.sleep(2 * _ONE_WAY_SECONDS)
        await _forward_both_ways(reader, writer, port, _ONE_WAY_SECONDS)


async def _forward_both_ways(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, delay: float
) -> None:
    upstream, out = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.gather(_forward_delayed(reader, out, delay), _forward_delayed(upstream, writer, delay))


async def _forward_delayed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    loop = asyncio.get_running_loop()
    try:
        while data := await reader.read(2**16):
            loop.call_later(delay, writer.write, data)
    except OSError:
        pass
    loop.call_later(delay, writer.close)


@asynccontextmanager
async def _run_remote_server(port: int, certificate: Path) -> AsyncIterator[tuple[SlowNetwork, str]]:
    """Yield the simulated network and the URL of the server on this port, with TLS in front of it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    far = SlowNetwork()
    tls = await asyncio.start_server(lambda r, w: _forward_both_ways(r, w, port, 0), "127.0.0.1", 0, ssl=context)
    tls_port = tls.sockets[0].getsockname()[1]
    network = await asyncio.start_server(lambda r, w: far.forward_connection(r, w, tls_port), "127.0.0.1", 0)
    try:
        yield far, f"https://127.0.0.1:{network.sockets[0].getsockname()[1]}/v1"
    finally:
        for server in (network, tls):
            server.close()
            server.close_clients()


def _write_certificate(path: Path) -> None:
    """Write a private key and a self-signed certificate for this machine."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "benchmark")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(key.private_bytes(*form) + made.public_bytes(serialization.Encoding.PEM))


async def _create_pipeline(client: Client, model: ModelAccess, name: str) -> str:
    account = await add_account(client, model, name)
    await change_agent(client, account, {"routing": "model_only"})
    await asyncio.sleep(_RELOAD_SECONDS)
    return await ensure_pipeline(client, account.agent_id, name)


async def _compare_pipelines(
    client: Client, title: str, sides: dict[str, tuple[str, Callable[[], None]]], turns: int, own_time: float
) -> None:
    """Print the time to first token of each side: a pipeline, and a function that resets its server before a turn."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(turns + 1):
        for name, (pipeline, make_cold) in sides.items():
            make_cold()
            # an endless minimum pause between two head starts allows none
            setattr(account_server, "_MIN_START_INTERVAL", inf if name == _WITHOUT else 0.0)  # noqa: B010
            turn = await take_voice_turn(
                client, f"{_QUESTION_PREFIX} {number}", pipeline=pipeline, speech=_SPEECH_SECONDS
            )
            if turn.error or turn.first_token is None or turn.recognized_after is None:
                raise SystemExit(f"a turn failed: {turn.error}")
            # Ignore the first turn: a head start only knows the prompt from an earlier question.
            times[name] += [turn.first_token - turn.recognized_after] if number else []
    print(f"{title}, {turns} turns each (ms)")
    for name, measured in times.items():
        print(f"  {name:<24}{median(measured) * 1e3:9.0f}  from {min(measured) * 1e3:.0f} to {max(measured) * 1e3:.0f}")
    without, having = (median(measured) for measured in times.values())
    print(f"  ratio {having / without:.3f}; beside what the server itself takes: {(having - own_time) * 1e3:.0f} ms\n")


async def _run_benchmark(turns: int, folder: Path) -> None:
    async with AsyncExitStack() as stack:
        _, client = await stack.enter_async_context(run_demo_home(str(folder / "home")))
        await set_up_home(client)
        far: dict[str, tuple[str, Callable[[], None]]] = {}
        home: dict[str, tuple[str, Callable[[], None]]] = {}
        for name in (_WITHOUT, _WITH):
            model = await stack.enter_async_context(ModelServer(delay=_MODEL_SECONDS))
            port = int(model.address.rpartition(":")[2])
            network, url = await stack.enter_async_context(_run_remote_server(port, folder / "certificate.pem"))
            entered = ModelAccess(
                url=url, model=_MODEL_NAME, api_key="key", form_name="openai", wire_format="responses"
            )
            far[name] = (
                await _create_pipeline(client, entered, f"far, {name}"),
                network.close_connections,
            )
            server, url = await stack.enter_async_context(_run_local_server())
            entered = ModelAccess(url=url, model=_MODEL_NAME)
            home[name] = await _create_pipeline(client, entered, f"at home, {name}"), server.unload
        await _compare_pipelines(client, "A server far away", far, turns, 2 * _ONE_WAY_SECONDS + _MODEL_SECONDS)
        await _compare_pipelines(client, "A server at home", home, turns, 0.0)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="What a head start is worth by voice.")
    parser.add_argument("--turns", type=int, default=10, help="turns of each agent")
    turns = parser.parse_args().turns
    # Import the integration from the repository, and the scripted voice from the demo's folder.
    custom_components.__path__.append(str(REPOSITORY / "demo"))
    setattr(account_server, "_ASSUMED_LOADED_SECONDS", 0.0)  # noqa: B010
    with tempfile.TemporaryDirectory() as folder:
        certificate = Path(folder) / "certificate.pem"
        _write_certificate(certificate)
        client_context(alpn_protocols=SSL_ALPN_HTTP11).load_verify_locations(certificate)
        asyncio.run(_run_benchmark(turns, Path(folder)))


if __name__ == "__main__":
    main()
