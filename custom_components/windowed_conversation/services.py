"""The actions: look at a conversation's window, and forget it. Registered once, for all agents.

An action finds the agent by its entity. What a window is made of is decided in `window`.
"""

from enum import StrEnum

from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse, SupportsResponse, callback
from homeassistant.exceptions import ServiceValidationError
from homeassistant.helpers import config_validation as cv, entity_registry as er
import probatio

from .agent import Account, Agent
from .bridge.window_response import messages_response, statistics_response
from .const import DOMAIN
from .turn.scope import WindowKey
from .window import WindowBusy

ATTR_CONVERSATION_ID = "conversation_id"
ATTR_CONTENT = "content"

SERVICE_GET_WINDOW = "get_window"
SERVICE_RESET_WINDOW = "reset_window"


class WindowContent(StrEnum):
    """What `get_window` returns."""

    MESSAGES = "messages"
    STATISTICS = "statistics"


_CONVERSATION = {
    probatio.Required(ATTR_ENTITY_ID): cv.entity_id,
    probatio.Required(ATTR_CONVERSATION_ID): cv.string,
}
_GET_WINDOW_SCHEMA = probatio.Schema(
    {
        **_CONVERSATION,
        probatio.Optional(ATTR_CONTENT, default=WindowContent.MESSAGES): probatio.Coerce(WindowContent),
    }
)
_RESET_WINDOW_SCHEMA = probatio.Schema(_CONVERSATION)


@callback
def async_setup_services(hass: HomeAssistant) -> None:
    """Register the actions."""
    hass.services.async_register(
        DOMAIN, SERVICE_GET_WINDOW, _async_get_window, _GET_WINDOW_SCHEMA, SupportsResponse.ONLY
    )
    hass.services.async_register(DOMAIN, SERVICE_RESET_WINDOW, _async_reset_window, _RESET_WINDOW_SCHEMA)


async def _async_get_window(call: ServiceCall) -> ServiceResponse:
    """Return the messages or the figures of a conversation."""
    agent = _agent(call)
    window = agent.windows.peek(_key(agent, call))
    assert window is not None
    if call.data[ATTR_CONTENT] is WindowContent.STATISTICS:
        return statistics_response(window)
    return messages_response(window)


async def _async_reset_window(call: ServiceCall) -> None:
    """Forget a conversation."""
    agent = _agent(call)
    key = _key(agent, call)
    try:
        agent.windows.drop(key)
    except WindowBusy as err:
        raise _error("window_in_use", call) from err
    agent.tell()


def _agent(call: ServiceCall) -> Agent:
    """Return the agent that an action is about; raises `ServiceValidationError`."""
    entry = er.async_get(call.hass).async_get(call.data[ATTR_ENTITY_ID])
    if entry is None or entry.platform != DOMAIN or entry.config_subentry_id is None:
        raise _error("unknown_agent", call)
    accounts: list[Account] = call.hass.config_entries.async_loaded_entries(DOMAIN)
    for account in accounts:
        if agent := account.runtime_data.agents.get(entry.config_subentry_id):
            return agent
    raise _error("agent_not_loaded", call)


def _key(agent: Agent, call: ServiceCall) -> str:
    """Return the key of the conversation that an action is about; raises `ServiceValidationError`.

    A person's action is about their own conversations and those that are nobody's, an automation's about everybody's.
    """
    wanted, user = call.data[ATTR_CONVERSATION_ID], call.context.user_id
    for key in agent.windows.keys_newest_first():
        found = WindowKey.parse(key)
        if found.conversation == wanted and (user is None or found.user in (None, user)):
            return key
    raise _error("unknown_conversation", call)


def _error(key: str, call: ServiceCall) -> ServiceValidationError:
    return ServiceValidationError(
        translation_domain=DOMAIN,
        translation_key=key,
        translation_placeholders={
            "agent": call.data[ATTR_ENTITY_ID],
            "conversation": call.data[ATTR_CONVERSATION_ID],
        },
    )
