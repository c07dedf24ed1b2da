"""The rules for a valid request to Anthropic's Messages, as pure functions of a parsed body.

`anthropic_block_validation` checks single content blocks.
"""

from collections import Counter
from collections.abc import Iterator
import re
from typing import Any

from .answer_schema_validation import find_anthropic_schema_violations
from .anthropic_block_validation import find_block_violations
from .anthropic_context import BETA_BY_EDIT, get_edits
from .anthropic_prompt import to_blocks
from .violations import Violation, find_tool_violations, find_unknown_keys, is_nonblank_text
from .wire import get_objects

_TOOL_NAME_PATTERN = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_KNOWN_KEYS = frozenset(
    {
        "cache_control", "max_tokens", "messages", "metadata", "model", "output_config", "service_tier",
        "stop_sequences", "stream", "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
    }
)  # fmt: skip
_ROLES = ("user", "assistant")
_THINKING_TYPES = ("thinking", "redacted_thinking")
_MAX_MARKS = 4
_MIN_THINKING_TOKENS = 1024


def find_anthropic_violations(body: Any, betas: frozenset[str] = frozenset()) -> list[Violation]:
    """Return all violations of the rules of Messages, given these betas; the list is empty for a valid request."""
    if not isinstance(body, dict):
        return [Violation("not_an_object", "", "the body is no JSON object")]
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        return [Violation("no_messages", "messages", "not a list of at least one object")]
    merged = _merge_messages(messages)
    checks = (
        *(
            _check_top_level(body, betas),
            _check_thinking(body),
            _check_tools(body, messages),
            _check_system(body),
            _check_marks(body, messages),
        ),
        find_anthropic_schema_violations(body),
        *(_check_order(messages), _check_pairs(merged), _check_tool_loop(body, merged)),
    )
    model = str(body.get("model"))
    contents = (found for at, each in enumerate(messages) for found in _check_message(each, f"messages[{at}]", model))
    return [found for check in (*checks, contents) for found in check]


def _merge_messages(messages: list[dict[str, Any]]) -> list[tuple[object, list[dict[str, Any]]]]:
    """Return roles and blocks as the provider reads them: consecutive messages with the same role are merged."""
    merged: list[tuple[object, list[dict[str, Any]]]] = []
    for message in messages:
        blocks = to_blocks(message.get("content"))
        if merged and merged[-1][0] == message.get("role"):
            merged[-1][1].extend(blocks)
        else:
            merged.append((message.get("role"), [*blocks]))
    return merged


def _check_top_level(body: dict[str, Any], betas: frozenset[str]) -> Iterator[Violation]:
    asked = get_edits(body)
    needed = {BETA_BY_EDIT.get(str(edit.get("type"))) for edit in asked}
    allowed = asked and needed <= betas
    yield from find_unknown_keys(body, _KNOWN_KEYS | {"context_management"} if allowed else _KNOWN_KEYS)
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield Violation("no_model", "model", "not a name")
    most = body.get("max_tokens")
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        yield Violation("max_tokens", "max_tokens", "Field required: a number of at least 1")
    if "temperature" in body and "top_p" in body:
        yield Violation("sampling", "top_p", "`temperature` and `top_p` cannot both be specified for this model")


def _check_thinking(body: dict[str, Any]) -> Iterator[Violation]:
    thinking = body.get("thinking")
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    if thinking is not None and kind not in ("enabled", "adaptive", "disabled"):
        yield Violation("thinking_type", "thinking", "neither enabled nor adaptive nor disabled")
    if not isinstance(thinking, dict) or kind not in ("enabled", "adaptive"):
        return
    if body.get("temperature", 1) != 1 or "top_k" in body:
        yield Violation("thinking_sampling", "temperature", "may only be set to 1 when thinking is enabled")
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        yield Violation("thinking_tool_choice", "tool_choice", "Thinking may not be enabled when it forces tool use")
    budget, most = thinking.get("budget_tokens"), body.get("max_tokens")
    if kind == "enabled" and not (isinstance(budget, int) and budget >= _MIN_THINKING_TOKENS):
        yield Violation("thinking_budget", "thinking", f"budget_tokens is not at least {_MIN_THINKING_TOKENS}")
    elif kind == "enabled" and isinstance(budget, int) and isinstance(most, int) and budget >= most:
        yield Violation("thinking_budget", "thinking", "max_tokens must be greater than budget_tokens")


def _check_tools(body: dict[str, Any], messages: list[dict[str, Any]]) -> Iterator[Violation]:
    tools = body.get("tools", [])
    if not isinstance(tools, list):
        yield Violation("tools_empty", "tools", "not a list of tools")
        return
    own = [tool for tool in tools if not is_search(tool)]
    yield from find_tool_violations(own, schema="input_schema", name_form=_TOOL_NAME_PATTERN)
    names = {tool.get("name") for tool in own if isinstance(tool, dict)}
    if not names.isdisjoint({tool.get("name") for tool in tools if is_search(tool)}):
        yield Violation("tools_unique", "tools", "Tool names must be unique.")
    if "tool_choice" in body and not tools:
        yield Violation("tool_choice_without_tools", "tool_choice", "only allowed with tools")
    blocks = [block for message in messages for block in to_blocks(message.get("content"))]
    if not tools and any(block.get("type") in ("tool_use", "tool_result") for block in blocks):
        yield Violation("tools_missing", "tools", "the history has tool calls, and no tools are supplied")


def is_search(tool: object) -> bool:
    """Return whether a tool is the web search."""
    return isinstance(tool, dict) and tool.get("type") in ("web_search_20250305", "web_fetch_20250910")


