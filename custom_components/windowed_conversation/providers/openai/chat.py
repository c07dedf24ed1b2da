"""The provider for Chat Completions: OpenAI itself, Azure, llama.cpp, Ollama, LM Studio, vLLM and the like."""

from collections.abc import Collection, Mapping
from typing import Any, override

from openai import AsyncOpenAI, AsyncStream

from ..events import Request
from .base import OpenAIFormat
from .chat_decoding import ChunkDecoder
from .chat_encoding import Dialect, encode_request
from .requests import CACHE_PARAMETERS

_PATH = "/chat/completions"


class ChatCompletions(OpenAIFormat):
    """Chat Completions on top of an `AsyncOpenAI` client. The caller keeps ownership of the client."""

    name = "openai_chat"

    def __init__(
        self,
        client: AsyncOpenAI,
        dialect: Dialect = Dialect.COMPATIBLE,
        *,
        headers: Mapping[str, Any] | None = None,
        cache_parameters: Collection[str] = CACHE_PARAMETERS,
    ) -> None:
        known = cache_parameters if dialect is Dialect.OPENAI else ()
        super().__init__(client, headers=headers, cache_parameters=known)
        self._dialect = dialect

    @override
    async def _send(self, request: Request) -> AsyncStream[object]:
        body = encode_request(request, self._dialect, self.caching(request))
        return await self._post(self._client_of(request.model), _PATH, body)

    @override
    def _decoder(self, request: Request) -> ChunkDecoder:
        return ChunkDecoder(request)

    def _client_of(self, model: str) -> AsyncOpenAI:
        """Return the client for a model. Only Azure's classic endpoint has a URL for each model."""
        return self._client
