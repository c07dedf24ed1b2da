"""Tests for tool calls with unexpected arguments: the turn continues, and valid calls in the same answer are kept."""

from collections.abc import Awaitable, Callable
import json
from typing import Any

from homeassistant.const import ATTR_ENTITY_ID, CONF_URL, SERVICE_TURN_OFF
from homeassistant.core import HomeAssistant
from homeassistant.helpers import area_registry as ar, llm
import pytest

from custom_components.windowed_conversation.bridge.chat_log import get_call_tags, get_result_tags
from custom_components.windowed_conversation.window import Role, Window
from tests.providers.byte_server import CALLS, DONE, STOP, ByteServer, fragment, text

from .conftest import SayFn, SetUpFn, get_speech
from .states import get_state

TURN_ON = "intent__HassTurnOn"

type Act = Callable[..., Awaitable[tuple[str, Window]]]


def nested(depth: int) -> str:
    return '{"name": ' + '{"a":' * depth + "1" + "}" * depth + "}"


ODD = {
    "long domain": (TURN_ON, json.dumps({"name": "x", "domain": ["a" * 200]})),
    "domain in words": (TURN_ON, json.dumps({"name": "x", "domain": "lights, please"})),
    "many domains": (TURN_ON, json.dumps({"domain": [f"domain_{number}" for number in range(200)]})),
    "domains of every type": (TURN_ON, json.dumps({"domain": [1, None, {"a": 2}, ["light"]], "area": {"a": "b"}})),
    "long area": (TURN_ON, json.dumps({"area": "a" * 5000})),
    "nested": (TURN_ON, nested(1000)),
    "more than 64 bits": (TURN_ON, '{"brightness": 36893488147419103232}'),
    "no number": (TURN_ON, '{"brightness": NaN, "color": 1e999}'),
    "empty key": (TURN_ON, '{"": "", "\\ud83d": "\\u0000"}'),
    "unknown tool": ("no_such_tool", "{}"),
    "odd name of a tool": ("a tool;\nwith \\ud83d" + "t" * 3000, "{}"),
}
# Arguments that no JSON parser accepts.
UNREADABLE = {"nested": nested(100_000), "digits": '{"name": ' + "9" * 5000 + "}"}


@pytest.fixture
async def act(home: HomeAssistant, set_up: SetUpFn, say: SayFn, byte_server: ByteServer) -> Act:
    """Return a function that takes a turn with a valid tool call and the given one, and returns answer and window.

    The valid call switches the hall light on, which is off before.
    """
    models = {"object": "list", "data": [{"id": "scripted", "object": "model", "created": 1, "owned_by": "us"}]}
    byte_server.set_reply(json.dumps(models).encode(), headers={"Content-Type": "application/json"})
    entry = await set_up(account={CONF_URL: byte_server.url}, routing="model_only")
    (agent,) = entry.runtime_data.agents.values()

    async def act(name: str, arguments: str, conversation_id: str = "test") -> tuple[str, Window]:
        hall = {ATTR_ENTITY_ID: "input_boolean.hall"}
        await home.services.async_call("input_boolean", SERVICE_TURN_OFF, hall, blocking=True)
        good = fragment('{"name": "hall light"}', TURN_ON, index=0, id="call_a")
        byte_server.set_reply(good, fragment(arguments, name, index=1, id="call_b"), CALLS, DONE)
        byte_server.add_reply(text("Good.") + STOP + DONE)
        answer = get_speech(await say("switch on the hall light", conversation_id))
        return answer, agent.windows.loaded_windows()[conversation_id]

    return act


def get_results(window: Window) -> dict[str, str]:
    """Return the tool results in the window, by the arguments of their calls."""
    arguments = {call.id: str(dict(call.arguments)) for message in window.messages() for call in message.tool_calls}
    results = [message for message in window.messages() if message.role is Role.TOOL]
    return {arguments[message.tool_call_id or ""]: message.content for message in results}


async def test_call_without_the_namespace_of_its_tool_is_carried_out(act: Act, home: HomeAssistant) -> None:
    await act("HassTurnOn", '{"name": "kitchen light"}')

    assert get_state(home, "input_boolean.kitchen").state == "on"


async def test_turn_goes_on_after_an_odd_call(act: Act, home: HomeAssistant, subtests: pytest.Subtests) -> None:
    for kind, (name, arguments) in ODD.items():
        with subtests.test(kind):
            answer, window = await act(name, arguments, kind)

            assert answer == "Good."
            assert get_state(home, "input_boolean.hall").state == "on"
            assert "action_done" in get_results(window)["{'name': 'hall light'}"]
            assert "incomplete" not in window.stats().tag_distribution


@pytest.mark.parametrize("arguments", UNREADABLE.values(), ids=UNREADABLE)
async def test_good_call_of_an_answer_that_cannot_be_read_is_known(
    arguments: str, act: Act, home: HomeAssistant
) -> None:
    answer, window = await act(TURN_ON, arguments)

    assert "could not be read" in answer
    assert "action_done" in get_results(window)["{'name': 'hall light'}"]
    assert "incomplete" in window.stats().tag_distribution


async def test_conversation_goes_on_after_an_odd_call(act: Act, say: SayFn, byte_server: ByteServer) -> None:
    await act(*ODD["long domain"])

    assert get_speech(await say("hello")) == "Good."
    assert "call_b" in str(byte_server.requests[-1]["messages"])


def test_what_is_no_domain_is_no_tag(hass: HomeAssistant, subtests: pytest.Subtests) -> None:
    for domain in ("a" * 100, "lights, please", "Light", "", "   ", "light.kitchen", "light\n"):
        with subtests.test(domain=domain):
            assert get_call_tags(hass, {"domain": [domain, "light"]}) == {"context:light"}


def test_area_whose_id_makes_too_long_a_tag_has_none(hass: HomeAssistant) -> None:
    ar.async_get(hass).async_create("Hall")
    ar.async_get(hass).async_create("A" * 200)

    assert get_call_tags(hass, {"area": ["A" * 200, "Hall"]}) == {"context:hall"}


def test_target_of_a_result_that_makes_no_tag_has_none(hass: HomeAssistant, subtests: pytest.Subtests) -> None:
    for target in (("area", "a" * 200), ("domain", "no domain"), ("area", " "), ("domain", "a" * 200)):
        with subtests.test(target=target):
            targets: Any = [{"type": kind, "id": id_} for kind, id_ in (target, ("area", "hall"))]

            assert get_result_tags(hass, llm.ToolResult(data={"data": {"success": targets}})) == {"context:hall"}
