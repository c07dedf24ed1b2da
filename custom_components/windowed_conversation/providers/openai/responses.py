"""The provider for Responses: OpenAI itself and Azure."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, override

from openai import AsyncOpenAI, AsyncStream, BadRequestError
from openai.resources.responses import AsyncResponses
from openai.resources.responses.input_tokens import AsyncInputTokens
from openai.types.responses import CompactedResponse, InputTokenCountResponse

from ..errors import BadRequest
from ..events import Compacted, Request
from ..json_values import counted
from .base import OpenAIFormat
from .compaction import encode_compaction, read_compaction
from .errors import provider_errors
from .requests import CACHE_PARAMETERS, known_to
from .responses_decoding import ResponseDecoder
from .responses_encoding import encode_prompt, encode_request
from .unreadable import UnreadableResidue

_PATH = "/responses"


class Responses(OpenAIFormat):
    """Responses on top of an `AsyncOpenAI` client. The caller keeps ownership of the client.

    One server cannot read what another has encrypted, so a server other than OpenAI's has its own `name`.
    """

    name = "openai_responses"

    def __init__(
        self,
        client: AsyncOpenAI,
        *,
        name: str | None = None,
        headers: Mapping[str, Any] | None = None,
        cache_parameters: Collection[str] = CACHE_PARAMETERS,
    ) -> None:
        super().__init__(client, headers=headers, cache_parameters=cache_parameters)
        self.name = name or self.name
        self._responses = AsyncResponses(client)
        self._input_tokens = AsyncInputTokens(client)
        self._unreadable = UnreadableResidue(self.name)
        self._compacts = True

    async def count_tokens(self, request: Request) -> int:
        """See `CountsTokens.count_tokens`."""
        with provider_errors(request):
            answer = await self._readable(self._count, request)
        return counted(getattr(answer, "input_tokens", None))

    async def compact(self, request: Request) -> Compacted | None:
        """See `Compacts.compact`. A server that refuses is not asked again."""
        if not self._compacts:
            return None
        try:
            with provider_errors(request):
                return read_compaction(await self._readable(self._compact, request))
        except BadRequest:
            # gateways do not have it, nor has Azure's classic endpoint: https://github.com/openai/codex/issues/25939
            self._compacts = False
            return None

    async def _count(self, request: Request) -> InputTokenCountResponse:
        parameters = known_to(AsyncInputTokens.count, encode_prompt(request, self.name))
        return await self._input_tokens.count(**parameters, extra_headers=self._headers)

    async def _compact(self, request: Request) -> CompactedResponse:
        parameters = encode_compaction(encode_prompt(request, self.name), self.caching(request))
        return await self._responses.compact(
            **known_to(AsyncResponses.compact, parameters), extra_headers=self._headers
        )

    @override
    async def _send(self, request: Request) -> AsyncStream[object]:
        return await self._readable(self._create, request)

    async def _create(self, request: Request) -> AsyncStream[object]:
        body = encode_request(request, self.name, self.caching(request))
        return await self._post(self._client, _PATH, body)

    @override
    def _decoder(self, request: Request) -> ResponseDecoder:
        return ResponseDecoder(request)

    async def _readable[T](self, send: Callable[[Request], Awaitable[T]], request: Request) -> T:
        """Send a request without residue that the server could not read before; repeat if there is more of it."""
        request = self._unreadable.without_unreadable(request)
        try:
            return await send(request)
        except BadRequestError as err:
            # The key is of another organization by now. Nothing was said yet, and without the residue the history is
            # true all the same: https://github.com/openai/codex/issues/8145
            if err.code != "invalid_encrypted_content" or not self._unreadable.remember(request):
                raise
            return await send(self._unreadable.without_unreadable(request))
