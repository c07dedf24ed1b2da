"""Sizes in tokens: the context size that a server names, and the size of a request compared with it."""

from collections.abc import Iterable

from ..window import EstimatedCounter, Message, TextKind, TokenCounter, message_tokens, text_tokens
from .events import Request, ToolSchema
from .json_values import member, objects, token_limit

_ESTIMATE = EstimatedCounter()

# The names for it on compatible servers. LM Studio names the loaded size beside the greatest possible one; llama.cpp
# puts `n_ctx` into `meta`, beside `n_ctx_train`, which is the greatest possible size.
_NAMES = (
    "n_ctx",
    "loaded_context_length",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
)


def named_context_tokens(value: object) -> int | None:
    """Return the context size in tokens that a server's object names, or None if it names no valid size."""
    sizes = (token_limit(each, name) for each in (value, member(value, "meta")) for name in _NAMES)
    return next((size for size in sizes if size), None)


def named_output_tokens(value: object) -> int | None:
    """Return the limit of an answer in tokens that a server's object names, or None if it names no valid limit.

    OpenRouter names that of the server behind it that it prefers.
    """
    limits = (token_limit(each, "max_completion_tokens") for each in (value, member(value, "top_provider")))
    return next((limit for limit in limits if limit), None)


def loaded_context_tokens(answer: object, model: str) -> int | None:
    """Return a loaded model's context size in tokens from its server's own description, or None if that has none.

    `answer` is that of Ollama's `/api/ps`, of llama.cpp's `/props` for each of its slots, or of LM Studio's
    `/api/v0/models`: https://docs.ollama.com/api/ps, https://github.com/ggml-org/llama.cpp/tree/master/tools/server,
    https://lmstudio.ai/docs/developer/rest/endpoints
    """
    slot = member(answer, "default_generation_settings")
    if slot is not None:
        return token_limit(slot, "n_ctx")
    running = ((each, "context_length") for each in objects(member(answer, "models")))
    loaded = ((each, "loaded_context_length") for each in objects(member(answer, "data")))
    names = {model, f"{model}:latest"}
    sizes = (
        token_limit(each, field)
        for each, field in (*running, *loaded)
        if any(member(each, name) in names for name in ("name", "model", "id"))
    )
    return next((size for size in sizes if size), None)


def messages_tokens(messages: Iterable[Message], counter: TokenCounter = _ESTIMATE) -> int:
    """Return the size of messages by their own counts, or by the counter for those without one."""
    return sum([message_tokens(each, counter) if each.tokens is None else each.tokens for each in messages])


def tools_tokens(tools: Iterable[ToolSchema], counter: TokenCounter = _ESTIMATE) -> int:
    """Return the size of the tools in a request."""
    return sum([text_tokens(TextKind.FIXED, tool.text, counter) for tool in tools])


def request_tokens(request: Request, counter: TokenCounter = _ESTIMATE) -> int:
    """Return the size of a request."""
    return messages_tokens(request.messages, counter) + tools_tokens(request.tools, counter)


def fills_context(request: Request, *, share: float = 1.0, answer: int = 0) -> bool:
    """Return whether a request and its answer exceed this share of the known context of the model."""
    context = request.profile.context_tokens
    return context is not None and request_tokens(request) + answer > share * context
