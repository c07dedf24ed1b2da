"""The providers for OpenAI's formats, and SDK clients for OpenAI, Azure, and compatible servers."""

from abc import abstractmethod
import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
import json
from typing import Any, override
from urllib.parse import quote, urlsplit, urlunsplit

from openai import APIStatusError, AsyncOpenAI, AsyncStream, BadRequestError, Omit, UnprocessableEntityError
from openai.resources.models import AsyncModels

from ...window import NativeData
from ..decoder import Decoder
from ..encoder import native_value, shorten
from ..errors import BadRequest, BadStream, ProviderError
from ..events import OLLAMA_FINGERPRINT, Compacted, Event, ListedModel, OnBytesCallback, Provider, Request, ignore_bytes
from ..json_values import get_member, read_models, require_count
from ..models import Caching
from ..sizes import read_context_tokens, read_loaded_context_tokens, read_output_tokens, says_images
from ..streaming import read_any_json, stream_events
from ..transport import bounded_client, post_for_stream, post_json
from .chat_decoding import ChatDecoder
from .chat_encoding import Dialect, EchoMode, encode_request as encode_chat, list_echo_alternatives
from .fields import asks_for_flexible_tier, convert_errors, is_form_refusal, is_tier_refusal
from .responses_decoding import ResponseDecoder
from .responses_encoding import encode_compaction, encode_prompt, encode_request, read_compaction

_MODEL_LIST_TIMEOUT = 10.0
_CONTEXT_SIZE_TIMEOUT = 5.0

# How long the flexible tier may take to begin its answer, in seconds. The task that the request is for has a timeout.
_FLEXIBLE_TIER_SECONDS = 20.0

# The paths that report the context size of a loaded model: Ollama's by its fingerprint, or llama.cpp's and LM Studio's.
_SIZE_PATHS_BY_FINGERPRINT = {OLLAMA_FINGERPRINT: ("api/ps",)}
_OTHER_SIZE_PATHS = ("props", "api/v0/models")

# The paths that report whether a model reads pictures: llama.cpp's, Ollama's and LM Studio's.
_OLLAMA_SHOW_PATH = "api/show"
_IMAGE_PATHS = ("props", _OLLAMA_SHOW_PATH, "api/v0/models")

_CACHE_PARAMETERS: Collection[str] = ("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options")
_MAX_CACHE_KEY_CHARS = 64

# Models before 5.6 keep a prefix for a day on request; later models write a prefix to the cache by themselves (mode
# implicit) and keep it for at least half an hour: https://platform.openai.com/docs/guides/prompt-caching
_CACHE_SETTINGS_BY_STYLE: Mapping[Caching, Mapping[str, Any]] = {
    Caching.KEY: {},
    Caching.RETENTION: {"prompt_cache_retention": "24h"},
    Caching.OPTIONS: {"prompt_cache_options": {"mode": "implicit", "ttl": "30m"}},
}

OPENAI_URL = "https://api.openai.com/v1"

# The SDK refuses an empty key, but servers at home need none.
_PLACEHOLDER_KEY = "none"

_API_SEGMENT = "openai"


