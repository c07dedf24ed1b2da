"""The rules for a valid request to OpenAI's Responses, as pure functions of a parsed body.

Nothing is stored between requests, so each reasoning item must contain its encrypted content.
`responses_item_validation` checks single items.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from .answer_schema_validation import find_openai_schema_violations
from .responses_item_validation import find_item_violations
from .responses_items import UNBOUND_PREFIX
from .violations import Violation, find_tool_violations, find_unknown_keys

_KNOWN_KEYS = frozenset(
    {
        "background", "context_management", "include", "input", "instructions", "max_output_tokens",
        "max_tool_calls", "metadata", "model", "parallel_tool_calls", "previous_response_id", "prompt_cache_key",
        "prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store",
        "stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p",
        "truncation", "user",
    }
)  # fmt: skip
_MIN_OUTPUT_TOKENS = 16
_MAX_CACHE_KEY_CHARS = 64


def find_responses_violations(body: Any) -> list[Violation]:
    """Return all violations of the rules of Responses; the list is empty for a valid request."""
    if not isinstance(body, dict):
        return [Violation("not_an_object", "", "the body is no JSON object")]
    items = body.get("input")
    if isinstance(items, str) and items.strip():
        items = [{"role": "user", "content": items}]
    if not isinstance(items, list) or not items or not all(isinstance(each, dict) for each in items):
        return [Violation("no_input", "input", "neither text nor a list of at least one object")]
    checks = (
        _check_top_level(body),
        _check_tools(body),
        _check_order(items),
        _check_pairs(items),
        _check_reasoning(items),
        _check_bindings(items),
        _check_answer_schema(body),
    )
    model = str(body.get("model"))
    contents = (found for at, item in enumerate(items) for found in find_item_violations(item, f"input[{at}]", model))
    return [found for check in (*checks, contents) for found in check]


def _check_top_level(body: dict[str, Any]) -> Iterator[Violation]:
    yield from find_unknown_keys(body, _KNOWN_KEYS)
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield Violation("no_model", "model", "not a name")
    if "tool_choice" in body and "tools" not in body:
        yield Violation("tool_choice_without_tools", "tool_choice", "only allowed with tools")
    most = body.get("max_output_tokens")
    if most is not None and not (isinstance(most, int) and most >= _MIN_OUTPUT_TOKENS):
        yield Violation("max_output_tokens", "max_output_tokens", f"less than {_MIN_OUTPUT_TOKENS}")
    key = body.get("prompt_cache_key")
    if key is not None and not (isinstance(key, str) and len(key) <= _MAX_CACHE_KEY_CHARS):
        yield Violation("cache_key", "prompt_cache_key", f"longer than {_MAX_CACHE_KEY_CHARS} characters")


def _check_answer_schema(body: dict[str, Any]) -> Iterator[Violation]:
    text = body.get("text")
    form = text.get("format") if isinstance(text, dict) else None
    if isinstance(form, dict) and form.get("type") == "json_schema":
        yield from find_openai_schema_violations(form, "text.format")


def _check_tools(body: dict[str, Any]) -> Iterator[Violation]:
    if "tools" not in body:
        return
    tools = body["tools"]
    if not isinstance(tools, list) or not tools:
        yield Violation("tools_empty", "tools", "not a list of at least one tool")
        return
    yield from find_tool_violations([tool if _is_function(tool) else None for tool in tools if not is_search(tool)])
    for at, tool in enumerate(tools):
        if not is_search(tool):
            continue
        location = tool.get("user_location")
        if location is not None and not (isinstance(location, dict) and location.get("type") == "approximate"):
            yield Violation("search_location", f"tools[{at}]", "a location has the type approximate")
        reasoning = body.get("reasoning")
        if isinstance(reasoning, dict) and reasoning.get("effort") == "minimal":
            text = "The following tools cannot be used with reasoning.effort 'minimal': web_search."
            yield Violation("search_effort", f"tools[{at}]", text)


def is_search(tool: object) -> bool:
    """Return whether a tool is the web search."""
    return isinstance(tool, dict) and tool.get("type") == "web_search"


def _is_function(tool: object) -> bool:
    return isinstance(tool, dict) and tool.get("type") == "function"


def get_item_type(item: dict[str, Any]) -> object:
    """Return the type of an input item, which is optional for a message."""
    return item.get("type", "message")


def _check_order(items: list[dict[str, Any]]) -> Iterator[Violation]:
    spoken = [item for item in items if item.get("role") not in ("system", "developer")]
    if not spoken or (get_item_type(spoken[0]) != "compaction" and spoken[0].get("role") != "user"):
        yield Violation("user_first", "input", "the conversation does not begin with a user's message")
    if not _can_be_answered(items[-1]):
        yield Violation("ends_with_user_or_tool", f"input[{len(items) - 1}]", "nothing to answer")
    ids = Counter(str(item["id"]) for item in items if item.get("id") is not None)
    if any(count > 1 for count in ids.values()):
        yield Violation("item_id_unique", "input", "two items have one id")


def _can_be_answered(item: dict[str, Any]) -> bool:
    return item.get("role") == "user" or get_item_type(item) in (
        "function_call_output",
        "compaction",
        "compaction_trigger",
    )


def _check_pairs(items: list[dict[str, Any]]) -> Iterator[Violation]:
    called: set[str] = set()
    answered: set[str] = set()
    for at, item in enumerate(items):
        call_id, where = str(item.get("call_id")), f"input[{at}]"
        match get_item_type(item):
            case "function_call":
                if call_id in called:
                    yield Violation("call_id_unique", where, "two calls have one id")
                called.add(call_id)
            case "function_call_output":
                if call_id not in called:
                    yield Violation("result_orphan", where, "No tool call found for function call output")
                elif call_id in answered:
                    yield Violation("result_duplicate", where, "the call has a result already")
                answered.add(call_id)
    if missing := called - answered:
        yield Violation("result_missing", "input", f"No tool output found for {len(missing)} function calls")


def _can_follow_reasoning(item: dict[str, Any]) -> bool:
    return get_item_type(item) in ("function_call", "reasoning") or item.get("role") == "assistant"


def _check_reasoning(items: list[dict[str, Any]]) -> Iterator[Violation]:
    for at, (item, following) in enumerate(pairwise([*items, {"role": "user"}])):
        if get_item_type(item) == "reasoning" and not _can_follow_reasoning(following):
            text = "Item of type 'reasoning' was provided without its required following item"
            yield Violation("reasoning_alone", f"input[{at}]", text)


def _check_bindings(items: list[dict[str, Any]]) -> Iterator[Violation]:
    """Yield a violation for each item whose id is bound to a reasoning item that is missing or a different one."""
    for at, (before, item) in enumerate(pairwise([{}, *items])):
        prefix, _, binding = str(item.get("id", "")).partition("_")
        reasoning = str(before.get("id", "")) if get_item_type(before) == "reasoning" else ""
        bound = (
            prefix in ("msg", "fc")
            and len(binding) == 2 * len(UNBOUND_PREFIX)
            and not binding.startswith(UNBOUND_PREFIX)
        )
        if bound and not reasoning.startswith(f"rs_{binding[: len(UNBOUND_PREFIX)]}"):
            text = "Item was provided without its required 'reasoning' item"
            yield Violation("reasoning_missing", f"input[{at}]", text)
