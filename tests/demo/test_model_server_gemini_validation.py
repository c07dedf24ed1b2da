"""Tests for each rule of Gemini's generateContent, with a request that violates only this rule."""

from typing import Any

from demo.model_server import find_gemini_violations
from demo.model_server.residue import seal_content

SIGNED = {"thoughtSignature": seal_content("scripted", b"hm")}
FOREIGN = {"thoughtSignature": seal_content("other", b"hm")}
TEXT = {"text": "hi"}
CALL = {"functionCall": {"name": "a", "args": {}, "id": "1"}}
OTHER = {"functionCall": {"name": "b", "id": "2"}}
RESULT = {"functionResponse": {"name": "a", "id": "1", "response": {"output": "done"}}}
OTHER_RESULT = {"functionResponse": {"name": "b", "id": "2", "response": {"output": "done"}}}
DECLARATION = {"name": "a", "parametersJsonSchema": {"type": "object"}}
OBJECT = {"type": "OBJECT", "properties": {"x_y": {}}}
IMAGE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}


def user(*parts):
    return {"role": "user", "parts": list(parts) or [TEXT]}


def model(*parts):
    return {"role": "model", "parts": list(parts) or [TEXT]}


def make_tools(*declarations):
    return [{"functionDeclarations": list(declarations)}]


def request(*contents, **fields):
    return {"contents": list(contents), **fields}


def rules(body, name="scripted"):
    return {violation.rule for violation in find_gemini_violations(body, name)}


def remove_id(part):
    return {kind: {key: value for key, value in each.items() if key != "id"} for kind, each in part.items()}


BROKEN_CONTENTS = [
    ("no_contents", []),
    ("no_contents", ["hi"]),
    ("role", [user(), {"role": "assistant", "parts": [TEXT]}, user()]),
    ("role", [{"parts": [TEXT]}, user()]),
    ("user_first", [model(), user()]),
    ("ends_with_user", [user(), model()]),
    ("call_order", [user(), model(), model({**CALL, **SIGNED}), user(RESULT)]),
    ("call_order", [model({**CALL, **SIGNED}), user(RESULT)]),
    ("result_orphan", [user(RESULT)]),
    ("result_orphan", [user(), model({**CALL, **SIGNED}), user(RESULT), user(RESULT)]),
    ("result_count", [user(), model({**CALL, **SIGNED}), user()]),
    ("result_count", [user(), model({**CALL, **SIGNED})]),
    ("result_count", [user(), model({**CALL, **SIGNED}, OTHER), user(RESULT), user(OTHER_RESULT)]),
    ("result_count", [user(), model({**CALL, **SIGNED}), user(RESULT, RESULT)]),
    ("result_mismatch", [user(), model({**CALL, **SIGNED}), user(OTHER_RESULT)]),
    ("result_mismatch", [user(), model({**CALL, **SIGNED}), user(remove_id(RESULT))]),
    ("result_mixed", [user(), model({**CALL, **SIGNED}), user(RESULT, TEXT)]),
    ("result_shape", [user(), model({**CALL, **SIGNED}), user({"functionResponse": {"name": "a", "id": "1"}})]),
    ("signature_missing", [user(), model(CALL), user(RESULT)]),
    ("signature_missing", [user(), model(CALL, {**OTHER, **SIGNED}), user(RESULT, OTHER_RESULT)]),
    ("signature_missing", [user(), model({**CALL, **SIGNED}), user(RESULT), model(OTHER), user(OTHER_RESULT)]),
    ("residue_foreign", [user(), model({**CALL, **FOREIGN}), user(RESULT)]),
    ("residue_foreign", [user(), model({**CALL, "thoughtSignature": "changed"}), user(RESULT)]),
    ("residue_foreign", [user(), model({**CALL, "thoughtSignature": None}), user(RESULT)]),
    ("call_arguments", [user(), model({"functionCall": {"name": "a", "args": "{}"}, **SIGNED}), user(RESULT)]),
    ("tool_name", [user(), model({"functionCall": {"name": "1a"}, **SIGNED}), user(RESULT)]),
    ("content_empty", [{"role": "user", "parts": []}]),
    ("content_empty", [{"role": "user"}]),
    ("content_empty", [user({"text": ""})]),
    ("content_empty", [user({"text": None})]),
    ("part_empty", [user({})]),
    ("part_empty", [user({"thought": True})]),
    ("part_empty", [user({**TEXT, **IMAGE})]),
    ("part_role", [user(CALL)]),
    ("part_role", [user(), model(RESULT), user()]),
    ("part_role", [user(), model(IMAGE), user()]),
    ("media_type", [user({"inlineData": {"mimeType": "image/gif", "data": "aGk="}})]),
    ("media_mismatch", [user({"inlineData": {"mimeType": "image/png", "data": "_9j_4A=="}})]),
    ("media_data", [user({"inlineData": {"mimeType": "image/png", "data": "?"}})]),
]


def test_contents_that_break_a_rule_are_found(subtests):
    for rule, contents in BROKEN_CONTENTS:
        with subtests.test(rule=rule, contents=str(contents)):
            assert rule in rules(request(*contents))


BROKEN_FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("unknown_key", {"messages": []}),
    ("system_empty", {"systemInstruction": {"parts": []}}),
    ("system_empty", {"systemInstruction": {"parts": [{"text": " "}]}}),
    ("tools_empty", {"tools": []}),
    ("tools_unique", {"tools": make_tools(DECLARATION, DECLARATION)}),
    ("tools_sorted", {"tools": make_tools({**DECLARATION, "name": "b"}, DECLARATION)}),
    ("tool_name", {"tools": make_tools({**DECLARATION, "name": "1a"})}),
    ("tool_parameters", {"tools": make_tools({**DECLARATION, "parametersJsonSchema": {"type": "array"}})}),
    ("tool_properties", {"tools": make_tools({"name": "a", "parameters": {"type": "OBJECT"}})}),
    (
        "tool_parameters",
        {"tools": make_tools({**DECLARATION, "parameters": OBJECT})},
    ),
]


def test_fields_that_break_a_rule_are_found_alone(subtests):
    for rule, fields in BROKEN_FIELDS:
        with subtests.test(rule=rule, fields=str(fields)):
            assert rules(request(user(), **fields)) == {rule}


def test_models_before_the_third_do_not_insist_on_a_signature():
    assert rules(request(user(), model(CALL), user(RESULT)), "gemini-2.5-flash") == set()


def test_pictures_after_function_responses_begin_no_turn():
    unsigned = [user(), model(CALL), user(RESULT), user(IMAGE)]
    assert rules(request(*unsigned)) == {"signature_missing"}
