"""The subscription of an open page to the figures of conversations: numbers only, and at most one event a second."""

import asyncio
from typing import Any

from homeassistant.auth.permissions.const import POLICY_READ
from homeassistant.components.websocket_api.connection import ActiveConnection
from homeassistant.core import HomeAssistant, ServiceCall, callback
from homeassistant.helpers.dispatcher import async_dispatcher_connect

from ..agents.account import async_run_deferred_work
from ..agents.actions.access import find_permitted_entity, list_visible_windows
from ..agents.agent import SIGNAL_AGENT_CHANGED, Agent, async_loaded_agents
from ..const import DOMAIN
from ..turn.routing import WindowKey
from ..window import WindowStats
from .conversations import build_figures

# In seconds, between two events.
_MIN_INTERVAL = 1.0

# The most conversations in one event. The page asks for the others when it opens.
_MAX_CHANGED = 200


@callback
def async_subscribe(hass: HomeAssistant, connection: ActiveConnection, message: dict[str, Any]) -> None:
    """Send the figures of the conversations that change, of those that the user may see, until they unsubscribe."""
    subscription = _Subscription(hass, connection, message)
    connection.subscriptions[message["id"]] = subscription.stop
    connection.send_result(message["id"])


class _Subscription:
    """The subscription of one connection. Costs nothing while no turn ends."""

    def __init__(self, hass: HomeAssistant, connection: ActiveConnection, message: dict[str, Any]) -> None:
        self._connection = connection
        self._number = message["id"]
        self._call = ServiceCall(hass, DOMAIN, "subscribe", {}, connection.context(message))
        # The statistics of the conversations that the page knows, by agent id.
        self._known_stats: dict[str, dict[str, WindowStats]] = {}
        self._changed: dict[str, Agent] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._sent_at = 0.0
        for agent in async_loaded_agents(hass):
            self._known_stats[agent.id] = agent.windows.stats()
        self._disconnect = async_dispatcher_connect(hass, SIGNAL_AGENT_CHANGED, self._on_change)

    @callback
    def stop(self) -> None:
        """End the subscription."""
        self._disconnect()
        if self._timer is not None:
            self._timer.cancel()

    @callback
    def _on_change(self, agent: Agent) -> None:
        self._changed[agent.id] = agent
        if self._timer is None:
            loop = self._call.hass.loop
            self._timer = loop.call_at(max(loop.time(), self._sent_at + _MIN_INTERVAL), self._send)

    @callback
    def _send(self) -> None:
        self._timer, self._sent_at = None, self._call.hass.loop.time()
        changed, self._changed = self._changed, {}
        async_run_deferred_work(self._call.hass)
        rows = [row for agent in changed.values() for row in self._list_changed(agent)]
        if rows:
            self._connection.send_event(self._number, {"conversations": rows[:_MAX_CHANGED]})

    def _list_changed(self, agent: Agent) -> list[dict[str, Any]]:
        entity_id = find_permitted_entity(self._call.hass, self._connection.user, agent.id, POLICY_READ)
        before, self._known_stats[agent.id] = self._known_stats.get(agent.id, {}), agent.window_stats
        if entity_id is None or before == agent.window_stats:
            return []
        visible = list_visible_windows({entity_id: agent}, self._call)
        changed = [build_figures(each) for each in visible if before.get(each.key) != each.stats]
        # a conversation is not gone while another one has the same name
        names = {WindowKey.parse(each.key).conversation for each in visible}
        gone = {
            key.conversation
            for key in map(WindowKey.parse, before.keys() - agent.window_stats.keys())
            if key.user in {None, self._connection.user.id} and key.conversation not in names
        }
        return changed + [{"entity_id": entity_id, "conversation_id": name, "figures": None} for name in sorted(gone)]
