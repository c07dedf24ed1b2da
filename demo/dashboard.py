"""The demo's dashboard: window size, routes, costs, inputs to try, and statistics of the last week.

It shows only sensors that the agent has, so an account without prices has no cost cards.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from demo.client import Client, Json
from demo.home import GOOD_NIGHT
from demo.voice import SENTENCE

PATH = "conversation-window"
# The URL path of the second view.
WEEK = "week"

_TITLE = "Conversation window"
_ICON = "mdi:message-processing"
_SEVERITY = {"green": 0, "yellow": 75, "red": 95}
_WHOLE_WIDTH = {"columns": 12}
_SWITCHES = ("light.kitchen_light", "light.bedroom_light", "switch.coffee_machine")

# An item is None if the agent does not have the sensors of that card.
type _Cards = list[Json | None]


async def save_dashboard(client: Client, sensors: Mapping[str, str]) -> None:
    """Create or replace the dashboard; `sensors` maps the keys of sensors to their entity ids."""
    if PATH not in {each["url_path"] for each in await client.command("lovelace/dashboards/list")}:
        await client.command("lovelace/dashboards/create", url_path=PATH, title=_TITLE, icon=_ICON, mode="storage")
    views = [
        _view(_TITLE, "demo", [_window(sensors), [*_to_try(), *_answers(sensors)], _costs(sensors)]),
        _view("Week", WEEK, [_week(sensors), _turns_per_day(sensors), _requests_per_day(sensors)]),
    ]
    await client.command("lovelace/config/save", url_path=PATH, config={"views": views})


def _view(title: str, path: str, columns: Sequence[_Cards]) -> Json:
    sections = [{"type": "grid", "cards": [card for card in cards if card]} for cards in columns]
    return {"title": title, "path": path, "type": "sections", "max_columns": 3, "sections": sections}


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
        _per_day(sensors, "Cost per day", {"total_cost": "Cost"}),
    ]


def _week(sensors: Mapping[str, str]) -> _Cards:
    names = {
        "turns_local": "Home Assistant",
        "turns_model": "Model",
        "turns_fallback": "Fallbacks",
        "turns_failed": "Failed",
        "requests": "Requests",
        "input_tokens": "Input tokens",
        "cached_input_tokens": "Cached input",
        "output_tokens": "Output tokens",
        "total_cost": "Cost",
    }
    changes = {"stat_type": "change", "period": {"rolling_window": {"duration": {"days": 7}}}}
    return [
        _heading("Last seven days", "mdi:calendar-week"),
        *(_card("statistic", sensors, key, name=name, **changes) for key, name in names.items()),
    ]


def _turns_per_day(sensors: Mapping[str, str]) -> _Cards:
    answered = {"turns_local": "Home Assistant", "turns_model": "Model"}
    return [
        _heading("Turns", "mdi:account-voice"),
        _per_day(sensors, "Answered per day", answered),
        _per_day(sensors, "Failures and fallbacks per day", {"turns_failed": "Failed", "turns_fallback": "Fallbacks"}),
    ]


def _requests_per_day(sensors: Mapping[str, str]) -> _Cards:
    tokens = {"input_tokens": "Input", "cached_input_tokens": "Cached", "output_tokens": "Output"}
    return [
        _heading("Requests", "mdi:cloud-upload-outline"),
        _per_day(sensors, "Requests per day", {"requests": "Requests"}),
        _per_day(sensors, "Tokens per day", tokens),
        _per_day(sensors, "Cost per day", {"total_cost": "Cost"}),
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


def _per_day(sensors: Mapping[str, str], title: str, names: Mapping[str, str]) -> Json | None:
    return _graph(
        "statistics-graph",
        sensors,
        names,
        title=title,
        period="day",
        days_to_show=7,
        stat_types=["change"],
        chart_type="bar",
        hide_legend=len(names) == 1,
    )


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
