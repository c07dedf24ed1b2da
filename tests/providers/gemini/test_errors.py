"""Tests for every Gemini error and the `ProviderError` that it becomes. The tables are the documentation."""

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
from custom_components.windowed_conversation.providers.events import Request
from custom_components.windowed_conversation.providers.gemini.clients import GeminiProvider
from custom_components.windowed_conversation.providers.models import ModelProfile
from custom_components.windowed_conversation.window import Message

from ..byte_server import ByteServer
from ..conftest import SECRET, Ask, Hear, over_either_client
from ..heard import Heard
from ..wires.gemini import API_KEY, STOP, GeminiWire, chunk, error, event, text
from .conftest import JSON

RPC = "type.googleapis.com/google.rpc."
MINUTE_QUOTA = {"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "quotaValue": "15"}
DAILY_QUOTA = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "200"}


def reason(value: str) -> dict[str, Any]:
    return {"@type": f"{RPC}ErrorInfo", "reason": value, "domain": "googleapis.com"}


def quota(*violations: Any) -> dict[str, Any]:
    return {"@type": f"{RPC}QuotaFailure", "violations": list(violations)}


def delay(value: Any) -> dict[str, Any]:
    return {"@type": f"{RPC}RetryInfo", "retryDelay": value}


ERRORS: dict[str, tuple[int, bytes, type[ProviderError]]] = {
    "wrong_argument": (400, error(400), BadRequest),
    "wrong_key": (400, error(400, reason("API_KEY_INVALID")), AuthError),
    "expired_key": (400, error(400, reason("API_KEY_EXPIRED")), AuthError),
    "other_reason": (400, error(400, reason("SOMETHING_NEW")), BadRequest),
    "no_free_tier": (400, error(400, code="FAILED_PRECONDITION"), QuotaError),
    "no_key": (401, error(401), AuthError),
    "not_allowed": (403, error(403), AuthError),
    "no_billing": (403, error(403, reason("BILLING_DISABLED")), QuotaError),
    "no_such_model": (404, error(404), ModelNotFound),
    "no_such_address": (404, b"<html>Not Found</html>", BadRequest),
    "aborted": (409, error(409), BadRequest),
    "front_end": (413, GeminiWire().error_body(413), ContextOverflow),
    "too_many": (429, error(429), RateLimited),
    "too_many_a_minute": (429, error(429, quota(MINUTE_QUOTA), delay("3s")), RateLimited),
    "too_many_a_day": (429, error(429, quota(MINUTE_QUOTA, DAILY_QUOTA), delay("3s")), QuotaError),
    "cancelled": (499, error(499), Unavailable),
    "broken": (500, error(500), Unavailable),
    "overloaded": (503, error(503), Unavailable),
    "late": (504, error(504), DeadlineExceeded),
    "overloaded_otherwise": (529, error(529), Unavailable),
    "redirected": (301, b"", BadRequest),
    "no_funds": (402, b"{}", QuotaError),
    "html": (502, b"<html>Bad Gateway</html>", Unavailable),
    "in_a_list": (401, b"[" + error(401) + b"]", AuthError),
    "empty": (500, b"", Unavailable),
    "no_object": (403, b"[]", AuthError),
    "no_error": (403, b'{"error": null}', AuthError),
    "text": (403, b'{"error": "a text"}', AuthError),
    "odd_fields": (403, b'{"error": {"code": {}, "status": [], "details": 5}}', AuthError),
    "odd_details": (429, error(429, 5, reason(""), quota(5), {"violations": {}}, {"reason": {}}), RateLimited),
}


@pytest.fixture
def ask(provider: GeminiProvider) -> Ask:
    """Return a function that sends a request to the byte server; `fields` are `Request` fields."""

    def ask(said: str = SECRET, **fields: Any) -> Any:
        return provider.stream(Request("gemini-made-up", (Message.user(said),), **fields))

    return ask


@over_either_client
@pytest.mark.parametrize(("status", "body", "raised"), ERRORS.values(), ids=ERRORS)
async def test_refused_request_becomes_an_error_of_ours(
    status: int, body: bytes, raised: type[ProviderError], fail: Hear
) -> None:
    heard = await fail(ProviderError, body, status=status, headers=JSON)

    assert type(heard.error) is raised


