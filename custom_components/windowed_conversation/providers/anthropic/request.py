"""Requests to Anthropic's Messages API: limits, thinking, tools, context editing, and prompt cache marks.

Context editing: the provider drops old tool results before the model reads a request. Our request stays whole, so
nothing is lost when another provider takes over or context editing is turned off.
https://platform.claude.com/docs/en/build-with-claude/context-editing
"""

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from ...window import MAX_COUNT, Message, Role
from ..events import Request
from ..json_values import count_at, member, objects
from ..profile import Caching, Effort, ReasoningStyle, accepted_effort
from ..settings import ModelSettings
from ..sizes import fills_context
from .encoding import THINKING, Block, encode_messages, residue_blocks
from .tools import argument_names, encode_tools

# The API wants a limit: several times the longest answer that anyone listens to.
_ANSWER_TOKENS = 4096

# https://platform.claude.com/docs/en/build-with-claude/extended-thinking: the smallest budget there is.
_SMALLEST_BUDGET = 1024
# The share of the answer's limit that thinking may use; the rest is for the words.
_BUDGET_SHARES = {Effort.MINIMAL: 0.0, Effort.LOW: 0.25, Effort.MEDIUM: 0.5, Effort.HIGH: 0.75}

_MOST_TEMPERATURE = 1.0
_MARK = {"type": "ephemeral"}

# The share of the context from which a request may be too long although it fits by the estimate:
# Claude has up to a third more tokens for a text than the vocabulary that the estimate was fitted against.
_FULL = 0.75


def encode_request(request: Request) -> dict[str, Any]:
    """Return the body without `stream`. Its `betas`, if any, belong into the header `anthropic-beta`."""
    body, breakpoints = _encoded(request)
    body |= encode_editing(request)
    if request.profile.caching is Caching.BREAKPOINTS:
        for block in breakpoints.values():
            block["cache_control"] = _MARK
    return body


def encode_count(request: Request) -> dict[str, Any]:
    """Return the part of the body that the model reads, which is the body of `/v1/messages/count_tokens`."""
    body, _ = _encoded(request)
    counted = ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config")
    return {name: body[name] for name in counted if name in body}


def cache_breakpoints(request: Request) -> Mapping[str, Any]:
    """Return the marked blocks of the request, and the mark; empty if none is marked."""
    if request.profile.caching is not Caching.BREAKPOINTS:
        return {}
    _, breakpoints = _encoded(request)
    return {"cache_control": _MARK, "breakpoints": list(breakpoints)}


def may_be_too_long(request: Request) -> bool:
    """Return whether the request, by its estimated size, may exceed the known context of the model."""
    return fills_context(request, share=_FULL, answer=_max_tokens(request))


def _encoded(request: Request) -> tuple[dict[str, Any], dict[str, Block]]:
    """Return the body, and by name the blocks at which a cached prefix can end: the API allows at most four.

    Marked are the tools and the system prompt, for every conversation of the agent; the history, because results in the
    newest exchange are shortened when it ends; and the newest block, for the next request of the same turn.

    A different `tool_choice` changes the prefix from the messages on; the tools and the system prompt are still found:
    https://platform.claude.com/docs/en/build-with-claude/prompt-caching#what-invalidates-the-cache So messages are not
    marked in the one request that forbids calls: no later request would read that cache entry.
    """
    names = argument_names(request.tools)
    conversation = encode_messages(request.messages, request.model, names, images=request.profile.images)
    system = [
        {"type": "text", "text": message.content}
        for message in request.messages
        if message.role is Role.SYSTEM and message.content.strip()
    ]
    tools = encode_tools(request)
    max_tokens = _max_tokens(request)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": max_tokens,
        "messages": conversation.messages,
        **_thinking(request, max_tokens),
    }
    if system:
        body["system"] = system
    if tools:
        body["tools"] = tools
        if not (request.may_call and request.tools):
            body["tool_choice"] = {"type": "none"}
    if request.profile.sampling and "thinking" not in body:
        body |= _sampling(request.settings)
    ends = {"tools": tools[-1] if tools else None, "system": system[-1] if system else None}
    if request.may_call or not request.tools:
        ends |= {"history": conversation.history_end, "newest": conversation.end()}
    return body, {name: block for name, block in ends.items() if block is not None}


def _max_tokens(request: Request) -> int:
    return request.answer_limit or min(_ANSWER_TOKENS, request.profile.output_tokens or _ANSWER_TOKENS)


def _thinking(request: Request, max_tokens: int) -> dict[str, Any]:
    effort = accepted_effort(request.profile, request.settings.effort)
    if effort is None or effort is Effort.NONE or not _may_think(request):
        return {}
    if request.profile.reasoning is ReasoningStyle.ADAPTIVE:
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort.value}}
    most = int(max_tokens * _BUDGET_SHARES[Effort.HIGH])
    if request.profile.reasoning is ReasoningStyle.BUDGET and most >= _SMALLEST_BUDGET:
        budget = max(_SMALLEST_BUDGET, int(max_tokens * _BUDGET_SHARES[effort]))
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    return {}


def _sampling(settings: ModelSettings) -> dict[str, float]:
    """Return the temperature, or else `top_p`: Anthropic advises against both, and refuses both from Claude 4.1 on.

    https://platform.claude.com/docs/en/api/messages/create
    """
    if settings.temperature is not None:
        return {"temperature": min(settings.temperature, _MOST_TEMPERATURE)}
    return {} if settings.top_p is None else {"top_p": settings.top_p}


def _may_think(request: Request) -> bool:
    """Return whether this model began the current tool loop, if any, with thinking.

    The API treats a tool loop as one assistant turn that is thought through or not as a whole. With a budget the turn
    has to begin with a thought, and so has its last message ("a final `assistant` message must start with a thinking
    block"); an adaptive model may have found none necessary.
    """
    loop = takewhile(lambda message: message.role is not Role.USER, reversed(request.messages))
    answers = [message for message in loop if message.role is Role.ASSISTANT]
    if not answers:
        return True
    if request.profile.reasoning is ReasoningStyle.ADAPTIVE:
        return residue_blocks(answers[-1], request.model) is not None
    return all(_begins_with_thought(answer, request.model) for answer in (answers[-1], answers[0]))


def _begins_with_thought(answer: Message, model: str) -> bool:
    return any(block.get("type") in THINKING for block in (residue_blocks(answer, model) or ())[:1])


_BETA = "context-management-2025-06-27"

# Old results are cleared once there are more calls than this, except the newest: three is the API's default.
_TRIGGER_CALLS = 6
_KEPT_CALLS = 3
# Clearing results costs the cached prefix from there on, which the documentation says should be worth it.
_LEAST_TOKENS = 1000


def encode_editing(request: Request) -> dict[str, Any]:
    """Return additional fields of the body, see `encode_request`; empty without context editing."""
    if not (request.settings.compaction and request.profile.context_editing):
        return {}
    edit = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "tool_uses", "value": _TRIGGER_CALLS},
        "keep": {"type": "tool_uses", "value": _KEPT_CALLS},
        "clear_at_least": {"type": "input_tokens", "value": _LEAST_TOKENS},
    }
    return {"betas": [_BETA], "context_management": {"edits": [edit]}}


def cleared_tokens(event: object) -> int:
    """Return the count of cleared tokens in an event, or 0 if it has another form: the figure is informational."""
    edits = objects(member(member(event, "context_management"), "applied_edits"))
    return min(sum(count_at(edit, "cleared_input_tokens") for edit in edits), MAX_COUNT)
