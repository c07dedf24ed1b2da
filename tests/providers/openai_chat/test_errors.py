"""Tests for every kind of failure and the error that it becomes. The table is the documentation."""

import pytest

from custom_components.windowed_conversation.providers.errors import (
    AnswerRefused,
    AuthError,
    BadRequest,
    BadStream,
    ContextOverflow,
    DeadlineExceeded,
    Incomplete,
    ModelNotFound,
    ProviderError,
    QuotaError,
    RateLimited,
    Unavailable,
)
from demo.model_server import FAULTS, ModelServer

from ..byte_server import JSON, chunk, event, text
from ..conftest import KEY, SECRET, Ask, Hear, over_either_client
from ..heard import Heard

ERRORS: dict[str, type[ProviderError]] = {
    "400": BadRequest,
    "401": AuthError,
    "403": AuthError,
    "404": ModelNotFound,
    "413": ContextOverflow,
    "422": BadRequest,
    "429": RateLimited,
    "quota": QuotaError,
    "500": Unavailable,
    "503": Unavailable,
    "529": Unavailable,
    "context_overflow": ContextOverflow,
    "context_overflow_llama": ContextOverflow,
    "azure_filter": AnswerRefused,
    "html": Unavailable,
    "json_200": Unavailable,
    "cut_before_headers": Unavailable,
    "cut_mid_stream": Unavailable,
    "cut_mid_event": Unavailable,
    "reset_mid_stream": Unavailable,
    "malformed_event": BadStream,
    "error_in_stream": Unavailable,
    "failed_in_stream": Unavailable,
    "no_terminal": BadStream,
    "length": Incomplete,
    "content_filter": AnswerRefused,
    "window_exceeded": Incomplete,
    "prompt_blocked": AnswerRefused,
    "refusal": AnswerRefused,
}
IDLE_SCENARIOS = {"no_answer", "silence_after_headers", "silence_mid_stream"}
# Faults whose stream is well formed: the turn, not the provider, rejects the answer.
WELL_FORMED = {"empty_answer", "malformed_call", "same_call"}


def test_every_fault_of_the_server_is_in_a_table() -> None:
    assert ERRORS.keys() | IDLE_SCENARIOS | WELL_FORMED == FAULTS.keys()


def test_every_error_of_the_tree_has_a_fault() -> None:
    assert {*ERRORS.values(), DeadlineExceeded} == {ModelNotFound, *ProviderError.__subclasses__()}


@over_either_client
@pytest.mark.parametrize(("fault", "error"), ERRORS.items())
async def test_fault_becomes_an_error_of_ours(
    fault: str, error: type[ProviderError], ask_model: Ask, model_server: ModelServer
) -> None:
    model_server.fault(fault)

    heard = await Heard().fail(ask_model("tell me a story about the sea"))

    assert type(heard.error) is error


@over_either_client
@pytest.mark.parametrize("fault", sorted(IDLE_SCENARIOS))
async def test_silence_that_the_client_notices_is_a_deadline(
    fault: str, ask_model: Ask, model_server: ModelServer
) -> None:
    model_server.fault(fault)

    await Heard().fail(ask_model("tell me a story about the sea", timeout=0.2), DeadlineExceeded)


@pytest.mark.parametrize("fault", sorted(WELL_FORMED))
async def test_stream_that_is_well_formed_is_no_error(fault: str, ask_model: Ask, model_server: ModelServer) -> None:
    model_server.fault(fault)

    heard = await Heard().read(ask_model("hello"))

    assert len(heard.done_events) == 1


@pytest.mark.parametrize("finish", ["stop", "content_filter"])
async def test_refusal_is_not_spoken(finish: str, fail: Hear) -> None:
    heard = await fail(
        AnswerRefused, chunk({"refusal": "I cannot"}), chunk({"refusal": " do that."}), chunk({}, finish)
    )

    assert heard.texts == []


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (301, b"", BadRequest),
        (402, b"{}", QuotaError),
        (404, b"<html>not here</html>", BadRequest),
        (408, b"{}", DeadlineExceeded),
        (429, b"not json", RateLimited),
        (400, b'{"error": "a text"}', BadRequest),
        (400, b'{"error": {"code": 400, "type": "exceed_context_size_error"}}', ContextOverflow),
        (400, b'{"error": {"code": ["odd"], "type": {}}}', BadRequest),
        (400, b"[]", BadRequest),
        (599, b"", Unavailable),
    ],
)
async def test_status_decides_where_the_body_says_nothing(
    status: int, body: bytes, error: type[ProviderError], fail: Hear
) -> None:
    heard = await fail(ProviderError, body, status=status, headers=JSON)

    assert type(heard.error) is error


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 429, 500, 503])
async def test_refused_request_is_told_without_text_or_key(status: int, fail: Hear) -> None:
    said = f"{SECRET} {KEY}"
    body = event({"error": {"message": said, "code": said, "type": said, "param": said}}).removeprefix(b"data: ")

    heard = await fail(ProviderError, body, status=status, headers={**JSON, "Retry-After": said})

    assert "pelican" not in repr(heard.error)
    assert KEY not in repr(heard.error)


@pytest.mark.parametrize(
    "piece",
    [
        event({"error": {"message": SECRET, "code": SECRET, "type": SECRET}}),
        event({"error": SECRET}),
        event(SECRET),
        event({"choices": SECRET}),
        chunk({"content": [SECRET]}),
        chunk({}, {"pelican": SECRET}),
        chunk({"tool_calls": [{"index": 0, "id": SECRET, "function": {"name": SECRET, "arguments": SECRET}}]}, "stop"),
        f"data: {{{SECRET}\n\n".encode(),
        f"data: {SECRET}".encode() + b"\xff\n\n",
        text(SECRET),
        text(SECRET) + chunk({}, "length"),
        text(SECRET) + chunk({"refusal": SECRET}, "content_filter"),
    ],
)
async def test_broken_stream_is_told_without_text(piece: bytes, fail: Hear) -> None:
    heard = await fail(ProviderError, piece)

    assert "pelican" not in repr(heard.error)
