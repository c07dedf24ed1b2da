"""Tests for argument names that Anthropic refuses: they are sent under other names, and restored in the answer."""

import re
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.anthropic.encoding import encode_request
from custom_components.windowed_conversation.providers.events import Request, ToolSchema
from custom_components.windowed_conversation.window import Message, ToolCall

from ..conftest import Hear
from ..wires.anthropic import AnthropicWire
from ..wires.parts import Call, Calls
from .conftest import MODEL

# The rule for names that the API states in its error message.
TAKEN = re.compile(r"[a-zA-Z0-9_.-]{1,64}")

NAMES = ("größe", "gr__e", "with space", "with_space", "$filter", "filter[id]", "", "x" * 65, "x" * 66, "ok.a-b_9")


def tool(*names: str, **fields: Any) -> ToolSchema:
    return ToolSchema("act", "", {"properties": {name: {"title": name} for name in names}, **fields})


def sent_schema(offered: ToolSchema) -> dict[str, Any]:
    schema: dict[str, Any] = encode_request(Request(MODEL, (Message.user("hello"),), (offered,)))["tools"][0]
    return dict(schema["input_schema"])


def test_names_are_sent_as_the_api_takes_them_and_none_becomes_another() -> None:
    properties = sent_schema(tool(*NAMES))["properties"]

    assert [schema["title"] for schema in properties.values()] == list(NAMES)
    assert [name for name in properties if not TAKEN.fullmatch(name)] == []


def test_name_that_is_taken_already_is_not_taken_again() -> None:
    (made,) = sent_schema(tool("größe"))["properties"]

    assert [each["title"] for each in sent_schema(tool("größe", made))["properties"].values()] == ["größe", made]


def test_required_names_are_those_that_are_sent() -> None:
    schema = sent_schema(tool("größe", "ok", required=["ok", "größe"]))

    assert sorted(schema["required"]) == sorted(schema["properties"])


def test_schema_that_the_api_takes_stays() -> None:
    offered = tool("ok", "a.b-c_9", required=["ok"])

    assert sent_schema(offered) == offered.parameters


def test_names_in_a_choice_are_replaced_too() -> None:
    branches = [{"type": "object", "properties": {name: {}}, "required": [name]} for name in ("größe", "$filter")]

    assert [name for name in sent_schema(tool(anyOf=branches))["properties"] if not TAKEN.fullmatch(name)] == []


def test_calls_of_the_history_have_the_names_of_the_schema() -> None:
    offered = tool("größe", "ok")
    call = ToolCall("toolu_1", "act", {"größe": 9, "ok": {"größe": 1}})
    messages = (
        Message.user("hello"),
        Message.assistant(tool_calls=(call,)),
        Message.tool("toolu_1", "act", "{}"),
    )

    sent = encode_request(Request(MODEL, messages, (offered,)))["messages"][1]["content"][0]["input"]

    assert sent == dict(zip(sent_schema(offered)["properties"], (9, {"größe": 1}), strict=True))


@pytest.mark.parametrize("fragment", [None, 3])
async def test_what_comes_back_has_its_own_names(fragment: int | None, hear: Hear) -> None:
    offered = tool(*NAMES)
    pairs = [f'"{name}": {at}' for at, name in enumerate(sent_schema(offered)["properties"])]
    written = f"{{{', '.join(pairs)}}}"
    pieces = (written,) if fragment is None else (written[:fragment], written[fragment:])
    heard = await hear(*AnthropicWire().answer(Calls((Call("toolu_1", "act", pieces),))), tools=(offered,))

    assert heard.called == [("act", {name: at for at, name in enumerate(NAMES)})]
