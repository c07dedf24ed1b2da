"""Lists of the models that a server offers: in every format, they are objects with a name."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from .errors import BadStream
from .json_values import get_member, get_objects, max_value_count, read_json

# Routers list hundreds of models, with up to a hundred values each.
_MAX_MODELS = 10_000
_MAX_JSON_VALUES = 250_000
# No vendor has more models than fit on one page.
_MAX_PAGES = 10
# The maximum page size of Anthropic's and Google's lists: https://platform.claude.com/docs/en/api/models/list and
# https://ai.google.dev/api/models#method:-models.list
PAGE_SIZE = 1000


class ModelPage:
    """A page of a model list. Raises `BadStream` if the body is not a model list.

    `models` maps names to the server's objects, sorted by name.
    """

    def __init__(self, body: bytes, field: str, name: str) -> None:
        if max_value_count(body) > _MAX_JSON_VALUES:
            raise BadStream(f"the list of models has more than {_MAX_JSON_VALUES} values")
        self._page = read_json(body)
        models = get_member(self._page, field)
        if not isinstance(models, list) or not all(isinstance(get_member(model, name), str) for model in models):
            raise BadStream("the server does not list models")
        if len(models) > _MAX_MODELS:
            raise BadStream(f"the server lists more than {_MAX_MODELS} models")
        self.models = {model[name]: model for model in sorted(get_objects(models), key=lambda model: model[name])}

    def __getitem__(self, field: str) -> Any:
        """Return another field of the page, or None if it is missing."""
        return get_member(self._page, field)


async def read_page(body: bytes, field: str = "data", name: str = "id") -> ModelPage:
    """Return a page, parsed outside of the event loop because it may list thousands of models."""
    return await asyncio.to_thread(ModelPage, body, field, name)


async def read_pages(
    fetch: Callable[[str], Awaitable[ModelPage]], following: Callable[[ModelPage], Any]
) -> dict[str, Any]:
    """Return the server's model objects from all pages, by name.

    `fetch` is called with a page token, empty for the first page, and returns that page. `following` is called with a
    page and returns the token of the next one. Raises `BadStream` if the pages repeat themselves.
    """
    models: dict[str, Any] = {}
    token = ""
    for _ in range(_MAX_PAGES):
        page = await fetch(token)
        if page.models and page.models.keys() <= models.keys():
            raise BadStream("the server lists the same models again and again")
        models |= page.models
        token = following(page)
        if not page.models or not token or not isinstance(token, str):
            break
    return models
