"""The rules for a valid request to a Chat Completions server, as pure functions of a parsed body.

They are based on the documentation of OpenAI and of compatible servers, not on any client.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
import re
from typing import Any

from .answer_schema_validation import find_openai_schema_violations
from .media import DOCUMENT_TYPE, IMAGE_TYPES, decode_data_url
from .prompt_cache import count_common_bytes
from .usage import encode_prompt
from .violations import (
    TOOL_NAME_PATTERN,
    Violation,
    find_media_violations,
    find_tool_violations,
    find_unknown_keys,
    is_json_object,
    is_nonblank_text,
)
from .wire import get_objects

_ROLES = ("system", "user", "assistant", "tool")
# Fields that OpenAI, Azure, llama.cpp, Ollama, LM Studio and vLLM all accept.
_KNOWN_KEYS = frozenset(
    {
        "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options",
        "temperature", "top_p", "max_tokens", "max_completion_tokens", "response_format", "reasoning_effort",
        "stop", "seed", "user",
    }
)  # fmt: skip
# Additional fields that OpenAI and Azure OpenAI accept; a compatible server may refuse them.
_OPENAI_KEYS = frozenset(
    {
        "metadata", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier",
        "service_tier", "store", "verbosity",
    }
)  # fmt: skip
_OPENAI_MODEL_PATTERN = re.compile(r"(?:gpt-(?!oss)|o\d|chatgpt)")


def count_shared_bytes(one: Any, other: Any) -> int:
    """Return the number of bytes in the common prefix of the messages of two requests."""
    return count_common_bytes(encode_messages(one), encode_messages(other))


def encode_messages(body: Any, *, skipped_count: int = 0) -> bytes:
    """Return the messages except the newest few, one per line, so that a prefix of messages is a prefix of bytes."""
    messages = body["messages"]
    return encode_prompt((), messages[: len(messages) - skipped_count])


def find_chat_violations(body: Any, *, openai: bool = False) -> list[Violation]:
    """Return all violations of the rules of Chat Completions; the list is empty for a valid request.

    Fields that only OpenAI accepts are allowed if `openai` is set, or if the model has the name of one of OpenAI's.
    """
    if not isinstance(body, dict):
        return [Violation("not_an_object", "", "the body is no JSON object")]
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        return [Violation("no_messages", "messages", "not a list of at least one object")]
    known = _KNOWN_KEYS | _OPENAI_KEYS if openai or _OPENAI_MODEL_PATTERN.match(str(body.get("model"))) else _KNOWN_KEYS
    checks = (
        find_unknown_keys(body, known),
        _check_top_level(body),
        _check_tools(body),
        _check_order(messages),
        _check_pairs(messages),
        _check_answer_schema(body),
    )
    contents = (found for at, message in enumerate(messages) for found in _check_message(message, f"messages[{at}]"))
    return [found for check in (*checks, contents) for found in check]


def _check_top_level(body: dict[str, Any]) -> Iterator[Violation]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield Violation("no_model", "model", "not a name")
    if "stream_options" in body and body.get("stream") is not True:
        yield Violation("stream_options_without_stream", "stream_options", "only allowed with stream")
    if "tool_choice" in body and "tools" not in body:
        yield Violation("tool_choice_without_tools", "tool_choice", "only allowed with tools")


def _check_answer_schema(body: dict[str, Any]) -> Iterator[Violation]:
    form = body.get("response_format")
    kind = form.get("type") if isinstance(form, dict) else None
    if form is not None and kind not in ("text", "json_object", "json_schema"):
        yield Violation("schema_type", "response_format", "the type must be one of text, json_object and json_schema")
    if isinstance(form, dict) and kind == "json_schema":
        yield from find_openai_schema_violations(form.get("json_schema"), "response_format.json_schema")


def _check_tools(body: dict[str, Any]) -> Iterator[Violation]:
    if "tools" not in body:
        return
    tools = body["tools"]
    if not isinstance(tools, list) or not tools:
        yield Violation("tools_empty", "tools", "not a list of at least one tool")
        return
    functions: list[object] = [tool.get("function") if isinstance(tool, dict) else None for tool in tools]
    yield from find_tool_violations(functions)


def _check_order(messages: list[dict[str, Any]]) -> Iterator[Violation]:
    roles = [message.get("role") for message in messages]
    for at, role in enumerate(roles):
        if role not in _ROLES:
            yield Violation("role", f"messages[{at}]", "no role of this format")
        if (role == "system") != (at == 0):
            yield Violation("system_first", f"messages[{at}]", "a system message is first and only there")
    if len(roles) < 2 or roles[1] != "user":
        yield Violation("user_second", "messages[1]", "the first message after the system message is no user's")
    if roles[-1] not in ("user", "tool"):
        yield Violation("ends_with_user_or_tool", f"messages[{len(roles) - 1}]", "nothing to answer")
    for at, (before, role) in enumerate(pairwise(roles), 1):
        if before == role and role in ("user", "assistant"):
            yield Violation("same_role_twice", f"messages[{at}]", "some chat templates reject it")


def _get_call_ids(message: dict[str, Any]) -> list[object]:
    calls = message.get("tool_calls")
    return [call.get("id") if isinstance(call, dict) else None for call in calls] if isinstance(calls, list) else []


def _check_pairs(messages: list[dict[str, Any]]) -> Iterator[Violation]:
    every_id = Counter(str(call_id) for message in messages for call_id in _get_call_ids(message))
    if any(count > 1 for count in every_id.values()):
        yield Violation("call_id_unique", "messages", "two calls have one id")
    # The ids of the last assistant message's calls that still lack a result, and of those that have one.
    waiting: list[object] = []
    answered: list[object] = []
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        if message.get("role") == "tool":
            yield from _check_result(message.get("tool_call_id"), waiting, answered, where)
            continue
        if waiting:
            yield Violation("result_missing", where, f"{len(waiting)} calls have no result before it")
        waiting, answered = _get_call_ids(message), []
    if waiting:
        yield Violation("result_missing", f"messages[{len(messages)}]", f"{len(waiting)} calls have no result")


def _check_result(call_id: object, waiting: list[object], answered: list[object], where: str) -> Iterator[Violation]:
    if call_id in waiting:
        waiting.remove(call_id)
        answered.append(call_id)
    elif call_id in answered:
        yield Violation("result_duplicate", where, "the call has a result already")
    else:
        yield Violation("result_orphan", where, "no call with this id directly before it")


def _check_message(message: dict[str, Any], where: str) -> Iterator[Violation]:
    calls = message.get("tool_calls")
    if calls is not None and (message.get("role") != "assistant" or not isinstance(calls, list) or not calls):
        yield Violation("call_shape", where, "tool_calls is not a list of at least one call of an assistant")
        return
    for call in calls or ():
        yield from _check_call(call, where)
    content = message.get("content")
    for part in get_objects(content):
        yield from _check_part(part, str(message.get("role")), where)
    if content is None and not calls:
        yield Violation("content_missing", where, "only an answer with tool calls has no content")
    if content is not None and not (calls and content == "") and not _has_content(content):
        yield Violation("content_empty", where, "neither text nor a part with something in it")


def _has_content(content: object) -> bool:
    if isinstance(content, str):
        return is_nonblank_text(content)
    if not isinstance(content, list) or not content:
        return False
    return all(
        isinstance(part, dict) and (part.get("type") != "text" or _has_content(part.get("text"))) for part in content
    )


def _check_part(part: dict[str, Any], role: str, where: str) -> Iterator[Violation]:
    if part.get("type") not in ("image_url", "file"):
        return
    if role != "user":
        yield Violation("part_role", where, f"only a user's message has such a part, not one of {role}")
    media = part.get(str(part["type"]))
    url = media.get("url" if part["type"] == "image_url" else "file_data") if isinstance(media, dict) else None
    types = IMAGE_TYPES if part["type"] == "image_url" else (DOCUMENT_TYPE,)
    yield from find_media_violations(decode_data_url(url), where, types)


def _check_call(call: object, where: str) -> Iterator[Violation]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or call.get("type") != "function" or not isinstance(function, dict):
        yield Violation("call_shape", where, "a call is no function call")
        return
    if not isinstance(call.get("id"), str) or not call["id"]:
        yield Violation("call_id_empty", where, "a call has no id")
    if not isinstance(function.get("name"), str) or not TOOL_NAME_PATTERN.fullmatch(function["name"]):
        yield Violation("tool_name", where, "a call names no tool")
    if not is_json_object(function.get("arguments")):
        yield Violation("call_arguments", where, "the arguments are not the text of a JSON object")
