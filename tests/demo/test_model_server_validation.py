"""Tests for each rule of Chat Completions, with a request that violates only this rule."""

from typing import Any

import pytest

from demo.model_server import find_chat_violations

from .model_talk import SYSTEM, assistant, called, result, user

CALL = called("a", "intent__HassTurnOn", name="lamp")
TWO_CALLS = {**CALL, "tool_calls": [CALL["tool_calls"][0], {**CALL["tool_calls"][0], "id": "b"}]}


JPEG = "data:image/jpeg;base64,/9j/4A=="


def picture(role, url):
    return {"role": role, "content": [{"type": "image_url", "image_url": {"url": url}}]}


def request(*messages, **fields):
    return {"model": "scripted", "messages": [SYSTEM, *messages], **fields}


def rules(body):
    return {violation.rule for violation in find_chat_violations(body)}


def tool(name, parameters=None):
    function = {"name": name, "parameters": parameters or {"type": "object"}}
    return {"type": "function", "function": function}


def call_with(**fields):
    return {**CALL, "tool_calls": [{**CALL["tool_calls"][0], **fields}]}


BROKEN_MESSAGES = [
    ("system_first", [user("hi"), user("hi")]),
    ("system_first", [SYSTEM, user("hi"), SYSTEM, user("hi")]),
    ("user_second", [SYSTEM, assistant("hi"), user("hi")]),
    ("user_second", [SYSTEM]),
    ("user_second", [SYSTEM, CALL, result("a", {})]),
    ("ends_with_user_or_tool", [SYSTEM, user("hi"), assistant("hi")]),
    ("role", [SYSTEM, user("hi"), {"role": "developer", "content": "hi"}, user("hi")]),
    ("same_role_twice", [SYSTEM, user("hi"), user("hi")]),
    ("same_role_twice", [SYSTEM, user("hi"), assistant("hi"), assistant("hi"), user("hi")]),
    ("result_missing", [SYSTEM, user("hi"), CALL, user("hi")]),
    ("result_missing", [SYSTEM, user("hi"), TWO_CALLS, result("a", {})]),
    ("result_missing", [SYSTEM, user("hi"), TWO_CALLS, result("a", {}), user("hi"), result("b", {})]),
    ("result_orphan", [SYSTEM, user("hi"), result("a", {})]),
    ("result_orphan", [SYSTEM, user("hi"), CALL, result("a", {}), assistant("hi"), result("a", {})]),
    ("result_orphan", [SYSTEM, user("hi"), CALL, result("a", {}), result("c", {})]),
    ("result_duplicate", [SYSTEM, user("hi"), CALL, result("a", {}), result("a", {})]),
    ("call_id_unique", [SYSTEM, user("hi"), CALL, result("a", {}), CALL, result("a", {})]),
    ("call_id_empty", [SYSTEM, user("hi"), call_with(id=""), result("", {})]),
    ("call_shape", [SYSTEM, user("hi"), call_with(type="tool"), result("a", {})]),
    ("call_shape", [SYSTEM, user("hi"), {**assistant("hi"), "tool_calls": []}, user("hi")]),
    ("call_shape", [SYSTEM, {**user("hi"), "tool_calls": CALL["tool_calls"]}]),
    ("call_arguments", [SYSTEM, user("hi"), call_with(function={"name": "x", "arguments": ""}), result("a", {})]),
    ("call_arguments", [SYSTEM, user("hi"), call_with(function={"name": "x", "arguments": {}}), result("a", {})]),
    ("call_arguments", [SYSTEM, user("hi"), call_with(function={"name": "x", "arguments": "[]"}), result("a", {})]),
    ("tool_name", [SYSTEM, user("hi"), call_with(function={"name": "a b", "arguments": "{}"}), result("a", {})]),
    ("media_data", [SYSTEM, picture("user", "data:image/png;base64,?")]),
    ("media_type", [SYSTEM, picture("user", "data:image/heic;base64,aGk=")]),
    ("media_mismatch", [SYSTEM, picture("user", "data:image/png;base64,/9j/4A==")]),
    ("part_role", [SYSTEM, user("hi"), CALL, {**picture("tool", JPEG), "tool_call_id": "a"}]),
    ("result_missing", [SYSTEM, user("hi"), TWO_CALLS, result("a", {}), picture("user", JPEG), result("b", {})]),
    ("content_missing", [SYSTEM, {"role": "user"}]),
    ("content_missing", [SYSTEM, user("hi"), {"role": "assistant", "content": None}, user("hi")]),
    ("content_empty", [SYSTEM, user("")]),
    ("content_empty", [SYSTEM, user(" \n")]),
    ("content_empty", [SYSTEM, user("hi"), assistant(""), user("hi")]),
    ("content_empty", [SYSTEM, {"role": "user", "content": []}]),
    ("content_empty", [SYSTEM, {"role": "user", "content": [{"type": "text", "text": ""}]}]),
    ("no_messages", []),
    ("no_messages", ["hi"]),
]


def test_messages_that_break_a_rule_are_found(subtests):
    for rule, messages in BROKEN_MESSAGES:
        with subtests.test(rule=rule, messages=str(messages)):
            assert rule in rules({"model": "scripted", "messages": messages})


BROKEN_FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("unknown_key", {"store": True}),
    ("no_model", {"model": ""}),
    ("stream_options_without_stream", {"stream_options": {"include_usage": True}}),
    ("tool_choice_without_tools", {"tool_choice": "auto"}),
    ("tools_empty", {"tools": []}),
    ("tools_unique", {"tools": [tool("a"), tool("a")]}),
    ("tools_sorted", {"tools": [tool("b"), tool("a")]}),
    ("tool_shape", {"tools": [{"type": "function", "name": "a"}]}),
    ("tool_name", {"tools": [tool("light.turn_on")]}),
    ("tool_name", {"tools": [tool("a" * 65)]}),
    ("tool_name", {"tools": [tool("a\n")]}),
    ("tool_name", {"tools": [tool("")]}),
    ("tool_parameters", {"tools": [tool("a", {"type": "string"})]}),
    ("tool_parameters", {"tools": [tool("a", {"properties": {}})]}),
]


def test_fields_that_break_a_rule_are_found_alone(subtests):
    for rule, fields in BROKEN_FIELDS:
        with subtests.test(rule=rule, fields=str(fields)):
            assert rules({**request(user("hi")), **fields}) == {rule}


@pytest.mark.parametrize("model", ["gpt-5.6-luna", "o4-mini"])
def test_a_model_of_openais_may_be_asked_for_what_only_openai_has(model):
    body = {**request(user("hi")), "model": model, "store": False, "prompt_cache_key": "a"}
    assert rules(body) == set()
    assert rules({**body, "model": "gpt-oss-20b"}) == {"unknown_key"}
