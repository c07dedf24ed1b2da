"""Azure OpenAI: both endpoints, their versions and errors, as the real SDK and a bare client meet them."""

import openai
import pytest

from .model_talk import SYSTEM, TOOLS, fetched, user

VERSION = "2024-10-21"
MESSAGES = [SYSTEM, user("my name is Ada")]
NICE = "Nice to meet you, Ada."


@pytest.fixture
async def azure(server):
    """A client of `/openai/v1/`, as Microsoft documents it."""
    url = f"{server.azure_url}/openai/v1/"
    async with openai.AsyncOpenAI(api_key="made-up", base_url=url, max_retries=0, timeout=5) as sdk:
        yield sdk


@pytest.fixture
def classic(server):
    """Make a client of the classic endpoint."""

    def make(version=VERSION):
        return openai.AsyncAzureOpenAI(
            api_key="made-up", azure_endpoint=server.azure_url, api_version=version, max_retries=0, timeout=5
        )

    return make


async def said(client, **options):
    answer = await client.chat.completions.create(model="scripted", messages=MESSAGES, **options)
    return answer.choices[0].message.content


async def error_of(server, path, body=None):
    body = body or {"model": "scripted", "messages": MESSAGES}
    status, answer = await fetched("POST", f"{server.azure_url}{path}", json=body)
    return status, answer["error"]


async def test_both_endpoints_answer(azure, classic):
    assert await said(azure) == NICE
    async with classic() as client:
        assert await said(client) == NICE


async def test_both_endpoints_have_responses(azure, classic):
    assert (await azure.responses.create(model="scripted", input="my name is Ada")).output_text == NICE
    async with classic("2025-04-01-preview") as client:
        assert (await client.responses.create(model="scripted", input="my name is Ada")).output_text == NICE


async def test_the_first_chunk_has_no_choices(azure):
    stream = await azure.chat.completions.create(model="scripted", messages=MESSAGES, tools=TOOLS, stream=True)
    chunks = [chunk async for chunk in stream]
    assert chunks[0].choices == []
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[1:]) == NICE


async def test_the_deployment_of_the_path_is_the_model(server, classic):
    server.change(strict=True)
    async with classic() as client:
        await said(client)
    assert server.requests[-1].path == "/openai/deployments/scripted/chat/completions"
    assert server.requests[-1].format == "openai_chat"
    assert server.requests[-1].query == {"api-version": VERSION}


async def test_a_body_without_a_model_is_valid_where_the_path_names_it(server):
    path = f"/openai/deployments/scripted/chat/completions?api-version={VERSION}"
    status, _ = await fetched("POST", f"{server.azure_url}{path}", json={"messages": MESSAGES})
    assert status == 200
    assert server.requests[-1].violations == []


@pytest.mark.parametrize("path", ["/openai/v1/chat/completions", "/openai/v1/responses"])
async def test_an_unknown_deployment_is_not_found(server, path):
    status, error = await error_of(server, path, {"model": "none", "messages": MESSAGES, "input": "hello"})
    assert (status, error["code"]) == (404, "DeploymentNotFound")


async def test_an_unknown_deployment_is_not_found_on_the_classic_endpoint(server):
    status, error = await error_of(server, f"/openai/deployments/none/chat/completions?api-version={VERSION}")
    assert (status, error["code"]) == (404, "DeploymentNotFound")


@pytest.mark.parametrize("query", ["", "?api-version=", "?api-version=2024-10-22", "?api-version=newest"])
async def test_the_classic_endpoint_needs_a_version_that_exists(server, query):
    status, error = await error_of(server, f"/openai/deployments/scripted/chat/completions{query}")
    assert (status, error) == (404, {"code": "404", "message": "Resource not found"})


async def test_older_versions_have_no_responses(classic):
    async with classic() as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(model="scripted", input="hello")
    assert caught.value.code == "BadRequest"


async def test_the_new_endpoint_has_no_dated_versions(server):
    status, error = await error_of(server, f"/openai/v1/chat/completions?api-version={VERSION}")
    assert (status, error["message"]) == (400, "API version not supported")


@pytest.mark.parametrize("headers", [{"api-key": "secret"}, {"Authorization": "Bearer secret"}])
async def test_the_key_may_be_in_either_header(server, headers):
    server.change(key="secret")
    status, _ = await fetched("GET", f"{server.azure_url}/openai/v1/models", headers=headers)
    assert status == 200
    assert "secret" not in str(server.log.records[-1].headers)


async def test_a_wrong_key_is_refused_as_azure_does(azure, server):
    server.change(key="another")
    with pytest.raises(openai.AuthenticationError) as caught:
        await said(azure)
    assert caught.value.code == "401"
    assert caught.value.type is None


@pytest.mark.parametrize(
    ("fault", "error", "code"),
    [
        ("403", openai.PermissionDeniedError, "403"),
        ("404", openai.NotFoundError, "DeploymentNotFound"),
        ("429", openai.RateLimitError, "429"),
        ("quota", openai.RateLimitError, "insufficient_quota"),
        ("500", openai.InternalServerError, "InternalServerError"),
        ("503", openai.InternalServerError, "ServiceUnavailable"),
        ("context_overflow", openai.BadRequestError, "context_length_exceeded"),
        ("azure_filter", openai.BadRequestError, "content_filter"),
    ],
)
async def test_a_refused_request_is_the_sdks_error(azure, server, fault, error, code):
    server.fault(fault)
    with pytest.raises(error) as caught:
        await said(azure)
    assert caught.value.code == code


async def test_a_rate_limit_says_when_to_come_back(azure, server):
    server.fault("429", retry_after=7)
    with pytest.raises(openai.RateLimitError) as caught:
        await said(azure)
    assert caught.value.response.headers["Retry-After"] == "7"


async def test_a_filtered_prompt_says_which_filter(azure, server):
    server.fault("azure_filter")
    with pytest.raises(openai.BadRequestError) as caught:
        await said(azure)
    assert caught.value.response.json()["error"]["innererror"]["content_filter_result"]["violence"]["filtered"]


async def test_models_are_listed_on_both_endpoints(azure, classic, server):
    assert [model.id async for model in azure.models.list()] == server.settings.listed_models()
    async with classic() as client:
        assert [model.id async for model in client.models.list()] == server.settings.listed_models()


async def test_the_gateway_counts_no_tokens(azure):
    with pytest.raises(openai.NotFoundError):
        await azure.responses.input_tokens.count(model="scripted", input="hello")
