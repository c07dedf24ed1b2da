"""Tests for answers that break off: the failure is a separate sentence that is spoken and shown once."""

from collections.abc import AsyncGenerator
from contextlib import contextmanager

from homeassistant.components.conversation import (
    AssistantContent,
    ConversationInput,
    UserContent,
    async_get_chat_log,
)
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import llm
from homeassistant.helpers.chat_session import async_get_chat_session
from homeassistant.helpers.intent import IntentResponseType
import pytest

from custom_components.windowed_conversation.bridge.chat_log import ChatLogReply
from custom_components.windowed_conversation.bridge.errors import format_next_sentence
from custom_components.windowed_conversation.const import (
    CONF_TURN_TIMEOUT,
)
from custom_components.windowed_conversation.providers.events import TextDelta, ToolCallDone
from custom_components.windowed_conversation.window import ToolCall
from demo.model_server import ModelServer

from .conftest import AGENT, SayFn, SetUpFn, get_speech
from .dashboard import PipelineClient, ending, streamed
from .states import get_state

STORY = "tell me a story about the sea"
UNREACHABLE = "The model's server cannot be reached right now."


@pytest.fixture
async def dashboard(home: HomeAssistant, hass_ws_client) -> PipelineClient:
    return PipelineClient(await hass_ws_client(home))


@contextmanager
def open_chat_log(home: HomeAssistant, listener=None):
    """Yield a chat log, with Home Assistant's own tools, that contains a user's request."""
    asked = ConversationInput("turn on kitchen light", Context(), "log", None, None, "en", AGENT)
    with (
        async_get_chat_session(home, "log") as session,
        async_get_chat_log(home, session, asked, chat_log_delta_listener=listener) as chat_log,
    ):
        yield chat_log


async def test_broken_answer_is_streamed_with_the_failure_as_its_last_sentence_and_is_the_response(
    entry, dashboard: PipelineClient, model_server: ModelServer
) -> None:
    pipeline = await dashboard.create(prefer_local_intents=False)
    model_server.fault("cut_mid_stream", after_words=20)

    events = await dashboard.run(pipeline, STORY)

    text, response = "".join(streamed(events)), ending(events)["intent_output"]["response"]
    assert text.startswith("Once upon a time")
    assert text.endswith(f"…\n\n{UNREACHABLE}")
    assert text.count(UNREACHABLE) == 1
    assert (response["speech"]["plain"]["speech"], response["response_type"]) == (text, "query_answer")


@pytest.mark.long
async def test_answer_that_takes_too_long_is_what_was_streamed(
    set_up: SetUpFn, dashboard: PipelineClient, model_server: ModelServer
) -> None:
    await set_up(**{CONF_TURN_TIMEOUT: 1})
    pipeline = await dashboard.create(prefer_local_intents=False)
    model_server.change(delay=0.1)

    events = await dashboard.run(pipeline, STORY)

    text = "".join(streamed(events))
    assert ending(events)["intent_output"]["response"]["speech"]["plain"]["speech"] == text
    assert text.count("did not answer in time") == 1
    assert text.startswith("Once ")


async def test_failure_before_the_first_token_is_an_error_in_a_pipeline(
    entry, dashboard: PipelineClient, model_server: ModelServer
) -> None:
    pipeline = await dashboard.create(prefer_local_intents=False)
    model_server.fault("503")

    events = await dashboard.run(pipeline, STORY)

    response = ending(events)["intent_output"]["response"]
    assert streamed(events) == []
    assert response["response_type"] == "error"
    assert response["speech"]["plain"]["speech"] == UNREACHABLE


async def test_broken_answer_to_an_automation_is_an_error_that_holds_both_once_as_the_chat_log_does(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.fault("cut_mid_stream", after_words=3)

    result = await say(STORY, "log")

    with open_chat_log(home) as chat_log:
        contents = [content.content or "" for content in chat_log.content if isinstance(content, AssistantContent)]
    assert result.response.response_type is IntentResponseType.ERROR
    assert get_speech(result) == "".join(contents) == f"Once upon a …\n\n{UNREACHABLE}"
    assert get_state(home, "sensor.ada_last_route").attributes["message"] == UNREACHABLE


async def test_failure_after_a_tool_is_a_message_of_its_own(home: HomeAssistant, entry) -> None:
    heard: list[dict] = []

    async def deltas() -> AsyncGenerator[TextDelta | ToolCallDone]:
        yield TextDelta("One moment")
        yield ToolCallDone(ToolCall("call_a", "HassTurnOn", {"name": "kitchen light"}))

    with open_chat_log(home, lambda _, delta: heard.append(delta)) as chat_log:
        chat_log.async_add_user_content(UserContent("turn on kitchen light"))
        context = llm.LLMContext("test", Context(), "en", "conversation", None)
        chat_log.llm_api = await llm.async_get_api(home, "assist", context)
        reply = ChatLogReply(chat_log, AGENT)
        assert [message.role async for message in reply.add_deltas(deltas())] == ["assistant", "tool"]

        last = await reply.add_sentence(UNREACHABLE)

    assert last == UNREACHABLE
    assert heard[-1] == {"role": "assistant", "content": UNREACHABLE}


@pytest.mark.parametrize("said", ["Thi", "Once, ", "the 3", "(as I said", "say “yes”", "Über"])
def test_words_that_break_off_end_with_an_ellipsis(said: str) -> None:
    assert format_next_sentence(said, "Why.") == "…\n\nWhy."


@pytest.mark.parametrize(
    "said", ["Yes.", "Yes! ", "Yes?\n", "Well…", "(Yes.)", "“Yes.”", "**Yes.**", "はい。", "「はい。」"]
)
def test_whole_sentence_stays_as_it_is(said: str) -> None:
    assert format_next_sentence(said, "Why.") == "\n\nWhy."
