"""Sizes in tokens: what a server says that a model reads, and how large a request is against that."""

from ..window import EstimatedCounter, message_tokens
from .events import Request
from .json_values import limit_of, member

# What compatible servers call it. LM Studio names the size that is loaded beside the greatest possible one; llama.cpp
# puts `n_ctx` into `meta`, beside `n_ctx_train`, which is what the model could read.
_NAMES = (
    "n_ctx",
    "loaded_context_length",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
)


def named_context_tokens(value: object) -> int | None:
    """Return how many tokens a model reads by what a server's object says, or None if it says nothing that can be."""
    sizes = (limit_of(each, name) for each in (value, member(value, "meta")) for name in _NAMES)
    return next((size for size in sizes if size), None)


def request_tokens(request: Request) -> int:
    """Return the size of a request by its messages' own counts, and by the estimate where there are none."""
    counter = EstimatedCounter()
    messages = (message_tokens(m, counter) if m.tokens is None else m.tokens for m in request.messages)
    return sum(messages) + sum(counter.count(tool.text) for tool in request.tools)


def fills_context(request: Request, *, share: float = 1.0, answer: int = 0) -> bool:
    """Return whether a request and its answer take more than a share of what the model is known to read."""
    context = request.profile.context_tokens
    return context is not None and request_tokens(request) + answer > share * context
