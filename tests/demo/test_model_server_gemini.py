"""Tests for the scripted server's Gemini generateContent format, with Google's SDK as the client."""

from google import genai
from google.genai import errors, types
import httpx
import pytest

from .model_talk import STORY, THINK_THEN_SWITCH

DECLARATIONS = [
    types.FunctionDeclaration(name=name, description="d", parameters_json_schema={"type": "object", "properties": {}})
    for name in ("intent__HassTurnOff", "intent__HassTurnOn", "llm__GetDateTime")
]


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
    """Return a function that sends the contents and returns the chunks of the streamed answer."""

    async def stream(*contents, model="scripted", **options):
        sent = [said(each) if isinstance(each, str) else each for each in contents]
        chunks = await client.aio.models.generate_content_stream(model=model, contents=sent, config=config(**options))
        return [chunk async for chunk in chunks]

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


async def test_every_chunk_has_the_usage_so_far(ask):
    usages = [chunk.usage_metadata for chunk in await ask(STORY)]
    written = [usage.candidates_token_count for usage in usages]
    assert written == sorted(written)
    assert written[0] < written[-1]
    assert usages[-1].total_token_count == usages[-1].prompt_token_count + written[-1]


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
