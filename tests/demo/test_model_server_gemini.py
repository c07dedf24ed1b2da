"""Gemini's generateContent, as the real SDK hears it."""

from typing import Any

from google import genai
from google.genai import errors, types
import httpx
import pytest

from .model_talk import STORY, THINK_THEN_SWITCH, fetched

DECLARATIONS = [
    types.FunctionDeclaration(name=name, description="d", parameters_json_schema={"type": "object", "properties": {}})
    for name in ("intent__HassTurnOff", "intent__HassTurnOn", "llm__GetDateTime")
]
LONG = "the quick brown fox jumps over the lazy dog. " * 300
THOUGHTS = types.ThinkingConfig(include_thoughts=True)
SKIP = b"skip_thought_signature_validator"


@pytest.fixture
async def client(server):
    async with httpx.AsyncClient(timeout=5) as http:
        options = types.HttpOptions(base_url=server.gemini_url, httpx_async_client=http)
        yield genai.Client(api_key="made-up", http_options=options)


def config(**options):
    return types.GenerateContentConfig(
        **{
            "tools": [types.Tool(function_declarations=DECLARATIONS)],
            "automatic_function_calling": types.AutomaticFunctionCallingConfig(disable=True),
            **options,
        }
    )


@pytest.fixture
def ask(client):
    """Streams an answer to the contents; returns the chunks."""

    async def stream(*contents, model="scripted", heard=None, **options):
        heard = [] if heard is None else heard
        sent = [said(each) if isinstance(each, str) else each for each in contents]
        async for chunk in await client.aio.models.generate_content_stream(
            model=model, contents=sent, config=config(**options)
        ):
            heard.append(chunk)
        return heard

    return stream


def said(text):
    return types.Content(role="user", parts=[types.Part(text=text)])


def parts(chunks):
    candidates = [candidate for chunk in chunks for candidate in chunk.candidates or ()]
    return [part for candidate in candidates for part in (candidate.content and candidate.content.parts) or ()]


def text(chunks, *, thought=False):
    return "".join(part.text or "" for part in parts(chunks) if bool(part.thought) is thought)


def calls(chunks):
    return [part.function_call for part in parts(chunks) if part.function_call]


def finish_reasons(chunks):
    return [each.finish_reason for chunk in chunks for each in chunk.candidates or () if each.finish_reason]


def replay(question, chunks):
    answered = [part for part in parts(chunks) if not part.thought and (part.text or part.function_call)]
    responses = [
        types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": "done"}))
        for call in calls(chunks)
    ]
    return [
        said(question),
        types.Content(role="model", parts=answered),
        types.Content(role="user", parts=responses),
    ]


async def test_a_text_comes_in_chunks_and_the_last_has_the_finish_reason(ask):
    chunks = await ask("my name is Ada")
    assert text(chunks) == "Nice to meet you, Ada."
    assert finish_reasons(chunks) == [types.FinishReason.STOP]
    assert chunks[-1].candidates[0].finish_reason
    assert len(chunks) == 6


async def test_every_chunk_has_the_usage_so_far(ask):
    usages = [chunk.usage_metadata for chunk in await ask(STORY)]
    written = [usage.candidates_token_count for usage in usages]
    assert written == sorted(written)
    assert written[0] < written[-1]
    assert usages[-1].total_token_count == usages[-1].prompt_token_count + written[-1]


async def test_thoughts_are_parts_of_their_own_where_they_are_asked_for(ask):
    chunks = await ask("think about pizza", thinking_config=THOUGHTS)
    assert "pizza" in text(chunks, thought=True)
    assert text(chunks).startswith("I have thought about pizza")


async def test_thoughts_are_counted_also_where_they_are_not_shown(ask):
    chunks = await ask("think about pizza")
    usage = chunks[-1].usage_metadata
    assert text(chunks, thought=True) == ""
    assert usage.thoughts_token_count > 0
    assert usage.total_token_count == (
        usage.prompt_token_count + usage.candidates_token_count + usage.thoughts_token_count
    )


async def test_a_model_without_a_budget_does_not_think(ask):
    chunks = await ask("think about pizza", thinking_config=types.ThinkingConfig(thinking_budget=0))
    assert chunks[-1].usage_metadata.thoughts_token_count is None


async def test_a_thought_about_answer_ends_with_a_signature_on_an_empty_part(ask):
    last = parts((await ask("think about pizza"))[-1:])[0]
    assert (last.text, bool(last.thought_signature)) == ("", True)


async def test_only_the_first_of_parallel_calls_is_signed(ask):
    chunks = await ask(THINK_THEN_SWITCH)
    called = [part for part in parts(chunks) if part.function_call]
    assert [part.function_call.args["name"] for part in called] == ["kitchen light", "bedroom light"]
    assert [bool(part.thought_signature) for part in called] == [True, False]
    assert len({part.function_call.id for part in called}) == 2
    assert finish_reasons(chunks) == [types.FinishReason.STOP]


