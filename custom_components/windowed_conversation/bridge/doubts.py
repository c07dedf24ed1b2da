"""Doubts about a sentence that Home Assistant matched: a wildcard's capture is compared with the home.

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


def _is_custom(result: RecognizeResult) -> bool:
    return bool((result.intent_metadata or {}).get(METADATA_CUSTOM_SENTENCE))


def _is_bare_name(result: RecognizeResult) -> bool:
    return result.intent_sentence is not None and is_bare(result.intent_sentence.text or "")


def _wildcards(result: RecognizeResult) -> list[MatchEntity]:
    return [entity for entity in result.entities_list if entity.is_wildcard]


def _captured(result: RecognizeResult, entity: MatchEntity) -> str:
    """Return the words of a capture as they were said: its text has lost the commas.

    The span is not trusted: it is wrong if the sentence begins with a mark such as "¿".
    """
    said = result.original_text[slice(*entity.text_span)] if entity.text_span else ""
    return said.strip() if same_words(said, entity.text) else entity.text


def _is_cut(result: RecognizeResult, entity: MatchEntity) -> bool:
    """Return whether a capture ends inside a word: "pan a l" of "pan a la lista"."""
    span = entity.text_span
    if span is None or not same_words(result.original_text[slice(*span)], entity.text):
        return False
    return cuts_word(result.original_text, span)


def _asks_for_persons(result: RecognizeResult) -> bool:
    domain = result.entities.get("domain")
    return domain is not None and domain.value == "person"


@dataclass(frozen=True, slots=True)
class Doubts:
    """The doubts about what Home Assistant recognizes in one input."""

    hass: HomeAssistant
    user_input: ConversationInput
    situation: Situation
    model_has_tools: bool

    @callback
    def need_a_look(self, result: RecognizeResult) -> bool:
        """Return whether there may be a doubt: quick, for the many sentences about which there is none."""
        if _is_custom(result):
            return False
        follows = self.situation.answers_question or self.situation.after_model or is_question(self.user_input.text)
        if follows and _is_bare_name(result):
            return True
        return self.situation.answers_question or bool(_wildcards(result)) or self._of_home(result) is not None

    async def about(self, result: RecognizeResult) -> Reason | None:
        """Return the reason to ask a model instead, or None."""
        if _is_custom(result):
            return None
        reason = self._of_sentence(result) or await self._of_captures(result)
        return None if reason in _FOR_TOOLS and not self.model_has_tools else reason

    def _of_sentence(self, result: RecognizeResult) -> Reason | None:
        bare = _is_bare_name(result)
        if self.situation.answers_question and (bare or not result.entities or _wildcards(result)):
            return Reason.ANSWERS_QUESTION
        if bare and is_question(self.user_input.text):
            return Reason.NAME_IN_QUESTION
        if bare and self.situation.after_model:
            return Reason.NAME_AFTER_MODEL
        return self._of_home(result)

    async def _of_captures(self, result: RecognizeResult) -> Reason | None:
        for entity in _wildcards(result):
            if (reason := await self._of_capture(result, entity)) is not None:
                return reason
        return None

    async def _of_capture(self, result: RecognizeResult, entity: MatchEntity) -> Reason | None:
        text = _captured(result, entity)
        if entity.name == "item" and _is_cut(result, entity):
            return Reason.CUT_WORD
        if (result.intent.name, entity.name) == _DELAYED_COMMAND:
            return await self._of_delayed_command(text)
        rule = RULES.get((result.intent.name, entity.name))
        return await rule(self.hass, self.user_input, text) if rule else None

    def _of_home(self, result: RecognizeResult) -> Reason | None:
        """Return the reason why this home cannot handle an intent, or None."""
        if not any(handler.intent_type == result.intent.name for handler in intent.async_get(self.hass)):
            return Reason.NO_HANDLER
        if result.intent.name == intent.INTENT_START_TIMER and "conversation_command" not in result.entities:
            return None if self._has_timers() else Reason.NO_TIMERS
        of_persons = result.intent.name == intent.INTENT_GET_STATE and _asks_for_persons(result)
        return Reason.NOBODY_KNOWN if of_persons and not async_exposed_persons(self.hass) else None

    def _has_timers(self) -> bool:
        device_id = self.user_input.device_id
        return device_id is not None and async_device_supports_timers(self.hass, device_id)

    async def _of_delayed_command(self, text: str) -> Reason | None:
        """Recognize the command in a delayed command: in "what will the weather be" there is none."""
        recognize = getattr(async_get_agent(self.hass), "async_recognize_intent", None)
        if recognize is None:
            return None
        command_input = replace(self.user_input, text=text)
        command: RecognizeResult | None = await recognize(command_input, strict_intents_only=True)
        if command is None or any(word in command.intent.name for word in _QUESTION_INTENTS):
            return Reason.DELAYED_QUESTION
        doubt = await replace(self, user_input=command_input).about(command)
        return doubt and Reason.DELAYED_QUESTION
