"""Tests for unstreamed answers and token counts through Google's SDK: the requests, the responses, and all failures."""

import asyncio
from collections.abc import Callable, Coroutine
import ssl
import traceback
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import (
    AnswerRefused,
    AuthError,
    BadStream,
    DeadlineExceeded,
    Incomplete,
    ProviderError,
    RateLimited,
    Redirected,
    Unavailable,
)
from custom_components.windowed_conversation.providers.events import Request, SupportsUnstreamedAnswers, Usage
from custom_components.windowed_conversation.providers.gemini import sdk
from custom_components.windowed_conversation.providers.gemini.clients import GeminiProvider
from custom_components.windowed_conversation.window import Message

from ..byte_server import ByteServer
from ..conftest import SECRET, over_either_client
from ..heard import Heard
from ..wires.gemini import API_KEY, STOP, chunk, error, usage
from .conftest import JSON
from .test_errors import ERRORS, delay, reason

REQUEST = Request(
    "gemini-made-up", (Message.system("Answer with one word."), Message.user(SECRET)), max_answer_tokens=16
)

# One for each way in which a refusal is parsed; the tests of streams cover all refusals.
REFUSED = ("wrong_key", "not_allowed", "no_such_model", "too_many", "too_many_a_day", "html", "in_a_list", "odd_fields")

type Use = Callable[[GeminiProvider], Coroutine[Any, Any, object]]


async def answer(provider: GeminiProvider) -> Heard:
    return await Heard().read(provider.send_unstreamed(REQUEST))


async def count(provider: GeminiProvider) -> int:
    return await provider.count_tokens(REQUEST)


either_use = pytest.mark.parametrize("use", [answer, count])


def whole(event: bytes) -> bytes:
    """Return the body of an unstreamed answer with the data of this event."""
    return event.removeprefix(b"data: ")


@over_either_client
async def test_whole_answer_has_the_events_of_a_stream(provider: GeminiProvider, byte_server: ByteServer) -> None:
    byte_server.set_reply(whole(chunk({"text": "ok"}, finish="STOP", usageMetadata=usage(7, 2))), headers=JSON)

    heard = await answer(provider)

    assert isinstance(provider, SupportsUnstreamedAnswers)
    assert (heard.text, heard.usages, len(heard.done_events)) == ("ok", [Usage(7, 0, 2)], 1)


async def test_whole_answer_is_asked_for_as_a_stream_is(provider: GeminiProvider, byte_server: ByteServer) -> None:
    byte_server.set_reply(STOP)
    await Heard().read(provider.stream(REQUEST))
    byte_server.set_reply(whole(STOP), headers=JSON)

    await answer(provider)

    streamed, sent = byte_server.requests
    assert sent == streamed


@over_either_client
@pytest.mark.parametrize(
    ("use", "body", "path"),
    [(answer, whole(STOP), ":generateContent"), (count, b'{"totalTokens": 3}', ":countTokens")],
)
async def test_google_s_sdk_asks(
    *, use: Use, body: bytes, path: str, provider: GeminiProvider, byte_server: ByteServer, asked: list[Any]
) -> None:
    byte_server.set_reply(body, headers=JSON)

    await use(provider)

    (request,) = asked
    assert str(request.url) == f"{byte_server.address}/v1beta/models/gemini-made-up{path}"
    assert request.headers["x-goog-api-key"] == API_KEY
    assert request.headers["x-goog-api-client"].startswith("google-genai-sdk/")


@either_use
@pytest.mark.parametrize(("status", "body", "raised"), map(ERRORS.get, REFUSED), ids=REFUSED)
async def test_refused_request_becomes_an_error_of_ours(
    *,
    use: Use,
    status: int,
    body: bytes,
    raised: type[ProviderError],
    provider: GeminiProvider,
    byte_server: ByteServer,
) -> None:
    byte_server.set_reply(body, status=status, headers=JSON)

    with pytest.raises(ProviderError) as caught:
        await use(provider)

    assert type(caught.value) is raised


