"""Tests for the model server from outside: control API, log, keys, options, command line, and thread."""

import asyncio
import signal
import sys

import aiohttp
import openai
import pytest

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
    [[], {"falt": "500"}, {"fault": "no such thing"}, {"fault": "500", "delay": -1}],
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
