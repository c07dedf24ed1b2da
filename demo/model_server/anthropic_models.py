"""Anthropic's paginated list of models, with the limits and capabilities of each."""

from typing import Any

from aiohttp import web

from .state import State

CONTEXT_TOKENS = 200_000
OUTPUT_TOKENS = 64_000

_DEFAULT_PAGE = 20
_YES = {"supported": True}
_NO = {"supported": False}
_CAPABILITIES: dict[str, Any] = {
    "batch": _YES,
    "citations": _NO,
    "code_execution": _NO,
    "context_management": {
        **_YES,
        "clear_thinking_20251015": _YES,
        "clear_tool_uses_20250919": _YES,
        "compact_20260112": _NO,
    },
    "effort": {**_YES, "low": _YES, "medium": _YES, "high": _YES, "xhigh": _NO, "max": _YES},
    "image_input": _YES,
    "pdf_input": _YES,
    "server_tools": {**_NO, "code_execution": _NO, "web_search": _NO},
    "structured_outputs": _NO,
    "thinking": {
        **_YES,
        "types": {"adaptive": _YES, "between_tools": _YES, "disabled": _YES, "enabled": _YES},
    },
}


def model_list(http: web.Request, state: State) -> dict[str, Any]:
    """Return a page of the models: at most `limit` models after `after_id`."""
    models = state.settings.listed_models()
    after = http.query.get("after_id")
    start = models.index(after) + 1 if after in models else 0
    limit = http.query.get("limit", "")
    page = models[start:][: int(limit) if limit.isdecimal() else _DEFAULT_PAGE]
    return {
        "data": [_model(each, state.settings.context_size) for each in page],
        "first_id": page[0] if page else None,
        "last_id": page[-1] if page else None,
        "has_more": bool(page) and page[-1] != models[-1],
    }


def model(http: web.Request, state: State) -> dict[str, Any]:
    """Return the model that the path names. Raises RefusedError if there is none."""
    return _model(state.named_model(http.match_info["model"]), state.settings.context_size)


def _model(name: str, context_size: int | None) -> dict[str, Any]:
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
