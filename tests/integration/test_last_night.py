"""Tests that the two actions on the troubleshooting page are sufficient to explain a turn of last night."""

from datetime import datetime, timedelta
from typing import Any

from homeassistant.auth.const import GROUP_ID_ADMIN, GROUP_ID_USER
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.const import CONF_MODEL, CONF_URL
from homeassistant.core import Context, HomeAssistant
from homeassistant.util import dt as dt_util
from homeassistant.util.yaml import parse_yaml
import pytest
from pytest_homeassistant_custom_component.common import async_capture_events, async_mock_service

from custom_components.windowed_conversation.agents.local_intents import LocalAnswerer
from custom_components.windowed_conversation.const import (
    CONF_PROVIDER,
    CONF_RECORD,
    DOMAIN,
    PROVIDER_OPENAI,
    RecordLevel,
)
from custom_components.windowed_conversation.turn.routing import Situation
from demo.model_server import ModelServer, call, words
from tests.documents import DOCS, blocks
from tests.price_list import price

from .conftest import AGENT, SayFn, SetUpFn
from .states import add_satellite, get_state

MODEL = "gpt-4o-mini"
LAST_ROUTE = "sensor.ada_last_route"
SAID, ANSWER = "the cat has to get into the garage", "The garage door is open."
# The two actions in the section "Why did it open the garage at three?" of that page.
_ACTIONS: list[Any] = [parse_yaml(text) for text in blocks(DOCS / "troubleshooting.md", "yaml")]
LIST: dict[str, Any]
GET: dict[str, Any]
LIST, GET = _ACTIONS
HALF_HOUR = timedelta(minutes=30)


@pytest.fixture
async def grace(home: HomeAssistant) -> Context:
    """Return the context of a user who is not the owner."""
    await home.auth.async_create_user("Owner", group_ids=[GROUP_ID_ADMIN])
    return Context(user_id=(await home.auth.async_create_user("Grace", group_ids=[GROUP_ID_USER])).id)


@pytest.fixture
async def night(home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, grace: Context) -> None:
    """Run a turn that opens the garage door and another turn after it."""
    model_server.change(models=(MODEL,))
    model_server.script(call("HassTurnOn", name="garage door"), words(ANSWER), words("Good night."))
    home.states.async_set("cover.garage_door", "closed", {"friendly_name": "garage door"})
    async_expose_entity(home, "conversation", "cover.garage_door", should_expose=True)
    async_mock_service(home, "cover", "open_cover")
    await set_up(
        account={CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url},
        **{CONF_MODEL: MODEL, CONF_RECORD: RecordLevel.FULL},
    )
    await say(SAID, context=grace, device_id=add_satellite(home, "Landing"))
    await say("thank you, and good night", context=grace)


async def listed(home: HomeAssistant, grace: Context) -> list[dict[str, Any]]:
    """Call the first documented action with the time range of the test, and return the turns that it lists."""
    now = dt_util.now()
    assert LIST["data"].keys() == {"since", "until", "tool"}
    times = {"since": str(now - HALF_HOUR), "until": str(now + HALF_HOUR)}
    turns: list[dict[str, Any]] = (await perform(home, LIST, grace, **times))["turns"]
    return turns


async def perform(home: HomeAssistant, action: dict[str, Any], context: Context, **data: Any) -> Any:
    """Call an action as documented on the page, and return its response."""
    domain, name = action["action"].split(".")
    return await home.services.async_call(
        domain, name, action["data"] | data, blocking=True, return_response=True, context=context
    )


async def test_turn_of_last_night_is_explained_by_the_actions_alone(
    home: HomeAssistant, night, grace: Context, model_server: ModelServer
) -> None:
    (found,) = await listed(home, grace)
    turn = await perform(home, GET, grace, turn_id=found["turn_id"])

    assert abs(dt_util.now() - datetime.fromisoformat(turn["time"])) < HALF_HOUR
    assert (turn["person"], turn["device"], turn["said"]) == ("Grace", "Landing", SAID)
    assert (turn["route"], turn["reason"], turn["answered_by"]) == ("model", "no_local_match", AGENT)
    (made,) = turn["tool_calls"]
    assert (made["name"].rpartition("__")[2], made["arguments"]) == ("HassTurnOn", {"name": "garage door"})
    assert '"garage door"' in made["result"]
    assert (turn["answer"], turn["outcome"]) == (ANSWER, "answered")
    sent = [request.usage for request in model_server.requests][:2]
    assert turn["usage"]["input"] == sum(each["prompt"] for each in sent)
    assert turn["usage"]["output"] == sum(each["completion"] for each in sent)
    assert turn["cost"] == pytest.approx(sum(price("openai", MODEL, each) for each in sent), abs=1e-9)
    assert [each["model"] for each in turn["attempts"]] == [MODEL, MODEL]


async def test_request_of_last_night_is_shown_as_the_server_got_it(
    home: HomeAssistant, night, grace: Context, model_server: ModelServer
) -> None:
    (found,) = await listed(home, grace)

    second = (await perform(home, GET, grace, turn_id=found["turn_id"], request=2))["sent"]

    got = model_server.requests[1].body
    assert second["system"] == got["instructions"]
    assert {each["name"] for each in second["tools"]} == {each["name"] for each in got["tools"]}
    assert SAID in second["messages"][0]["content"]
    assert second["messages"][-1]["role"] == "tool"


async def test_sensor_and_event_lead_to_the_newest_turn(home: HomeAssistant, entry, say: SayFn, grace: Context) -> None:
    events = async_capture_events(home, f"{DOMAIN}_turn")
    await say("hello there", context=grace)

    turn_id = get_state(home, LAST_ROUTE).attributes["turn_id"]

    assert [event.data["turn_id"] for event in events] == [turn_id]
    assert (await perform(home, GET, grace, turn_id=turn_id))["person"] == "Grace"


async def test_sensor_leads_to_a_turn_that_failed(
    home: HomeAssistant, entry, say: SayFn, grace: Context, model_server: ModelServer
) -> None:
    model_server.fault("500")
    for _ in range(2):
        await say("hello there", context=grace)

    turn = await perform(home, GET, grace, turn_id=get_state(home, LAST_ROUTE).attributes["turn_id"])

    assert (turn["outcome"], turn["error"], turn["text"]) == ("error", "unavailable", "shown")
    assert [each["outcome"] for each in turn["attempts"]] == ["error"]


async def test_sensor_leads_to_a_turn_that_a_fault_of_ours_has_ended(
    home: HomeAssistant, entry, say: SayFn, grace: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(self: LocalAnswerer, situation: Situation) -> None:
        raise RuntimeError("pelican")

    monkeypatch.setattr(LocalAnswerer, "answer_input", answer)
    for _ in range(2):
        await say("hello there", context=grace)

    turns = (await perform(home, LIST | {"data": {}}, grace))["turns"]

    assert [(each["outcome"], each["error"]) for each in turns] == [("error", "unexpected")] * 2
    assert get_state(home, LAST_ROUTE).attributes["turn_id"] == turns[0]["turn_id"]


async def test_turn_that_is_not_recorded_has_no_id(home: HomeAssistant, set_up: SetUpFn, say: SayFn) -> None:
    events = async_capture_events(home, f"{DOMAIN}_turn")
    await set_up(**{CONF_RECORD: RecordLevel.OFF})
    await say("hello there")

    assert get_state(home, LAST_ROUTE).attributes["turn_id"] is None
    assert [event.data["turn_id"] for event in events] == [None]
