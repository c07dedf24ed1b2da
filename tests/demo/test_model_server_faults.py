"""Every fault, as the real SDK or a bare client sees it."""

from contextlib import suppress
import json

import aiohttp
import httpx
import httpx2
import openai
import pytest

from demo.model_server import FAULTS
from demo.model_server.request_log import Outcome

from .model_talk import STORY, Heard, assistant, called, fetched, result, until, user

BROKEN_CONNECTION = (httpx.TransportError, httpx2.TransportError, openai.APIConnectionError)
TIMED_OUT = (httpx.TimeoutException, httpx2.TimeoutException, openai.APITimeoutError)


@pytest.mark.parametrize(
    ("fault", "error", "status_and_code"),
    [
        ("400", openai.BadRequestError, (400, None)),
        ("401", openai.AuthenticationError, (401, "invalid_api_key")),
        ("403", openai.PermissionDeniedError, (403, "unsupported_country_region_territory")),
        ("404", openai.NotFoundError, (404, "model_not_found")),
        ("413", openai.APIStatusError, (413, None)),
        ("422", openai.UnprocessableEntityError, (422, None)),
        ("429", openai.RateLimitError, (429, "rate_limit_exceeded")),
        ("quota", openai.RateLimitError, (429, "insufficient_quota")),
        ("500", openai.InternalServerError, (500, None)),
        ("503", openai.InternalServerError, (503, None)),
        ("context_overflow", openai.BadRequestError, (400, "context_length_exceeded")),
        ("azure_filter", openai.BadRequestError, (400, "content_filter")),
        ("html", openai.InternalServerError, (502, None)),
    ],
)
async def test_a_refusal_is_the_sdks_error(ask, server, fault, error, status_and_code):
    server.fault(fault)
    with pytest.raises(error) as caught:
        await ask("hello")
    assert (caught.value.status_code, caught.value.code) == status_and_code
    assert server.requests[-1].outcome is Outcome.REFUSED
    assert server.requests[-1].fault == fault


async def test_a_rate_limit_says_when_to_come_back(ask, server):
    server.fault("429", retry_after=0.5)
    with pytest.raises(openai.RateLimitError) as caught:
        await ask("hello")
    assert caught.value.response.headers["Retry-After"] == "0.5"


async def test_no_credit_does_not_say_when_to_come_back(ask, server):
    server.fault("quota")
    with pytest.raises(openai.RateLimitError) as caught:
        await ask("hello")
    assert "Retry-After" not in caught.value.response.headers


async def test_llama_says_an_overflow_its_own_way(ask, server):
    server.fault("context_overflow_llama")
    with pytest.raises(openai.BadRequestError) as caught:
        await ask("hello")
    assert caught.value.type == "exceed_context_size_error"
    assert caught.value.response.json()["error"]["n_ctx"] == 8192


async def test_an_html_page_is_html(server):
    server.fault("html")
    async with aiohttp.ClientSession() as session, session.get(f"{server.url}/models") as response:
        assert response.content_type == "text/html"
        assert (await response.text()).startswith("<html>")


async def test_http_200_may_hold_an_error(client, server):
    server.fault("json_200")
    stream = await client.chat.completions.create(model="scripted", messages=[user("hello")], stream=True)
    assert [chunk async for chunk in stream] == []


@pytest.mark.parametrize("fault", ["no_answer", "silence_after_headers", "silence_mid_stream"])
async def test_silence_lasts_until_the_client_gives_up(ask, client, server, fault):
    server.fault(fault)
    client.timeout = 0.5
    with pytest.raises(TIMED_OUT):
        await ask(STORY)
    await until(lambda: server.open_streams == 0)
    assert server.requests[-1].client_left


async def test_no_answer_sends_no_headers(ask, client, server):
    server.fault("no_answer")
    client.timeout = 0.5
    with suppress(*TIMED_OUT):
        await ask(STORY)
    assert server.requests[-1].status is None


async def test_silence_after_headers_sends_no_event(ask, client, server):
    server.fault("silence_after_headers")
    client.timeout = 0.5
    heard = Heard()
    with suppress(*TIMED_OUT):
        await ask(STORY, heard=heard)
    assert heard.chunks == []
    assert server.requests[-1].status == 200


@pytest.mark.parametrize("fault", ["cut_mid_stream", "cut_mid_event", "reset_mid_stream"])
async def test_a_cut_comes_after_some_words(ask, server, fault):
    server.fault(fault, after_words=5)
    heard = Heard()
    with pytest.raises(BROKEN_CONNECTION):
        await ask(STORY, heard=heard)
    assert heard.text == "Once upon a time there "
    assert server.requests[-1].outcome is Outcome.CUT


async def test_silence_mid_stream_comes_after_some_words(ask, client, server):
    server.fault("silence_mid_stream", after_words=2)
    client.timeout = 0.5
    heard = Heard()
    with suppress(*TIMED_OUT):
        await ask(STORY, heard=heard)
    assert heard.text == "Once upon "


async def test_a_cut_before_the_headers_is_no_answer_at_all(ask, server):
    server.fault("cut_before_headers")
    with pytest.raises(openai.APIConnectionError):
        await ask("hello")


async def test_a_malformed_event_is_no_json(ask, server):
    server.fault("malformed_event")
    heard = Heard()
    with pytest.raises(json.JSONDecodeError):
        await ask(STORY, heard=heard)
    assert heard.text == "Once upon a "


