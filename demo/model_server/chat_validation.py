"""The rules for a valid request to a Chat Completions server, as pure functions of a parsed body.

They are based on the documentation of OpenAI and of compatible servers, not on any client.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
import re
from typing import Any

from .prompt_cache import common_prefix
from .usage import prompt_bytes
from .violations import TOOL_NAME, Violation, has_words, is_object_text, tool_violations, unknown_keys

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
_OPENAI_MODEL = re.compile(r"(?:gpt-(?!oss)|o\d|chatgpt)")


def shared_prefix(one: Any, other: Any) -> int:
    """Return the number of bytes in the common prefix of the messages of two requests."""
    return common_prefix(message_bytes(one), message_bytes(other))


def message_bytes(body: Any, *, without_newest: int = 0) -> bytes:
    """Return the messages except the newest few, one per line, so that a prefix of messages is a prefix of bytes."""
    messages = body["messages"]
    return prompt_bytes((), messages[: len(messages) - without_newest])


def chat_violations(body: Any, *, openai: bool = False) -> list[Violation]:
    """Return all violations of the rules of Chat Completions; the list is empty for a valid request.

    Fields that only OpenAI accepts are allowed if `openai` is set, or if the model has the name of one of OpenAI's.
    """
    if not isinstance(body, dict):
        return [Violation("not_an_object", "", "the body is no JSON object")]
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        return [Violation("no_messages", "messages", "not a list of at least one object")]
    known = _KNOWN_KEYS | _OPENAI_KEYS if openai or _OPENAI_MODEL.match(str(body.get("model"))) else _KNOWN_KEYS
    checks = (unknown_keys(body, known), _top_level(body), _tools(body), _order(messages), _pairs(messages))
    contents = (found for at, message in enumerate(messages) for found in _message(message, f"messages[{at}]"))
    return [found for check in (*checks, contents) for found in check]


def _top_level(body: dict[str, Any]) -> Iterator[Violation]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield Violation("no_model", "model", "not a name")
    if "stream_options" in body and body.get("stream") is not True:
        yield Violation("stream_options_without_stream", "stream_options", "only allowed with stream")
    if "tool_choice" in body and "tools" not in body:
        yield Violation("tool_choice_without_tools", "tool_choice", "only allowed with tools")


def _tools(body: dict[str, Any]) -> Iterator[Violation]:
    if "tools" not in body:
        return
    tools = body["tools"]
    if not isinstance(tools, list) or not tools:
        yield Violation("tools_empty", "tools", "not a list of at least one tool")
        return
    functions: list[object] = [tool.get("function") if isinstance(tool, dict) else None for tool in tools]
    yield from tool_violations(functions)


def _order(messages: list[dict[str, Any]]) -> Iterator[Violation]:
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


def _call_ids(message: dict[str, Any]) -> list[object]:
    calls = message.get("tool_calls")
    return [call.get("id") if isinstance(call, dict) else None for call in calls] if isinstance(calls, list) else []


def _pairs(messages: list[dict[str, Any]]) -> Iterator[Violation]:
    every_id = Counter(str(call_id) for message in messages for call_id in _call_ids(message))
    if any(count > 1 for count in every_id.values()):
        yield Violation("call_id_unique", "messages", "two calls have one id")
    # The ids of the last assistant message's calls that still lack a result, and of those that have one.
    waiting: list[object] = []
    answered: list[object] = []
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        if message.get("role") == "tool":
            yield from _result(message.get("tool_call_id"), waiting, answered, where)
            continue
        if waiting:
            yield Violation("result_missing", where, f"{len(waiting)} calls have no result before it")
        waiting, answered = _call_ids(message), []
    if waiting:
        yield Violation("result_missing", f"messages[{len(messages)}]", f"{len(waiting)} calls have no result")


def _result(call_id: object, waiting: list[object], answered: list[object], where: str) -> Iterator[Violation]:
    if call_id in waiting:
        waiting.remove(call_id)
        answered.append(call_id)
    elif call_id in answered:
        yield Violation("result_duplicate", where, "the call has a result already")
    else:
        yield Violation("result_orphan", where, "no call with this id directly before it")


def _message(message: dict[str, Any], where: str) -> Iterator[Violation]:
    calls = message.get("tool_calls")
    if calls is not None and (message.get("role") != "assistant" or not isinstance(calls, list) or not calls):
        yield Violation("call_shape", where, "tool_calls is not a list of at least one call of an assistant")
        return
    for call in calls or ():
        yield from _call(call, where)
    content = message.get("content")
    if content is None and not calls:
        yield Violation("content_missing", where, "only an answer with tool calls has no content")
    if content is not None and not (calls and content == "") and not _says_something(content):
        yield Violation("content_empty", where, "neither text nor a part with something in it")


def _says_something(content: object) -> bool:
    if isinstance(content, str):
        return has_words(content)
    if not isinstance(content, list) or not content:
        return False
    return all(
        isinstance(part, dict) and (part.get("type") != "text" or _says_something(part.get("text"))) for part in content
    )


def _call(call: object, where: str) -> Iterator[Violation]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or call.get("type") != "function" or not isinstance(function, dict):
        yield Violation("call_shape", where, "a call is no function call")
        return
    if not isinstance(call.get("id"), str) or not call["id"]:
        yield Violation("call_id_empty", where, "a call has no id")
    if not isinstance(function.get("name"), str) or not TOOL_NAME.fullmatch(function["name"]):
        yield Violation("tool_name", where, "a call names no tool")
    if not is_object_text(function.get("arguments")):
        yield Violation("call_arguments", where, "the arguments are not the text of a JSON object")
