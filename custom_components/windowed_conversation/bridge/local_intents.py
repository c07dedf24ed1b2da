"""Home Assistant's own answers: sentence triggers and local intents, and its own agent where there is no model.

Home Assistant caches what it recognised, so asking again what the pipeline asked is cheap.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from homeassistant.components import conversation
from homeassistant.components.media_player.const import INTENT_MEDIA_SEARCH_AND_PLAY
from homeassistant.core import HomeAssistant
from homeassistant.helpers.intent import IntentResponse, IntentResponseType

from ..turn.errors import LocalAnswerFailed
from ..window import Message
from .chat_log import messages_of

if TYPE_CHECKING:
    from hassil.recognize import RecognizeResult


def _greedy(result: RecognizeResult) -> bool:
    """Tell whether a capture takes more than it understands: a media search matches nearly any "play ...".

    State questions are not among them: strict matching knows exposed entities only and lets the others through.
    """
    return bool(result.intent.name == INTENT_MEDIA_SEARCH_AND_PLAY)


class LocalIntents:
    """The `LocalAnswers` of one turn. `response` is Home Assistant's own, for the result of the turn."""

    def __init__(
        self,
        hass: HomeAssistant,
        user_input: conversation.ConversationInput,
        chat_log: conversation.ChatLog,
        *,
        model_is_next: bool,
        model_has_tools: bool,
    ) -> None:
        self._hass = hass
        self._user_input = user_input
        self._chat_log = chat_log
        self._model_is_next = model_is_next
        self._filter = _greedy if model_has_tools else None
        self.response: IntentResponse | None = None

    async def answer(self) -> Callable[[], tuple[Message, ...]] | None:
        """See `LocalAnswers.answer`."""
        before = len(self._chat_log.content)
        if self._model_is_next:
            self.response = await self._strict()
        else:
            self.response = await self._own_agent()
        if self.response is None:
            return None
        if self.response.response_type is IntentResponseType.ERROR:
            raise LocalAnswerFailed(f"local error code {self.response.error_code}")
        return partial(messages_of, self._hass, self._chat_log.content[before:])

    @property
    def speech(self) -> str:
        """Return what Home Assistant says."""
        speech = self.response.speech if self.response else {}
        return str(speech.get("plain", {}).get("speech") or "")

    async def _strict(self) -> IntentResponse | None:
        """Return what matches word by word: what does not is for the model to understand."""
        triggered = await conversation.async_handle_sentence_triggers(self._hass, self._user_input, self._chat_log)
        if triggered is not None:
            response = IntentResponse(self._user_input.language)
            response.async_set_speech(triggered)
        else:
            matched = await conversation.async_handle_intents(
                self._hass, self._user_input, self._chat_log, intent_filter=self._filter
            )
            if matched is None:
                return None
            response = matched
        self._leave_in_chat_log(response)
        return response

    def _leave_in_chat_log(self, response: IntentResponse) -> None:
        self._chat_log.async_add_assistant_content_without_tools(
            conversation.AssistantContent(
                agent_id=self._user_input.agent_id,
                content=str(response.speech.get("plain", {}).get("speech") or ""),
            )
        )

    async def _own_agent(self) -> IntentResponse:
        """Return what Home Assistant's own agent makes of it, which also guesses and apologises."""
        result = await conversation.async_converse(
            self._hass,
            text=self._user_input.text,
            conversation_id=self._chat_log.conversation_id,
            context=self._user_input.context,
            language=self._user_input.language,
            agent_id=conversation.HOME_ASSISTANT_AGENT,
            device_id=self._user_input.device_id,
            satellite_id=self._user_input.satellite_id,
            extra_system_prompt=self._user_input.extra_system_prompt,
        )
        return result.response
