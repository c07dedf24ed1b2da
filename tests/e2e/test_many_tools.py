"""Tests with real MCP servers that bring 88 and 400 tools, beside Home Assistant's own: they are found, then called."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from itertools import product
import threading
import time

from mcp.server import MCPServer
import pytest_asyncio
import uvicorn

from demo.client import RefusedError
from demo.home_assistant import find_free_port
from demo.setup_agent import change_agent
from tests.e2e.house import House, wait_for

_FLOWS = "/api/config/config_entries/flow"
_SUBJECTS = ("invoices", "recipes", "tickets", "timetable", "plants", "stock", "radio", "birthdays")
_PLACES = ("attic", "cellar", "garden", "library", "sauna", "workshop", "pantry", "nursery", "studio", "mill", "loft")
# 8 * 50 tools
_MANY_PLACES = (*_PLACES, *(f"room {number}" for number in range(100, 139)))
_PATIENCE = 30.0
_TRIED_SUBJECTS, _TRIED_PLACES = 3, 4


def _build_look_up(subject: str) -> Callable[[int], str]:
    def look_up(amount: int) -> str:
        return f"{amount} {subject}"

    return look_up


@contextmanager
def serve_tools(name: str, places: tuple[str, ...]) -> Iterator[str]:
    """Yield the URL of an MCP server with a tool for each subject and place."""
    server = MCPServer(name, log_level="ERROR")
    for subject, place in product(_SUBJECTS, places):
        description = f"List the {subject} that are kept in the {place} of this house, the newest first."
        name = f"{subject}_{place.replace(' ', '_')}"
        server.add_tool(_build_look_up(f"{subject} of the {place}"), name=name, description=description)
    port = find_free_port()
    config = uvicorn.Config(
        server.streamable_http_app(json_response=True, stateless_http=True), port=port, log_level="error"
    )
    runner = uvicorn.Server(config)
    thread = threading.Thread(target=runner.run)
    thread.start()
    deadline = time.monotonic() + _PATIENCE
    while not runner.started and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        runner.should_exit = True
        thread.join()


@pytest_asyncio.fixture(loop_scope="session")
async def many_tools(house: House) -> AsyncIterator[None]:
    """Give the agent the tools of two MCP servers."""
    with serve_tools("Archive", _PLACES) as archive, serve_tools("Warehouse", _MANY_PLACES) as warehouse:
        entries = [await _add_server(house, url) for url in (archive, warehouse)]
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


async def _add_server(house: House, url: str) -> str:
    """Add an MCP server to Home Assistant and return the id of its entry."""
    form = await house.client.post(_FLOWS, {"handler": "mcp"})
    added = await house.client.post(f"{_FLOWS}/{form['flow_id']}", {"url": url})
    return str(added["result"]["entry_id"])


async def test_tool_of_hundreds_is_found_and_called(house: House, many_tools: None) -> None:
    wanted = [(subject, place) for subject in _SUBJECTS[:_TRIED_SUBJECTS] for place in _PLACES[:_TRIED_PLACES]]

    answers = [
        (await house.say(f"use a tool to list the {subject} of the {place}, amount: {len(place)}")).speech
        for subject, place in wanted
    ]

    expected = [f"{len(place)} {subject} of the {place}" for subject, place in wanted]
    assert [text for text, answer in zip(expected, answers, strict=True) if text not in answer] == []
