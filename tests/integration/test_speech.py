"""What the user hears of an answer with metadata in it, and what the model is sent of what the user typed."""

from collections.abc import Awaitable, Callable
import json
from typing import Any

from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.helpers.intent import IntentResponseType
import pytest

from custom_components.windowed_conversation.const import CONF_CONTEXT_PLACEMENT
from custom_components.windowed_conversation.turn.context import ContextPlacement
from custom_components.windowed_conversation.window import INTERRUPTED_ANSWER
from tests.providers.byte_server import DONE, STOP, ByteServer, text

from .conftest import Say, SetUp

NO_ANSWER = "The model gave no answer. Please try again."
CONTEXT = "[CONTEXT: time: Monday 2026-11-23 08:05; speaker: Ada]"
SECTIONS = "## Time\nMonday 2026-11-23 08:05\n\n## Speaker\nAda"
ON = '{"name": "hall light"}'
JSON_CALL = f'{{"name": "HassTurnOn", "arguments": {ON}}}'

type Hear = Callable[..., Awaitable[Any]]


@pytest.fixture
async def hear(set_up: SetUp, say: Say, byte_server: ByteServer) -> Hear:
    """Have the model answer with these pieces of text; returns Home Assistant's response."""
    models = {"object": "list", "data": [{"id": "scripted", "object": "model", "created": 1, "owned_by": "us"}]}
    byte_server.reply(json.dumps(models).encode(), headers={"Content-Type": "application/json"})
    in_system = {CONF_CONTEXT_PLACEMENT: ContextPlacement.SYSTEM}
    await set_up(account={CONF_URL: byte_server.url}, routing="llm_only", **in_system)

    async def hear(*pieces: str) -> Any:
        byte_server.reply(*map(text, pieces), STOP, DONE)
        return (await say("what is it like?")).response

    return hear


@pytest.mark.parametrize(
    "answer",
    [
        CONTEXT,
        SECTIONS,
        f"{CONTEXT.lower()}\n\n{SECTIONS}",
        INTERRUPTED_ANSWER,
        "<Think>hm</Think>",
        "<think>hm",
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|><|return|>",
        f"tool_call: HassTurnOn({ON})",
        f"<tool_call>{JSON_CALL}</tool_call>",
        f"[TOOL_CALLS] [{JSON_CALL}]",
        f"<function=HassTurnOn>{ON}</function>",
        JSON_CALL,
    ],
)
async def test_answer_of_which_nothing_is_left_is_an_error_that_is_spoken(
    answer: str, hear: Hear, home: HomeAssistant
) -> None:
    response = await hear(*answer)

    assert response.response_type is IntentResponseType.ERROR
    assert response.speech["plain"]["speech"] == NO_ANSWER
    assert home.states.get("input_boolean.hall").state == "off"


@pytest.mark.parametrize(
    "before",
    [
        f"{CONTEXT}\n\n",
        f"{SECTIONS}\n\n",
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>",
        f"tool_call: HassTurnOn({ON})\n",
        f"{JSON_CALL}\n",
    ],
)
async def test_what_is_left_of_an_answer_is_spoken(before: str, hear: Hear) -> None:
    response = await hear(*f"{before}It is cold. Take [a coat] & <gloves>.")

    assert response.speech["plain"]["speech"] == "It is cold. Take [a coat] & <gloves>."
