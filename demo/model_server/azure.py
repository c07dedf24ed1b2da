"""Azure OpenAI: OpenAI's two formats behind Azure's gateway, with its paths, keys, versions and errors.

The gateway is in front of the models: its errors have Azure's format, and those of a model have OpenAI's. The classic
endpoint requires a dated `api-version`, and `/openai/v1/` requires none.
https://learn.microsoft.com/azure/ai-foundry/openai/reference
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, override

from aiohttp import web

from .chat_completions import ChatCompletions
from .chat_validation import chat_violations
from .openai_errors import openai_error, openai_words
from .refusal import Reason, Refusal, RefusedError
from .responses import Responses
from .state import State
from .violations import Violation
from .wire import Frame, Prompt, Reply, bearer

_VERSIONS = frozenset(
    {
        "2022-12-01", "2023-05-15", "2024-02-01", "2024-06-01", "2024-10-21", "2024-02-15-preview",
        "2024-03-01-preview", "2024-04-01-preview", "2024-05-01-preview", "2024-07-01-preview",
        "2024-08-01-preview", "2024-09-01-preview", "2024-10-01-preview", "2024-12-01-preview",
        "2025-01-01-preview", "2025-02-01-preview", "2025-03-01-preview", "2025-04-01-preview",
    }
)  # fmt: skip
_FIRST_WITH_RESPONSES = "2025-03-01-preview"
_UNDATED = ("latest", "preview", "v1")

_NO_RESOURCE = Refusal(404, "", "404", "Resource not found", reason=Reason.NOT_FOUND)
_NO_SUCH_VERSION = Refusal(400, "", "BadRequest", "API version not supported")
_NO_RESPONSES = Refusal(
    400,
    "",
    "BadRequest",
    f"Azure OpenAI Responses API is enabled only for api-version {_FIRST_WITH_RESPONSES} and later",
)
_NO_DEPLOYMENT = (
    "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, "
    "please wait a moment and try again."
)
_DENIED = "Access denied due to invalid subscription key or wrong API endpoint."
# The code and the message of each of the gateway's own errors.
_GATEWAY: dict[Reason, tuple[str, str]] = {
    Reason.WRONG_KEY: ("401", _DENIED),
    Reason.UNAUTHENTICATED: ("401", _DENIED),
    Reason.FORBIDDEN: ("403", "Access denied due to Virtual Network/Firewall rules."),
    Reason.NO_SUCH_MODEL: ("DeploymentNotFound", _NO_DEPLOYMENT),
    Reason.RATE_LIMITED: ("429", "Requests to this deployment have exceeded its call rate limit."),
    Reason.SERVER_ERROR: ("InternalServerError", "Backend returned unexpected response."),
    Reason.UNAVAILABLE: ("ServiceUnavailable", "The service is temporarily unable to process your request."),
    Reason.OVERLOADED: ("ServiceUnavailable", "The service is temporarily unable to process your request."),
}
_FILTER_RESULT = {
    name: {"filtered": name == "violence", "severity": "medium" if name == "violence" else "safe"}
    for name in ("hate", "self_harm", "sexual", "violence")
}


@dataclass(frozen=True, slots=True)
class Gateway:
    """The gateway's view of a request: the deployment in the path, if any, and the requested API version."""

    version: str | None
    classic: bool = False
    deployment: str | None = None

    def check(self, *, responses: bool = False) -> None:
        """Raise RefusedError if the endpoint does not support the API version."""
        if not self.classic:
            if self.version is not None and self.version not in _UNDATED:
                raise RefusedError(_NO_SUCH_VERSION)
            return
        if self.version not in _VERSIONS:
            raise RefusedError(_NO_RESOURCE)
        if responses and self.version < _FIRST_WITH_RESPONSES:
            raise RefusedError(_NO_RESPONSES)

    def with_model(self, body: Any) -> Any:
        """Return the body with the deployment from the path as its model."""
        named = isinstance(body, dict) and self.deployment is not None
        return {**body, "model": self.deployment} if named else body


def azure_key(headers: Mapping[str, str]) -> str | None:
    """Return the API key of the resource, or the access token of an identity."""
    return headers.get("api-key") or bearer(headers)


def azure_words(refusal: Refusal) -> Refusal:
    """Return the refusal as worded by the gateway or by the model behind it, depending on its reason."""
    if refusal.html or refusal.reason not in _GATEWAY:
        return openai_words(refusal)
    code, message = _GATEWAY[refusal.reason]
    return replace(refusal, kind="", code=code, message=message)


def azure_error(refusal: Refusal) -> dict[str, Any]:
    """Return the JSON error document for the refusal."""
    if not refusal.kind:
        return {"error": {"code": refusal.code, "message": refusal.message}}
    if refusal.reason is not Reason.FILTERED:
        return openai_error(refusal)
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": _FILTER_RESULT}
    error = {"message": refusal.message, "type": None, "param": "prompt", "code": refusal.code, "status": 400}
    return {"error": {**error, "innererror": inner}}


class AzureChat(ChatCompletions):
    """Chat Completions behind the gateway. The first chunk has no choices, only the filter results of the prompt."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @override
    def sent_key(self, headers: Mapping[str, str]) -> str | None:
        return azure_key(headers)

    @override
    def check(self, headers: Mapping[str, str]) -> None:
        self._gateway.check()

    @override
    def violations(self, body: Any) -> list[Violation]:
        return chat_violations(self._gateway.with_model(body), openai=True)

    @override
    def read(self, body: Any) -> Prompt:
        return super().read(self._gateway.with_model(body))

    @override
    def frames(self, reply: Reply) -> Iterator[Frame]:
        return super().frames(replace(reply, shapes=(*reply.shapes, "azure")))

    @override
    def in_own_words(self, refusal: Refusal) -> Refusal:
        return azure_words(refusal)

    @override
    def error_body(self, refusal: Refusal) -> dict[str, Any]:
        return azure_error(refusal)


class AzureResponses(Responses):
    """Responses behind the gateway; the deployment name is the model, also on the classic endpoint."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @override
    def sent_key(self, headers: Mapping[str, str]) -> str | None:
        return azure_key(headers)

    @override
    def check(self, headers: Mapping[str, str]) -> None:
        self._gateway.check(responses=True)

    @override
    def in_own_words(self, refusal: Refusal) -> Refusal:
        return azure_words(refusal)

    @override
    def error_body(self, refusal: Refusal) -> dict[str, Any]:
        return azure_error(refusal)


def azure_models(_http: web.Request, state: State) -> dict[str, Any]:
    """Return the list of models with the capabilities of each."""
    capabilities = {"chat_completion": True, "completion": False, "embeddings": False, "inference": True}
    about = {"object": "model", "status": "succeeded", "capabilities": capabilities}
    life = {"lifecycle_status": "generally-available", "created_at": 0, "deprecation": {"inference": 4102444800}}
    return {"object": "list", "data": [{"id": model, **about, **life} for model in state.settings.listed_models()]}
