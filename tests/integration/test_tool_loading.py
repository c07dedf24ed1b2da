"""Tests of models to which the result of a search gives more tools, in the formats of OpenAI and Anthropic."""

import json
from typing import Any

from homeassistant.const import CONF_MODEL
from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.const import CONF_ROUTING
from demo.model_server import ModelServer, call, words
from demo.model_server.request_log import RequestRecord
from tests.providers.snapshots.sdk_types import matches_sdk_types

from .account_kinds import KINDS, Kind
from .conftest import SayFn, SetUpFn, flush_store, get_speech
from .large_source import AddSource
from .remembered import recorded_turns
from .rows import Row, row

__all__ = ["row"]

RESPONSES, CHAT, *_, ANTHROPIC = KINDS
MODELS = {RESPONSES.name: "gpt-5.4", CHAT.name: "gpt-5.4", ANTHROPIC.name: "claude-sonnet-4-5"}
LOADING = (RESPONSES, ANTHROPIC)
NAME = "archive__invoices_of_sauna"


async def set_up_kind(set_up: SetUpFn, server: ModelServer, kind: Kind, model: str = "") -> None:
    """Set up an agent of this kind of account with the tools of a large source."""
    model = model or MODELS[kind.name]
    server.change(models=(model,))
    agent = {CONF_MODEL: model, CONF_ROUTING: "model_only", "llm_hass_api": ["assist", "archive"]}
    await set_up(account=kind.account(server), **agent)


def list_tools(request: RequestRecord) -> list[str]:
    """Return the names or else the types of the tools that the model reads at first."""
    tools = [tool.get("function", tool) for tool in request.body["tools"] if not tool.get("defer_loading")]
    return [tool.get("name", tool.get("type")) for tool in tools]


async def test_found_tool_is_called_directly(
    *, home: HomeAssistant, row: Row, add_source: AddSource, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    calls = add_source()
    for kind in LOADING:
        async with row(kind.name):
            await set_up_kind(set_up, model_server, kind)

            answer = await say("use a tool to list the invoices of the sauna, amount: 3", kind.name)
            await flush_store(home)

            turn: Any = (await recorded_turns(home))[0]
            assert calls.pop() == ("invoices_of_sauna", {"amount": 3})
            assert "invoices_of_sauna" in get_speech(answer)
            assert turn["tools"] == ["windowed_conversation__find_tools", NAME]
            wire = kind.name.rpartition("_")[2]
            assert [each.violations for each in model_server.requests] == [[], [], []]
            assert all(matches_sdk_types(wire, each.body) for each in model_server.requests)
            assert [name for each in model_server.requests for name in list_tools(each) if "call_tool" in name] == []


async def test_found_tool_stays_found_and_requests_begin_the_same(
    row: Row, add_source: AddSource, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    calls = add_source()
    for kind in LOADING:
        async with row(kind.name):
            await set_up_kind(set_up, model_server, kind)
            await say("use a tool to list the invoices of the sauna, amount: 3", kind.name)
            model_server.script(call(NAME, amount=4), words("There."))

            await say("again, please", kind.name)

            tools = {json.dumps(request.body["tools"]) for request in model_server.requests}
            assert (calls[-1], len(tools)) == (("invoices_of_sauna", {"amount": 4}), 1)
            assert model_server.requests[-1].usage["cached"] > 0


async def test_search_without_a_result_is_answered(
    row: Row, add_source: AddSource, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    add_source()
    for kind in LOADING:
        async with row(kind.name):
            await set_up_kind(set_up, model_server, kind)
            model_server.script(call("find_tools", words="zebra"), words("There is none."))

            answer = await say("find me a zebra", kind.name)

            assert (get_speech(answer), model_server.requests[-1].violations) == ("There is none.", [])


@pytest.mark.parametrize(
    ("kind", "model"), [(CHAT, "gpt-5.4"), (RESPONSES, "gpt-5-mini"), (ANTHROPIC, "claude-haiku-4-5")], ids=str
)
async def test_other_models_call_a_tool_through_ours(
    *, kind: Kind, model: str, add_source: AddSource, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    calls = add_source()
    await set_up_kind(set_up, model_server, kind, model)

    await say("use a tool to list the invoices of the sauna, amount: 3")

    assert calls == [("invoices_of_sauna", {"amount": 3})]
    assert "windowed_conversation__call_tool" in list_tools(model_server.requests[0])
