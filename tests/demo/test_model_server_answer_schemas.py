"""Tests for answers of the scripted model that match a JSON schema, over real HTTP with OpenAI's SDK."""

import base64
import json
from typing import Any

import openai
import pytest

from demo.model_server import words
from demo.model_server.conversation import Conversation, Turn
from demo.model_server.form_filling import fill_form
from demo.model_server.media import Attachment

from .model_talk import SYSTEM, user

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
NOTE = {"type": "object", "properties": {"note": TEXT}, "required": ["note"], "additionalProperties": False}
PEOPLE = {
    "type": "object",
    "properties": {"people": {**NUMBER, "minimum": 0, "maximum": 9}, "note": TEXT},
    "required": ["people"],
    "additionalProperties": False,
}
SAID = "How many people are there? people: 3"
AS_TEXT = f"{SAID}\n\nAnswer with one JSON object that matches this JSON schema, and nothing else: {json.dumps(PEOPLE)}"
SUGGESTION = """Suggest in language "en" a name, a description, and labels for the following Home Assistant automation.

The name should be relevant to the automation's purpose.
If the automation contains 5+ steps, include a short description.

For inspiration, here are existing automations:
- Doors at night (category: Safety) (labels: evening, doors)

The automation configuration is as follows:

triggers:
  - trigger: state
    entity_id: binary_sensor.hall_motion
actions:
  - action: light.turn_on
    target:
      entity_id: light.hall_lamp
"""


def in_format(schema=PEOPLE):
    return {"type": "json_schema", "json_schema": {"name": "task", "schema": schema}}


def fill(said, attachments=(), **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return fill_form(schema, Conversation((Turn("user", said, attachments=attachments),)))


@pytest.fixture
def answer(client):
    """Return a function that sends messages to a model and returns the text of the answer."""

    async def answer(*said, model="scripted", **fields):
        done = await client.chat.completions.create(
            model=model, messages=[SYSTEM, *(user(each) if isinstance(each, str) else each for each in said)], **fields
        )
        return done.choices[0].message.content

    return answer


FIELD_VALUES = [
    (TEXT, "a task", "A short value"),
    (TEXT, "value: a red van.", "a red van"),
    ({**TEXT, "enum": ["on", "off"]}, "a task", "on"),
    ({**TEXT, "enum": ["on", "off"]}, "is it off?", "off"),
    ({"type": ["string", "null"], "enum": ["on", "off", None]}, "is it off?", "off"),
    (NUMBER, "a task", 1),
    ({**NUMBER, "minimum": 2.0}, "a task", 2),
    ({**NUMBER, "minimum": 2, "maximum": 9}, "10 cars, 1 van, 4 boxes", 4),
    ({**NUMBER, "description": "(minimum: 2.0, maximum: 9)"}, "10 cars, 1 van, 4.5 boxes", 4.5),
    ({"type": "boolean"}, "a task", True),
    ({"type": "boolean"}, "value: no", False),
    ({"type": "array", "items": TEXT}, "value: red, green", ["red", "green"]),
    ({"type": "array", "items": {**TEXT, "enum": ["red", "green", "blue"]}}, "blue, red", ["red", "blue"]),
    ({"type": "array", "items": NUMBER, "minItems": 3}, "a task", [1, 1, 1]),
    ({"type": "array", "items": {}}, "a task", []),
    ({**TEXT, "format": "entity_id"}, "look at light.hall", "light.hall"),
    ({**TEXT, "description": "(format: entity_id)"}, "a task", "light.kitchen"),
    ({**TEXT, "format": "date"}, "on 2026-12-24", "2026-12-24"),
    ({**TEXT, "description": "(format: HH:MM:SS)"}, "a task", "08:00:00"),
    ({"type": "object", "additionalProperties": True}, "a task", {}),
    ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "a task", True),
]


def test_field_is_filled_from_the_instructions_if_they_have_a_value(subtests):
    for schema, said, value in FIELD_VALUES:
        with subtests.test(schema=str(schema), said=said):
            assert fill(said, value=schema) == {"value": value}


def test_optional_field_that_the_instructions_do_not_name_is_left_away():
    schema = {"type": "object", "properties": {"parcel": TEXT, "note": TEXT}, "required": ["note"]}
    assert fill_form(schema, Conversation((Turn("user", "a task"),))) == {"note": "A short note"}


