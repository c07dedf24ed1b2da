"""The control API, with which a test in another process reads and changes the state of the server.

    GET    /control            settings (without the key), the armed fault, counts of requests, streams, connections
    POST   /control            changes only the named values:
                               {"fault": name or null, "times": n, "retry_after": seconds, "after_words": n,
                                "code": text, "delay": seconds, "latency": seconds, "search_delay": seconds,
                                "shapes": [...],
                                "models": [...], "strict": bool,
                                "key": text or null, "context_size": tokens or null}
    DELETE /control            as started: settings, no fault, no script, empty log, empty prompt cache
    GET    /control/requests   the log, oldest first, as `request_log.RequestRecord`
    DELETE /control/requests   empties the log

An invalid change gets a 400 response with {"error": sentence}, and changes nothing.
"""

from collections.abc import Iterable
from dataclasses import asdict
import json
from typing import Any

from aiohttp import web

from .faults import ArmedFault
from .state import ServerState

CONTROL_PATH = "/control"

_FAULT_OPTION_NAMES = ("times", "retry_after", "after_words", "code")
_SETTING_NAMES = ("delay", "latency", "search_delay", "shapes", "models", "strict", "key", "context_size")


def build_control_routes(state: ServerState) -> Iterable[web.AbstractRouteDef]:
    """Return the routes of the control API."""

    async def show(_http: web.Request) -> web.Response:
        return web.json_response(_describe_state(state))

    async def change(http: web.Request) -> web.Response:
        try:
            _apply_changes(state, json.loads(await http.read()))
        except (TypeError, ValueError) as error:
            return web.json_response({"error": str(error)}, status=400)
        return web.json_response(_describe_state(state))

    async def reset(_http: web.Request) -> web.Response:
        state.reset()
        return web.json_response(_describe_state(state))

    async def requests(_http: web.Request) -> web.Response:
        return web.json_response([record.to_json() for record in state.log.records])

    async def clear(_http: web.Request) -> web.Response:
        state.log.clear()
        return web.json_response([])

    return (
        web.get(CONTROL_PATH, show),
        web.post(CONTROL_PATH, change),
        web.delete(CONTROL_PATH, reset),
        web.get(f"{CONTROL_PATH}/requests", requests),
        web.delete(f"{CONTROL_PATH}/requests", clear),
    )


def _describe_state(state: ServerState) -> dict[str, Any]:
    settings = asdict(state.settings)
    settings["key"] = settings["key"] is not None
    return {
        "settings": settings,
        "fault": asdict(state.faults.armed) if state.faults.armed else None,
        "received": state.log.received_count,
        "open_streams": state.open_streams,
        "open_connections": state.open_connections,
    }


def _apply_changes(state: ServerState, wanted: Any) -> None:
    """Apply all changes in `wanted`, or none of them. Raises ValueError or TypeError with the reason."""
    if not isinstance(wanted, dict):
        raise TypeError("a change is a JSON object")
    if unknown := wanted.keys() - {"fault", *_FAULT_OPTION_NAMES, *_SETTING_NAMES}:
        raise ValueError(f"no such option: {', '.join(sorted(unknown))}")
    armed = state.faults.armed
    if "fault" in wanted:
        options = {name: wanted[name] for name in _FAULT_OPTION_NAMES if name in wanted}
        armed = ArmedFault(wanted["fault"], **options) if wanted["fault"] is not None else None
    elif any(name in wanted for name in _FAULT_OPTION_NAMES):
        raise ValueError(f"{', '.join(_FAULT_OPTION_NAMES)} belong to a fault, and none is named")
    settings = {name: wanted[name] for name in _SETTING_NAMES if name in wanted}
    lists = {name: tuple(settings[name]) for name in ("shapes", "models") if name in settings}
    state.change(**settings | lists)
    state.faults.armed = armed
