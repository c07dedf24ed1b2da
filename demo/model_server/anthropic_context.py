"""Anthropic's context editing: the provider removes parts of a long conversation before the model reads it.

https://platform.claude.com/docs/en/build-with-claude/context-editing
"""

from typing import Any

from .anthropic_prompt import as_blocks
from .usage import part_bytes, tokens
from .wire import objects

CLEAR_TOOL_USES = "clear_tool_uses_20250919"
CLEAR_THINKING = "clear_thinking_20251015"
COMPACT = "compact_20260112"

# The value of the header `anthropic-beta` that each kind of edit requires.
BETAS = {
    CLEAR_TOOL_USES: "context-management-2025-06-27",
    CLEAR_THINKING: "context-management-2025-06-27",
    COMPACT: "compact-2026-01-12",
}

_DEFAULT_TRIGGER = 100_000
_DEFAULT_KEPT = 3
_PLACEHOLDER = "[Old tool result content cleared]"


def edits(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the context edits that the request specifies."""
    management = body.get("context_management")
    return objects(management.get("edits")) if isinstance(management, dict) else []


def edited(body: dict[str, Any], size: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the request of `size` tokens without the tool results that edits clear, and the applied edits."""
    edit = next((each for each in edits(body) if each.get("type") == CLEAR_TOOL_USES), None)
    if edit is None:
        return body, []
    results = [block for message in objects(body.get("messages")) for block in _results(message)]
    reached = len(results) if _kind(edit, "trigger") == "tool_uses" else size
    if reached <= _value(edit, "trigger", _DEFAULT_TRIGGER):
        return body, []
    kept = _value(edit, "keep", _DEFAULT_KEPT)
    old = results[: max(0, len(results) - kept)]
    saved = sum(tokens(part_bytes(block.get("content"))) for block in old)
    if not old or saved < _value(edit, "clear_at_least", 0):
        return body, []
    cleared = {str(block.get("tool_use_id")) for block in old}
    messages = [_without_results(message, cleared) for message in objects(body.get("messages"))]
    report = {"type": CLEAR_TOOL_USES, "cleared_tool_uses": len(old), "cleared_input_tokens": saved}
    return {**body, "messages": messages}, [report]


def _value(edit: dict[str, Any], name: str, default: int) -> int:
    threshold = edit.get(name)
    value = threshold.get("value") if isinstance(threshold, dict) else None
    return value if isinstance(value, int) else default


def _kind(edit: dict[str, Any], name: str) -> object:
    threshold = edit.get(name)
    return threshold.get("type") if isinstance(threshold, dict) else None


def _results(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for block in as_blocks(message.get("content")) if block.get("type") == "tool_result"]


def _without_results(message: dict[str, Any], cleared: set[str]) -> dict[str, Any]:
    return {**message, "content": [_cleared(block, cleared) for block in as_blocks(message.get("content"))]}


def _cleared(block: dict[str, Any], cleared: set[str]) -> dict[str, Any]:
    old = block.get("type") == "tool_result" and str(block.get("tool_use_id")) in cleared
    return {**block, "content": _PLACEHOLDER} if old else block