async def test_calls_may_come_in_one_chunk_and_without_ids(ask):
    chunks = await ask(THINK_THEN_SWITCH, model="scripted+one_chunk+no_id")
    assert [call.id for call in calls(chunks[:1])] == [None, None]


async def test_a_replay_with_its_signature_is_valid(ask, server):
    server.change(strict=True)
    chunks = await ask(*replay(THINK_THEN_SWITCH, await ask(THINK_THEN_SWITCH)))
    assert text(chunks) == "Done, the kitchen light and the bedroom light are on."


async def test_results_without_ids_are_found_by_their_order(ask, server):
    server.change(strict=True)
    first = await ask(THINK_THEN_SWITCH, model="scripted+no_id")
    chunks = await ask(*replay(THINK_THEN_SWITCH, first), model="scripted+no_id")
    assert text(chunks) == "Done, the kitchen light and the bedroom light are on."


@pytest.mark.parametrize("signature", [None, b"something else"])
async def test_a_replay_with_another_signature_is_refused(ask, server, signature):
    server.change(strict=True)
    history = replay(THINK_THEN_SWITCH, await ask(THINK_THEN_SWITCH))
    history[1].parts[0].thought_signature = signature
    with pytest.raises(errors.ClientError) as caught:
        await ask(*history)
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")


async def test_another_models_signature_is_refused(ask, server):
    server.change(strict=True)
    history = replay(THINK_THEN_SWITCH, await ask(THINK_THEN_SWITCH))
    with pytest.raises(errors.ClientError):
        await ask(*history, model="scripted+tiny_chunks")


async def test_a_call_of_other_origin_may_say_so(ask, server):
    server.change(strict=True)
    history = replay(THINK_THEN_SWITCH, await ask(THINK_THEN_SWITCH))
    history[1].parts[0].thought_signature = SKIP
    assert text(await ask(*history, model="scripted+tiny_chunks"))


async def test_an_answer_that_is_not_streamed_says_the_same(client):
    answer = await client.aio.models.generate_content(model="scripted", contents="my name is Ada", config=config())
    assert answer.text == "Nice to meet you, Ada."
    assert answer.usage_metadata.candidates_token_count > 0


async def test_a_long_prompt_is_cached_by_itself(ask):
    first, second = [(await ask(LONG))[-1].usage_metadata for _ in range(2)]
    assert first.cached_content_token_count is None
    assert 2048 < second.cached_content_token_count <= second.prompt_token_count


async def test_newer_models_cache_only_longer_prompts(ask, server):
    server.change(models=("gemini-3.5-flash",))
    first, second = [(await ask(LONG, model="gemini-3.5-flash"))[-1].usage_metadata for _ in range(2)]
    assert (first.cached_content_token_count, second.cached_content_token_count) == (None, None)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("length", "MAX_TOKENS"),
        ("window_exceeded", "MAX_TOKENS"),
        ("content_filter", "SAFETY"),
        ("refusal", "PROHIBITED_CONTENT"),
        ("malformed_call", "MALFORMED_FUNCTION_CALL"),
        ("empty_answer", "STOP"),
    ],
)
async def test_an_answer_may_finish_for_another_reason(ask, server, fault, reason):
    server.fault(fault)
    assert [each.value for each in finish_reasons(await ask("my name is Ada"))] == [reason]


async def test_a_blocked_prompt_has_no_candidates(ask, server):
    server.fault("prompt_blocked")
    chunks = await ask("hello")
    assert chunks[0].prompt_feedback.block_reason.value == "PROHIBITED_CONTENT"
    assert chunks[0].candidates is None


@pytest.mark.parametrize(
    ("fault", "error", "code_and_status"),
    [
        ("400", errors.ClientError, (400, "INVALID_ARGUMENT")),
        ("401", errors.ClientError, (401, "UNAUTHENTICATED")),
        ("403", errors.ClientError, (403, "PERMISSION_DENIED")),
        ("404", errors.ClientError, (404, "NOT_FOUND")),
        ("413", errors.ClientError, (413, "INVALID_ARGUMENT")),
        ("429", errors.ClientError, (429, "RESOURCE_EXHAUSTED")),
        ("quota", errors.ClientError, (429, "RESOURCE_EXHAUSTED")),
        ("context_overflow", errors.ClientError, (400, "INVALID_ARGUMENT")),
        ("500", errors.ServerError, (500, "INTERNAL")),
        ("503", errors.ServerError, (503, "UNAVAILABLE")),
        ("529", errors.ServerError, (503, "UNAVAILABLE")),
    ],
)
async def test_a_refused_request_is_the_sdks_error(ask, server, fault, error, code_and_status):
    server.fault(fault)
    with pytest.raises(error) as caught:
        await ask("hello")
    assert (caught.value.code, caught.value.status) == code_and_status


