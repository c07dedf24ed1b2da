"""A helper that calls the integration's actions, and the minimal valid data for each action."""

from typing import Any

from homeassistant.core import Context, HomeAssistant

from custom_components.windowed_conversation.const import DOMAIN

from .conftest import AGENT

ON_A_CONVERSATION: dict[str, dict[str, Any]] = {
    "get_conversation": {},
    "delete_conversation": {},
    "summarize_conversation": {},
    "tag_exchange": {"add": ["important"]},
}
WITH_AN_ID = ON_A_CONVERSATION | {"import_conversation": {"export": {"format": DOMAIN, "version": 1}}}
EVERY_ACTION = WITH_AN_ID | {"list_conversations": {}}

MEMORY_ACTIONS: dict[str, dict[str, Any]] = {
    "remember": {"text": "The bins go out on Friday"},
    "recall": {"query": "bins"},
    "forget": {"query": "bins"},
    "export_memories": {},
    "import_memories": {"memories": [{}]},
}

TURN_ACTIONS: dict[str, dict[str, Any]] = {
    "list_turns": {},
    "get_turn": {"turn_id": "turn-0001"},
}


async def act(home: HomeAssistant, action: str, context: Context | None = None, **data: Any) -> Any:
    """Call an action and return its response. A field whose value is None is omitted.

    Actions on conversations default to the agent's entity and to the conversation `test`.
    """
    known = {"entity_id": AGENT} if action in EVERY_ACTION else {}
    known |= {"conversation_id": "test"} if action in WITH_AN_ID else {}
    wanted = {field: value for field, value in (known | data).items() if value is not None}
    return await home.services.async_call(DOMAIN, action, wanted, blocking=True, return_response=True, context=context)


async def export(home: HomeAssistant, conversation_id: str = "test") -> Any:
    """Return the export of a conversation."""
    return (await act(home, "get_conversation", conversation_id=conversation_id, content="export"))["export"]
