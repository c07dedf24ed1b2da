"""Fallback agents of other integrations."""

from homeassistant.components import conversation
from homeassistant.components.conversation import ConversationInput
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers.intent import IntentResponseType

from ..providers import Unavailable


class EntityAgent:
    """The `FallbackAgent` of one turn, by its entity id.

    It has its own conversation, which contains only the turns that it answered.
    """

    def __init__(self, hass: HomeAssistant, entity_id: str, user_input: ConversationInput) -> None:
        self.agent = entity_id
        self._hass = hass
        self._user_input = user_input

    async def answer(self) -> str:
        """Return the agent's answer to the input. Raises `ProviderError` if it has none."""
        asked = self._user_input
        try:
            result = await conversation.async_converse(
                self._hass,
                asked.text,
                f"{asked.conversation_id}-{self.agent}",
                asked.context,
                language=asked.language,
                agent_id=self.agent,
                device_id=asked.device_id,
                satellite_id=asked.satellite_id,
                extra_system_prompt=asked.extra_system_prompt,
            )
        except (HomeAssistantError, ValueError) as err:
            raise Unavailable(f"another agent failed ({type(err).__name__})") from err
        speech = str(result.response.speech.get("plain", {}).get("speech") or "")
        if result.response.response_type is IntentResponseType.ERROR or not speech:
            raise Unavailable("another agent had no answer")
        return speech