def test_nullable_field_that_the_instructions_do_not_name_is_null():
    assert fill("a task", parcel={"type": ["string", "null"]}, note=TEXT) == {"parcel": None, "note": "A short note"}


def test_field_named_seen_says_what_was_attached():
    attachments = (Attachment("image/png", 2), Attachment("image/jpeg", 2), Attachment("application/pdf", 2))
    assert fill("a task", attachments, seen=TEXT, seen_types=TEXT) == {
        "seen": "2 images, 1 document",
        "seen_types": "image/png, image/jpeg, application/pdf",
    }


def test_field_is_as_long_as_the_instructions_say():
    assert len(fill("describe it in 2000 words", note=TEXT)["note"].split()) == 2000


def test_suggestion_of_the_save_dialog_follows_from_the_automation():
    labels = {"type": "array", "items": TEXT}
    category = {**TEXT, "enum": ["Lights", "Safety"]}
    assert fill(SUGGESTION, name=TEXT, description=TEXT, labels=labels, category=category) == {
        "name": "Turn on hall lamp",
        "description": "This automation will turn on hall lamp.",
        "labels": ["evening", "doors"],
        "category": "Safety",
    }


async def test_answer_fits_the_schema_of_the_parameter(answer):
    assert json.loads(await answer(SAID, response_format=in_format())) == {"people": 3}


async def test_answer_fits_the_schema_in_the_text(answer):
    assert json.loads(await answer(AS_TEXT)) == {"people": 3}


async def test_picture_is_seen(answer):
    url = f"data:image/png;base64,{base64.b64encode(b'png').decode()}"
    parts: Any = [{"type": "text", "text": "What is there?"}, {"type": "image_url", "image_url": {"url": url}}]
    seen = {"type": "object", "properties": {"seen": TEXT}, "required": ["seen"]}
    assert json.loads(await answer(user(parts), response_format=in_format(seen))) == {"seen": "1 image"}


async def test_scripted_answer_is_not_changed(answer, server):
    server.script(words("Prose."))
    assert await answer(SAID, response_format=in_format()) == "Prose."


async def test_server_may_refuse_the_parameter(answer):
    with pytest.raises(openai.BadRequestError) as caught:
        await answer(SAID, model="scripted+refuses_schema", response_format=in_format())
    assert caught.value.param == "response_format"


async def test_server_that_refuses_the_parameter_obeys_the_text(answer):
    assert json.loads(await answer(AS_TEXT, model="scripted+refuses_schema")) == {"people": 3}


async def test_server_may_ignore_the_parameter_only(answer):
    model = "scripted+ignores_schema_parameter"
    assert "scripted model" in await answer(SAID, model=model, response_format=in_format())
    assert json.loads(await answer(AS_TEXT, model=model, response_format=in_format())) == {"people": 3}


async def test_server_may_answer_in_prose(answer):
    assert "scripted model" in await answer(AS_TEXT, model="scripted+ignores_schema", response_format=in_format())


async def test_json_may_be_in_a_code_block(answer):
    assert await answer(AS_TEXT, model="scripted+fenced_json") == '```json\n{"people": 3}\n```'


async def test_json_may_be_broken(answer):
    assert await answer(AS_TEXT, model="scripted+broken_json") == '{"peop'


async def test_json_may_be_cut_at_the_limit(answer):
    assert await answer(AS_TEXT, model="scripted+length") == '{"people":'


async def test_wrong_type_is_repaired_once_the_user_names_the_field(answer):
    model = "scripted+wrong_type"
    first = await answer(AS_TEXT, model=model)
    error = AS_TEXT.replace(SAID, "expected float at 'people'")
    second = await answer(AS_TEXT, {"role": "assistant", "content": first}, error, model=model)

    assert json.loads(first) == {"people": "two"}
    assert json.loads(second) == {"people": 3}


async def test_wrong_type_stays_if_the_user_does_not_name_the_field(answer):
    messages = (AS_TEXT, {"role": "assistant", "content": "{}"}, AS_TEXT.replace(SAID, "Try again."))
    assert json.loads(await answer(*messages, model="scripted+wrong_type")) == {"people": "two"}


async def test_schema_that_a_grammar_cannot_express_is_refused(answer):
    unique = {"type": "object", "properties": {"colors": {"type": "array", "items": TEXT, "uniqueItems": True}}}
    with pytest.raises(openai.BadRequestError):
        await answer(SAID, response_format=in_format(unique))
