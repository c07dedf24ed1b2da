"""Home Assistant's chat sessions, in the two forms that they have had since 2026.10: found by what is there."""

from contextlib import AbstractContextManager
from inspect import signature
from typing import Any

from homeassistant.components import conversation
from homeassistant.components.conversation import ConversationInput
from homeassistant.core import HomeAssistant
from homeassistant.helpers.chat_session import ChatSession, async_get_chat_session

_HAS_OWNER = "context" in signature(async_get_chat_session).parameters

# What opening a chat log raises while another turn has it; nothing does so before 2026.11.
BUSY_ERRORS: tuple[type[Exception], ...] = tuple(
    error for error in [getattr(conversation, "ConversationBusyError", None)] if error
)


def async_open_session(hass: HomeAssistant, user_input: ConversationInput) -> AbstractContextManager[ChatSession]:
    """Return the session of an input; another user's is `Unauthorized` where sessions have owners."""
    owner: dict[str, Any] = {"context": user_input.context} if _HAS_OWNER else {}
    return async_get_chat_session(hass, user_input.conversation_id, **owner)
