"""Azure OpenAI: OpenAI's two formats behind Azure's gateway, with its paths, keys, versions and errors.

The gateway is in front of the models: its errors have Azure's format, and those of a model have OpenAI's. The classic
endpoint requires a dated `api-version`, and `/openai/v1/` requires none.
https://learn.microsoft.com/azure/ai-foundry/openai/reference
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, override

from aiohttp import web

from .chat_completions import ChatCompletionsFormat
from .chat_validation import find_chat_violations
from .openai_errors import build_openai_error, convert_to_openai
from .refusal import Refusal, RefusalReason, RefusedError
from .responses import ResponsesFormat
from .state import ServerState
from .violations import Violation
from .wire import Frame, Prompt, Reply, get_bearer_token

_API_VERSIONS = frozenset(
    {
        "2022-12-01", "2023-05-15", "2024-02-01", "2024-06-01", "2024-10-21", "2024-02-15-preview",
        "2024-03-01-preview", "2024-04-01-preview", "2024-05-01-preview", "2024-07-01-preview",
        "2024-08-01-preview", "2024-09-01-preview", "2024-10-01-preview", "2024-12-01-preview",
        "2025-01-01-preview", "2025-02-01-preview", "2025-03-01-preview", "2025-04-01-preview",
    }
)  # fmt: skip
_FIRST_RESPONSES_VERSION = "2025-03-01-preview"
_UNDATED_VERSIONS = ("latest", "preview", "v1")

_NO_RESOURCE_REFUSAL = Refusal(404, "", "404", "Resource not found", reason=RefusalReason.NOT_FOUND)
_BAD_VERSION_REFUSAL = Refusal(400, "", "BadRequest", "API version not supported")
_NO_RESPONSES_REFUSAL = Refusal(
    400,
    "",
    "BadRequest",
    f"Azure OpenAI Responses API is enabled only for api-version {_FIRST_RESPONSES_VERSION} and later",
)
_NO_DEPLOYMENT_MESSAGE = (
    "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, "
    "please wait a moment and try again."
)
_DENIED_MESSAGE = "Access denied due to invalid subscription key or wrong API endpoint."
# The code and the message of each of the gateway's own errors.
_GATEWAY_ERROR_BY_REASON: dict[RefusalReason, tuple[str, str]] = {
    RefusalReason.WRONG_KEY: ("401", _DENIED_MESSAGE),
    RefusalReason.UNAUTHENTICATED: ("401", _DENIED_MESSAGE),
    RefusalReason.FORBIDDEN: ("403", "Access denied due to Virtual Network/Firewall rules."),
    RefusalReason.NO_SUCH_MODEL: ("DeploymentNotFound", _NO_DEPLOYMENT_MESSAGE),
    RefusalReason.RATE_LIMITED: ("429", "Requests to this deployment have exceeded its call rate limit."),
    RefusalReason.SERVER_ERROR: ("InternalServerError", "Backend returned unexpected response."),
    RefusalReason.UNAVAILABLE: ("ServiceUnavailable", "The service is temporarily unable to process your request."),
    RefusalReason.OVERLOADED: ("ServiceUnavailable", "The service is temporarily unable to process your request."),
}
_FILTER_RESULT = {
    name: {"filtered": name == "violence", "severity": "medium" if name == "violence" else "safe"}
    for name in ("hate", "self_harm", "sexual", "violence")
}


@dataclass(frozen=True, slots=True)
class AzureGateway:
    """The gateway's view of a request: the deployment in the path, if any, and the requested API version."""

    api_version: str | None
    is_classic: bool = False
    deployment: str | None = None

    def check_version(self, *, responses: bool = False) -> None:
        """Raise RefusedError if the endpoint does not support the API version."""
        if not self.is_classic:
            if self.api_version is not None and self.api_version not in _UNDATED_VERSIONS:
                raise RefusedError(_BAD_VERSION_REFUSAL)
            return
        if self.api_version not in _API_VERSIONS:
            raise RefusedError(_NO_RESOURCE_REFUSAL)
        if responses and self.api_version < _FIRST_RESPONSES_VERSION:
            raise RefusedError(_NO_RESPONSES_REFUSAL)

    def add_model(self, body: Any) -> Any:
        """Return the body with the deployment from the path as its model."""
        named = isinstance(body, dict) and self.deployment is not None
        return {**body, "model": self.deployment} if named else body