async def details_of(ask, server, fault, **options):
    server.fault(fault, **options)
    with pytest.raises(errors.ClientError) as caught:
        await ask("hello")
    return {each["@type"].rpartition(".")[2]: each for each in caught.value.details["error"]["details"]}


async def test_a_rate_limit_says_which_quota_and_when_to_come_back(ask, server):
    details = await details_of(ask, server, "429", retry_after=7)
    assert details["RetryInfo"]["retryDelay"] == "7s"
    assert "PerMinute" in details["QuotaFailure"]["violations"][0]["quotaId"]


async def test_no_credit_does_not_say_when_to_come_back(ask, server):
    details = await details_of(ask, server, "quota")
    assert details.keys() == {"QuotaFailure"}
    assert "PerDay" in details["QuotaFailure"]["violations"][0]["quotaId"]


async def test_a_wrong_key_is_an_invalid_argument(ask, server):
    server.change(key="another")
    with pytest.raises(errors.ClientError) as caught:
        await ask("hello")
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
    assert caught.value.details["error"]["details"][0]["reason"] == "API_KEY_INVALID"


async def test_the_key_may_be_in_the_query_and_is_not_kept(server):
    server.change(key="made-up")
    body = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
    url = f"{server.gemini_url}/v1beta/models/scripted:generateContent?key=made-up&alt=json"
    status, _ = await fetched("POST", url, json=body)
    assert status == 200
    assert server.requests[-1].query == {"alt": "json"}


@pytest.mark.parametrize(("code", "status"), [(None, 503), ("RESOURCE_EXHAUSTED", 429), ("INTERNAL", 500)])
async def test_an_error_in_the_stream_is_the_sdks_error(ask, server, code, status):
    server.fault("error_in_stream", code=code)
    heard: list[Any] = []
    with pytest.raises(errors.APIError) as caught:
        await ask(STORY, heard=heard)
    assert text(heard) == "Once upon a "
    assert caught.value.code == status


async def test_a_malformed_event_is_no_json(ask, server):
    server.fault("malformed_event")
    with pytest.raises(errors.UnknownApiResponseError):
        await ask(STORY)


async def test_without_the_last_chunk_the_text_is_whole_and_has_no_finish_reason(ask, server):
    server.fault("no_terminal")
    chunks = await ask("my name is Ada")
    assert text(chunks) == "Nice to meet you, Ada."
    assert finish_reasons(chunks) == []


async def test_a_cut_is_a_transport_error(ask, server):
    server.fault("cut_mid_stream")
    with pytest.raises(httpx.TransportError):
        await ask(STORY)


async def test_counted_tokens_are_those_that_the_answer_reports(client, ask):
    request = {"model": "models/scripted", "contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
    options = types.HttpOptions(extra_body={"generateContentRequest": request})
    counted = await client.aio.models.count_tokens(
        model="scripted", contents="hello", config=types.CountTokensConfig(http_options=options)
    )
    usage = (await ask("hello", tools=None))[-1].usage_metadata
    assert counted.total_tokens == usage.prompt_token_count


async def test_a_model_has_its_limits(client, server):
    server.change(context_size=100_000)
    model = await client.aio.models.get(model="scripted")
    assert (model.name, model.input_token_limit, model.output_token_limit) == ("models/scripted", 100_000, 65_536)
    assert model.thinking


async def test_a_model_that_does_not_exist_is_not_found(client):
    with pytest.raises(errors.ClientError) as caught:
        await client.aio.models.get(model="gemini-none")
    assert caught.value.status == "NOT_FOUND"


async def test_the_models_are_listed_a_page_at_a_time(client, server):
    listed = [model.name async for model in await client.aio.models.list(config={"page_size": 5})]
    assert listed == [f"models/{each}" for each in server.settings.listed_models()]


async def test_a_picture_and_a_document_are_seen(ask):
    sent = [
        types.Part.from_bytes(mime_type="image/png", data=b"\xff\xfe\xfd"),
        types.Part.from_bytes(mime_type="application/pdf", data=b"a"),
        types.Part(text="what is in the picture?"),
    ]
    answer = text(await ask(types.Content(role="user", parts=sent)))
    assert answer == "I was sent image/png of 3 bytes and application/pdf of 1 bytes."


@pytest.mark.parametrize("version", ["v1", "v1beta"])
async def test_both_versions_have_models_and_answers(server, version):
    async with httpx.AsyncClient() as http:
        options = types.HttpOptions(base_url=server.gemini_url, httpx_async_client=http, api_version=version)
        client = genai.Client(api_key="made-up", http_options=options)
        assert (await client.aio.models.get(model="scripted")).name == "models/scripted"
        assert "models/scripted" in [model.name async for model in await client.aio.models.list()]
        answer = await client.aio.models.generate_content(model="scripted", contents="hello")
    assert str(answer.text).startswith("Hello!")
