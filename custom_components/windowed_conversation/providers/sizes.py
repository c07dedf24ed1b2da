"""Facts that a compatible server reports about a model, and the size of a request compared with the context."""

from collections.abc import Iterable

from ..window import EstimatedCounter, Message, TextKind, TokenCounter, count_message_tokens, count_text_tokens
from .answer_schemas import format_schema
from .events import Request, ToolSchema
from .json_values import get_member, get_objects, token_limit

_ESTIMATOR = EstimatedCounter()

# The field names of the context size on compatible servers. LM Studio reports the loaded size beside the maximum size;
# llama.cpp puts "n_ctx" into "meta", beside "n_ctx_train", which is the maximum size.
_FIELDS = ("n_ctx", "loaded_context_length", "max_model_len", "context_length", "context_window", "max_context_length")


def read_context_tokens(value: object) -> int | None:
    """Return the context size in tokens that a server's object reports, or None if it has no valid size."""
    sizes = (token_limit(each, name) for each in (value, get_member(value, "meta")) for name in _FIELDS)
    return next((size for size in sizes if size), None)


def read_output_tokens(value: object) -> int | None:
    """Return the limit of an answer in tokens that a server's object reports, or None if it has no valid limit.

    OpenRouter reports the limit of its preferred provider.
    """
    limits = (token_limit(each, "max_completion_tokens") for each in (value, get_member(value, "top_provider")))
    return next((limit for limit in limits if limit), None)


def read_loaded_context_tokens(answer: object, model: str) -> int | None:
    """Return a loaded model's context size in tokens from its server's description, or None if it has none.

    `answer` is the response of Ollama's `/api/ps`, of llama.cpp's `/props` for each of its slots, or of LM Studio's
    `/api/v0/models`: https://docs.ollama.com/api/ps, https://github.com/ggml-org/llama.cpp/tree/master/tools/server,
    https://lmstudio.ai/docs/developer/rest/endpoints
    """
    slot = get_member(answer, "default_generation_settings")
    if slot is not None:
        return token_limit(slot, "n_ctx")
    running = ((each, "context_length") for each in get_objects(get_member(answer, "models")))
    loaded = ((each, "loaded_context_length") for each in get_objects(get_member(answer, "data")))
    names = {model, f"{model}:latest"}
    sizes = (
        token_limit(each, field)
        for each, field in (*running, *loaded)
        if any(get_member(each, name) in names for name in ("name", "model", "id"))
    )
    return next((size for size in sizes if size), None)


def says_images(answer: object, model: str) -> bool | None:
    """Return whether a server's description says that the model reads pictures, or None if it does not say.

    `answer` is the response of llama.cpp's `/props`, of Ollama's `/api/show`, of LM Studio's `/api/v0/models`, or a
    list of models with capabilities, such as those of OpenRouter, Mistral and llama.cpp.
    """
    entries = [*get_objects(get_member(answer, "data")), *get_objects(get_member(answer, "models"))]
    named = [each for each in entries if model in (each.get("id"), each.get("name"), each.get("model"))]
    stated = [_has_vision(each) for each in (answer, *named)]
    return True if True in stated else False if False in stated else None


def _has_vision(described: object) -> bool | None:
    capabilities = get_member(described, "capabilities")
    names = capabilities if isinstance(capabilities, list) else ()
    inputs = get_member(get_member(described, "architecture"), "input_modalities")
    kind, flags = get_member(described, "type"), [get_member(get_member(described, "modalities"), "vision")]
    flags.append(get_member(capabilities, "vision"))
    if True in flags or kind == "vlm" or "vision" in names or "multimodal" in names:
        return True
    if isinstance(inputs, list):
        return "image" in inputs
    # only Ollama and llama.cpp, which name "completion", list every capability
    return False if False in flags or kind == "llm" or "completion" in names else None


def count_messages_tokens(messages: Iterable[Message], counter: TokenCounter = _ESTIMATOR) -> int:
    """Return the total tokens of messages: each message's own count, or the counter's result if it has none."""
    return sum([count_message_tokens(each, counter) if each.tokens is None else each.tokens for each in messages])


def count_tools_tokens(tools: Iterable[ToolSchema], counter: TokenCounter = _ESTIMATOR) -> int:
    """Return the total tokens of the tools in a request."""
    return sum([count_text_tokens(TextKind.FIXED, tool.text, counter) for tool in tools])


def count_request_tokens(request: Request, counter: TokenCounter = _ESTIMATOR) -> int:
    """Return the total tokens of a request."""
    wanted = request.answer_schema
    schema = count_text_tokens(TextKind.FIXED, format_schema(wanted.schema), counter) if wanted else 0
    return count_messages_tokens(request.messages, counter) + count_tools_tokens(request.tools, counter) + schema


def exceeds_context(request: Request, *, share: float = 1.0, answer: int = 0) -> bool:
    """Return whether a request and `answer` tokens exceed this share of the model's context, if that is known."""
    context = request.profile.context_tokens
    return context is not None and count_request_tokens(request) + answer > share * context
