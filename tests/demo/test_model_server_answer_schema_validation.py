"""Tests for each rule for the JSON schema of an answer, with a request that violates only this rule."""

import pytest

from demo.model_server import (
    find_anthropic_violations,
    find_chat_violations,
    find_gemini_violations,
    find_responses_violations,
)

TEXT = {"type": "string"}
NULLABLE = {"type": ["string", "null"]}
TOOLS = [{"functionDeclarations": [{"name": "a", "parametersJsonSchema": {"type": "object"}}]}]


def make_object(*, required=None, **properties):
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def nest(depth):
    return TEXT if depth == 1 else make_object(inner=nest(depth - 1))


def strict(schema, **fields):
    form = {"type": "json_schema", "name": "task", "schema": schema, "strict": True, **fields}
    return find_rules(find_responses_violations({"model": "m", "input": "hi", "text": {"format": form}}))


def grammar(schema, kind="json_schema", name="task"):
    form = {"type": kind, "json_schema": {"name": name, "schema": schema}}
    messages = [{"role": "system", "content": "hi"}, {"role": "user", "content": "hi"}]
    return find_rules(find_chat_violations({"model": "m", "messages": messages, "response_format": form}))


def anthropic(schema, model="claude-haiku-4-5", kind="json_schema"):
    config = {"effort": "low", "format": {"type": kind, "schema": schema}}
    messages = [{"role": "user", "content": "hi"}]
    body = {"model": model, "max_tokens": 9, "messages": messages, "output_config": config}
    return find_rules(find_anthropic_violations(body))


def gemini(schema, model="gemini-3-pro", *, mime_type="application/json", **fields):
    config = {"responseMimeType": mime_type, "responseJsonSchema": schema}
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": config, **fields}
    return find_rules(find_gemini_violations(body, model))


def find_rules(violations):
    return {violation.rule for violation in violations}


@pytest.mark.parametrize("check", [strict, grammar, anthropic, gemini])
def test_plain_object_breaks_no_rule(check):
    assert check(make_object(note=TEXT, rooms={"type": "array", "items": TEXT})) == set()


@pytest.mark.parametrize("check", [strict, grammar, anthropic, gemini])
def test_root_is_an_object(check):
    assert check({"type": "array", "items": TEXT}) == {"schema_root"}


@pytest.mark.parametrize(
    ("rule", "schema"),
    [
        ("schema_required", make_object(note=TEXT, required=[])),
        ("schema_open", {**make_object(note=TEXT), "additionalProperties": True}),
        ("schema_open", make_object(inner={"type": "object", "properties": {}, "required": []})),
        ("schema_keyword", make_object(note={**TEXT, "uniqueItems": True})),
        ("schema_keyword", make_object(note={**TEXT, "default": "a"})),
        ("schema_format", make_object(note={**TEXT, "format": "entity_id"})),
        ("schema_untyped", make_object(rooms={"type": "array", "items": {}})),
        ("schema_items", make_object(rooms={"type": "array"})),
        ("schema_enum", make_object(note={**NULLABLE, "enum": ["a"]})),
        ("schema_size", nest(11)),
        ("schema_size", make_object(note={**TEXT, "enum": list(map(str, range(1001)))})),
    ],
)
def test_rule_of_the_strict_form(rule, schema):
    assert strict(schema) == {rule}


def test_name_of_a_schema_is_a_word():
    assert strict(make_object(note=TEXT), name="a task") == {"schema_name"}
    assert grammar(make_object(note=TEXT), name="") == {"schema_name"}


@pytest.mark.parametrize("keyword", [{"uniqueItems": True}, {"pattern": "a"}])
def test_grammar_lacks_some_keywords(keyword):
    assert grammar(make_object(note={**TEXT, **keyword})) == {"schema_keyword"}


def test_response_format_is_of_a_known_type():
    assert grammar(make_object(note=TEXT), kind="json") == {"schema_type"}


@pytest.mark.parametrize(
    ("rule", "schema"),
    [
        ("schema_open", {**make_object(note=TEXT), "additionalProperties": True}),
        ("schema_keyword", make_object(level={"type": "number", "minimum": 0})),
        ("schema_keyword", make_object(rooms={"type": "array", "items": TEXT, "minItems": 2})),
        ("schema_format", make_object(note={**TEXT, "format": "jinja2"})),
        ("schema_nullable", make_object(note=NULLABLE)),
        ("schema_size", make_object(**{f"f{at}": TEXT for at in range(25)}, required=[])),
        ("schema_size", make_object(**{f"f{at}": {"anyOf": [TEXT]} for at in range(17)})),
    ],
)
def test_rule_of_anthropic(rule, schema):
    assert anthropic(schema) == {rule}


@pytest.mark.parametrize("model", ["claude-3-7-sonnet-latest", "claude-sonnet-4-20250514", "claude-opus-4-1"])
def test_claude_before_4_5_has_no_output_format(model):
    assert anthropic(make_object(note=TEXT), model) == {"schema_model"}


def test_output_format_has_one_type():
    assert anthropic(make_object(note=TEXT), kind="json") == {"schema_type"}


@pytest.mark.parametrize(
    ("rule", "schema"),
    [
        ("schema_keyword", make_object(note={**TEXT, "maxLength": 3})),
        ("schema_format", make_object(note={**TEXT, "format": "uuid"})),
        ("schema_enum", make_object(on={"type": "boolean", "enum": [True]})),
        ("schema_required", make_object(note=TEXT, required=["text"])),
        ("schema_untyped", make_object(rooms={"type": "array", "items": {}})),
    ],
)
def test_rule_of_gemini(rule, schema):
    assert gemini(schema) == {rule}


def test_gemini_wants_the_type_of_the_answer():
    assert gemini(make_object(note=TEXT), mime_type="text/plain") == {"schema_type"}


def test_gemma_has_no_json_mode():
    assert gemini(make_object(note=TEXT), "gemma-3-27b-it") == {"schema_model"}


def test_gemini_before_3_takes_no_functions_beside_a_schema():
    assert gemini(make_object(note=TEXT), "gemini-2.5-flash", tools=TOOLS) == {"schema_tools"}
    assert gemini(make_object(note=TEXT), "gemini-3-pro", tools=TOOLS) == set()


def test_property_names_of_a_schema_are_not_converted():
    assert gemini(make_object(some_note=TEXT)) == set()
