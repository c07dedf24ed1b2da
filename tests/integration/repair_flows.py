"""Repair flows as the frontend drives them: through Home Assistant's HTTP API for issues."""

from http import HTTPStatus
from typing import Any

from aiohttp.test_utils import TestClient
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
import pytest

from custom_components.windowed_conversation.const import DOMAIN

_URL = "/api/repairs/issues/fix"
_SUBENTRY_URL = "/api/config/config_entries/subentries/flow"


class RepairFlows:
    """Opens repair flows, and submits their steps. Each method returns the next step, or the error of the API."""

    def __init__(self, home: HomeAssistant, client: TestClient[Any, Any]) -> None:
        self._home = home
        self.client = client

    async def open(self, issue_id: str, status: HTTPStatus = HTTPStatus.OK) -> Any:
        """Open the flow of an issue."""
        return await self._post(_URL, {"handler": DOMAIN, "issue_id": issue_id}, status)

    async def submit(self, step: Any, status: HTTPStatus = HTTPStatus.OK, **user_input: Any) -> Any:
        """Submit a form."""
        return await self._post(f"{_URL}/{step['flow_id']}", user_input, status)

    async def choose(self, menu: Any, option: str, status: HTTPStatus = HTTPStatus.OK) -> Any:
        """Select an option of a menu."""
        return await self.submit(menu, status, next_step_id=option)

    async def open_next(self, step: Any) -> Any:
        """Show the form of the subentry flow with which a step continues."""
        kind, flow_id = step["next_flow"]
        assert kind == "config_subentries_flow"
        async with self.client.get(f"{_SUBENTRY_URL}/{flow_id}") as response:
            assert response.status == HTTPStatus.OK
            return await response.json()

    async def submit_next(self, form: Any, **user_input: Any) -> Any:
        """Submit the form of a subentry flow."""
        return await self._post(f"{_SUBENTRY_URL}/{form['flow_id']}", user_input, HTTPStatus.OK)

    async def _post(self, url: str, data: dict[str, Any], status: HTTPStatus) -> Any:
        async with self.client.post(url, json=data) as response:
            assert response.status == status
            answer = await response.json()
        await self._home.async_block_till_done(wait_background_tasks=True)
        return answer


@pytest.fixture
async def repairs(home: HomeAssistant, hass_client: Any) -> RepairFlows:
    """Return the repair flows of an administrator."""
    # no component can be added once the client has started the server
    for component in ("config", "repairs", "websocket_api"):
        assert await async_setup_component(home, component, {})
    return RepairFlows(home, await hass_client())