async def test_after_a_malformed_event_the_rest_comes_as_usual(server):
    server.fault("malformed_event")
    body = {"model": "scripted", "stream": True, "messages": [user("my name is Ada")]}
    _, answer = await fetched("POST", f"{server.url}/chat/completions", json=body)
    assert answer.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("code", [None, "rate_limit_exceeded", "context_length_exceeded"])
async def test_an_error_in_the_stream_has_a_code_and_no_status(ask, server, code):
    server.fault("error_in_stream", code=code)
    heard = Heard()
    with pytest.raises(openai.APIError) as caught:
        await ask(STORY, heard=heard)
    assert heard.text == "Once upon a "
    assert caught.value.code == code
    assert not isinstance(caught.value, openai.APIStatusError)


async def test_without_a_terminal_marker_the_text_is_whole_and_nothing_follows(ask, server):
    server.fault("no_terminal")
    heard = await ask("my name is Ada")
    assert heard.text == "Nice to meet you, Ada."
    assert heard.finish_reasons == []
    assert heard.usages == []


async def test_an_empty_answer_ends_well(ask, server):
    server.fault("empty_answer")
    heard = await ask("hello")
    assert (heard.text, heard.calls, heard.finish_reasons) == ("", [], ["stop"])


@pytest.mark.parametrize("fault", ["length", "content_filter"])
async def test_an_answer_may_be_cut_off_with_a_reason(ask, server, fault):
    server.fault(fault)
    heard = await ask("my name is Ada")
    assert (heard.text, heard.finish_reasons) == ("Nice to", [fault])


async def test_a_refusal_is_no_text(ask, server):
    server.fault("refusal")
    heard = await ask("hello")
    assert (heard.text, heard.refusal) == ("", "I'm sorry, I can't help with that.")


async def test_the_same_call_comes_again_after_its_result(ask, server):
    server.fault("same_call")
    first = await ask("hello")
    call = called(first.calls[0].id, first.calls[0].function.name)
    second = await ask("hello", call, result(first.calls[0].id, {"result": "nothing"}))
    assert second.calls[0].function.name == first.calls[0].function.name == "homeassistant__GetLiveContext"
    assert second.calls[0].id != first.calls[0].id


async def test_the_same_call_needs_a_tool(client, server):
    server.fault("same_call")
    answer = await client.chat.completions.create(model="scripted", messages=[user("my name is Ada")])
    assert answer.choices[0].message.content == "Nice to meet you, Ada."


async def test_a_fault_holds_for_as_many_requests_as_were_asked_for(ask, server):
    server.fault("500", times=2)
    for _ in range(2):
        with pytest.raises(openai.InternalServerError):
            await ask("hello")
    assert (await ask("my name is Ada")).text == "Nice to meet you, Ada."


async def test_a_fault_holds_until_it_is_cleared(ask, server):
    server.fault("500")
    for _ in range(3):
        with pytest.raises(openai.InternalServerError):
            await ask("hello")
    server.reset()
    assert (await ask("my name is Ada")).text == "Nice to meet you, Ada."


@pytest.mark.parametrize("fault", ["401", "500", "html"])
async def test_a_refusal_also_hits_the_list_of_models(client, server, fault):
    server.fault(fault, times=1)
    with pytest.raises(openai.APIStatusError):
        await client.models.list()
    assert (await client.models.list()).data


async def test_a_fault_of_an_answer_waits_for_an_answer(ask, client, server):
    server.fault("empty_answer", times=1)
    assert (await client.models.list()).data
    assert (await ask("hello")).text == ""


async def test_a_model_id_may_name_a_fault(ask):
    with pytest.raises(openai.RateLimitError):
        await ask("hello", model="scripted+ollama+429")


@pytest.mark.parametrize(
    "said", ["fail with 401", "Please fail with a 401!", "[CONTEXT: area: Attic]\n\nfail with 401"]
)
async def test_a_user_may_ask_for_a_fault(ask, said):
    with pytest.raises(openai.AuthenticationError):
        await ask(said)


async def test_a_fault_asked_for_in_an_earlier_message_is_over(ask):
    heard = await ask("fail with 401", assistant("That failed."), "my name is Ada")
    assert heard.text == "Nice to meet you, Ada."


async def test_a_fault_that_does_not_exist_is_answered_with_those_that_do(ask):
    assert (await ask("fail with grace")).text == f"I can fail with: {', '.join(FAULTS)}."


@pytest.mark.parametrize("model", ["gpt-none", "scripted+nonsense", "scripted+401+500", "", None, 5])
async def test_an_unknown_model_is_not_found(server, model):
    body = {"model": model, "messages": [user("hello")]}
    status, answer = await fetched("POST", f"{server.url}/chat/completions", json=body)
    assert (status, answer["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"messages": 5}', b'{"messages": ["hello"]}'])
async def test_a_body_that_cannot_be_read_is_refused(server, body):
    status, answer = await fetched("POST", f"{server.url}/chat/completions", data=body)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize("fault", ["cut_mid_stream", "no_terminal", "malformed_event"])
async def test_a_broken_answer_that_is_not_streamed_is_no_document(client, server, fault):
    server.fault(fault)
    with pytest.raises((json.JSONDecodeError, *BROKEN_CONNECTION)):
        await client.chat.completions.create(model="scripted", messages=[user("hello")])


async def test_a_cut_is_no_error_in_the_servers_log(ask, server, caplog):
    server.fault("cut_mid_stream")
    with suppress(*BROKEN_CONNECTION):
        await ask(STORY)
    loud = [record.name for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    assert "aiohttp.server" not in loud
