"""The demo's dashboard: how full the window is, who answers, what it costs, and something to try.

It is made of the sensors that the agent has, so an account without prices has no costs on it.
"""

from collections.abc import Mapping
from typing import Any

from demo.client import Client, Json
from demo.home import GOOD_NIGHT
from demo.voice import SENTENCE

PATH = "conversation-window"

_TITLE = "Conversation window"
_ICON = "mdi:message-processing"
_SEVERITY = {"green": 0, "yellow": 75, "red": 95}
_WHOLE_WIDTH = {"columns": 12}
_SWITCHES = ("light.kitchen_light", "light.bedroom_light", "switch.coffee_machine")

# None instead of a card whose sensors the agent does not have.
type _Cards = list[Json | None]


async def save_dashboard(client: Client, sensors: Mapping[str, str]) -> None:
    """Add the dashboard, for `sensors` by their key, or replace it."""
    if PATH not in {each["url_path"] for each in await client.command("lovelace/dashboards/list")}:
        await client.command("lovelace/dashboards/create", url_path=PATH, title=_TITLE, icon=_ICON, mode="storage")
    await client.command("lovelace/config/save", url_path=PATH, config={"views": [_view(sensors)]})


def _view(sensors: Mapping[str, str]) -> Json:
    columns = [_window(sensors), [*_to_try(), *_answers(sensors)], _costs(sensors)]
    sections = [{"type": "grid", "cards": [card for card in cards if card]} for cards in columns]
    return {"title": _TITLE, "path": "demo", "type": "sections", "max_columns": 3, "sections": sections}


def _window(sensors: Mapping[str, str]) -> _Cards:
    return [
        _heading(_TITLE, _ICON),
        _card("gauge", sensors, "window_utilization", name="Window utilization", needle=True, severity=_SEVERITY),
        *_tiles(sensors, {"window_tokens": "Tokens", "active_conversations": "Conversations"}),
        _graph("history-graph", sensors, {"window_tokens": "Tokens"}, hours_to_show=0.1),
    ]


def _to_try() -> _Cards:
    return [
        _heading("Try it", "mdi:play-circle"),
        _assist("Talk", "mdi:keyboard", start_listening=False),
        _assist("Talk by voice", "mdi:microphone", start_listening=True),
        {"type": "entities", "entities": [SENTENCE]},
        *(_switch(entity_id) for entity_id in (GOOD_NIGHT, *_SWITCHES)),
    ]


def _answers(sensors: Mapping[str, str]) -> _Cards:
    return [
        _heading("Who answered", "mdi:account-voice"),
        _graph("distribution", sensors, {"turns_local": "Home Assistant", "turns_model": "Model"}),
        _card("tile", sensors, "last_route", name="Last route", grid_options=_WHOLE_WIDTH),
        *_tiles(sensors, {"turn_duration": "Turn duration", "time_to_first_token": "First token"}),
    ]


def _costs(sensors: Mapping[str, str]) -> _Cards:
    return [
        _heading("Tokens and cost", "mdi:cash-multiple"),
        _card("tile", sensors, "input_tokens", name="Input tokens", grid_options=_WHOLE_WIDTH),
        *_tiles(
            sensors,
            {
                "cached_input_tokens": "Cached input",
                "output_tokens": "Output tokens",
                "turn_cost": "Last turn",
                "total_cost": "Total cost",
            },
        ),
        _graph(
            "statistics-graph",
            sensors,
            {"total_cost": "Cost"},
            title="Cost per day",
            period="day",
            days_to_show=7,
            stat_types=["change"],
            chart_type="bar",
            hide_legend=True,
        ),
    ]


def _heading(text: str, icon: str) -> Json:
    return {"type": "heading", "heading": text, "icon": icon}


def _card(kind: str, sensors: Mapping[str, str], key: str, **more: Any) -> Json | None:
    return {"type": kind, "entity": sensors[key], **more} if key in sensors else None


def _tiles(sensors: Mapping[str, str], names: Mapping[str, str]) -> _Cards:
    return [_card("tile", sensors, key, name=name) for key, name in names.items()]


def _graph(kind: str, sensors: Mapping[str, str], names: Mapping[str, str], **more: Any) -> Json | None:
    entities = [{"entity": sensors[key], "name": name} for key, name in names.items() if key in sensors]
    return {"type": kind, "entities": entities, **more} if entities else None


def _switch(entity_id: str) -> Json:
    return {"type": "tile", "entity": entity_id, "tap_action": {"action": "toggle"}}


def _assist(name: str, icon: str, *, start_listening: bool) -> Json:
    action = {"action": "assist", "pipeline_id": "preferred", "start_listening": start_listening}
    return {
        "type": "button",
        "name": name,
        "icon": icon,
        "icon_height": "32px",
        "tap_action": action,
        "grid_options": {"columns": 6, "rows": 2},
    }