class _OpenAIProvider(Provider):
    """A provider based on an `AsyncOpenAI` client. The caller keeps ownership of the client.

    `azure` describes a server on Azure, which needs its own headers.
    """

    _decoder: Callable[[Request], Decoder]

    def __init__(self, client: AsyncOpenAI, azure: AzureServer | None = None) -> None:
        self._headers = azure.headers if azure else {}
        # The prompt cache parameters that the server accepts.
        self._cache_parameters = azure.cache_parameters if azure else _CACHE_PARAMETERS
        self._client = client
        # The client would import this class on first use, which would block the event loop.
        self._models = AsyncModels(client).with_raw_response

    def stream(self, request: Request, on_bytes: OnBytesCallback = ignore_bytes) -> AsyncGenerator[Event]:
        """Send the request and yield the events of the answer, see `Provider.stream`."""
        return stream_events(self._open_response(request), self._decoder(request), convert_errors(request), on_bytes)

    @asynccontextmanager
    async def _open_response(self, request: Request) -> AsyncIterator[Any]:
        async with await self._send_at_tier(request) as answer:
            yield answer.response

    async def _send_at_tier(self, request: Request) -> Any:
        """Send the request. If the flexible tier refuses it, or does not begin to answer, use the default tier."""
        if not asks_for_flexible_tier(request):
            return await self._send(request)
        try:
            async with asyncio.timeout(_FLEXIBLE_TIER_SECONDS):
                return await self._send(request)
        except TimeoutError:
            pass
        except APIStatusError as err:
            if not is_tier_refusal(err):
                raise
        return await self._send(replace(request, is_background=False))

    @abstractmethod
    async def _send(self, request: Request) -> Any:
        """Send the request and return the SDK's stream."""

    def cache_settings(self, request: Request) -> Mapping[str, Any]:
        """Return the parameters for the prompt cache that the server accepts."""
        parameters = _CACHE_SETTINGS_BY_STYLE.get(request.profile.caching)
        if parameters is None:
            return {}
        key = {"prompt_cache_key": shorten(_MAX_CACHE_KEY_CHARS, request.cache_key)} if request.cache_key else {}
        return {name: value for name, value in {**key, **parameters}.items() if name in self._cache_parameters}

    async def list_models(self) -> list[ListedModel]:
        """Return the server's models, sorted by id. Raises `ProviderError`."""
        with convert_errors():
            answer = await self._models.list(timeout=_MODEL_LIST_TIMEOUT, extra_headers=self._headers)
            models = await read_models(answer.http_response.content)
        return [
            ListedModel(model_id, read_context_tokens(model), read_output_tokens(model))
            for model_id, model in models.items()
        ]


@dataclass(frozen=True, slots=True)
class _RequestForm:
    """The form of a request to a compatible server: how residue is sent, and whether an effort is sent.

    If its model cannot reason, Ollama refuses an effort with a message only, without an error code.
    """

    echo: EchoMode = EchoMode.VERBATIM
    has_effort: bool = True


class ChatCompletionsProvider(_OpenAIProvider):
    """A provider for Chat Completions.

    Each server has its own `name`, because one server cannot read the residue of another.
    """

    name = "openai_chat"
    _decoder = ChatDecoder

    def __init__(
        self, client: AsyncOpenAI, dialect: Dialect = Dialect.COMPATIBLE, azure: AzureServer | None = None
    ) -> None:
        super().__init__(client, azure)
        if dialect is Dialect.COMPATIBLE:
            self._cache_parameters = ()
        self.name = f"{self.name} {client.base_url.netloc.decode()}"
        self._dialect = dialect
        # Whether each model has its own URL, as on Azure's classic endpoint.
        self._has_deployments = azure is not None and bool(azure.api_version)
        # For each model, the form that its server accepts, and the other forms that were not needed.
        self._form_by_model: dict[str, _RequestForm] = {}
        self._unneeded_forms: set[tuple[str, _RequestForm]] = set()

    async def fetch_context_tokens(self, model: str, server: str) -> int | None:
        """Request the context size of the loaded model from the server, see `Provider`."""
        base = str(self._client.base_url).rstrip("/").removesuffix("/v1")
        for path in _SIZE_PATHS_BY_FINGERPRINT.get(server.partition(" ")[0], _OTHER_SIZE_PATHS):
            try:
                with convert_errors():
                    answer = read_loaded_context_tokens(await self._fetch_json(f"{base}/{path}"), model)
            except BadRequest, BadStream:
                # The server has no such path, or returns a web page for every path.
                continue
            if answer is not None:
                return answer
        return None

    async def fetch_reads_images(self, model: str) -> bool | None:
        """Return whether the model reads pictures, or None if the server does not say, see `Provider`."""
        base = str(self._client.base_url).rstrip("/").removesuffix("/v1")
        # a gateway may not expect the requests for the paths of servers at home
        at_home = self._client.api_key == _PLACEHOLDER_KEY
        paths = (f"{self._client.base_url}models", *[f"{base}/{path}" for path in _IMAGE_PATHS if at_home])
        stated: bool | None = None
        for path in paths:
            with suppress(ProviderError), convert_errors():
                body = {"model": model} if path.endswith(_OLLAMA_SHOW_PATH) else None
                says = says_images(await self._fetch_json(path, body), model)
                if says:
                    return True
                stated = says if stated is None else stated
        return stated

    async def _fetch_json(self, url: str, body: object = None) -> Any:
        send: Any = self._client.get if body is None else partial(self._client.post, body=body)
        stream = {"stream": True, "stream_cls": AsyncStream[object]}
        async with await send(url, cast_to=object, options={"timeout": _CONTEXT_SIZE_TIMEOUT}, **stream) as answer:
            return await read_any_json(await answer.response.aread())

    @override
    async def _send(self, request: Request) -> Any:
        """Send the request; if the server refuses its form, try each other form that makes a difference.

        Nothing has been spoken yet, so trying again is safe. No error code identifies these refusals.
        """
        form = self._form_by_model.get(request.model, _RequestForm())
        others = self._list_other_forms(request, form)
        try:
            answer = await self._request_stream(request, form)
        except (BadRequestError, UnprocessableEntityError) as err:
            for other in others if is_form_refusal(err, request) else ():
                if (request.model, other) in self._unneeded_forms:
                    continue
                with suppress(BadRequestError, UnprocessableEntityError):
                    answer = await self._request_stream(request, other)
                    self._form_by_model[request.model] = other
                    return answer
            raise
        self._unneeded_forms |= {(request.model, other) for other in others}
        return answer

    def _list_other_forms(self, request: Request, form: _RequestForm) -> list[_RequestForm]:
        if self._dialect is Dialect.OPENAI:
            return []
        echoes = [echo for echo in list_echo_alternatives(request, self.name) if echo is not form.echo]
        forms = [replace(form, echo=echo) for echo in echoes]
        has_effort = form.has_effort and request.settings.effort is not None
        return [replace(form, has_effort=False), *forms] if has_effort else forms

    async def _request_stream(self, request: Request, form: _RequestForm) -> Any:
        if not form.has_effort:
            request = replace(request, settings=replace(request.settings, effort=None))
        deployment = f"/deployments/{quote(request.model, safe='')}" if self._has_deployments else ""
        body = encode_chat(request, self._dialect, self.name, form.echo, self.cache_settings(request))
        path = f"{deployment}/chat/completions"
        return await post_for_stream(self._client, AsyncStream, path, body, headers=self._headers)


