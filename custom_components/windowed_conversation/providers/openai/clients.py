"""Clients of the OpenAI SDK: the server, OpenAI's, Azure's, or a compatible one, and the key.

The functions open no connection but may block, so call none of them in the event loop. They raise `BadRequest` for an
invalid URL. `http_client` is an httpx2 client or, at run time only, an httpx client; the caller keeps ownership. Each
request is tried once: during a retry of the SDK the user would hear nothing.

Azure calls a model a deployment. The SDK's own Azure client is not used: it modifies the HTTP client, which is shared,
and `/openai/v1/` does not need it: https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from openai import AsyncOpenAI, Omit

from ..errors import BadRequest
from ..transport import bounded_client
from .chat_encoding import Dialect
from .errors import provider_errors
from .formats import ChatCompletions, Responses

OPENAI_URL = "https://api.openai.com/v1"

# The SDK refuses an empty key; servers at home ask for none.
_NO_KEY = "none"

_API = "openai"


@dataclass(frozen=True, slots=True)
class AzureServer:
    """A resource of Azure. `endpoint` is any of its URLs, up to the target URI that the portal shows.

    With an `api_version` (for example `2024-10-21`) it is the classic endpoint, else `/openai/v1/`.
    """

    endpoint: str
    key: str
    api_version: str = ""

    @property
    def url(self) -> str:
        """The base URL of the formats. Raises `BadRequest` if the endpoint is not a URL."""
        try:
            parts = urlsplit(self.endpoint)
        except ValueError as err:
            raise BadRequest("the address is not valid") from err
        resource = takewhile(lambda segment: segment != _API, parts.path.rstrip("/").split("/"))
        path = "/".join((*resource, _API, *(() if self.api_version else ("v1",))))
        return urlunsplit((parts.scheme, parts.netloc, path, "", ""))

    @property
    def headers(self) -> Mapping[str, Any]:
        """The authentication headers: the SDK writes a bearer token by itself, but no `api-key`."""
        return {"api-key": self.key, "Authorization": Omit()}

    @property
    def cache_parameters(self) -> Collection[str]:
        """The parameters of the prompt cache that are sent: the key, which older API versions refuse.

        Models on Azure refuse a retention that they accept at OpenAI:
        https://github.com/OpenHands/software-agent-sdk/pull/2311
        """
        return () if self.api_version else ("prompt_cache_key",)


def compatible_chat(url: str, api_key: str | None, http_client: Any) -> ChatCompletions:
    """Return a provider for any server that speaks Chat Completions."""
    return ChatCompletions(_client(url, api_key, http_client))


def openai_chat(api_key: str, http_client: Any, url: str = OPENAI_URL) -> ChatCompletions:
    """Return a provider for OpenAI's own servers that uses Chat Completions."""
    return ChatCompletions(_client(url, api_key, http_client), Dialect.OPENAI)


def openai_responses(api_key: str, http_client: Any, url: str = OPENAI_URL) -> Responses:
    """Return a provider for OpenAI's own servers that uses Responses."""
    return Responses(_client(url, api_key, http_client))


def azure_chat(server: AzureServer, http_client: Any) -> ChatCompletions:
    """Return a provider for Chat Completions on Azure. A request's model is the name of a deployment."""
    return ChatCompletions(
        _azure_client(server, http_client),
        Dialect.OPENAI,
        has_deployments=bool(server.api_version),
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
            api_key=api_key or _NO_KEY,
            base_url=url,
            http_client=bounded_client(http_client),
            max_retries=0,
            default_query=query,
        )
    # The client looks up the platform on first use and caches it from then on.
    client.platform_headers()
    return client
