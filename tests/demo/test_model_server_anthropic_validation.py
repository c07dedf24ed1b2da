"""Tests for each rule of Anthropic's Messages, with a request that violates only this rule."""

from typing import Any

from demo.model_server import find_anthropic_violations
from demo.model_server.residue import seal_content, sign_text

TOOL = {"name": "a", "input_schema": {"type": "object"}}
CALL = {"type": "tool_use", "id": "toolu_a", "name": "a", "input": {}}
OTHER = {**CALL, "id": "toolu_b"}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_a", "content": "{}"}
OTHER_RESULT = {**RESULT, "tool_use_id": "toolu_b"}
TEXT = {"type": "text", "text": "hi"}
MARK = {"cache_control": {"type": "ephemeral"}}
LONG_MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": sign_text("scripted", "hm")}
REDACTED = {"type": "redacted_thinking", "data": seal_content("scripted", b"hm")}
THINKING = {"type": "enabled", "budget_tokens": 1024}
IMAGE: dict[str, Any] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}}
BETA = "context-management-2025-06-27"
EDIT = {"edits": [{"type": "clear_tool_uses_20250919"}]}


def user(*blocks):
    return {"role": "user", "content": list(blocks) or "hi"}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks) or "Hi."}


def request(*messages, **fields):
    return {"model": "scripted", "max_tokens": 2000, "messages": list(messages), "tools": [TOOL], **fields}


def rules(body, betas=frozenset()):
    return {violation.rule for violation in find_anthropic_violations(body, betas)}


BROKEN_MESSAGES = [
    ("no_messages", []),
    ("no_messages", ["hi"]),
    ("role", [user(), {"role": "system", "content": "hi"}, user()]),
    ("user_first", [assistant(), user()]),
    ("ends_with_user", [user(), assistant()]),
    ("call_id_unique", [user(), assistant(CALL, CALL), user(RESULT)]),
    ("call_id", [user(), assistant({**CALL, "id": "a b"}), user({**RESULT, "tool_use_id": "a b"})]),
    ("call_id", [user(), assistant({**CALL, "id": ""}), user({**RESULT, "tool_use_id": ""})]),
    ("call_arguments", [user(), assistant({**CALL, "input": "{}"}), user(RESULT)]),
    ("tool_name", [user(), assistant({**CALL, "name": "a b"}), user(RESULT)]),
    ("result_missing", [user(), assistant(CALL), user()]),
    ("result_missing", [user(), assistant(CALL, OTHER), user(RESULT)]),
    ("result_missing", [user(), assistant(CALL, OTHER), user(RESULT), assistant(), user(OTHER_RESULT)]),
    ("result_missing", [user(), assistant(CALL)]),
    ("result_orphan", [user(RESULT)]),
    ("result_orphan", [user(), assistant(CALL), user(RESULT), assistant(), user(RESULT)]),
    ("result_duplicate", [user(), assistant(CALL), user(RESULT, RESULT)]),
    ("results_first", [user(), assistant(CALL), user(TEXT, RESULT)]),
    ("results_first", [user(), assistant(CALL, OTHER), user(RESULT, TEXT, OTHER_RESULT)]),
    ("result_shape", [user(), assistant(CALL), user({**RESULT, "content": {}})]),
    ("result_shape", [user(), assistant(CALL), user({**RESULT, "is_error": "yes"})]),
    ("content_empty", [user(), {"role": "assistant", "content": []}, user()]),
    ("content_empty", [{"role": "user", "content": ""}]),
    ("content_empty", [{"role": "user", "content": " \n"}]),
    ("content_empty", [user({"type": "text", "text": " "})]),
    ("content_empty", [user(), assistant(CALL), user({**RESULT, "content": [{"type": "text", "text": ""}]})]),
    ("block_type", [user(CALL)]),
    ("block_type", [user(THOUGHT)]),
    ("block_type", [user(), assistant(IMAGE), user()]),
    ("block_type", [user({"type": "input_text", "text": "hi"})]),
    ("residue_foreign", [user(), assistant({**THOUGHT, "thinking": "changed"}, TEXT), user()]),
    ("residue_foreign", [user(), assistant({**THOUGHT, "signature": sign_text("other", "hm")}, TEXT), user()]),
    ("residue_foreign", [user(), assistant({**REDACTED, "data": "changed"}, TEXT), user()]),
    ("thinking_first", [user(), assistant(TEXT, THOUGHT, CALL), user(RESULT)]),
    ("thinking_last", [user(), assistant(THOUGHT), user()]),
    ("cache_place", [user(), assistant({**THOUGHT, **MARK}, TEXT), user()]),
    ("cache_marks", [user(*[{**TEXT, **MARK}] * 5)]),
    ("cache_mark", [user({**TEXT, "cache_control": {"type": "ephemeral", "ttl": "2h"}})]),
    ("cache_order", [user({**TEXT, **MARK}, {**TEXT, **LONG_MARK})]),
    ("media_mismatch", [user({**IMAGE, "source": {**IMAGE["source"], "data": "/9j/4A=="}})]),
    ("media_type", [user({**IMAGE, "source": {**IMAGE["source"], "media_type": "image/jpg"}})]),
    ("media_data", [user({**IMAGE, "source": {**IMAGE["source"], "data": "?"}})]),
    ("media_data", [user({**PDF, "source": {"type": "text", "data": "hi"}})]),
]


