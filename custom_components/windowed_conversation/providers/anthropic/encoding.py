"""Encode requests for Anthropic's Messages API: tools, content blocks, thinking, context editing, and cache marks."""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from itertools import takewhile
import json
import re
from typing import Any

from ...window import MAX_TOKENS, Attachment, Message, Role
from ..answer_schemas import ANTHROPIC, place_answer_schema
from ..encoder import UNSEEN_NOTE, encode_name, flatten_choices, get_mime_type, make_name_map, native_value
from ..events import Request, ToolSchema, add_picture_messages
from ..json_values import drop_non_finite, get_count, get_member, get_objects
from ..models import Caching, Effort, ReasoningStyle, find_accepted_effort
from ..sizes import exceeds_context

type ArgumentNames = Mapping[str, Mapping[str, str]]

# The provider name that is stored with the residue.
PROVIDER_NAME = "anthropic"

THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})
# The blocks of searches, which the server itself runs.
SEARCH_TYPES = frozenset({"server_tool_use", "web_search_tool_result", "web_fetch_tool_result"})
# Newer versions of the tool also run code: https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool
_WEB_SEARCH_TOOL = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
# Reads pages that a search has found, or that are named in the conversation. It costs nothing but the tokens.
_WEB_FETCH_TOOL = {"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 3, "max_content_tokens": 5_000}

# The API refuses empty messages and blank text, but a user's message must not disappear.
_EMPTY_MESSAGE_TEXT = "..."

# The block types by MIME type: https://platform.claude.com/docs/en/build-with-claude/vision
_BLOCK_TYPES = dict.fromkeys(("image/gif", "image/jpeg", "image/png", "image/webp"), "image") | {
    "application/pdf": "document"
}

_VALID_ID_PATTERN = re.compile(r"[a-zA-Z0-9_-]+")

# The API requires a limit. This one is several times longer than any answer that a user would listen to.
_DEFAULT_MAX_TOKENS = 4096

# The smallest thinking budget that the API accepts:
# https://platform.claude.com/docs/en/build-with-claude/extended-thinking
_MIN_THINKING_TOKENS = 1024

# The share of the answer limit that thinking may use; the rest is for the answer's text.
_BUDGET_SHARE_BY_EFFORT = {Effort.MINIMAL: 0.0, Effort.LOW: 0.25, Effort.MEDIUM: 0.5, Effort.HIGH: 0.75}

_MAX_TEMPERATURE = 1.0
_CACHE_MARK = {"type": "ephemeral"}

# From this share of the context on, a request may be too long although its estimated size fits: Claude uses up to a
# third more tokens for a text than the vocabulary to which the estimate was fitted.
_RISKY_CONTEXT_SHARE = 0.75

_CONTEXT_EDITING_BETA = "context-management-2025-06-27"

# Old results are cleared once there are more than six calls, except for the newest three, which the API keeps by
# default. Clearing results invalidates the cached prefix from there on, so the documentation recommends to clear only
# when it is worth that cost.
_CLEARING_EDIT = {
    "type": "clear_tool_uses_20250919",
    "trigger": {"type": "tool_uses", "value": 6},
    "keep": {"type": "tool_uses", "value": 3},
    "clear_at_least": {"type": "input_tokens", "value": 1000},
}


def _encode_tools(request: Request) -> list[dict[str, Any]]:
    """Return the tools. If none is offered, return those called in the history, which the API requires."""
    called = {call.name for message in request.messages for call in message.tool_calls}
    tools = request.tools or [ToolSchema(name, "", {}) for name in sorted(called, key=encode_name)]
    encoded = [_encode_tool(tool) for tool in tools]
    # The names must be unique, and a script may have one of these.
    names = [tool["name"] for tool in encoded]
    if request.web_search and _WEB_SEARCH_TOOL["name"] not in names:
        encoded.append({**_WEB_SEARCH_TOOL, "user_location": request.web_search.location})
    if request.web_search and request.profile.web_fetch and _WEB_FETCH_TOOL["name"] not in names:
        encoded.append({**_WEB_FETCH_TOOL})
    if request.search_tool:
        encoded += [{**_encode_tool(tool), "defer_loading": True} for tool in request.deferred_tools]
    return encoded


def _encode_tool(tool: ToolSchema) -> dict[str, Any]:
    schema, _ = _encode_schema(tool)
    return {"name": encode_name(tool.name), "description": tool.description, "input_schema": schema}


def map_argument_names(tools: Iterable[ToolSchema]) -> ArgumentNames:
    """Return, by tool name, the replacements for argument names that the API refuses, for tools that need any."""
    return {tool.name: names for tool in tools if (names := _encode_schema(tool)[1])}


def rename_keys(members: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return an object with some of its keys renamed."""
    return {names.get(name, name): value for name, value in members.items()}


# Requests of one agent offer the same tools repeatedly.
@lru_cache(maxsize=256)
def _encode_schema(tool: ToolSchema) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return the schema in the form that is sent, and the argument names replaced in it."""
    schema = flatten_choices(tool.parameters)
    names = make_name_map(schema["properties"])
    if names:
        schema["properties"] = rename_keys(schema["properties"], names)
        required = {"required": [names.get(name, name) for name in schema.get("required", ())]}
        schema |= required if "required" in schema else {}
    return schema, names


type Block = dict[str, Any]


def _encode_messages(request: Request, names: ArgumentNames) -> tuple[list[Block], Block | None]:
    """Return the messages with alternating roles, and the last block before the newest user message.

    The system prompt is not among them. `names` maps tools to the replacements for their argument names.
    """
    encoded: list[Block] = []
    history_end, ids = None, _CallIds()
    newest = next((message for message in reversed(request.messages) if message.role is Role.USER), None)
    for message in add_picture_messages(request.messages):
        if message is newest and encoded:
            history_end = encoded[-1]["content"][-1]
        role, blocks = "user", list[Block]()
        match message.role:
            case Role.USER:
                attached = [_encode_attachment(each, images=request.profile.images) for each in message.attachments]
                blocks = [*attached, *_encode_text(message.content)] or _encode_text(_EMPTY_MESSAGE_TEXT)
            case Role.TOOL:
                blocks = [_encode_tool_result(message, ids, request.read_found_tools(message))]
            case Role.ASSISTANT:
                role, blocks = "assistant", _encode_assistant(message, request.model, ids, names)
        if blocks and encoded and encoded[-1]["role"] == role:
            encoded[-1]["content"] += blocks
        elif blocks:
            encoded.append({"role": role, "content": blocks})
    return encoded, history_end


def read_native_blocks(message: Message, model: str) -> list[Block] | None:
    """Return the residue on a message if this model produced it and it is well formed, else None."""
    residue = native_value(message, PROVIDER_NAME, model)
    return residue if isinstance(residue, list) and all(isinstance(block, dict) for block in residue) else None


class _CallIds:
    """Call ids that the API accepts: letters, digits, `_` and `-`, each unique within a request.

    Other providers use other id formats, and this integration's ids are unique only within an exchange.
    """

    def __init__(self) -> None:
        # The newest sent id of each call.
        self.sent: dict[str, str] = {}
        self._used: set[str] = set()

    def add(self, call_id: str) -> str:
        sent, times = call_id, 0
        while sent in self._used or not _VALID_ID_PATTERN.fullmatch(sent):
            sent = f"toolu_{sha256(f'{times} {call_id}'.encode(errors='backslashreplace')).hexdigest()[:24]}"
            times += 1
        self._used.add(sent)
        self.sent[call_id] = sent
        return sent


def _encode_text(content: str) -> list[Block]:
    return [{"type": "text", "text": content}] if content.strip() else []


def _encode_attachment(attachment: Attachment, *, images: bool) -> Block:
    """Return the block of an image or a PDF, or a note if the model or the API cannot read the attachment."""
    media_type = get_mime_type(attachment)
    if not images or media_type not in _BLOCK_TYPES:
        return {"type": "text", "text": UNSEEN_NOTE}
    data = b64encode(attachment.data).decode()
    return {"type": _BLOCK_TYPES[media_type], "source": {"type": "base64", "media_type": media_type, "data": data}}


def _encode_tool_result(message: Message, ids: _CallIds, found: Iterable[ToolSchema] | None) -> Block:
    call_id = message.tool_call_id or ""
    block: Block = {"type": "tool_result", "tool_use_id": ids.sent.get(call_id, call_id)}
    if found:
        block["content"] = [{"type": "tool_reference", "tool_name": encode_name(tool.name)} for tool in found]
    elif message.content.strip():
        block["content"] = message.content
    if _is_error(message.content):
        block["is_error"] = True
    return block


def _is_error(content: str) -> bool:
    """Return whether a tool result reports a failure: a JSON object with an `error` member."""
    if '"error"' not in content:
        return False
    try:
        result = json.loads(content)
    except json.JSONDecodeError, RecursionError:
        return False
    return isinstance(result, dict) and "error" in result


def _encode_assistant(message: Message, model: str, ids: _CallIds, names: ArgumentNames) -> list[Block]:
    """Return the blocks of an answer, with its thinking blocks in their original positions.

    The API refuses any other order with status 400, and an answer that ends with thinking, too.
    https://platform.claude.com/docs/en/build-with-claude/extended-thinking#preserving-thinking-blocks
    """
    text = _encode_text(message.content)
    calls: list[Block] = [
        {
            "type": "tool_use",
            "id": ids.add(call.id),
            "name": encode_name(call.name),
            "input": rename_keys(drop_non_finite(dict(call.arguments)), names.get(call.name, {})),
        }
        for call in message.tool_calls
    ]
    if not text and not calls:
        return []
    blocks: list[Block] = []
    for place in read_native_blocks(message, model) or ():
        match place.get("type"):
            case "text":
                # Within the turn, a text between searches is sent back as it was.
                blocks += [place] if "text" in place else text
                text = []
            case "tool_use":
                blocks += [*text, *calls[:1]]
                text, calls = [], calls[1:]
            case kind if kind in THINKING_TYPES or kind in SEARCH_TYPES:
                blocks.append(place)
    blocks += [*text, *calls]
    while blocks[-1]["type"] in THINKING_TYPES:
        blocks.pop()
    return blocks


def encode_request(request: Request) -> dict[str, Any]:
    """Return the request body without "stream". Its "betas", if any, must be sent in the `anthropic-beta` header."""
    body, breakpoints = _encode_body(request)
    if request.settings.compaction and request.profile.context_editing:
        body |= {"betas": [_CONTEXT_EDITING_BETA], "context_management": {"edits": [_CLEARING_EDIT]}}
    if request.profile.caching is Caching.BREAKPOINTS:
        for block in breakpoints.values():
            block["cache_control"] = _CACHE_MARK
    return body


def encode_count_request(request: Request) -> dict[str, Any]:
    """Return the part of the body that the model reads, which is also the body of `/v1/messages/count_tokens`."""
    body, _ = _encode_body(request)
    counted = ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config")
    return {name: body[name] for name in counted if name in body}


def describe_cache_breakpoints(request: Request) -> Mapping[str, Any]:
    """Return the cache mark and the names of the marked blocks; empty if the model's cache does not use marks."""
    if request.profile.caching is not Caching.BREAKPOINTS:
        return {}
    _, breakpoints = _encode_body(request)
    return {"cache_control": _CACHE_MARK, "breakpoints": list(breakpoints)}


def may_be_too_long(request: Request) -> bool:
    """Return whether the request, by its estimated size, may exceed the known context of the model."""
    return exceeds_context(request, share=_RISKY_CONTEXT_SHARE, answer=_choose_max_tokens(request))


def _encode_body(request: Request) -> tuple[dict[str, Any], dict[str, Block]]:
    """Return the body, and by name the blocks at which a cached prefix can end: the API allows at most four.

    Three prefixes are marked: the tools and the system prompt, for every conversation of the agent; the history,
    because results in the newest exchange are shortened when it ends; and everything up to the newest block, for the
    next request of the same turn.

    A different `tool_choice` invalidates the cached prefix from the messages on, but not the tools and the system
    prompt: https://platform.claude.com/docs/en/build-with-claude/prompt-caching#what-invalidates-the-cache So messages
    are not marked in a request that forbids or requires calls: no later request would read that cache entry.
    """
    request, wanted = place_answer_schema(request, ANTHROPIC)
    names = map_argument_names((*request.tools, *request.deferred_tools))
    messages, history_end = _encode_messages(request, names)
    system = [
        {"type": "text", "text": message.content}
        for message in request.messages
        if message.role is Role.SYSTEM and message.content.strip()
    ]
    tools = _encode_tools(request)
    max_tokens = _choose_max_tokens(request)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": max_tokens,
        "messages": messages,
        **_encode_thinking(request, max_tokens),
    }
    if wanted:
        body.setdefault("output_config", {})["format"] = {"type": "json_schema", "schema": wanted.schema}
    if system:
        body["system"] = system
    if tools:
        body["tools"] = tools
        if not (request.may_call and (request.tools or request.web_search)):
            body["tool_choice"] = {"type": "none"}
        elif request.requires_call:
            body["tool_choice"] = {"type": "any"}
    temperature = request.settings.temperature
    if temperature is not None and request.profile.sampling and "thinking" not in body:
        body["temperature"] = min(temperature, _MAX_TEMPERATURE)
    # a tool that is loaded later cannot be marked
    first_tools = [tool for tool in tools if "defer_loading" not in tool]
    ends = {"tools": first_tools[-1] if first_tools else None, "system": system[-1] if system else None}
    if (request.may_call and not request.requires_call) or not (request.tools or request.web_search):
        ends |= {"history": history_end, "newest": messages[-1]["content"][-1] if messages else None}
    return body, {name: block for name, block in ends.items() if block is not None}


def _choose_max_tokens(request: Request) -> int:
    return request.answer_limit or min(_DEFAULT_MAX_TOKENS, request.profile.output_tokens or _DEFAULT_MAX_TOKENS)


def _encode_thinking(request: Request, max_tokens: int) -> dict[str, Any]:
    effort = find_accepted_effort(request.profile, request.settings.effort)
    if effort is None or effort is Effort.NONE or not _may_think(request):
        return {}
    if request.profile.reasoning is ReasoningStyle.ADAPTIVE:
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort.value}}
    most = int(max_tokens * _BUDGET_SHARE_BY_EFFORT[Effort.HIGH])
    if request.profile.reasoning is ReasoningStyle.BUDGET and most >= _MIN_THINKING_TOKENS:
        budget = max(_MIN_THINKING_TOKENS, int(max_tokens * _BUDGET_SHARE_BY_EFFORT[effort]))
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    return {}


