"""Clients of the OpenAI SDK: the server and the key.

The functions open no connection but may block, so call none of them in the event loop. They raise `BadRequest` for an
invalid URL. `http_client` is an httpx2 client or, at run time only, an httpx client; the caller keeps ownership. Each
request is tried once: during a retry of the SDK the user would hear nothing.
"""

from collections.abc import Mapping
from typing import Any

from openai import AsyncOpenAI

from ..transport import lent
from .azure import AzureChatCompletions, AzureServer
from .chat import ChatCompletions
from .chat_encoding import Dialect
from .errors import provider_errors
from .responses import Responses

OPENAI_URL = "https://api.openai.com/v1"

# The SDK refuses an empty key; servers at home ask for none.
_NO_KEY = "none"


def chat_completions(url: str, api_key: str | None, http_client: Any) -> ChatCompletions:
    """Return a provider for any server that speaks Chat Completions."""
    return ChatCompletions(_client(url, api_key, http_client))


def openai_chat(api_key: str, http_client: Any, url: str = OPENAI_URL) -> ChatCompletions:
    """Return a provider for OpenAI's own Chat Completions."""
    return ChatCompletions(_client(url, api_key, http_client), Dialect.OPENAI)


def openai_responses(api_key: str, http_client: Any, url: str = OPENAI_URL) -> Responses:
    """Return a provider for OpenAI's own Responses."""
    return Responses(_client(url, api_key, http_client))


def azure_chat(server: AzureServer, http_client: Any) -> ChatCompletions:
    """Return a provider for Chat Completions on Azure. A request's model is the name of a deployment."""
    provider = AzureChatCompletions if server.api_version else ChatCompletions
    return provider(
        _azure_client(server, http_client),
        Dialect.OPENAI,
        headers=server.headers,
        cache_parameters=server.cache_parameters,
    )


def azure_responses(server: AzureServer, http_client: Any) -> Responses:
    """Return a provider for Responses on Azure. A request's model is the name of a deployment."""
    client = _azure_client(server, http_client)
    return Responses(
        client,
        name=f"{Responses.name} {client.base_url.host}",
        headers=server.headers,
        cache_parameters=server.cache_parameters,
    )


def _azure_client(server: AzureServer, http_client: Any) -> AsyncOpenAI:
    query = {"api-version": server.api_version} if server.api_version else None
    return _client(server.url, server.key, http_client, query)


def _client(url: str, api_key: str | None, http_client: Any, query: Mapping[str, object] | None = None) -> AsyncOpenAI:
    with provider_errors():
        client = AsyncOpenAI(
            api_key=api_key or _NO_KEY, base_url=url, http_client=lent(http_client), max_retries=0, default_query=query
        )
    # The client looks up the platform on first use and caches it from then on.
    client.platform_headers()
    return client
