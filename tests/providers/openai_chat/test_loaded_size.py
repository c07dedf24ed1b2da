"""Tests for the context size of a loaded model, as servers report it on request."""

import json
from typing import Any

import httpx2
import pytest

from custom_components.windowed_conversation.providers import AnswerDone, BadRequest, ProviderError, Request
from custom_components.windowed_conversation.providers.openai.clients import create_compatible_chat
from custom_components.windowed_conversation.window import Message
from tests.providers.byte_server import DONE, JSON, ByteServer, chunk, text

OLLAMA = {"models": [{"name": "other", "context_length": 1}, {"name": "llama3.2:latest", "context_length": 4096}]}
LLAMA_CPP = {"default_generation_settings": {"n_ctx": 8192}, "total_slots": 4}
LM_STUDIO = {"data": [{"id": "llama3.2", "loaded_context_length": 6000, "max_context_length": 131_072}]}


@pytest.fixture
def asked(byte_server: ByteServer) -> Any:
    """Return a function that queries the size from a server that answers every request with the given value."""

    async def asked(value: Any, *, server: str = "fp_ollama llama3.2", status: int = 200) -> int | None:
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        byte_server.set_reply(content, status=status, headers=JSON)
        async with httpx2.AsyncClient(verify=False) as client:
            provider = create_compatible_chat(byte_server.url, None, client)
            return await provider.fetch_context_tokens("llama3.2", server)

    return asked


@pytest.mark.parametrize(
    ("server", "answer", "size"),
    [
        ("fp_ollama llama3.2", OLLAMA, 4096),
        ("b7000-abc llama3.2", LLAMA_CPP, 8192),
        ("llama3.2 llama3.2", LM_STUDIO, 6000),
    ],
    ids=["ollama", "llama_cpp", "lm_studio"],
)
async def test_each_server_names_its_size(server: str, answer: Any, size: int, asked: Any) -> None:
    assert await asked(answer, server=server) == size


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        {"models": []},
        {"models": [{"name": "llama3.2", "context_length": -1}]},
        {"models": [{"name": "llama3.2", "context_length": 10**12}]},
        {"models": [{"name": "llama3.2", "context_length": "4096"}]},
        {"models": {"name": "llama3.2"}},
        b"<html>",
    ],
)
async def test_what_is_no_size_is_none(answer: Any, asked: Any) -> None:
    assert await asked(answer) is None


@pytest.mark.parametrize("status", [404, 400])
async def test_server_without_such_a_path_names_none(status: int, asked: Any) -> None:
    assert await asked(b"404 page not found", status=status, server="fp_made_up scripted") is None


async def test_redirect_is_not_followed(byte_server: ByteServer) -> None:
    byte_server.set_reply(status=302, headers={"Location": "http://192.0.2.1/"})
    async with httpx2.AsyncClient(verify=False) as client:
        assert (
            await create_compatible_chat(byte_server.url, None, client).fetch_context_tokens("llama3.2", "fp_ollama")
            is None
        )


async def test_broken_server_is_an_error(asked: Any) -> None:
    with pytest.raises(ProviderError) as caught:
        await asked(b"", status=500)
    assert not isinstance(caught.value, BadRequest)


@pytest.mark.parametrize(
    ("fields", "server"),
    [
        ({"system_fingerprint": "fp_ollama", "model": "llama3.2"}, "fp_ollama llama3.2"),
        ({"model": "meta/llama", "provider": "Made up"}, "meta/llama Made up"),
        ({"system_fingerprint": None, "model": 7}, ""),
        ({"model": "m" * 1000}, "m" * 100),
    ],
)
async def test_end_of_an_answer_says_who_answered(fields: Any, server: str, byte_server: ByteServer) -> None:
    byte_server.set_reply(text("Hello."), chunk({}, "stop", **fields), DONE)
    async with httpx2.AsyncClient(verify=False) as client:
        request = Request("llama3.2", (Message.user("hello"),))
        events = [event async for event in create_compatible_chat(byte_server.url, None, client).stream(request)]

    assert isinstance(events[-1], AnswerDone)
    assert events[-1].server_identity == server
