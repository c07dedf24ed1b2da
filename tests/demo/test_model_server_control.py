"""Tests for the model server from outside: control API, log, keys, options, command line, and thread."""

import asyncio
import signal
import sys
from urllib.request import urlopen

import aiohttp
import openai
import pytest

from demo.model_server import serve_in_thread
from demo.model_server.__main__ import main

from .model_talk import user

COMMAND = (sys.executable, "-m", "demo.model_server")


@pytest.fixture
async def control(server):
    """Yield a function that sends a request to the control API and returns the status and the body."""
    async with aiohttp.ClientSession() as session:

        async def send(method, path="", body=None):
            async with session.request(method, f"{server.control_url}{path}", json=body) as response:
                return response.status, await response.json()

        yield send


async def test_a_fault_is_set_and_cleared(control, ask):
    await control("POST", body={"fault": "429", "times": 5, "retry_after": 1})
    with pytest.raises(openai.RateLimitError):
        await ask("hello")
    _, shown = await control("POST", body={"fault": None})
    assert shown["fault"] is None
    assert (await ask("my name is Ada")).text == "Nice to meet you, Ada."


async def test_a_delete_goes_back_to_the_start(control, server, ask):
    await ask("hello")
    await control("POST", body={"fault": "500", "delay": 0.5, "key": "secret", "strict": True})
    await control("DELETE")
    assert server.settings.delay == 0
    assert server.settings.key is None
    assert server.faults.armed is None
    assert server.requests == []


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"falt": "500"},
        {"fault": "no such thing"},
        {"fault": "500", "times": -1},
        {"fault": "500", "times": "two"},
        {"times": 2},
        {"delay": -1},
        {"delay": "slow"},
        {"shapes": ["round"]},
        {"shapes": 5},
        {"models": []},
        {"context_size": 0},
        {"key": 5},
        {"port": 1},
        {"fault": "500", "delay": -1},
    ],
)
async def test_an_impossible_change_changes_nothing(control, server, body):
    before = server.settings
    status, answer = await control("POST", body=body)
    assert status == 400
    assert answer["error"]
    assert server.settings == before
    assert server.faults.armed is None


async def test_the_key_is_never_shown(control, ask):
    await control("POST", body={"key": "made-up"})
    await ask("hello")
    assert "made-up" not in str(await control("GET")) + str(await control("GET", "/requests"))


async def test_a_strict_server_refuses_what_breaks_a_rule(client, server):
    server.change(strict=True)
    with pytest.raises(openai.BadRequestError, match="system_first"):
        await client.chat.completions.create(model="scripted", messages=[user("hello")])


async def test_a_request_over_the_context_size_is_refused(ask, server):
    server.change(context_size=500)
    with pytest.raises(openai.BadRequestError) as caught:
        await ask("a" * 2000)
    assert caught.value.code == "context_length_exceeded"


def test_it_runs_in_a_thread(socket_enabled):
    with serve_in_thread(models=("threaded",)) as server, urlopen(f"{server.url}/models") as response:
        assert b"threaded" in response.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_command_prints_its_url_and_stops_on_a_signal(socket_enabled, number):
    process = await asyncio.create_subprocess_exec(*COMMAND, "--key", "k", stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    async with aiohttp.ClientSession() as session:
        headers = {"Authorization": "Bearer k"}
        async with session.get(f"{url}/models", headers=headers) as response:
            assert response.status == 200
        process.send_signal(number)
        assert await process.wait() == 0


async def test_the_command_prints_the_url_of_every_provider(socket_enabled):
    process = await asyncio.create_subprocess_exec(*COMMAND, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    printed = [(await process.stdout.readline()).decode().strip() for _ in range(4)]
    process.terminate()
    await process.wait()
    address = printed[0].removesuffix("/v1")
    assert printed[1:] == [f"{name}: {address}" for name in ("Anthropic", "Gemini", "Azure")]


async def test_the_command_says_that_a_port_is_in_use(server):
    port = server.address.rpartition(":")[2]
    process = await asyncio.create_subprocess_exec(*COMMAND, "--port", port, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    assert process.returncode == 1
    assert said.decode() == f"Port {port} on 127.0.0.1 is in use: choose another with --port.\n"


@pytest.mark.parametrize("options", [("--delay", "-1"), ("--shape", "round"), ("--context-size", "0"), ("--port", "x")])
def test_the_command_refuses_impossible_options(options, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["demo.model_server", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "error: " in capsys.readouterr().err
