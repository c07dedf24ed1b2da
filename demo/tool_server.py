"""An MCP server in a thread of this process, with a tool for each subject and place."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
import threading
import time

from mcp.server import MCPServer
import uvicorn

from .client import Client
from .home_assistant import find_free_port

_FLOWS = "/api/config/config_entries/flow"
SUBJECTS = ("invoices", "recipes", "tickets", "timetable", "plants", "stock", "radio", "birthdays")
PLACES = ("attic", "cellar", "garden", "library", "sauna", "workshop", "pantry", "nursery", "studio", "mill", "loft")
# for 400 tools
MANY_PLACES = (*PLACES, *(f"room {number}" for number in range(100, 139)))
_PATIENCE = 30.0


def _build_look_up(subject: str) -> Callable[[int], str]:
    def look_up(amount: int) -> str:
        return f"{amount} {subject}"

    return look_up


@contextmanager
def serve_tools(name: str, places: tuple[str, ...]) -> Iterator[str]:
    """Yield the URL of an MCP server with a tool for each subject and place."""
    server = MCPServer(name, log_level="ERROR")
    for subject, place in product(SUBJECTS, places):
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


async def add_tool_server(client: Client, url: str) -> str:
    """Add an MCP server to Home Assistant and return the id of its entry."""
    form = await client.post(_FLOWS, {"handler": "mcp"})
    added = await client.post(f"{_FLOWS}/{form['flow_id']}", {"url": url})
    return str(added["result"]["entry_id"])