def _is_pause(message: dict[str, Any]) -> bool:
    """Return whether a message is a paused answer, which goes on when it is sent back."""
    blocks = to_blocks(message.get("content"))
    return bool(blocks) and blocks[-1].get("type") == "web_search_tool_result"


def _check_system(body: dict[str, Any]) -> Iterator[Violation]:
    if "system" not in body:
        return
    system = body["system"]
    blocks = to_blocks(system)
    if not blocks or not all(block.get("type") == "text" and is_nonblank_text(block.get("text")) for block in blocks):
        yield Violation("system_empty", "system", "neither text nor a list of text blocks with text in them")


def _check_marks(body: dict[str, Any], messages: list[dict[str, Any]]) -> Iterator[Violation]:
    blocks = [block for message in messages for block in to_blocks(message.get("content"))]
    marked = [*get_objects(body.get("tools")), *to_blocks(body.get("system")), *blocks, body]
    controls = [block["cache_control"] for block in marked if block.get("cache_control") is not None]
    if len(controls) > _MAX_MARKS:
        yield Violation("cache_marks", "", f"A maximum of {_MAX_MARKS} blocks with cache_control may be provided")
    if any(not _is_valid_mark(control) for control in controls):
        yield Violation("cache_mark", "", "cache_control is neither ephemeral for 5m nor for 1h")
        return
    long = [control.get("ttl") == "1h" for control in controls]
    if long != sorted(long, reverse=True):
        yield Violation("cache_order", "", "a ttl of 1h must not come after a ttl of 5m")


def _is_valid_mark(control: object) -> bool:
    return isinstance(control, dict) and control.get("type") == "ephemeral" and control.get("ttl", "5m") in ("5m", "1h")


def _check_order(messages: list[dict[str, Any]]) -> Iterator[Violation]:
    for at, message in enumerate(messages):
        if message.get("role") not in _ROLES:
            yield Violation("role", f"messages[{at}]", "no role of this format")
    if messages[0].get("role") != "user":
        yield Violation("user_first", "messages[0]", "the first message is no user's")
    if messages[-1].get("role") != "user" and not _is_pause(messages[-1]):
        yield Violation("ends_with_user", f"messages[{len(messages) - 1}]", "the newest models continue no answer")


def _get_ids(blocks: list[dict[str, Any]], kind: str, key: str) -> list[str]:
    return [str(block.get(key)) for block in blocks if block.get("type") == kind]


def _check_pairs(merged: list[tuple[object, list[dict[str, Any]]]]) -> Iterator[Violation]:
    every_id = Counter(call_id for _, blocks in merged for call_id in _get_ids(blocks, "tool_use", "id"))
    if any(count > 1 for count in every_id.values()):
        yield Violation("call_id_unique", "messages", "`tool_use` ids must be unique")
    waiting: list[str] = []
    for at, (_, blocks) in enumerate(merged):
        where = f"messages[{at}], merged"
        results = _get_ids(blocks, "tool_result", "tool_use_id")
        if set(waiting) - set(results):
            yield Violation("result_missing", where, "`tool_use` ids were found without `tool_result` blocks after")
        if set(results) - set(waiting):
            yield Violation("result_orphan", where, "unexpected `tool_use_id` found in `tool_result` blocks")
        if len(set(results)) < len(results):
            yield Violation("result_duplicate", where, "each tool_use must have a single result")
        if any(block.get("type") != "tool_result" for block in blocks[: len(results)]):
            yield Violation("results_first", where, "tool_result blocks are not the first of their message")
        waiting = _get_ids(blocks, "tool_use", "id")
    if waiting:
        yield Violation("result_missing", "messages", "`tool_use` ids were found without `tool_result` blocks after")


def _check_tool_loop(body: dict[str, Any], merged: list[tuple[object, list[dict[str, Any]]]]) -> Iterator[Violation]:
    """Yield a violation if the current tool loop lacks the thinking with which its last answer began."""
    thinking = body.get("thinking")
    enabled = isinstance(thinking, dict) and thinking.get("type") == "enabled"
    going_on = len(merged) > 1 and bool(_get_ids(merged[-1][1], "tool_result", "tool_use_id"))
    if enabled and going_on and merged[-2][1] and merged[-2][1][0].get("type") not in _THINKING_TYPES:
        where = f"messages[{len(merged) - 2}], merged"
        yield Violation("thinking_missing", where, "Expected `thinking` or `redacted_thinking`")


def _check_message(message: dict[str, Any], where: str, model: str) -> Iterator[Violation]:
    content = message.get("content")
    if not isinstance(content, str | list) or not content:
        yield Violation("content_empty", where, "all messages must have non-empty content")
        return
    role = str(message.get("role"))
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for at, block in enumerate(blocks):
        yield from find_block_violations(block, f"{where}.content[{at}]", role, model)
    searched = [str(block.get("id")) for block in get_objects(blocks) if block.get("type") == "server_tool_use"]
    for at, block in enumerate(get_objects(blocks)):
        known = [each.get("id") for each in get_objects(blocks)[:at] if each.get("type") == "server_tool_use"]
        if block.get("type") == "web_search_tool_result" and block.get("tool_use_id") not in known:
            text = "web_search_tool_result block has no corresponding server_tool_use block before it"
            yield Violation("search_orphan", f"{where}.content[{at}]", text)
    if len(set(searched)) < len(searched):
        yield Violation("call_id_unique", where, "`server_tool_use` ids must be unique")
    thinks = [isinstance(block, dict) and block.get("type") in _THINKING_TYPES for block in blocks]
    if thinks != sorted(thinks, reverse=True):
        yield Violation("thinking_first", where, "thinking does not come before all else")
    if thinks[-1]:
        yield Violation("thinking_last", where, "The final block in an assistant message cannot be `thinking`")