def _may_think(request: Request) -> bool:
    """Return whether this model began the current tool loop, if any, with thinking, and need not call a tool.

    A model that thinks cannot be required to call one: "Thinking may not be enabled when tool_choice forces tool use".

    The API treats a tool loop as one assistant turn, in which thinking is on or off throughout. With a thinking budget,
    the turn and its last message have to begin with thinking ("a final assistant message must start with a thinking
    block"); a model with adaptive thinking may have found none necessary.
    """
    loop = takewhile(lambda message: message.role is not Role.USER, reversed(request.messages))
    answers = [message for message in loop if message.role is Role.ASSISTANT]
    if request.requires_call or not answers:
        return not request.requires_call
    if request.profile.reasoning is ReasoningStyle.ADAPTIVE:
        return read_native_blocks(answers[-1], request.model) is not None
    ends = [read_native_blocks(answer, request.model) for answer in (answers[-1], answers[0])]
    return all(blocks and blocks[0].get("type") in THINKING_TYPES for blocks in ends)


def count_cleared_tokens(event: object) -> int:
    """Return the number of cleared tokens in an event, or 0 if it has another form, as the count is informational."""
    edits = get_objects(get_member(get_member(event, "context_management"), "applied_edits"))
    return min(sum(get_count(edit, "cleared_input_tokens") for edit in edits), MAX_TOKENS)
