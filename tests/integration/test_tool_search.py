"""Tests for tools that are found when they are needed, because their schemas would take too much of each request."""

import json
from typing import Any

from homeassistant.core import HomeAssistant
from homeassistant.helpers import llm
import pytest

from custom_components.windowed_conversation.const import CONF_RECORD, RecordLevel
from custom_components.windowed_conversation.turn.tool_names import CALL_TOOL, FIND_TOOLS
from demo.model_server import ModelServer, call, words
from demo.model_server.request_log import RequestRecord

from .actions import act
from .conftest import SayFn, SetUpFn, flush_store, get_speech
from .large_source import AddSource, Calls, Source, SourceTool
from .remembered import recorded_turns
from .satellite import Ask
from .states import add_satellite


def get_tool_names(request: RequestRecord) -> set[str]:
    """Return the names of the tools of a request, without the namespaces that Home Assistant gives them."""
    return {tool["function"]["name"].rpartition("__")[2] for tool in request.body["tools"]}


def get_results(request: RequestRecord) -> list[Any]:
    return [json.loads(each["content"]) for each in request.body["messages"] if each["role"] == "tool"]


async def test_schemas_of_a_large_source_are_not_sent(
    add_source: AddSource, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    add_source()
    await set_up(llm_hass_api=["assist", "archive"], routing="model_only")

    await say("which colour is the sky?")

    (request,) = model_server.requests
    names = get_tool_names(request)
    assert {"find_tools", "call_tool", "HassTurnOn"} <= names
    assert not [name for name in names if "_of_" in name]
    assert json.dumps(request.body).count("radio_of_sauna") == 1


async def test_names_that_the_prompt_has_in_any_order_are_not_listed_again(
    add_source: AddSource, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    add_source(lists_names=True)
    await set_up(llm_hass_api=["archive"], routing="model_only")

    await say("which colour is the sky?")

    (request,) = model_server.requests
    assert json.dumps(request.body["messages"]).count("radio_of_sauna") == 1
    assert "radio_of_sauna" not in json.dumps(request.body["tools"])


async def test_tool_is_found_by_its_words_and_called(
    add_source: AddSource, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    calls = add_source()
    await set_up(llm_hass_api=["assist", "archive"], routing="model_only")
    model_server.script(
        call(FIND_TOOLS, words="invoices sauna"),
        call(CALL_TOOL, name="invoices_of_sauna", arguments={"amount": 3}),
        words("Here they are."),
    )

    answer = await say("which invoices are in the sauna?")

    found, result = get_results(model_server.requests[-1])
    assert (found["tools"][0]["name"], len(found["tools"])) == ("archive__invoices_of_sauna", 6)
    assert found["tools"][0]["parameters"]["required"] == ["amount"]
    assert (calls, result) == ([("invoices_of_sauna", {"amount": 3})], {"done": "invoices_of_sauna"})
    assert get_speech(answer) == "Here they are."


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "invoices_of_sauna", "arguments": '{"amount": 3}'},
        {"name": "archive__invoices_of_sauna", "arguments": {"amount": 3}},
    ],
    ids=["arguments as text", "namespace"],
)
async def test_call_of_a_small_model_is_understood(
    *, arguments: dict[str, Any], add_source: AddSource, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    calls = add_source()
    await set_up(llm_hass_api=["assist", "archive"], routing="model_only")
    model_server.script(call(CALL_TOOL, **arguments), words("Here they are."))

    await say("which invoices are in the sauna?")

    assert calls == [("invoices_of_sauna", {"amount": 3})]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"name": "invoices_of_sauna", "arguments": {"number": 3}}, "invoices_of_sauna"),
        ({"name": "invoices_of_nowhere", "arguments": {"amount": 3}}, FIND_TOOLS),
    ],
    ids=["arguments", "name"],
)
async def test_wrong_call_is_refused_with_what_a_model_needs(
    *,
    arguments: dict[str, Any],
    expected: str,
    add_source: AddSource,
    set_up: SetUpFn,
    say: SayFn,
    model_server: ModelServer,
) -> None:
    calls = add_source()
    await set_up(llm_hass_api=["assist", "archive"], routing="model_only")
    model_server.script(call(CALL_TOOL, **arguments), words("That did not work."))

    await say("which invoices are in the sauna?")

    (result,) = get_results(model_server.requests[-1])
    assert calls == []
    assert "error" in result
    assert expected in json.dumps(result)


