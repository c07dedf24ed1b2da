"""Gemini's paginated list of models, and a single model by name, with the limits of each."""

from typing import Any

from aiohttp import web

from .state import ServerState

CONTEXT_TOKENS = 1_048_576
OUTPUT_TOKENS = 65_536

_DEFAULT_PAGE_SIZE = 50


def build_model_list(http: web.Request, state: ServerState) -> dict[str, Any]:
    """Return a page of the models: at most `pageSize` models, starting at `pageToken`."""
    models = state.settings.list_model_ids()
    token, size = http.query.get("pageToken", ""), http.query.get("pageSize", "")
    start = int(token) if token.isdecimal() else 0
    end = start + (int(size) if size.isdecimal() else _DEFAULT_PAGE_SIZE)
    page = {"models": [_build_model(model, state.settings.context_size) for model in models[start:end]]}
    return page | ({"nextPageToken": str(end)} if end < len(models) else {})


def build_model_body(http: web.Request, state: ServerState) -> dict[str, Any]:
    """Return the model that the path names. Raises RefusedError if there is none."""
    return _build_model(state.require_model(http.match_info["model"]), state.settings.context_size)


def _build_model(name: str, context_size: int | None) -> dict[str, Any]:
    size = context_size or CONTEXT_TOKENS
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name.title(),
        "description": "A scripted model",
        "inputTokenLimit": size,
        "outputTokenLimit": min(size, OUTPUT_TOKENS),
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        "temperature": 1,
        "topP": 0.95,
        "topK": 64,
        "maxTemperature": 2,
        "thinking": True,
    }
