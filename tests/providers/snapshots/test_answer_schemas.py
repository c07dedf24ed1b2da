"""Tests of answers that must match a JSON schema, in each format: the request is valid, and the answer fits.

The schemas are those that Home Assistant makes from the structure of a task, with each of its selectors. Snapshots are
written as those of `test_requests`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
import json
import math
from typing import Any

import pytest

from custom_components.windowed_conversation.providers import AnswerSchema
from custom_components.windowed_conversation.providers.answer_schemas import format_schema
from custom_components.windowed_conversation.providers.errors import BadRequest
from custom_components.windowed_conversation.providers.events import ModelSettings, Request, ToolSchema
from custom_components.windowed_conversation.providers.models import UNKNOWN_MODEL, Effort, Vendor, find_profile
from custom_components.windowed_conversation.providers.sizes import count_request_tokens
from custom_components.windowed_conversation.window import Message
from demo.model_server import ModelServer
from demo.model_server.answer_schemas import find_schema_parameter, split_schema_text
from tests.providers.heard import Heard
from tests.selectors_of_tasks import SELECTORS, make_case_fields, make_json_schema, make_structure

from .conversation import MODELS
from .sdk_types import matches_sdk_types
from .test_requests import FORMATS, Format, snapshot

QUESTION = "Look at the picture of the door. note: a van"
FORMAT_BY_NAME = {each.name: each for each in FORMATS}
CLOSED_FORMATS = [each for each in FORMATS if each.name != "chat_compatible"]

# Selectors whose schemas have objects or lists of anything, which only a grammar can express.
FREE_SELECTORS = ("condition", "media", "object")
# Selectors that refuse most texts although their JSON schema is one of text, and templates, which need Home Assistant.
UNCHECKED_SELECTORS = ("choose", "file", "template", "trigger")

TYPICAL: Mapping[str, Mapping[str, Any]] = {
    "people": {"selector": {"number": {"min": 0, "max": 20}}, "description": "How many people", "required": True},
    "parcel": {"selector": {"boolean": {}}, "required": True},
    "kind": {"selector": {"select": {"options": ["car", "van"]}}},
    "colors": {"selector": {"select": {"options": ["red", "white"], "multiple": True}}},
    "door": {"selector": {"entity": {}}, "description": "The door's sensor"},
    "at": {"selector": {"time": {}}},
    "sender": {
        "selector": {
            "object": {
                "fields": {
                    "name": {"selector": {"text": {}}, "required": True},
                    "weight": {"selector": {"number": {"min": 0, "max": 30}}},
                }
            }
        }
    },
    "note": {"selector": {"text": {}}, "required": True},
}

every_format = pytest.mark.parametrize("form", FORMATS, ids=lambda each: each.name)

type Send = Callable[..., Awaitable[Any]]


@pytest.fixture
def send(http_client: Any, model_server: ModelServer) -> Send:
    """Return a function that sends a question with a schema, and returns the server's record and the answer's text."""
    model_server.change(
        models=(*MODELS, "claude-sonnet-4-0", "gemma-3-27b-it", "gemini-2.5-flash", "gpt-4", "claude-opus-4-6")
    )

    async def send(form: Format, schema: Mapping[str, Any], **changes: Any) -> tuple[Any, str]:
        request = Request(
            form.model,
            (Message.system("Help."), Message.user(QUESTION)),
            profile=form.profile,
            max_answer_tokens=4096,
            answer_schema=AnswerSchema("Doorbell task", schema),
        )
        provider = form.wire.connect(model_server.address, http_client)
        heard = await Heard().read(provider.stream(replace(request, **changes)))
        return model_server.requests[-1], heard.text

    return send


def drop_nulls(value: Any) -> Any:
    """Return a JSON value without members that are null."""
    if isinstance(value, dict):
        return {name: drop_nulls(each) for name, each in value.items() if each is not None}
    return [drop_nulls(each) for each in value] if isinstance(value, list) else value


def find_text_schema(body: Mapping[str, Any]) -> Any:
    """Return the schema in the text of a request, or None."""
    (text,) = [text for text in iter_texts(body) if text.startswith(QUESTION)]
    return split_schema_text(text)[1]


def iter_texts(value: Any) -> list[str]:
    """Return every text in a JSON value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value] if isinstance(value, str) else [text for each in inner for text in iter_texts(each)]