@pytest.mark.parametrize(("limit", "raised"), [(100, ContextOverflow), (100_000, BadRequest), (None, BadRequest)])
async def test_invalid_request_beyond_what_the_model_reads_is_too_long(
    limit: int | None, raised: type[ProviderError], ask: Ask, byte_server: ByteServer
) -> None:
    byte_server.set_reply(error(400), status=400, headers=JSON)

    heard = await Heard().fail(ask("word " * 1000, profile=ModelProfile(context_tokens=limit)))

    assert type(heard.error) is raised


async def test_wrong_key_is_no_overflow(ask: Ask, byte_server: ByteServer) -> None:
    byte_server.set_reply(error(400, reason("API_KEY_INVALID")), status=400, headers=JSON)

    await Heard().fail(ask("word " * 1000, profile=ModelProfile(context_tokens=100)), AuthError)


@pytest.mark.parametrize(
    ("details", "header", "seconds"),
    [
        ([delay("34s")], {}, 34.0),
        ([quota(MINUTE_QUOTA), delay("34.074824224s")], {}, 34.074824224),
        ([delay("0s")], {"Retry-After": "9"}, 0.0),
        ([delay("-3s")], {}, 0.0),
        ([delay("soon")], {"Retry-After": "9"}, 9.0),
        ([delay("nans")], {}, None),
        ([delay({"seconds": 5})], {}, None),
        ([], {"Retry-After": "9"}, 9.0),
        ([], {}, None),
    ],
)
async def test_seconds_to_wait_are_geminis(details: Any, header: Any, seconds: float | None, fail: Hear) -> None:
    heard = await fail(RateLimited, error(429, *details), status=429, headers={**JSON, **header})

    assert heard.error.retry_after == seconds


@pytest.mark.parametrize(
    ("status", "code", "raised"),
    [
        (503, "UNAVAILABLE", Unavailable),
        (500, "INTERNAL", Unavailable),
        (429, "RESOURCE_EXHAUSTED", RateLimited),
        (504, "DEADLINE_EXCEEDED", DeadlineExceeded),
        (400, "INVALID_ARGUMENT", BadRequest),
        (503, "A_CODE_OF_NEXT_YEAR", Unavailable),
    ],
)
async def test_error_in_the_stream_goes_by_its_code(
    status: int, code: str, raised: type[ProviderError], fail: Hear
) -> None:
    heard = await fail(
        ProviderError, text("hello"), event({"error": {"code": status, "status": code, "message": "Made up."}}), STOP
    )

    assert type(heard.error) is raised
    assert heard.text == "hello"


@over_either_client
@pytest.mark.parametrize("url", ["http://127.0.0.1:x", "http://\x00"])
async def test_address_that_is_none_is_a_bad_request(url: str, http_client: Any) -> None:
    with pytest.raises(BadRequest):
        await GeminiWire().connect(url, http_client).list_models()


@over_either_client
async def test_key_that_cannot_be_sent_is_a_wrong_key(http_client: Any, byte_server: ByteServer) -> None:
    provider = GeminiProvider(byte_server.address, "schlüssel", http_client)

    with pytest.raises(AuthError):
        await provider.list_models()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 503])
async def test_refused_request_is_told_without_text_or_key(status: int, fail: Hear) -> None:
    said = f"{SECRET} {API_KEY}"
    body = event(
        {"error": {"code": status, "message": said, "status": said, "details": [reason(said), delay(said)]}}
    ).removeprefix(b"data: ")

    heard = await fail(ProviderError, body, status=status, headers={**JSON, "Retry-After": said})

    assert "pelican" not in repr(heard.error)
    assert API_KEY not in repr(heard.error)


@pytest.mark.filterwarnings("ignore:.* is not a valid:UserWarning")
@pytest.mark.parametrize(
    "piece",
    [
        event({"error": {"code": 503, "message": SECRET, "status": SECRET}}),
        event({"error": SECRET}),
        event({"candidates": SECRET}),
        event({"promptFeedback": {"blockReason": SECRET}}),
        chunk({"text": [SECRET]}),
        chunk({"text": SECRET}, finish=SECRET),
        chunk({"text": SECRET}, finish="SAFETY"),
        chunk({"functionCall": {"name": "", "args": {"a": SECRET}}}),
        f"data: {{{SECRET}\n\n".encode(),
        text(SECRET),
    ],
)
async def test_broken_stream_is_told_without_text(piece: bytes, fail: Hear) -> None:
    heard = await fail(ProviderError, piece)

    assert "pelican" not in repr(heard.error)