async def test_found_tools_stay_found_in_a_conversation(
    add_source: AddSource, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    add_source()
    await set_up(llm_hass_api=["assist", "archive"], routing="model_only")
    model_server.script(call(FIND_TOOLS, words="invoices sauna"), words("I know how."), words("Still."))

    await say("can you list invoices?", "mine")
    await say("are you sure?", "mine")

    before, after = model_server.requests[-2:]
    assert get_results(after) == get_results(before)
    assert after.body["tools"] == before.body["tools"]


async def test_deferred_tool_has_its_own_name_wherever_its_call_is_shown(
    home: HomeAssistant, add_source: AddSource, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    add_source()
    await set_up(llm_hass_api=["assist", "archive"], routing="model_only", **{CONF_RECORD: RecordLevel.FULL})
    model_server.script(call(CALL_TOOL, name="invoices_of_sauna", arguments={"amount": 3}), words("Here they are."))

    await say("which invoices are in the sauna?")
    await flush_store(home)

    (turn,), name = await recorded_turns(home), "archive__invoices_of_sauna"
    window = await act(home, "get_conversation")
    called = [each for message in window["messages"] for each in message.get("tool_calls", ())]
    assert (turn["tools"], turn["attempts"][0]["tools"]) == ([name], [name])
    assert [(each["name"], each["arguments"]) for each in turn["tool_calls"]] == [(name, {"amount": 3})]
    assert [(each["name"], each["arguments"]) for each in called] == [(name, {"amount": 3})]
    assert [each["name"] for each in turn["waterfall"] if each["step"] == "tool"] == [name]


async def test_model_is_sent_the_call_of_a_deferred_tool_as_it_has_made_it(
    add_source: AddSource, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    add_source()
    await set_up(llm_hass_api=["assist", "archive"], routing="model_only")
    given = {"name": "archive__invoices_of_sauna", "arguments": {"amount": 3}}
    model_server.script(call(CALL_TOOL, **given), words("Here they are."))

    await say("which invoices are in the sauna?")

    (sent,) = [each["tool_calls"] for each in model_server.requests[-1].body["messages"] if "tool_calls" in each]
    assert [(each["function"]["name"], json.loads(each["function"]["arguments"])) for each in sent] == [
        (CALL_TOOL, given)
    ]


async def test_small_source_is_sent_whole_beside_a_large_one(
    home: HomeAssistant, add_source: AddSource, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    add_source()
    small = Source(hass=home, id="small", name="Small")
    object.__setattr__(small, "tools", [SourceTool("water_level", "Level of the well.", [])])
    llm.async_register_api(home, small)
    await set_up(llm_hass_api=["assist", "archive", "small"], routing="model_only")

    await say("which colour is the sky?")

    assert "water_level" in get_tool_names(model_server.requests[-1])


async def test_request_without_large_sources_has_no_tools_to_find_tools(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    await set_up(llm_hass_api=["assist"], routing="model_only")

    await say("which colour is the sky?")

    assert get_tool_names(model_server.requests[-1]).isdisjoint({"find_tools", "call_tool"})


async def test_person_without_rights_finds_no_tool_for_administrators(
    add_source: AddSource, set_up: SetUpFn, say: SayFn, model_server: ModelServer, ask: Ask
) -> None:
    calls = add_source(is_for_administrators=True)
    await set_up(llm_hass_api=["assist", "archive"], routing="model_only")
    model_server.script(call(CALL_TOOL, name="invoices_of_sauna", arguments={"amount": 3}), words("No."))

    await say("which invoices are in the sauna?")

    assert "find_tools" not in get_tool_names(model_server.requests[0])
    assert calls == []


async def test_tool_that_destroys_something_asks_although_it_is_deferred(
    home: HomeAssistant, add_source: AddSource, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    erased: Calls = []
    erase = SourceTool("erase_disks", "Erase all disks.", erased)
    erase.annotations = llm.ToolAnnotations(destructive=True)
    erase.title = "Erase disks"
    add_source(more=(erase,))
    await set_up(llm_hass_api=["assist", "archive"], routing="model_only")
    satellite = {"device_id": add_satellite(home, "Hall")}
    model_server.script(call(CALL_TOOL, name="erase_disks", arguments={"amount": 1}), words("Well."))

    question = await say("would you please tidy up", None, **satellite)
    before = [*erased]
    await say("yes", None, **satellite)

    assert get_speech(question).endswith("Shall I really do this: Erase disks?")
    assert (before, erased) == ([], [("erase_disks", {"amount": 1})])