class ResponsesProvider(_OpenAIProvider):
    """A provider for Responses.

    Each server but OpenAI's own has its own `name`, because one server cannot read the encrypted residue of another.
    """

    name = "openai_responses"
    loads_tools = True
    _decoder = ResponseDecoder

    def __init__(self, client: AsyncOpenAI, azure: AzureServer | None = None) -> None:
        super().__init__(client, azure)
        if azure:
            self.name = f"{self.name} {client.base_url.host}"
        # Hashes of residue that the server could not read. The residue itself is removed together with its window.
        self._unreadable_hashes: set[int] = set()
        self._can_compact = True

    async def count_tokens(self, request: Request) -> int:
        """Return the number of input tokens of a request, as counted by the server. Raises `ProviderError`."""
        with convert_errors(request):
            answer = await self._send_readable(self._request_count, request)
        return require_count(get_member(answer, "input_tokens"))

    async def compact(self, request: Request) -> Compacted | None:
        """Return the compaction of a request's messages, or None if the server does not support it, see `Provider`."""
        if not self._can_compact:
            return None
        try:
            with convert_errors(request):
                return read_compaction(await self._send_readable(self._request_compaction, request))
        except BadRequest:
            # Gateways and Azure's classic endpoint do not support compaction:
            # https://github.com/openai/codex/issues/25939
            self._can_compact = False
            return None

    @override
    async def _send(self, request: Request) -> Any:
        return await self._send_readable(self._request_stream, request)

    async def _request_stream(self, request: Request) -> Any:
        body = encode_request(request, self.name, self.cache_settings(request))
        return await post_for_stream(self._client, AsyncStream, "/responses", body, headers=self._headers)

    async def _request_count(self, request: Request) -> Any:
        body = encode_prompt(request, self.name)
        return await post_json(self._client, "/responses/input_tokens", body, headers=self._headers)

    async def _request_compaction(self, request: Request) -> Any:
        body = encode_compaction(encode_prompt(request, self.name), self.cache_settings(request))
        return await post_json(self._client, "/responses/compact", body, headers=self._headers)

    async def _send_readable[T](self, send: Callable[[Request], Awaitable[T]], request: Request) -> T:
        """Send a request without known unreadable residue. If the server refuses the rest, send it without any."""
        request = self._remove_unreadable(request)
        try:
            return await send(request)
        except BadRequestError as err:
            # The key belongs to another organization than before, which cannot decrypt the residue. Nothing has been
            # spoken yet, and the history is correct without the residue: https://github.com/openai/codex/issues/8145
            sent = {
                _hash_native(message.native)
                for message in request.messages
                if message.native and native_value(message, self.name, request.model) is not None
            }
            if err.code != "invalid_encrypted_content" or not sent:
                raise
            self._unreadable_hashes |= sent
            return await send(self._remove_unreadable(request))

    def _remove_unreadable(self, request: Request) -> Request:
        if not self._unreadable_hashes:
            return request
        messages = (
            replace(message, native=None)
            if message.native and _hash_native(message.native) in self._unreadable_hashes
            else message
            for message in request.messages
        )
        return replace(request, messages=tuple(messages))


