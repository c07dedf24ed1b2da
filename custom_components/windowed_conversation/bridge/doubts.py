"""Checks of a sentence that Home Assistant matched: the capture of a wildcard is compared with the home.

Strict matching accounts for every word of a sentence except those inside a wildcard: "who is the president of France?"
asks for the persons in the zone "president of France".
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from homeassistant.components.conversation import ConversationInput
from homeassistant.components.conversation.agent_manager import async_get_agent
from homeassistant.components.conversation.const import METADATA_CUSTOM_SENTENCE
from homeassistant.components.intent import async_device_supports_timers
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import intent

from ..turn.captures import cuts_word, is_bare, is_question, same_words
from ..turn.routing import Reason, Situation
from .capture_rules import RULES
from .places import async_exposed_persons

if TYPE_CHECKING:
    from hassil.models import MatchEntity
    from hassil.recognize import RecognizeResult

# Captures that only a model with tools could handle better.
_FOR_TOOLS = frozenset(
    {Reason.MEDIA_SEARCH, Reason.LONG_ITEM, Reason.LONG_NAME, Reason.UNLISTED_ITEM, Reason.INSTRUCTION}
)

_DELAYED_COMMAND = (intent.INTENT_START_TIMER, "conversation_command")

# How Home Assistant names the intents that answer and change nothing.
_QUESTION_INTENTS = ("Get", "Status", "LastItems", "Respond", "Nevermind")


@dataclass(frozen=True, slots=True)
class MatchChecker:
    """Checks the matches of Home Assistant's sentences with one input against the home."""

    hass: HomeAssistant
    user_input: ConversationInput
    situation: Situation
    model_has_tools: bool

    @callback
    def may_be_wrong(self, result: RecognizeResult) -> bool:
        """Return whether a match needs the check: quick, for the many matches that need none."""
        return not _is_custom(result) and (bool(_wildcards(result)) or self._sentence_reason(result) is not None)

    async def reason_against(self, result: RecognizeResult) -> Reason | None:
        """Return the reason to ask a model instead, or None."""
        if _is_custom(result):
            return None
        reason = self._sentence_reason(result)
        for entity in _wildcards(result):
            reason = reason or await self._capture_reason(result, entity)
        return None if reason in _FOR_TOOLS and not self.model_has_tools else reason

    def _sentence_reason(self, result: RecognizeResult) -> Reason | None:
        is_bare_name = result.intent_sentence is not None and is_bare(result.intent_sentence.text or "")
        if self.situation.answers_question and (is_bare_name or not result.entities or _wildcards(result)):
            return Reason.ANSWERS_QUESTION
        if is_bare_name and is_question(self.user_input.text):
            return Reason.NAME_IN_QUESTION
        if is_bare_name and self.situation.after_model:
            return Reason.NAME_AFTER_MODEL
        return self._home_reason(result)

    def _home_reason(self, result: RecognizeResult) -> Reason | None:
        """Return the reason why this home cannot handle an intent, or None."""
        name = result.intent.name
        if all(handler.intent_type != name for handler in intent.async_get(self.hass)):
            return Reason.NO_HANDLER
        if name == intent.INTENT_START_TIMER and "conversation_command" not in result.entities:
            device_id = self.user_input.device_id
            has_timers = device_id is not None and async_device_supports_timers(self.hass, device_id)
            return None if has_timers else Reason.NO_TIMERS
        domain = result.entities.get("domain")
        of_persons = name == intent.INTENT_GET_STATE and domain is not None and domain.value == "person"
        return Reason.NOBODY_KNOWN if of_persons and not async_exposed_persons(self.hass) else None

    async def _capture_reason(self, result: RecognizeResult, entity: MatchEntity) -> Reason | None:
        """Return the reason why the capture of a wildcard is not meant, or None."""
        span, capture = entity.text_span, entity.text
        # the span is wrong if the sentence begins with a mark such as "¿", and the text has lost the commas
        if span is not None and same_words(result.original_text[slice(*span)], capture):
            capture = result.original_text[slice(*span)].strip()
            # "pan a l" of "pan a la lista"
            if entity.name == "item" and cuts_word(result.original_text, span):
                return Reason.CUT_WORD
        if (result.intent.name, entity.name) == _DELAYED_COMMAND:
            return await self._command_reason(capture)
        rule = RULES.get((result.intent.name, entity.name))
        return await rule(self.hass, self.user_input, capture) if rule else None

    async def _command_reason(self, text: str) -> Reason | None:
        """Recognize the command in a delayed command: in "what will the weather be" there is none."""
        recognize = getattr(async_get_agent(self.hass), "async_recognize_intent", None)
        if recognize is None:
            return None
        command_input = replace(self.user_input, text=text)
        command: RecognizeResult | None = await recognize(command_input, strict_intents_only=True)
        if command is None or any(word in command.intent.name for word in _QUESTION_INTENTS):
            return Reason.DELAYED_QUESTION
        reason = await replace(self, user_input=command_input).reason_against(command)
        return reason and Reason.DELAYED_QUESTION


def _is_custom(result: RecognizeResult) -> bool:
    return bool((result.intent_metadata or {}).get(METADATA_CUSTOM_SENTENCE))


def _wildcards(result: RecognizeResult) -> list[MatchEntity]:
    return [entity for entity in result.entities_list if entity.is_wildcard]
