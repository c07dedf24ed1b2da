"""Tests in a real Home Assistant for the answer limit that is sent to a model, with and without reasoning."""

from dataclasses import replace

from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import CONF_MAX_ANSWER_TOKENS, CONF_ROUTING
from demo.model_server import ModelServer, thought, words
from demo.model_server.conversation import AnswerFinish

from .conftest import SayFn, SetUpFn, get_speech

LIMIT = 300
WITH_ROOM = LIMIT + 4096
CUT = replace(thought("The user greets me, so I"), finish=AnswerFinish.LENGTH)


@pytest.fixture
async def entry(set_up: SetUpFn) -> MockConfigEntry:
    """Return an account with an agent whose answers are limited to 300 tokens."""
    return await set_up(**{CONF_ROUTING: "model_only", CONF_MAX_ANSWER_TOKENS: LIMIT})


def limits(server: ModelServer) -> list[int]:
    return [request.body["max_tokens"] for request in server.requests]


async def test_300_tokens_are_300_for_a_model_that_does_not_reason(
    entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    for _ in range(3):
        await say("hello")

    assert limits(model_server) == [LIMIT] * 3


async def test_answer_to_a_question_that_used_up_the_limit_in_thought_is_heard_and_billed(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.script(CUT, thought("The user greets me.") + words("Good morning."))

    assert get_speech(await say("hello")) == "Good morning."

    billed = sum(request.usage["completion"] for request in model_server.requests)
    assert limits(model_server) == [LIMIT, WITH_ROOM]
    assert home.states.is_state("sensor.ada_total_output_tokens", str(billed))


async def test_model_that_reasons_keeps_its_room_over_a_reload(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.script(thought("The user greets me.") + words("Good morning."))
    await say("hello")
    await home.config_entries.async_reload(entry.entry_id)

    await say("hello")

    assert limits(model_server) == [LIMIT, WITH_ROOM]
