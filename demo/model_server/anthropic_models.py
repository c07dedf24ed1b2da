"""Anthropic's paginated list of models, with the limits and capabilities of each."""

from typing import Any

from aiohttp import web

from .state import ServerState

CONTEXT_TOKENS = 200_000
OUTPUT_TOKENS = 64_000

_DEFAULT_PAGE_SIZE = 20
_SUPPORTED = {"supported": True}
_UNSUPPORTED = {"supported": False}
_CAPABILITIES: dict[str, Any] = {
    "batch": _SUPPORTED,
    "citations": _UNSUPPORTED,
    "code_execution": _UNSUPPORTED,
    "context_management": {
        **_SUPPORTED,
        "clear_thinking_20251015": _SUPPORTED,
        "clear_tool_uses_20250919": _SUPPORTED,
        "compact_20260112": _UNSUPPORTED,
    },
    "effort": {
        **_SUPPORTED,
        "low": _SUPPORTED,
        "medium": _SUPPORTED,
        "high": _SUPPORTED,
        "xhigh": _UNSUPPORTED,
        "max": _SUPPORTED,
    },
    "image_input": _SUPPORTED,
    "pdf_input": _SUPPORTED,
    "server_tools": {**_SUPPORTED, "code_execution": _UNSUPPORTED, "web_search": _SUPPORTED},
    "structured_outputs": _SUPPORTED,
    "thinking": {
        **_SUPPORTED,
        "types": {"adaptive": _SUPPORTED, "between_tools": _SUPPORTED, "disabled": _SUPPORTED, "enabled": _SUPPORTED},
    },
}


def build_model_list(http: web.Request, state: ServerState) -> dict[str, Any]:
    """Return a page of the models: at most `limit` models after `after_id`."""
    models = state.settings.list_model_ids()
    after = http.query.get("after_id")
    start = models.index(after) + 1 if after in models else 0
    limit = http.query.get("limit", "")
    page = models[start:][: int(limit) if limit.isdecimal() else _DEFAULT_PAGE_SIZE]
    return {
        "data": [_build_model(each, state.settings.context_size) for each in page],
        "first_id": page[0] if page else None,
        "last_id": page[-1] if page else None,
        "has_more": bool(page) and page[-1] != models[-1],
    }


def build_model_body(http: web.Request, state: ServerState) -> dict[str, Any]:
    """Return the model that the path names. Raises RefusedError if there is none."""
    return _build_model(state.require_model(http.match_info["model"]), state.settings.context_size)


def _build_model(name: str, context_size: int | None) -> dict[str, Any]:
    size = context_size or CONTEXT_TOKENS
    return {
        "type": "model",
        "id": name,
        "display_name": name.title(),
        "created_at": "2026-01-01T00:00:00Z",
        "deprecated_at": None,
        "retires_at": None,
        "lifecycle": "active",
        "line": None,
        "max_input_tokens": size,
        "max_tokens": min(size, OUTPUT_TOKENS),
        "capabilities": _CAPABILITIES,
    }
