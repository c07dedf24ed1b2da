"""The text on the weight of an agent's requests, at the top of the agent's form."""

import asyncio
from enum import StrEnum

from homeassistant.components.conversation import DOMAIN as CONVERSATION_DOMAIN
from homeassistant.core import Context
from homeassistant.helpers import llm

from ..agents.agent import Agent
from ..agents.conversation_turn import async_weigh_request
from ..bridge.errors import async_get_spoken_text
from ..const import DOMAIN
from ..turn.errors import TurnError
from ..turn.limits import RequestWeight

# In seconds. The form waits no longer for the tools of other integrations.
_WEIGHT_TIMEOUT = 0.5


class WeightSentence(StrEnum):
    """The sentences of the text: the parts of a request with and without facts, and the sizes of window and model."""

    PARTS = "parts"
    PARTS_AND_FACTS = "parts_and_facts"
    WINDOW = "window"
    WINDOW_AND_MODEL = "window_and_model"


async def async_describe_weight(agent: Agent) -> str:
    """Return the text in Home Assistant's language, or an empty text if the weight is unknown."""
    context = llm.LLMContext(DOMAIN, Context(), agent.hass.config.language, CONVERSATION_DOMAIN, None)
    try:
        async with asyncio.timeout(_WEIGHT_TIMEOUT):
            weight = await async_weigh_request(agent, context)
    except TimeoutError, TurnError:
        return ""
    return "" if weight is None else await _async_format_weight(agent, weight)


async def _async_format_weight(agent: Agent, weight: RequestWeight) -> str:
    values = {
        name: f"{getattr(weight, name) or 0:,}"
        for name in ("total", "instructions", "home", "tools", "facts", "window", "model")
    }
    sentences = (
        WeightSentence.PARTS_AND_FACTS if weight.facts else WeightSentence.PARTS,
        WeightSentence.WINDOW if weight.model is None else WeightSentence.WINDOW_AND_MODEL,
    )
    hass = agent.hass
    texts = [
        await async_get_spoken_text(hass, hass.config.language, "selector", f"request_weight.options.{sentence}")
        for sentence in sentences
    ]
    return " ".join(texts).format(**values)
