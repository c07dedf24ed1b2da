"""The first page of the demo, and its dashboard: window size, routes, costs, and statistics of the last week.

It shows only sensors that the agent has, so an account without prices has no cost cards.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from demo.client import Client, Json
from demo.example_week import NOTICE
from demo.home import GOOD_NIGHT_BUTTON
from demo.voice import BUTTON_ENTITY_ID, SATELLITE_ENTITY_ID, SENTENCE_ENTITY_ID

DASHBOARD_PATH = "conversation-window"
PAGE_PATH = "windowed-conversation"
# The URL paths of the views.
WINDOW_VIEW_PATH = "window"
WEEK_VIEW_PATH = "week"

_TITLE = "Conversation window"
_ICON = "mdi:message-processing"
_GAUGE_SEVERITY = {"green": 0, "yellow": 75, "red": 95}
_HOURS, _DEMO_HOURS = 24, 0.1
_FULL_WIDTH = {"columns": 12}
_SATELLITE_TEXT = f"The satellite said: {{{{ state_attr('{SATELLITE_ENTITY_ID}', 'answer') or 'nothing yet' }}}}"
_SWITCH_ENTITY_IDS = ("light.kitchen_light", "light.bedroom_light", "switch.coffee_machine")

# An item is None if the agent does not have the sensors of that card.
type _Cards = list[Json | None]


async def save_dashboard(client: Client, sensors: Mapping[str, str]) -> None:
    """Create or replace the dashboard; `sensors` maps the keys of sensors to their entity ids."""
    if DASHBOARD_PATH not in {each["url_path"] for each in await client.send_command("lovelace/dashboards/list")}:
        await client.send_command(
            "lovelace/dashboards/create", url_path=DASHBOARD_PATH, title=_TITLE, icon=_ICON, mode="storage"
        )
    views = build_views(sensors, is_demo=True)
    await client.send_command("lovelace/config/save", url_path=DASHBOARD_PATH, config={"views": views})


async def show_page_first(client: Client) -> None:
    """Let Home Assistant open on the page of the integration, and list the page first in the sidebar."""
    found = await client.send_command("frontend/get_user_data", key="core")
    core = {**(found["value"] or {}), "default_panel": PAGE_PATH}
    await client.send_command("frontend/set_user_data", key="core", value=core)
    sidebar = {"panelOrder": [PAGE_PATH, DASHBOARD_PATH], "hiddenPanels": []}
    await client.send_command("frontend/set_user_data", key="sidebar", value=sidebar)


def build_views(sensors: Mapping[str, str], *, is_demo: bool) -> list[Json]:
    """Return the two views. Those of the demo also have cards to try the agent, a notice, and short charts."""
    inputs = _build_try_cards() if is_demo else []
    hours = _DEMO_HOURS if is_demo else _HOURS
    notice = {"type": "markdown", "content": NOTICE, "grid_options": _FULL_WIDTH} if is_demo else None
    return [
        _build_view(
            _TITLE,
            WINDOW_VIEW_PATH,
            [_build_window_cards(sensors, hours), [*inputs, *_build_answer_cards(sensors)], _build_cost_cards(sensors)],
        ),
        _build_view(
            "Week",
            WEEK_VIEW_PATH,
            [_build_week_cards(sensors, notice), _build_turn_charts(sensors), _build_token_charts(sensors)],
        ),
    ]


def _build_view(title: str, path: str, columns: Sequence[_Cards]) -> Json:
    sections = [{"type": "grid", "cards": [card for card in cards if card]} for cards in columns]
    return {"title": title, "path": path, "type": "sections", "max_columns": 3, "sections": sections}


def _build_window_cards(sensors: Mapping[str, str], hours: float) -> _Cards:
    return [
        _build_heading(_TITLE, _ICON),
        _build_card(
            "gauge", sensors, "window_utilization", name="Last conversation", needle=True, severity=_GAUGE_SEVERITY
        ),
        _build_card("tile", sensors, "window_tokens", name="Tokens", grid_options=_FULL_WIDTH),
        _build_graph("history-graph", sensors, {"window_tokens": "Tokens"}, hours_to_show=hours),
    ]


def _build_try_cards() -> _Cards:
    return [
        _build_heading("Try it", "mdi:play-circle"),
        _build_assist_button("Talk", "mdi:keyboard", start_listening=False),
        _build_assist_button("Talk by voice", "mdi:microphone", start_listening=True),
        {"type": "entities", "entities": [SENTENCE_ENTITY_ID]},
        _build_switch_tile(BUTTON_ENTITY_ID),
        {"type": "markdown", "content": _SATELLITE_TEXT, "grid_options": {"columns": 6}},
        *(_build_switch_tile(entity_id) for entity_id in (GOOD_NIGHT_BUTTON, *_SWITCH_ENTITY_IDS)),
    ]


def _build_answer_cards(sensors: Mapping[str, str]) -> _Cards:
    return [
        _build_heading("Who answered", "mdi:account-voice"),
        _build_graph("distribution", sensors, {"turns_local": "Home Assistant", "turns_model": "Model"}),
        _build_card("tile", sensors, "last_route", name="Last route", grid_options=_FULL_WIDTH),
        _build_card("tile", sensors, "turn_duration", name="Turn duration", grid_options=_FULL_WIDTH),
    ]


def _build_cost_cards(sensors: Mapping[str, str]) -> _Cards:
    return [
        _build_heading("Tokens and cost", "mdi:cash-multiple"),
        *_build_tiles(
            sensors,
            {
                "input_tokens": "Input tokens",
                "output_tokens": "Output tokens",
                "turn_cost": "Last turn",
                "total_cost": "Total cost",
            },
        ),
        _build_daily_graph(sensors, "Cost per day", {"total_cost": "Cost"}),
    ]


def _build_week_cards(sensors: Mapping[str, str], notice: Json | None) -> _Cards:
    names = {
        "turns_local": "Home Assistant",
        "turns_model": "Model",
        "turns_failed": "Failed",
        "input_tokens": "Input tokens",
        "output_tokens": "Output tokens",
        "total_cost": "Cost",
    }
    changes = {"stat_type": "change", "period": {"rolling_window": {"duration": {"days": 7}}}}
    return [
        _build_heading("Last seven days", "mdi:calendar-week"),
        notice,
        *(_build_card("statistic", sensors, key, name=name, **changes) for key, name in names.items()),
    ]


def _build_turn_charts(sensors: Mapping[str, str]) -> _Cards:
    answered = {"turns_local": "Home Assistant", "turns_model": "Model"}
    return [
        _build_heading("Turns", "mdi:account-voice"),
        _build_daily_graph(sensors, "Answered per day", answered),
        _build_daily_graph(sensors, "Failed per day", {"turns_failed": "Failed"}),
    ]


def _build_token_charts(sensors: Mapping[str, str]) -> _Cards:
    return [
        _build_heading("Tokens and cost", "mdi:cash-multiple"),
        _build_daily_graph(sensors, "Tokens per day", {"input_tokens": "Input", "output_tokens": "Output"}),
        _build_daily_graph(sensors, "Cost per day", {"total_cost": "Cost"}),
    ]


def _build_heading(text: str, icon: str) -> Json:
    return {"type": "heading", "heading": text, "icon": icon}


def _build_card(kind: str, sensors: Mapping[str, str], key: str, **more: Any) -> Json | None:
    return {"type": kind, "entity": sensors[key], **more} if key in sensors else None


def _build_tiles(sensors: Mapping[str, str], names: Mapping[str, str]) -> _Cards:
    return [_build_card("tile", sensors, key, name=name) for key, name in names.items()]


def _build_graph(kind: str, sensors: Mapping[str, str], names: Mapping[str, str], **more: Any) -> Json | None:
    entities = [{"entity": sensors[key], "name": name} for key, name in names.items() if key in sensors]
    return {"type": kind, "entities": entities, **more} if entities else None


def _build_daily_graph(sensors: Mapping[str, str], title: str, names: Mapping[str, str]) -> Json | None:
    return _build_graph(
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


def _build_switch_tile(entity_id: str) -> Json:
    return {"type": "tile", "entity": entity_id, "tap_action": {"action": "toggle"}}


def _build_assist_button(name: str, icon: str, *, start_listening: bool) -> Json:
    action = {"action": "assist", "pipeline_id": "preferred", "start_listening": start_listening}
    return {
        "type": "button",
        "name": name,
        "icon": icon,
        "icon_height": "32px",
        "tap_action": action,
        "grid_options": {"columns": 6, "rows": 2},
    }
