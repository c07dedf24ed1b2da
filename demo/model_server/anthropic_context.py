"""Anthropic's context editing: the provider removes parts of a long conversation before the model reads it.

https://platform.claude.com/docs/en/build-with-claude/context-editing
"""

from typing import Any

from .anthropic_prompt import to_blocks
from .usage import encode_part, estimate_tokens
from .wire import get_objects

CLEAR_TOOL_USES_EDIT = "clear_tool_uses_20250919"
CLEAR_THINKING_EDIT = "clear_thinking_20251015"
COMPACT_EDIT = "compact_20260112"

# The value of the header `anthropic-beta` that each kind of edit requires.
BETA_BY_EDIT = {
    CLEAR_TOOL_USES_EDIT: "context-management-2025-06-27",
    CLEAR_THINKING_EDIT: "context-management-2025-06-27",
    COMPACT_EDIT: "compact-2026-01-12",
}

_DEFAULT_TRIGGER_TOKENS = 100_000
_DEFAULT_KEPT_RESULTS = 3
_PLACEHOLDER = "[Old tool result content cleared]"


def get_edits(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the context edits that the request specifies."""
    management = body.get("context_management")
    return get_objects(management.get("edits")) if isinstance(management, dict) else []


def apply_edits(body: dict[str, Any], size: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the request of `size` tokens without the tool results that edits clear, and the applied edits."""
    edit = next((each for each in get_edits(body) if each.get("type") == CLEAR_TOOL_USES_EDIT), None)
    if edit is None:
        return body, []
    results = [block for message in get_objects(body.get("messages")) for block in _find_results(message)]
    reached = len(results) if _get_threshold_type(edit, "trigger") == "tool_uses" else size
    if reached <= _get_threshold(edit, "trigger", _DEFAULT_TRIGGER_TOKENS):
        return body, []
    kept = _get_threshold(edit, "keep", _DEFAULT_KEPT_RESULTS)
    old = results[: max(0, len(results) - kept)]
    saved = sum(estimate_tokens(encode_part(block.get("content"))) for block in old)
    if not old or saved < _get_threshold(edit, "clear_at_least", 0):
        return body, []
    cleared = {str(block.get("tool_use_id")) for block in old}
    messages = [_clear_message(message, cleared) for message in get_objects(body.get("messages"))]
    report = {"type": CLEAR_TOOL_USES_EDIT, "cleared_tool_uses": len(old), "cleared_input_tokens": saved}
    return {**body, "messages": messages}, [report]


def _get_threshold(edit: dict[str, Any], name: str, default: int) -> int:
    threshold = edit.get(name)
    value = threshold.get("value") if isinstance(threshold, dict) else None
    return value if isinstance(value, int) else default


def _get_threshold_type(edit: dict[str, Any], name: str) -> object:
    threshold = edit.get(name)
    return threshold.get("type") if isinstance(threshold, dict) else None


def _find_results(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for block in to_blocks(message.get("content")) if block.get("type") == "tool_result"]


def _clear_message(message: dict[str, Any], cleared: set[str]) -> dict[str, Any]:
    return {**message, "content": [_clear_block(block, cleared) for block in to_blocks(message.get("content"))]}


def _clear_block(block: dict[str, Any], cleared: set[str]) -> dict[str, Any]:
    old = block.get("type") == "tool_result" and str(block.get("tool_use_id")) in cleared
    return {**block, "content": _PLACEHOLDER} if old else block
