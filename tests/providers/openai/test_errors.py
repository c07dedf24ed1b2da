"""Tests for errors of OpenAI and Azure as their servers send them in both formats, classified by status and code."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import (
    AnswerRefused,
    AuthError,
    BadRequest,
    ContextOverflow,
    ModelNotFound,
    ProviderError,
    QuotaError,
    RateLimited,
    Unavailable,
)
from custom_components.windowed_conversation.providers.events import Event, Request
from custom_components.windowed_conversation.providers.models import ModelProfile
from custom_components.windowed_conversation.window import Message

from ..byte_server import JSON, ByteServer
from ..conftest import Hear
from ..heard import Heard
from ..overflow_bodies import BODIES, Body
from ..wires.chat import ChatWire
from ..wires.responses import ResponsesWire

HELLO = Request("a-model", (Message.user("hello"),))

type Wire = ChatWire | ResponsesWire
type Ask = Callable[[], AsyncIterator[Event]]


@pytest.fixture(params=[ChatWire(), ResponsesWire()], ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> Wire:
    """Return the wire format of the test: Chat Completions or Responses."""
    return request.param


@pytest.fixture
def ask(wire: Wire, http_client: Any, byte_server: ByteServer) -> Ask:
    """Return a function that sends a request to the byte server."""
    return lambda: wire.connect(byte_server.address, http_client).stream(HELLO)


# An error of Azure's content filter:
# https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter#error-response
AZURE_FILTER = {
    "message": "The response was filtered due to the prompt triggering the content management policy.",
    "type": None,
    "param": "prompt",
    "code": "content_filter",
    "status": 400,
    "innererror": {
        "code": "ResponsibleAIPolicyViolation",
        "content_filter_result": {"violence": {"filtered": True, "severity": "high"}},
    },
}


def told(code: Any, kind: Any = "invalid_request_error") -> dict[str, Any]:
    return {"message": "Made up.", "type": kind, "param": None, "code": code}


ERRORS = [
    (400, AZURE_FILTER, AnswerRefused),
    (400, told("context_length_exceeded"), ContextOverflow),
    (400, told("model_not_found"), ModelNotFound),
    (400, told("unsupported_parameter"), BadRequest),
    (400, told("invalid_prompt"), AnswerRefused),
    (400, told("billing_hard_limit_reached"), QuotaError),
    (400, {"code": "OperationNotSupported", "message": "Made up."}, BadRequest),
    (401, told("invalid_api_key"), AuthError),
    (401, {"code": "401", "message": "Made up."}, AuthError),
    (403, told("unsupported_country_region_territory", "request_forbidden"), AuthError),
    (404, {"code": "DeploymentNotFound", "message": "Made up."}, ModelNotFound),
    (404, told(404, "not_found_error"), ModelNotFound),
    (404, told(404, "NotFoundError"), ModelNotFound),
    (404, told(None, None), BadRequest),
    (404, {"code": "404", "message": "Made up."}, BadRequest),
    (429, told("rate_limit_exceeded", "requests"), RateLimited),
    (429, told("rate_limit_exceeded", "tokens"), RateLimited),
    (429, told(None, "tokens"), RateLimited),
    (429, {"code": "429", "message": "Made up."}, RateLimited),
    (429, {"code": "RateLimitReached", "message": "Made up."}, RateLimited),
    (429, told("insufficient_quota", "insufficient_quota"), QuotaError),
    (429, told(None, "insufficient_quota"), QuotaError),
    (429, told("billing_not_active", "billing_not_active"), QuotaError),
    (500, told(None, "server_error"), Unavailable),
    (503, told("slow_down", "server_error"), Unavailable),
]


@pytest.mark.parametrize(("status", "error", "ours"), ERRORS)
async def test_error_body_goes_by_status_and_code(
    status: int, error: Any, ours: type[ProviderError], fail: Hear
) -> None:
    heard = await fail(ProviderError, json.dumps({"error": error}).encode(), status=status, headers=JSON)

    assert type(heard.error) is ours


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_request_that_was_too_long_is_told_by_its_code_or_has_no_known_reason(body: Body, fail: Hear) -> None:
    heard = await fail(ProviderError, body.content, status=body.status, headers=body.headers)

    assert isinstance(heard.error, ContextOverflow) is body.is_known
    assert heard.error.is_unexplained is not body.is_known


async def test_size_is_read_from_the_error(fail: Hear) -> None:
    body = BODIES["llama_cpp"]
    heard = await fail(ContextOverflow, body.content, status=body.status, headers=body.headers)

    assert heard.error.context_tokens == 4096


@pytest.mark.parametrize("named", [0, -1, True, "4096", 4096.0, 10**9 + 1, None, [4096], {}])
async def test_size_that_cannot_be_is_not_taken_over(named: Any, fail: Hear) -> None:
    error = {"code": 400, "message": "Made up.", "type": "exceed_context_size_error", "n_ctx": named}
    heard = await fail(ContextOverflow, json.dumps({"error": error}).encode(), status=400, headers=JSON)

    assert heard.error.context_tokens is None


@pytest.mark.parametrize(
    ("known", "ours"), [(100, ContextOverflow), (100_000, BadRequest), (None, BadRequest)], ids=str
)
async def test_request_beyond_the_known_size_was_too_long(
    known: int | None, ours: type[ProviderError], wire: Wire, http_client: Any, byte_server: ByteServer
) -> None:
    body = BODIES["lm_studio"]
    byte_server.set_reply(body.content, status=body.status, headers=body.headers)
    request = replace(HELLO, messages=(Message.user("word " * 1000),), profile=ModelProfile(context_tokens=known))

    heard = await Heard().fail(wire.connect(byte_server.address, http_client).stream(request))

    assert type(heard.error) is ours


@pytest.mark.parametrize(("status", "code"), [(400, "unsupported_value"), (404, None), (409, None)])
async def test_request_that_is_refused_for_another_reason_was_not_too_long(
    status: int, code: str | None, fail: Hear
) -> None:
    heard = await fail(BadRequest, json.dumps({"error": told(code)}).encode(), status=status, headers=JSON)

    assert not heard.error.is_unexplained


async def test_filter_of_azure_gives_its_reason(fail: Hear) -> None:
    heard = await fail(AnswerRefused, json.dumps({"error": AZURE_FILTER}).encode(), status=400, headers=JSON)

    assert heard.error.reason == "content_filter"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"Retry-After": "2", "retry-after-ms": "1500"}, 1.5),
        ({"Retry-After": "2", "retry-after-ms": "soon"}, 2.0),
        ({"Retry-After": "2", "retry-after-ms": "inf"}, 2.0),
        ({"retry-after-ms": "-5"}, 0.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "1e999"}, None),
    ],
)
async def test_time_to_wait_is_the_servers(
    headers: dict[str, str], seconds: float | None, wire: Wire, fail: Hear
) -> None:
    heard = await fail(RateLimited, wire.error_body(429), status=429, headers={**JSON, **headers})

    assert heard.error.retry_after == seconds
