"""Azure's servers for the OpenAI formats: their URLs, their keys, and the differences of the classic endpoint.

Azure calls a model a deployment. The SDK's own Azure client is not used: it modifies the HTTP client, which is shared,
and `/openai/v1/` does not need it: https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, override
from urllib.parse import quote, urlsplit, urlunsplit

from openai import AsyncOpenAI, Omit

from ..errors import BadRequest
from .chat import ChatCompletions

_API = "openai"


@dataclass(frozen=True, slots=True)
class AzureServer:
    """A resource of Azure. `endpoint` is any of its URLs, up to the target URI that the portal shows.

    With an `api_version` (for example `2024-10-21`) it is the classic endpoint, else `/openai/v1/`. `is_token`: the key
    is a bearer token, of Entra ID or a gateway.
    """

    endpoint: str
    key: str
    api_version: str = ""
    is_token: bool = False

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
        return {} if self.is_token else {"api-key": self.key, "Authorization": Omit()}

    @property
    def cache_parameters(self) -> Collection[str]:
        """The parameters of the prompt cache that are sent: the key, which older API versions refuse.

        Models on Azure refuse a retention that they accept at OpenAI:
        https://github.com/OpenHands/software-agent-sdk/pull/2311
        """
        return () if self.api_version else ("prompt_cache_key",)


class AzureChatCompletions(ChatCompletions):
    """Chat Completions at the classic endpoint, where each deployment has its own URL."""

    def __init__(self, client: AsyncOpenAI, *args: Any, **options: Any) -> None:
        super().__init__(client, *args, **options)
        self._deployments: dict[str, AsyncOpenAI] = {}

    @override
    def _client_of(self, model: str) -> AsyncOpenAI:
        if model not in self._deployments:
            url = f"{str(self._client.base_url).rstrip('/')}/deployments/{quote(model, safe='')}"
            self._deployments[model] = self._client.with_options(base_url=url)
        return self._deployments[model]
