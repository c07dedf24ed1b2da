"""Tests for each rule of Responses, with a request that violates only this rule."""

from typing import Any

from demo.model_server import find_responses_violations
from demo.model_server.residue import seal_content

CALL = {"type": "function_call", "call_id": "call_a", "name": "intent__HassTurnOn", "arguments": "{}"}
OTHER = {**CALL, "call_id": "call_b"}
RESULT = {"type": "function_call_output", "call_id": "call_a", "output": "{}"}
OTHER_RESULT = {**RESULT, "call_id": "call_b"}
REASONING_ID = "rs_" + "a" * 32
SEALED = seal_content("scripted", REASONING_ID.encode())
THOUGHT = {"type": "reasoning", "id": REASONING_ID, "summary": [], "encrypted_content": SEALED}
BOUND = {**CALL, "id": "fc_" + "a" * 16 + "b" * 16}
UNBOUND = {**CALL, "id": "fc_" + "0" * 16 + "b" * 16}
TOOL = {"type": "function", "name": "a", "parameters": {"type": "object"}}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
PDF = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}


def user(content="hi"):
    return {"role": "user", "content": content}


def assistant(content="Hi."):
    return {"role": "assistant", "content": content}


def request(*items, **fields):
    return {"model": "scripted", "input": list(items), **fields}


def rules(body):
    return {violation.rule for violation in find_responses_violations(body)}


BROKEN_ITEMS = [
    ("no_input", []),
    ("no_input", ["hi"]),
    ("user_first", [assistant(), user()]),
    ("user_first", [CALL, RESULT]),
    ("ends_with_user_or_tool", [user(), assistant()]),
    ("role", [user(), {"role": "tool", "content": "hi"}, user()]),
    ("item_type", [user(), {"type": "item_reference", "id": "msg_1"}, user()]),
    ("item_id", [user(), {**CALL, "id": "call_a"}, RESULT]),
    ("item_id_unique", [user(), UNBOUND, {**UNBOUND, "call_id": "call_b"}, RESULT, OTHER_RESULT]),
    ("call_id_unique", [user(), CALL, CALL, RESULT]),
    ("call_id_empty", [user(), {**CALL, "call_id": ""}, {**RESULT, "call_id": ""}]),
    ("call_arguments", [user(), {**CALL, "arguments": {}}, RESULT]),
    ("call_arguments", [user(), {**CALL, "arguments": ""}, RESULT]),
    ("tool_name", [user(), {**CALL, "name": "a b"}, RESULT]),
    ("result_missing", [user(), CALL, user()]),
    ("result_missing", [user(), CALL, OTHER, RESULT]),
    ("result_orphan", [user(), RESULT]),
    ("result_orphan", [user(), RESULT, CALL, user()]),
    ("result_duplicate", [user(), CALL, RESULT, RESULT]),
    ("result_shape", [user(), CALL, {**RESULT, "output": {}}]),
    ("reasoning_alone", [user(), THOUGHT, user()]),
    ("reasoning_alone", [user(), THOUGHT]),
    ("reasoning_missing", [user(), BOUND, RESULT]),
    ("reasoning_missing", [user(), THOUGHT, {**BOUND, "id": "fc_" + "c" * 32}, RESULT]),
    ("reasoning_summary", [user(), {k: v for k, v in THOUGHT.items() if k != "summary"}, BOUND, RESULT]),
    ("reasoning_content", [user(), {k: v for k, v in THOUGHT.items() if k != "encrypted_content"}, BOUND, RESULT]),
    ("residue_foreign", [user(), {**THOUGHT, "encrypted_content": seal_content("other", b"")}, BOUND, RESULT]),
    ("residue_foreign", [user(), {**THOUGHT, "encrypted_content": "changed"}, BOUND, RESULT]),
    ("residue_foreign", [{"type": "compaction", "encrypted_content": seal_content("other", b"[]")}, user()]),
    ("content_empty", [user("")]),
    ("content_empty", [user(" \n")]),
    ("content_empty", [user([])]),
    ("content_empty", [user([{"type": "input_text", "text": ""}])]),
    ("content_empty", [user(), assistant(None), user()]),
    ("part_type", [user([{"type": "output_text", "text": "hi"}])]),
    ("part_type", [user(), assistant([{"type": "input_text", "text": "hi"}]), user()]),
    ("part_type", [user(), assistant([IMAGE]), user()]),
    ("media_data", [user([{**IMAGE, "image_url": "data:image/png;base64,?"}])]),
    ("media_data", [user([{**IMAGE, "image_url": "https://example.com/a.png"}])]),
    ("media_mismatch", [user([{**IMAGE, "image_url": "data:image/png;base64,/9j/4A=="}])]),
    ("media_type", [user([{**IMAGE, "image_url": "data:image/jpg;base64,aGk="}])]),
    ("media_type", [user([{**PDF, "file_data": IMAGE["image_url"]}])]),
    ("file_name", [user([{**PDF, "filename": ""}])]),
]


def test_items_that_break_a_rule_are_found(subtests):
    for rule, items in BROKEN_ITEMS:
        with subtests.test(rule=rule, items=str(items)):
            assert rule in rules(request(*items))


BROKEN_FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("unknown_key", {"messages": []}),
    ("no_model", {"model": ""}),
    ("tool_choice_without_tools", {"tool_choice": "auto"}),
    ("tools_empty", {"tools": []}),
    ("tools_sorted", {"tools": [{**TOOL, "name": "b"}, TOOL]}),
    ("tools_unique", {"tools": [TOOL, TOOL]}),
    ("tool_shape", {"tools": [{"type": "function", "function": TOOL}, None][1:]}),
    ("tool_name", {"tools": [{**TOOL, "name": "light.turn_on"}]}),
    ("tool_parameters", {"tools": [{**TOOL, "parameters": None}]}),
    ("max_output_tokens", {"max_output_tokens": 1}),
    ("cache_key", {"prompt_cache_key": "a" * 65}),
]


def test_fields_that_break_a_rule_are_found_alone(subtests):
    for rule, fields in BROKEN_FIELDS:
        with subtests.test(rule=rule, fields=str(fields)):
            assert rules({**request(user()), **fields}) == {rule}