def test_messages_that_break_a_rule_are_found(subtests):
    for rule, messages in BROKEN_MESSAGES:
        with subtests.test(rule=rule, messages=str(messages)):
            assert rule in rules(request(*messages))


BROKEN_FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("unknown_key", {"input": []}),
    ("unknown_key", {"context_management": EDIT}),
    ("no_model", {"model": ""}),
    ("max_tokens", {"max_tokens": None}),
    ("max_tokens", {"max_tokens": 0}),
    ("tool_choice_without_tools", {"tools": [], "tool_choice": {"type": "auto"}}),
    ("tools_empty", {"tools": {}}),
    ("tools_sorted", {"tools": [{**TOOL, "name": "b"}, TOOL]}),
    ("tools_unique", {"tools": [TOOL, TOOL]}),
    ("tool_parameters", {"tools": [{"name": "a", "parameters": {"type": "object"}}]}),
    ("system_empty", {"system": " "}),
    ("system_empty", {"system": [IMAGE]}),
    ("thinking_type", {"thinking": {"type": "on"}}),
    ("thinking_budget", {"thinking": {"type": "enabled"}}),
    ("thinking_budget", {"thinking": {"type": "enabled", "budget_tokens": 1023}}),
    ("thinking_budget", {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
    ("thinking_sampling", {"thinking": THINKING, "temperature": 0.5}),
    ("sampling", {"temperature": 0.5, "top_p": 0.9}),
    ("thinking_tool_choice", {"thinking": THINKING, "tool_choice": {"type": "any"}}),
    ("cache_mark", {"cache_control": {}}),
]


def test_fields_that_break_a_rule_are_found_alone(subtests):
    for rule, fields in BROKEN_FIELDS:
        with subtests.test(rule=rule, fields=str(fields)):
            assert rules({**request(user()), **fields}) == {rule}


def test_a_beta_allows_context_editing():
    assert rules(request(user(), context_management=EDIT), frozenset({BETA})) == set()


def test_a_history_with_calls_needs_the_tools():
    body = request(user(), assistant(CALL), user(RESULT))
    del body["tools"]
    assert rules(body) == {"tools_missing"}


def test_a_tool_loop_that_is_going_on_needs_its_thinking():
    assert rules(request(user(), assistant(CALL), user(RESULT), thinking=THINKING)) == {"thinking_missing"}


def test_a_tool_loop_that_is_over_needs_no_thinking():
    assert rules(request(user(), assistant(CALL), user(RESULT), assistant(), user(), thinking=THINKING)) == set()
