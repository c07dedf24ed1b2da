"""Tests with real MCP servers that bring 88 and 400 tools, beside Home Assistant's own: they are found, then called."""

from collections.abc import AsyncIterator

import pytest_asyncio

from demo.client import RefusedError
from demo.setup_agent import change_agent
from demo.tool_server import MANY_PLACES, PLACES, SUBJECTS, add_tool_server, serve_tools
from tests.e2e.house import House, wait_for

_TRIED_SUBJECTS, _TRIED_PLACES = 3, 4


@pytest_asyncio.fixture(loop_scope="session")
async def many_tools(house: House) -> AsyncIterator[None]:
    """Give the agent the tools of two MCP servers."""
    with serve_tools("Archive", PLACES) as archive, serve_tools("Warehouse", MANY_PLACES) as warehouse:
        entries = [await add_tool_server(house.client, url) for url in (archive, warehouse)]
        await change_agent(
            house.client, house.account, {"llm_hass_api": ["assist", *[f"mcp-{each}" for each in entries]]}
        )
        await wait_for(lambda: _has_more_tools(house), bool)
        yield
        await change_agent(house.client, house.account, {"llm_hass_api": ["assist"]})
        for each in entries:
            await house.client.delete(f"/api/config/config_entries/entry/{each}")


async def _has_more_tools(house: House) -> bool:
    """Return whether the agent, whose account is loaded again after a change, has the tools."""
    try:
        return "no more tools" not in (await house.say("use a tool to list nothing")).speech
    except RefusedError:
        return False


async def test_tool_of_hundreds_is_found_and_called(house: House, many_tools: None) -> None:
    wanted = [(subject, place) for subject in SUBJECTS[:_TRIED_SUBJECTS] for place in PLACES[:_TRIED_PLACES]]

    answers = [
        (await house.say(f"use a tool to list the {subject} of the {place}, amount: {len(place)}")).speech
        for subject, place in wanted
    ]

    expected = [f"{len(place)} {subject} of the {place}" for subject, place in wanted]
    assert [text for text, answer in zip(expected, answers, strict=True) if text not in answer] == []