@every_format
@pytest.mark.parametrize("name", [name for name in SELECTORS if name not in UNCHECKED_SELECTORS])
async def test_answer_fits_every_selector(name: str, form: Format, send: Send) -> None:
    fields = make_case_fields(SELECTORS[name])

    record, text = await send(form, make_json_schema(fields))

    assert record.violations == []
    assert make_structure(fields)(drop_nulls(json.loads(text)))["note"] == "a van"


@every_format
@pytest.mark.parametrize("name", UNCHECKED_SELECTORS)
async def test_request_for_an_unusual_selector_breaks_no_rule(name: str, form: Format, send: Send) -> None:
    record, _ = await send(form, make_json_schema(make_case_fields(SELECTORS[name])))

    assert record.violations == []


@pytest.mark.parametrize("form", CLOSED_FORMATS, ids=lambda each: each.name)
@pytest.mark.parametrize("name", [name for name in SELECTORS if name not in FREE_SELECTORS])
async def test_schema_is_a_parameter_only(name: str, form: Format, send: Send) -> None:
    record, _ = await send(form, make_json_schema(make_case_fields(SELECTORS[name])))

    assert find_schema_parameter(record.body)
    assert find_text_schema(record.body) is None


@pytest.mark.parametrize("form", CLOSED_FORMATS, ids=lambda each: each.name)
@pytest.mark.parametrize("name", FREE_SELECTORS)
async def test_schema_of_anything_is_text(name: str, form: Format, send: Send) -> None:
    record, _ = await send(form, make_json_schema(make_case_fields(SELECTORS[name])))

    assert find_schema_parameter(record.body) is None
    assert find_text_schema(record.body)


@pytest.mark.parametrize("name", SELECTORS)
async def test_compatible_server_gets_the_schema_twice(name: str, send: Send) -> None:
    record, _ = await send(FORMAT_BY_NAME["chat_compatible"], make_json_schema(make_case_fields(SELECTORS[name])))

    assert find_schema_parameter(record.body)
    assert find_text_schema(record.body)


@every_format
async def test_typical_schema_is_the_same_as_ever(form: Format, send: Send) -> None:
    record, text = await send(form, make_json_schema(TYPICAL), settings=ModelSettings(effort=Effort.LOW))

    body = {name: record.body[name] for name in sorted(record.body)}
    shown = json.dumps({"body": body, "answer": text}, ensure_ascii=False, indent=2) + "\n"
    assert shown == snapshot(f"{form.name}_schema", shown)


@pytest.mark.parametrize("form", [each for each in FORMATS if each.name != "gemini"], ids=lambda each: each.name)
async def test_sdk_takes_the_schema(form: Format, send: Send) -> None:
    record, _ = await send(form, make_json_schema(TYPICAL))

    assert matches_sdk_types(form.wire.name, record.body)


@every_format
async def test_schema_is_text_if_the_server_refuses_its_parameter(form: Format, send: Send) -> None:
    in_prompt = AnswerSchema("task", make_json_schema(TYPICAL), in_prompt=True)

    record, text = await send(replace(form, model=f"{form.model}+refuses_schema"), {}, answer_schema=in_prompt)

    assert record.violations == []
    assert format_schema(in_prompt.schema) in "".join(iter_texts(record.body))
    assert make_structure(TYPICAL)(drop_nulls(json.loads(text)))


@every_format
async def test_refused_parameter_is_a_bad_request(form: Format, send: Send) -> None:
    with pytest.raises(BadRequest):
        await send(replace(form, model=f"{form.model}+refuses_schema"), make_json_schema(TYPICAL))