@either_use
@pytest.mark.parametrize(
    ("details", "header", "seconds"), [([delay("34s")], {}, 34.0), ([], {"Retry-After": "9"}, 9.0)]
)
async def test_seconds_to_wait_are_geminis(
    *, use: Use, details: Any, header: Any, seconds: float, provider: GeminiProvider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(error(429, *details), status=429, headers={**JSON, **header})

    with pytest.raises(RateLimited) as caught:
        await use(provider)

    assert caught.value.retry_after == seconds


@pytest.mark.parametrize(
    ("body", "raised"),
    [
        (b"", BadStream),
        (b"{", BadStream),
        (b"{}", BadStream),
        (b"null", BadStream),
        (b"<!DOCTYPE html><html></html>", BadStream),
        (whole(chunk({"text": 5}, finish="STOP")), BadStream),
        (whole(chunk({"text": "o"})), BadStream),
        (whole(chunk({"text": "o"}, finish="MAX_TOKENS")), Incomplete),
        (whole(chunk({"text": "o"}, finish="SAFETY")), AnswerRefused),
        (error(503), Unavailable),
        pytest.param(b'{"a": "' + b"x" * 5_000_000 + b'"}', BadStream, id="too_long"),
    ],
)
async def test_answer_that_is_not_whole_is_an_error(
    body: bytes, raised: type[ProviderError], provider: GeminiProvider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(body, headers=JSON)

    with pytest.raises(ProviderError) as caught:
        await answer(provider)

    assert type(caught.value) is raised


@either_use
async def test_server_that_says_nothing_is_not_waited_for(
    use: Use, provider: GeminiProvider, byte_server: ByteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk, "_TIMEOUT_MS", 50)
    byte_server.set_reply(asyncio.Event(), headers=JSON)

    with pytest.raises(DeadlineExceeded):
        await use(provider)


@either_use
async def test_connection_that_breaks_is_an_error_and_is_not_tried_again(
    use: Use, provider: GeminiProvider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(b'{"totalTokens"', headers=JSON, cut=True)

    with pytest.raises(Unavailable):
        await use(provider)

    assert len(byte_server.requests) == 1


@either_use
async def test_redirect_is_not_followed(use: Use, provider: GeminiProvider, byte_server: ByteServer) -> None:
    byte_server.set_reply(status=307, headers={"Location": "http://127.0.0.1:1/"})

    with pytest.raises(Redirected):
        await use(provider)


@either_use
async def test_key_that_cannot_be_sent_is_a_wrong_key(use: Use, http_client: Any, byte_server: ByteServer) -> None:
    provider = GeminiProvider(byte_server.address, "schlüssel", http_client, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    with pytest.raises(AuthError):
        await use(provider)


@either_use
@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize(
    "body",
    [
        error(400, reason(SECRET), code=SECRET).replace(b"Made up.", SECRET.encode()),
        b'{"totalTokens": "%s", "candidates": "%s"}' % (SECRET.encode(), SECRET.encode()),
        b"<html>%s</html>" % SECRET.encode(),
    ],
    ids=["error", "other_type", "html"],
)
async def test_failure_is_told_and_logged_without_text_or_key(
    *,
    use: Use,
    status: int,
    body: bytes,
    provider: GeminiProvider,
    byte_server: ByteServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    byte_server.set_reply(body, status=status, headers=JSON)

    with pytest.raises(ProviderError) as caught:
        await use(provider)

    told = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert "pelican" not in told
    assert API_KEY not in told


async def test_sdk_is_not_asked_to_call_functions(
    provider: GeminiProvider, byte_server: ByteServer, caplog: pytest.LogCaptureFixture
) -> None:
    byte_server.set_reply(whole(STOP), headers=JSON)

    await answer(provider)

    assert [record for record in caplog.records if record.name.startswith("google")] == []
