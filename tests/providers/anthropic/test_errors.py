"""Tests for every Anthropic error and the `ProviderError` that it becomes. The tables are the documentation."""

import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import (
    AuthError,
    BadRequest,
    ContextOverflow,
    DeadlineExceeded,
    ModelNotFound,
    ProviderError,
    QuotaError,
    RateLimited,
    Unavailable,
)
from custom_components.windowed_conversation.providers.models import ModelProfile
from custom_components.windowed_conversation.window import Message

from ..byte_server import JSON, ByteServer
from ..conftest import SECRET, Ask, Hear
from ..heard import Heard
from ..wires.anthropic import API_KEY, ERROR_TYPES, AnthropicWire, error, event, message_start, text_block

STATUSES: dict[int, type[ProviderError]] = {
    400: BadRequest,
    401: AuthError,
    402: QuotaError,
    403: AuthError,
    404: ModelNotFound,
    413: ContextOverflow,
    429: RateLimited,
    500: Unavailable,
    503: Unavailable,
    504: DeadlineExceeded,
    529: Unavailable,
}
# The errors by status for a body without a known error type.
WITHOUT_A_BODY: dict[int, type[ProviderError]] = {
    301: BadRequest,
    404: BadRequest,
    408: DeadlineExceeded,
    504: Unavailable,
    599: Unavailable,
}
TYPES: dict[str, type[ProviderError]] = {
    "api_error": Unavailable,
    "authentication_error": AuthError,
    "billing_error": QuotaError,
    "invalid_request_error": BadRequest,
    "not_found_error": ModelNotFound,
    "overloaded_error": Unavailable,
    "permission_error": AuthError,
    "rate_limit_error": RateLimited,
    "request_too_large": ContextOverflow,
    "timeout_error": DeadlineExceeded,
    "a_type_of_next_year": Unavailable,
}


def test_every_status_of_the_wire_is_in_the_table() -> None:
    assert STATUSES.keys() == ERROR_TYPES.keys()


@pytest.fixture
def get_error(ask: Ask, byte_server: ByteServer):
    """Return a function that makes the server refuse a request with a status and a body, and returns the error."""

    async def get_error(
        status: int, body: Any, *earlier: Message, headers: dict[str, str] = JSON, **fields: Any
    ) -> ProviderError:
        written = body if isinstance(body, bytes) else json.dumps(body).encode()
        byte_server.set_reply(written, status=status, headers=headers)
        heard = await Heard().fail(ask(*earlier, **fields))
        return heard.error

    return get_error


@pytest.mark.parametrize(("status", "kind"), STATUSES.items())
async def test_refused_request_becomes_an_error_of_ours(status: int, kind: type[ProviderError], get_error) -> None:
    assert type(await get_error(status, AnthropicWire().error_body(status))) is kind


@pytest.mark.parametrize(("status", "kind"), {**STATUSES, **WITHOUT_A_BODY}.items())
@pytest.mark.parametrize(
    "body",
    [b"", b"<html>not here</html>", b"[]", {"error": "a text"}, {"error": {"type": ["odd"], "details": 5}}],
)
async def test_status_decides_where_the_body_says_nothing(
    status: int, kind: type[ProviderError], body: Any, get_error
) -> None:
    assert type(await get_error(status, body)) is kind


@pytest.mark.parametrize(("kind", "meaning"), TYPES.items())
async def test_error_in_the_stream_goes_by_its_type(kind: str, meaning: type[ProviderError], fail: Hear) -> None:
    heard = await fail(ProviderError, message_start(), *text_block(0, "hel"), event(error(kind)))

    assert type(heard.error) is meaning
    assert heard.text == "hel"


@pytest.mark.parametrize("data", [b"", b"not json", b"5", b"null", b'"a text"', b'{"error": null}'])
async def test_error_in_the_stream_may_say_nothing(data: bytes, fail: Hear) -> None:
    await fail(Unavailable, message_start(), b"event: error\ndata: " + data + b"\n\n")


@pytest.mark.parametrize("code", ["contract_spend_limit_reached", "enforced_spend_limit_reached"])
async def test_spent_budget_is_no_rate_limit(code: str, get_error) -> None:
    caught = await get_error(429, error("rate_limit_error", "No more.", error_code=code))

    assert type(caught) is QuotaError


@pytest.mark.parametrize(
    ("tokens", "profile", "kind"),
    [
        (900, ModelProfile(context_tokens=1000, output_tokens=100), ContextOverflow),
        (700, ModelProfile(context_tokens=1000, output_tokens=100), ContextOverflow),
        (500, ModelProfile(context_tokens=1000, output_tokens=100), BadRequest),
        (900, ModelProfile(context_tokens=None), BadRequest),
    ],
)
async def test_invalid_request_that_fills_the_context_is_too_long(
    tokens: int, profile: ModelProfile, kind: type[ProviderError], get_error
) -> None:
    history = Message.user("said before", tokens=tokens)

    assert type(await get_error(400, error("invalid_request_error"), history, profile=profile)) is kind


async def test_size_of_uncounted_messages_and_tools_is_estimated(get_error) -> None:
    profile = ModelProfile(context_tokens=1000, output_tokens=100)
    caught = await get_error(400, error("invalid_request_error"), Message.user("word " * 700), profile=profile)

    assert type(caught) is ContextOverflow


async def test_error_without_a_type_is_too_long_as_well(get_error) -> None:
    history = Message.user("said before", tokens=5000)

    assert type(await get_error(400, error(""), history, profile=ModelProfile(context_tokens=1000))) is ContextOverflow


@pytest.mark.parametrize("status", [400, 422])
async def test_refusal_without_a_known_reason_may_be_of_the_length(status: int, get_error) -> None:
    caught = await get_error(status, error("invalid_request_error"))

    assert (type(caught), caught.is_unexplained) == (BadRequest, True)


@pytest.mark.parametrize(("status", "kind"), [(404, "a_type_of_next_year"), (400, "a_type_of_next_year")])
async def test_full_context_excuses_nothing_else(status: int, kind: str, get_error) -> None:
    history = Message.user("said before", tokens=5000)

    assert type(await get_error(status, error(kind), history, profile=ModelProfile(context_tokens=1000))) is BadRequest


@pytest.mark.parametrize("status", [200, *STATUSES])
async def test_error_has_neither_text_nor_key(status: int, get_error) -> None:
    secrets = f"{SECRET} {API_KEY}"
    body = error(secrets, secrets, error_code=secrets)
    headers = JSON if status != 200 else {"Content-Type": "text/event-stream"}

    caught = await get_error(status, body if status != 200 else event(body), Message.user(SECRET), headers=headers)

    assert "pelican" not in repr(caught)
    assert API_KEY not in repr(caught)


async def test_text_that_cannot_be_written_is_told_without_it(ask: Ask) -> None:
    heard = await Heard().fail(ask(Message.user(f"{SECRET} \ud800")), BadRequest)

    assert "pelican" not in repr(heard.error)
    assert heard.error.__cause__ is None
