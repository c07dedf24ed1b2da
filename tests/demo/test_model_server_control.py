"""The server from outside: control API, log, keys, options, the command, the thread."""

import asyncio
import signal
import sys
import time
from urllib.request import urlopen

import aiohttp
import openai
import pytest

from demo.model_server import ModelServer, serve_in_thread
from demo.model_server.__main__ import main
from demo.model_server.request_log import Outcome

from .model_talk import SYSTEM, until, user

COMMAND = (sys.executable, "-m", "demo.model_server")


@pytest.fixture
async def control(server):
    """Send a request to the control API; returns status and body."""
    async with aiohttp.ClientSession() as session:

        async def send(method, path="", body=None):
            async with session.request(method, f"{server.control_url}{path}", json=body) as response:
                return response.status, await response.json()

        yield send


async def test_it_shows_what_is_set(control):
    assert await control("GET") == (
        200,
        {
            "settings": {
                "host": "127.0.0.1",
                "port": 0,
                "key": False,
                "delay": 0.0,
                "strict": False,
                "shapes": [],
                "models": ["scripted"],
                "context_size": None,
                "figures": {},
            },
            "fault": None,
            "received": 0,
            "open_streams": 0,
            "open_connections": 0,
        },
    )


async def test_a_fault_is_set_and_cleared(control, ask):
    await control("POST", body={"fault": "429", "times": 5, "retry_after": 1})
    with pytest.raises(openai.RateLimitError):
        await ask("hello")
    _, shown = await control("POST", body={"fault": None})
    assert shown["fault"] is None
    assert (await ask("my name is Ada")).text == "Nice to meet you, Ada."


async def test_only_what_is_named_changes(control, server):
    await control("POST", body={"fault": "500", "delay": 0.5})
    await control("POST", body={"shapes": ["ollama"]})
    assert server.settings.delay == 0.5
    assert server.settings.shapes == ("ollama",)
    assert server.faults.armed.name == "500"


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


async def test_a_wrong_key_is_refused(client, server):
    server.change(key="another")
    with pytest.raises(openai.AuthenticationError):
        await client.models.list()
    with pytest.raises(openai.AuthenticationError):
        await client.chat.completions.create(model="scripted", messages=[user("hello")])


async def test_the_right_key_is_let_in(client, server):
    server.change(key="made-up")
    assert (await client.models.list()).data


async def test_the_log_tells_what_was_received_and_when(control, ask):
    before = time.monotonic_ns()
    await ask("my name is Ada")
    after = time.monotonic_ns()
    _, (record,) = await control("GET", "/requests")
    assert record["body"]["messages"] == [SYSTEM, user("my name is Ada")]
    assert record["path"] == "/v1/chat/completions"
    assert record["size"] > 100
    assert (record["status"], record["outcome"], record["client_left"]) == (200, "answered", False)
    assert record["violations"] == []
    assert record["text_events"] == 5
    assert record["usage"]["prompt"] > 0
    times = [record[name] for name in ("arrived_ns", "first_event_ns", "first_content_ns", "ended_ns")]
    assert [before, *times, after] == sorted([before, *times, after])


async def test_the_log_can_be_emptied(control, ask):
    await ask("hello")
    await control("DELETE", "/requests")
    assert await control("GET", "/requests") == (200, [])
    assert (await control("GET"))[1]["received"] == 1


async def test_the_log_names_broken_rules(client, server):
    await client.chat.completions.create(model="scripted", messages=[user("hello")])
    assert {violation.rule for violation in server.requests[0].violations} == {"system_first", "user_second"}


async def test_a_strict_server_refuses_what_breaks_a_rule(client, server):
    server.change(strict=True)
    with pytest.raises(openai.BadRequestError, match="system_first"):
        await client.chat.completions.create(model="scripted", messages=[user("hello")])


async def test_a_strict_server_answers_what_is_valid(ask, server):
    server.change(strict=True)
    assert (await ask("my name is Ada")).text == "Nice to meet you, Ada."


async def test_a_request_over_the_context_size_is_refused(ask, server):
    server.change(context_size=500)
    with pytest.raises(openai.BadRequestError) as caught:
        await ask("a" * 2000)
    assert caught.value.code == "context_length_exceeded"


async def test_the_delay_is_before_every_word(ask, server):
    server.change(delay=0.05)
    loop = asyncio.get_running_loop()
    before = loop.time()
    await ask("my name is Ada")
    assert loop.time() - before == pytest.approx(5 * 0.05)


async def test_words_come_while_the_answer_is_being_written(client, server):
    server.change(delay=0.05)
    stream = await client.chat.completions.create(model="scripted", messages=[user("tell me a story")], stream=True)
    chunks = aiter(stream)
    await anext(chunks)
    first = await anext(chunks)
    assert first.choices[0].delta.content == "Once "
    assert server.open_streams == 1
    await stream.close()


async def test_a_client_that_hangs_up_is_noticed(client, server):
    server.change(delay=0.01)
    stream = await client.chat.completions.create(model="scripted", messages=[user("tell me a story")], stream=True)
    await anext(aiter(stream))
    await stream.close()
    await until(lambda: (server.open_streams, server.open_connections) == (0, 0))
    (record,) = server.requests
    assert record.client_left
    assert record.text_events < 300


async def test_a_connection_that_is_kept_alive_is_open(client, server, control):
    await client.models.list()
    await control("GET")
    assert (server.open_streams, server.open_connections) == (0, 1)


async def test_other_models_can_be_offered(client, server):
    server.change(models=("big", "small"))
    assert {"big", "small", "big+ollama"} <= {model.id async for model in client.models.list()}
    answer = await client.chat.completions.create(model="small", messages=[user("my name is Ada")])
    assert answer.choices[0].message.content == "Nice to meet you, Ada."


async def test_stopping_breaks_off_a_silent_answer(socket_enabled):
    loop = asyncio.get_running_loop()
    async with ModelServer() as server, aiohttp.ClientSession() as session:
        server.fault("no_answer")
        body = {"model": "scripted", "messages": [user("hello")]}
        waiting = asyncio.ensure_future(session.post(f"{server.url}/chat/completions", json=body))
        await until(lambda: server.open_streams == 1)
        before = loop.time()
        await server.stop()
        with pytest.raises(aiohttp.ClientError):
            await waiting
    assert loop.time() - before < 0.5
    assert server.requests[0].outcome is Outcome.STOPPED


@pytest.mark.parametrize(
    "options", [{"delay": -1}, {"delay": float("nan")}, {"shapes": ("round",)}, {"models": ()}, {"context_size": 0}]
)
def test_an_impossible_option_is_an_error(options):
    with pytest.raises(ValueError, match=r"delay|shape|model|context_size"):
        ModelServer(**options)


async def test_a_port_in_use_is_an_error(server):
    with pytest.raises(OSError, match="in use"):
        await ModelServer(port=int(server.address.rpartition(":")[2])).start()


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