def get_azure_key(headers: Mapping[str, str]) -> str | None:
    """Return the API key of the resource, or the access token of an identity."""
    return headers.get("api-key") or get_bearer_token(headers)


def convert_to_azure(refusal: Refusal) -> Refusal:
    """Return the refusal as worded by the gateway or by the model behind it, depending on its reason."""
    if refusal.is_html or refusal.reason not in _GATEWAY_ERROR_BY_REASON:
        return convert_to_openai(refusal)
    code, message = _GATEWAY_ERROR_BY_REASON[refusal.reason]
    return replace(refusal, kind="", code=code, message=message)


def build_azure_error(refusal: Refusal) -> dict[str, Any]:
    """Return the JSON error document for the refusal."""
    if not refusal.kind:
        return {"error": {"code": refusal.code, "message": refusal.message}}
    if refusal.reason is not RefusalReason.FILTERED:
        return build_openai_error(refusal)
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": _FILTER_RESULT}
    error = {"message": refusal.message, "type": None, "param": "prompt", "code": refusal.code, "status": 400}
    return {"error": {**error, "innererror": inner}}


class AzureChatFormat(ChatCompletionsFormat):
    """Chat Completions behind the gateway. The first chunk has no choices, only the filter results of the prompt."""

    def __init__(self, gateway: AzureGateway) -> None:
        self._gateway = gateway

    @override
    def read_api_key(self, headers: Mapping[str, str]) -> str | None:
        return get_azure_key(headers)

    @override
    def check_headers(self, headers: Mapping[str, str]) -> None:
        self._gateway.check_version()

    @override
    def find_violations(self, body: Any) -> list[Violation]:
        return find_chat_violations(self._gateway.add_model(body), openai=True)

    @override
    def parse_request(self, body: Any) -> Prompt:
        return super().parse_request(self._gateway.add_model(body))

    @override
    def iter_frames(self, reply: Reply) -> Iterator[Frame]:
        return super().iter_frames(replace(reply, shapes=(*reply.shapes, "azure")))

    @override
    def convert_refusal(self, refusal: Refusal) -> Refusal:
        return convert_to_azure(refusal)

    @override
    def build_error_body(self, refusal: Refusal) -> dict[str, Any]:
        return build_azure_error(refusal)


class AzureResponsesFormat(ResponsesFormat):
    """Responses behind the gateway; the deployment name is the model, also on the classic endpoint."""

    def __init__(self, gateway: AzureGateway) -> None:
        self._gateway = gateway

    @override
    def read_api_key(self, headers: Mapping[str, str]) -> str | None:
        return get_azure_key(headers)

    @override
    def check_headers(self, headers: Mapping[str, str]) -> None:
        self._gateway.check_version(responses=True)

    @override
    def convert_refusal(self, refusal: Refusal) -> Refusal:
        return convert_to_azure(refusal)

    @override
    def build_error_body(self, refusal: Refusal) -> dict[str, Any]:
        return build_azure_error(refusal)


def build_azure_models(_http: web.Request, state: ServerState) -> dict[str, Any]:
    """Return the list of models with the capabilities of each."""
    capabilities = {"chat_completion": True, "completion": False, "embeddings": False, "inference": True}
    about = {"object": "model", "status": "succeeded", "capabilities": capabilities}
    life = {"lifecycle_status": "generally-available", "created_at": 0, "deprecation": {"inference": 4102444800}}
    return {"object": "list", "data": [{"id": model, **about, **life} for model in state.settings.list_model_ids()]}
