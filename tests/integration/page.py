"""Fixtures for the page: people with their own websocket connections, and commands whose errors are exceptions."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from homeassistant.auth.const import GROUP_ID_USER
from homeassistant.auth.models import User
from homeassistant.components import websocket_api
from homeassistant.core import Context, HomeAssistant
from homeassistant.setup import async_setup_component
import pytest

from custom_components.windowed_conversation.const import DOMAIN

CLIENT_ID = "https://example.com/app"


class Refused(Exception):
    """An error of a command, with its code and the key of its translation."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']} {error.get('translation_key')}")
        self.code = error["code"]
        self.key = error.get("translation_key")
        self.message = error["message"]


@dataclass
class Visitor:
    """A person with a page open."""

    user: User
    client: Any

    @property
    def context(self) -> Context:
        """The context of what the person says."""
        return Context(user_id=self.user.id)

    async def call(self, command: str, **fields: Any) -> Any:
        """Return the result of a command. Raises `Refused`."""
        await self.client.send_json_auto_id({"type": f"{DOMAIN}/{command}", **fields})
        answer = await self.client.receive_json()
        if not answer["success"]:
            raise Refused(answer["error"])
        return answer["result"]


type Visit = Callable[..., Coroutine[Any, Any, Visitor]]


@pytest.fixture
async def visit(home: HomeAssistant, hass_ws_client: Any) -> Visit:
    """Return a function that creates a person in a group and opens their connection."""
    assert await async_setup_component(home, websocket_api.DOMAIN, {})
    await home.auth.async_create_user("Owner", group_ids=["system-admin"])

    async def visit(name: str = "Ada", group: str | None = GROUP_ID_USER) -> Visitor:
        user = await home.auth.async_create_user(name, group_ids=[group] if group else [])
        token = await home.auth.async_create_refresh_token(user, CLIENT_ID)
        return Visitor(user, await hass_ws_client(home, home.auth.async_create_access_token(token)))

    return visit
