"""Tests that schema keywords are removed only for the formats that refuse them, and values JSON lacks for all."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
import json
import math
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import Provider, Request, ToolSchema
from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect
from custom_components.windowed_conversation.providers.openai.fields import encode_tool
from custom_components.windowed_conversation.window import Message
from tests.providers.byte_server import ByteServer
from tests.providers.heard import Heard
from tests.providers.wires import ALL_WIRES
from tests.providers.wires.chat import ChatWire
from tests.providers.wires.gemini import GeminiWire
from tests.providers.wires.parts import Text, Wire

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
SONG = {"type": "object", "properties": {"song": TEXT, "room": TEXT}, "required": ["song", "room"]}
ALBUM = {"type": "object", "properties": {"album": TEXT, "room": TEXT}, "required": ["album", "room"]}
CHOICE = {"anyOf": [SONG, ALBUM]}

EVERY = pytest.mark.parametrize(
    "wire", [*ALL_WIRES, ChatWire(Dialect.OPENAI)], ids=lambda w: f"{w.name}{len(w.no_calls)}"
)

type Sent = Callable[[Mapping[str, Any]], Awaitable[Any]]


def schemas(value: Any) -> Iterator[Any]:
    """Yield the schemas of tools, in whichever field a request contains them."""
    if isinstance(value, list):
        value = dict(enumerate(value))
    for name, each in value.items() if isinstance(value, dict) else ():
        if name in ("parameters", "parametersJsonSchema", "input_schema"):
            yield each
        else:
            yield from schemas(each)


@pytest.fixture
def sent(wire: Wire, provider: Provider, byte_server: ByteServer) -> Sent:
    """Return a function that offers a tool with the given schema and returns the schema that was sent."""

    async def sent(schema: Mapping[str, Any]) -> Any:
        byte_server.set_reply(*wire.answer(Text(("ok",))))
        tools = (ToolSchema("play", "Plays", schema),)
        await Heard().read(provider.stream(Request("model", (Message.user("hello"),), tools)))
        (found,) = schemas(byte_server.requests[-1]["tools"])
        return found

    return sent


@EVERY
async def test_schema_is_always_one_of_an_object(sent: Sent) -> None:
    assert await sent({}) == {"type": "object", "properties": {}}
    assert await sent({"type": "object", "additionalProperties": True}) == {
        "type": "object",
        "properties": {},
        "additionalProperties": True,
    }


@pytest.mark.parametrize("wire", [wire for wire in ALL_WIRES if not isinstance(wire, GeminiWire)], ids=lambda w: w.name)
async def test_choice_is_one_object_where_it_is_refused(sent: Sent) -> None:
    assert await sent(CHOICE) == {
        "type": "object",
        "properties": {"song": TEXT, "room": TEXT, "album": TEXT},
        "required": ["room"],
    }


@pytest.mark.parametrize("wire", [GeminiWire()], ids=["gemini"])
async def test_choice_stays_where_it_is_taken(sent: Sent) -> None:
    assert await sent(CHOICE) == {"type": "object", "properties": {}, **CHOICE}


@EVERY
@pytest.mark.parametrize("limit", [math.inf, -math.inf, math.nan])
async def test_limit_that_json_has_not_is_removed(limit: float, sent: Sent) -> None:
    schema = {"type": "object", "properties": {"level": {**NUMBER, "minimum": limit, "maximum": 9}}}

    assert await sent(schema) == {"type": "object", "properties": {"level": {**NUMBER, "maximum": 9}}}


def test_what_is_counted_of_a_schema_is_json() -> None:
    tool = ToolSchema("play", "Plays", {"properties": {"level": {"minimum": -math.inf}}})

    assert json.loads(tool.text.splitlines()[-1]) == {"type": "object", "properties": {"level": {}}}


@pytest.mark.parametrize(
    "wire", [wire for wire in ALL_WIRES if wire.name in ("chat", "responses")], ids=lambda wire: wire.name
)
async def test_array_without_items_is_one_of_anything(sent: Sent) -> None:
    schema = {"type": "object", "properties": {"rooms": {"type": "array", "maxItems": 0}}}

    assert (await sent(schema))["properties"] == {"rooms": {"type": "array", "maxItems": 0, "items": {}}}


def test_schema_is_put_into_the_formats_form_once() -> None:
    tool, same = (ToolSchema("act", "", {"type": "object", "properties": {"level": {}}}) for _ in range(2))

    assert encode_tool(tool) is encode_tool(same)