def _hash_native(native: NativeData) -> int:
    return hash((native.provider, native.model, json.dumps(native.value, sort_keys=True)))


@dataclass(frozen=True, slots=True)
class AzureServer:
    """A resource on Azure. `endpoint` is any of its URLs, up to the target URI that the portal shows.

    With an `api_version` (for example `2024-10-21`), the classic endpoint is used, else `/openai/v1/`.
    """

    endpoint: str
    api_key: str
    api_version: str = ""

    @property
    def url(self) -> str:
        """The base URL of the formats. Raises `BadRequest` if the endpoint is not a URL."""
        try:
            parts = urlsplit(self.endpoint)
        except ValueError as err:
            raise BadRequest("the address is not valid") from err
        resource = takewhile(lambda segment: segment != _API_SEGMENT, parts.path.rstrip("/").split("/"))
        path = "/".join((*resource, _API_SEGMENT, *(() if self.api_version else ("v1",))))
        return urlunsplit((parts.scheme, parts.netloc, path, "", ""))

    @property
    def headers(self) -> Mapping[str, Any]:
        """The authentication headers. The SDK sends a bearer token by itself, but no `api-key`."""
        return {"api-key": self.api_key, "Authorization": Omit()}

    @property
    def cache_parameters(self) -> Collection[str]:
        """The prompt cache parameters to send: the key, which older API versions refuse.

        Models on Azure refuse a retention, even if the same models on OpenAI accept it:
        https://github.com/OpenHands/software-agent-sdk/pull/2311
        """
        return () if self.api_version else ("prompt_cache_key",)


def create_compatible_chat(url: str, api_key: str | None, http_client: Any) -> ChatCompletionsProvider:
    """Return a provider for any server that supports Chat Completions."""
    return ChatCompletionsProvider(_make_client(url, api_key, http_client))


def create_openai_chat(api_key: str, http_client: Any, url: str = OPENAI_URL) -> ChatCompletionsProvider:
    """Return a provider for OpenAI's own servers, using Chat Completions."""
    return ChatCompletionsProvider(_make_client(url, api_key, http_client), Dialect.OPENAI)


def create_openai_responses(api_key: str, http_client: Any, url: str = OPENAI_URL) -> ResponsesProvider:
    """Return a provider for OpenAI's own servers, using Responses."""
    return ResponsesProvider(_make_client(url, api_key, http_client))


def create_azure_chat(server: AzureServer, http_client: Any) -> ChatCompletionsProvider:
    """Return a provider for Chat Completions on Azure. A request's model is the name of a deployment."""
    return ChatCompletionsProvider(_create_azure_client(server, http_client), Dialect.OPENAI, server)


def create_azure_responses(server: AzureServer, http_client: Any) -> ResponsesProvider:
    """Return a provider for Responses on Azure. A request's model is the name of a deployment."""
    return ResponsesProvider(_create_azure_client(server, http_client), server)


def _create_azure_client(server: AzureServer, http_client: Any) -> AsyncOpenAI:
    query = {"api-version": server.api_version} if server.api_version else None
    return _make_client(server.url, server.api_key, http_client, query)


def _make_client(
    url: str, api_key: str | None, http_client: Any, query: Mapping[str, object] | None = None
) -> AsyncOpenAI:
    with convert_errors():
        client = AsyncOpenAI(
            api_key=api_key or _PLACEHOLDER_KEY,
            base_url=url,
            http_client=bounded_client(http_client),
            max_retries=0,
            default_query=query,
        )
    # The client looks up the platform on first use and caches it.
    client.platform_headers()
    return client