@pytest.mark.parametrize(
    ("name", "vendor", "model"),
    [
        ("anthropic", Vendor.ANTHROPIC, "claude-sonnet-4-0"),
        ("chat_openai", Vendor.OPENAI, "gpt-4"),
        ("gemini", Vendor.GOOGLE, "gemma-3-27b-it"),
        ("responses", None, "gpt-4"),
    ],
)
async def test_model_that_takes_no_schema_gets_text(name: str, vendor: Vendor | None, model: str, send: Send) -> None:
    form = replace(FORMAT_BY_NAME[name], model=model, profile=find_profile(vendor, model) if vendor else UNKNOWN_MODEL)

    record, text = await send(form, make_json_schema(TYPICAL))

    assert record.violations == []
    assert find_schema_parameter(record.body) is None
    assert json.loads(text)["note"] == "a van"


@pytest.mark.parametrize(("model", "has_parameter"), [("gemini-3-pro", True), ("gemini-2.5-flash", False)])
async def test_gemini_takes_tools_beside_a_schema_from_gemini_3_on(model: str, has_parameter: bool, send: Send) -> None:
    form = replace(FORMAT_BY_NAME["gemini"], model=model, profile=find_profile(Vendor.GOOGLE, model))

    record, _ = await send(form, make_json_schema(TYPICAL), tools=(ToolSchema("look", "Looks", {}),))

    assert record.violations == []
    assert (find_schema_parameter(record.body) is not None) is has_parameter


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("anthropic", {f"f{at}": {"type": "string"} for at in range(25)}),
        ("anthropic", {f"f{at}": {"anyOf": [{"type": "string"}, {"type": "number"}]} for at in range(17)}),
        ("responses", {"f": {"type": "string", "enum": [str(at) for at in range(1001)]}}),
        ("chat_openai", {"f": {"type": "string", "enum": ["x" * 8000, "y" * 8000]}}),
        ("gemini", {"f": {"not": {"type": "string"}}}),
        ("gemini", {"f": {"type": "array"}}),
    ],
)
async def test_schema_beyond_the_limits_of_its_format_is_text(name: str, schema: Any, send: Send) -> None:
    record, _ = await send(FORMAT_BY_NAME[name], {"type": "object", "properties": schema})

    assert record.violations == []
    assert find_schema_parameter(record.body) is None
    assert find_text_schema(record.body)


@every_format
async def test_deep_schema_is_text(form: Format, send: Send) -> None:
    schema: Mapping[str, Any] = {"type": "string"}
    for _ in range(12):
        schema = {"type": "object", "properties": {"inner": schema}}

    record, _ = await send(form, schema)

    assert find_schema_parameter(record.body) is None
    assert find_text_schema(record.body)


async def test_choice_may_be_null_in_the_strict_form(send: Send) -> None:
    choice = {"anyOf": [{"type": "string"}, {"type": "number"}]}

    record, _ = await send(FORMAT_BY_NAME["responses"], {"type": "object", "properties": {"f": choice}})

    assert record.violations == []
    assert record.body["text"]["format"]["schema"]["properties"] == {
        "f": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]}
    }


@every_format
async def test_limit_that_json_has_not_is_not_sent(form: Format, send: Send) -> None:
    level = {"type": "number", "minimum": -math.inf, "maximum": 9}

    record, _ = await send(form, {"type": "object", "properties": {"level": level}})

    assert b"Infinity" not in record.raw


def test_schema_counts_towards_the_size_of_a_request() -> None:
    request = Request("m", (Message.user(QUESTION),))

    with_schema = replace(request, answer_schema=AnswerSchema("task", make_json_schema(TYPICAL)))

    assert count_request_tokens(with_schema) > count_request_tokens(request) + 100


async def test_effort_stays_beside_the_schema(send: Send) -> None:
    form = replace(
        FORMAT_BY_NAME["anthropic"],
        model="claude-opus-4-6",
        profile=find_profile(Vendor.ANTHROPIC, "claude-opus-4-6"),
    )
    record, _ = await send(form, make_json_schema(TYPICAL), settings=ModelSettings(effort=Effort.LOW))

    assert record.body["output_config"]["effort"] == "low"
    assert record.body["output_config"]["format"]["type"] == "json_schema"
