"""Anthropic's context editing: what the provider is asked to leave out by itself before the model reads a request.

The request stays whole on our side, so nothing is lost to another provider, or when this is no longer asked for.
https://platform.claude.com/docs/en/build-with-claude/context-editing
"""

from typing import Any

from ...window.figures import GREATEST_FIGURE
from ..events import Request
from ..json_values import member, objects, tokens_of

_BETA = "context-management-2025-06-27"

# Old results go once there are more calls than this, and those of the newest calls stay: three is the API's default.
_TRIGGER_CALLS = 6
_KEPT_CALLS = 3
# What is cleared costs the cached prefix from there on, which the documentation says should be worth it.
_LEAST_TOKENS = 1000


def encode_editing(request: Request) -> dict[str, Any]:
    """Return what the body holds besides, see `encode_request`; empty where no editing is to be asked for."""
    if not (request.compaction and request.profile.context_editing):
        return {}
    edit = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "tool_uses", "value": _TRIGGER_CALLS},
        "keep": {"type": "tool_uses", "value": _KEPT_CALLS},
        "clear_at_least": {"type": "input_tokens", "value": _LEAST_TOKENS},
    }
    return {"betas": [_BETA], "context_management": {"edits": [edit]}}


def cleared_tokens(event: object) -> int:
    """Return how many tokens an event says were cleared; it is for the record, so that another form says nothing."""
    edits = objects(member(member(event, "context_management"), "applied_edits"))
    return min(sum(tokens_of(edit, "cleared_input_tokens") for edit in edits), GREATEST_FIGURE)
