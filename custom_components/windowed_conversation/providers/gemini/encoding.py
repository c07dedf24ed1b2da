"""Encode requests for Gemini, with the thought signatures and call ids of earlier answers.

The format prescribes the order: a model turn with calls must be followed directly by one content with the results of
all of its calls.
"""

from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
import json
import re
from typing import Any

from ...window import Attachment, Message, Role, ToolCall
from ..answer_schemas import GEMINI, place_answer_schema
from ..encoder import UNSEEN_NOTE, drop_none, get_mime_type, join_system_prompt, native_value
from ..events import AnswerSchema, Request, add_picture_messages
from ..json_values import drop_non_finite, get_member, get_objects, read_repaired_json
from ..models import Effort, ModelProfile, ReasoningStyle, find_accepted_effort

PROVIDER_NAME = "gemini"

# The member of the residue with all parts of an answer, which are sent back unchanged until the turn ends:
# https://ai.google.dev/gemini-api/docs/tool-combination
TURN_PARTS = "parts"

# Replaces the signature of a call that Gemini did not make. From Gemini 3 on, a call of the current turn without a
# signature is refused: https://ai.google.dev/gemini-api/docs/thought-signatures
NO_SIGNATURE = b"skip_thought_signature_validator"

# The tool names that Gemini accepts: https://ai.google.dev/api/caching#FunctionDeclaration
_VALID_NAME_PATTERN = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")

_INVALID_CHAR_PATTERN = re.compile(r"[^a-zA-Z0-9_.:-]")
_MAX_PREFIX_CHARS = 100

# Thinking budgets in tokens, from Google's own table: https://ai.google.dev/gemini-api/docs/openai#thinking MINIMAL is
# the smallest budget of 2.5 Pro, which cannot turn off thinking: https://ai.google.dev/gemini-api/docs/thinking
_EFFORT_BUDGETS = {Effort.NONE: 0, Effort.MINIMAL: 128, Effort.LOW: 1024, Effort.MEDIUM: 8192, Effort.HIGH: 24576}

_ANSWER_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class SignedText:
    """A signed section of a text; `start` and `end` count characters from the end of the text.

    They count from the end because the beginning may be stripped before a text is spoken. Both are 0 for the empty part
    that often carries the last signature of a stream.
    """

    start: int
    end: int
    signature: bytes


@dataclass(frozen=True, slots=True)
class Signatures:
    """The signatures of an answer that are sent back to Gemini, and Gemini's call ids.

    Both mappings are keyed by this integration's call ids.
    """

    gemini_id_by_call_id: Mapping[str, str] = field(default_factory=dict)
    by_call: Mapping[str, bytes] = field(default_factory=dict)
    texts: tuple[SignedText, ...] = ()

    def as_json(self) -> dict[str, Any] | None:
        """Return the residue as a JSON value, or None if it is empty."""
        if not self.gemini_id_by_call_id and not self.by_call and not self.texts:
            return None
        return {
            "ids": dict(self.gemini_id_by_call_id),
            "signatures": {call: b64encode(signature).decode() for call, signature in self.by_call.items()},
            "texts": [[text.start, text.end, b64encode(text.signature).decode()] for text in self.texts],
        }


NO_SIGNATURES = Signatures()


def read_signatures(message: Message, model: str) -> Signatures:
    """Return a message's residue; empty if another provider or model produced it, or if it is malformed."""
    value = native_value(message, PROVIDER_NAME, model)
    if not value:
        return NO_SIGNATURES
    try:
        return Signatures(
            {str(call): str(id_) for call, id_ in value["ids"].items()},
            {str(call): b64decode(signature, validate=True) for call, signature in value["signatures"].items()},
            tuple(
                SignedText(int(start), int(end), b64decode(signature, validate=True))
                for start, end, signature in value["texts"]
            ),
        )
    except AttributeError, LookupError, TypeError, ValueError:
        # A conversation may have been imported, and a malformed signature should not make the answer fail.
        return NO_SIGNATURES


type _Part = dict[str, Any]


def _encode_contents(request: Request) -> list[dict[str, Any]]:
    """Return the conversation without its system messages: user and model contents, with neighboring turns merged."""
    contents: list[dict[str, Any]] = []
    for role, parts in _encode_turns(request):
        before = contents[-1]["parts"] if contents and contents[-1]["role"] == role else None
        if before is not None and not any("functionResponse" in part for part in before + parts):
            before += parts
        elif parts:
            contents.append({"role": role, "parts": parts})
    return contents


def encode_body(request: Request) -> dict[str, Any]:
    """Return the request body with the parameters that the model accepts."""
    profile, settings, most = request.profile, request.settings, request.answer_limit
    sampling = {"temperature": settings.temperature} if profile.sampling else {}
    thinking, prompt = _thinking(profile, settings.effort, most), encode_prompt(request)
    mode = ("ANY" if request.requires_call else None) if request.may_call else "NONE"
    choice = {"toolConfig": {**prompt.get("toolConfig", {}), "functionCallingConfig": {"mode": mode}}}
    _, wanted = _place_schema(request)
    answer = {"responseMimeType": "application/json", "responseJsonSchema": wanted.schema} if wanted else {}
    return {
        **prompt,
        "generationConfig": drop_none(maxOutputTokens=most, **sampling, thinkingConfig=thinking, **answer),
        **(choice if request.tools and mode else {}),
    }


def encode_prompt(request: Request) -> dict[str, Any]:
    """Return the part of the request body that costs input tokens."""
    request, _ = _place_schema(request)
    system = join_system_prompt(request.messages)
    tools = [
        {"name": gemini_name(each.name), "description": each.description, "parametersJsonSchema": dict(each.parameters)}
        for each in request.tools
    ]
    offered: list[dict[str, Any]] = [{"functionDeclarations": tools}] if tools else []
    # Models before Gemini 3 refuse a search beside tools. Unlike calls, a search cannot be forbidden.
    may_search = request.profile.reasoning is ReasoningStyle.LEVEL if request.tools else request.may_call
    offered += [{"googleSearch": {}}] if may_search and request.web_search else []
    return {
        "contents": _encode_contents(request),
        **({"systemInstruction": {"parts": [{"text": system}], "role": "user"}} if system else {}),
        **({"tools": offered} if offered else {}),
        # Without this, a search beside own tools is refused: https://ai.google.dev/gemini-api/docs/tool-combination
        **({"toolConfig": {"includeServerSideToolInvocations": True}} if len(offered) > 1 else {}),
    }


def _place_schema(request: Request) -> tuple[Request, AnswerSchema | None]:
    """Return the request with the answer's schema in its place, see `place_answer_schema`.

    Models before Gemini 3 refuse the parameter beside tools: https://github.com/googleapis/python-genai/issues/867
    """
    may_combine = not request.tools or request.profile.reasoning is ReasoningStyle.LEVEL
    return place_answer_schema(request, GEMINI if may_combine else None)


def gemini_name(name: str) -> str:
    """Return the name under which a tool is sent: its own if it is valid, else one derived from it and its hash."""
    if _VALID_NAME_PATTERN.fullmatch(name):
        return name
    beginning = _INVALID_CHAR_PATTERN.sub("_", name)[:_MAX_PREFIX_CHARS]
    return f"_{beginning}_{sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _encode_turns(request: Request) -> Iterator[tuple[str, list[_Part]]]:
    """Yield the role and the parts of each message. The results of one turn are yielded together."""
    messages = [message for message in request.messages if message.role is not Role.SYSTEM]
    newest = next((message for message in reversed(messages) if message.role is Role.USER), None)
    is_newest_turn = False
    calls: tuple[ToolCall, ...] = ()
    residue = NO_SIGNATURES
    for is_result, group in groupby(add_picture_messages(messages), key=lambda each: each.role is Role.TOOL):
        if is_result:
            yield "user", _encode_results(calls, [*group], residue)
            continue
        for message in group:
            is_newest_turn = is_newest_turn or message is newest
            if message.role is Role.USER:
                yield "user", _encode_user(message, request.profile)
            else:
                residue = read_signatures(message, request.model)
                calls = message.tool_calls
                insists = is_newest_turn and request.profile.reasoning is ReasoningStyle.LEVEL
                own = get_objects(get_member(native_value(message, PROVIDER_NAME, request.model), TURN_PARTS))
                texts = _text_parts(message.content, residue.texts)
                yield "model", own or [*texts, *_encode_calls(calls, residue, insists)]


def _encode_user(message: Message, profile: ModelProfile) -> list[_Part]:
    attached = [_encode_attachment(each) if profile.images else {"text": UNSEEN_NOTE} for each in message.attachments]
    # Gemini refuses empty texts, and turns without parts.
    return [*attached, *_encode_text(message.content)] or [{"text": " "}]


def _encode_attachment(attachment: Attachment) -> _Part:
    data = urlsafe_b64encode(attachment.data).decode()
    return {"inlineData": {"data": data, "mimeType": get_mime_type(attachment)}}


def _text_parts(content: str, signed: tuple[SignedText, ...]) -> Iterator[_Part]:
    """Yield the text, with each signed section as a separate part: it must be sent back unchanged, even if empty."""
    at = 0
    for each in signed:
        start, end = len(content) - each.start, len(content) - each.end
        if at <= start <= end <= len(content):
            yield from _encode_text(content[at:start])
            yield {"text": content[start:end], **_encode_signature(each.signature)}
            at = end
    yield from _encode_text(content[at:])


def _encode_text(text: str) -> list[_Part]:
    return [{"text": text}] if text else []


def _encode_calls(calls: tuple[ToolCall, ...], residue: Signatures, insists: bool) -> Iterator[_Part]:
    """Yield a part for each call. The first of several parallel calls carries the signature for all of them."""
    for place, call in enumerate(calls):
        signature = residue.by_call.get(call.id) or (NO_SIGNATURE if insists and not place else None)
        function_call = {
            **_call_id(residue, call.id),
            "name": gemini_name(call.name),
            "args": drop_non_finite(dict(call.arguments)),
        }
        yield {"functionCall": function_call, **(_encode_signature(signature) if signature else {})}


def _call_id(residue: Signatures, call_id: str) -> dict[str, str]:
    return {"id": residue.gemini_id_by_call_id[call_id]} if call_id in residue.gemini_id_by_call_id else {}


def _encode_signature(signature: bytes) -> dict[str, str]:
    return {"thoughtSignature": urlsafe_b64encode(signature).decode()}


def _encode_results(calls: tuple[ToolCall, ...], results: list[Message], residue: Signatures) -> list[_Part]:
    """Return a part for each result, in the order of the calls."""
    order = {call.id: place for place, call in enumerate(calls)}
    names = {call.id: call.name for call in calls}
    parts = []
    for result in sorted(results, key=lambda each: order.get(each.tool_call_id or "", len(order))):
        call_id = result.tool_call_id or ""
        name = names.get(call_id, result.name or "")
        response = {**_call_id(residue, call_id), "name": gemini_name(name), "response": _wrap_response(result.content)}
        parts.append({"functionResponse": response})
    return parts


def _wrap_response(content: str) -> dict[str, Any]:
    """Return a result under a key that Gemini knows: `error` for the result of a failed call, else `output`."""
    try:
        json.dumps(json.loads(content), allow_nan=False)
        value = read_repaired_json(content)
    except ValueError, RecursionError:
        return {"output": content}
    if isinstance(value, dict) and value.keys() == {"error"}:
        return value
    return {"output": value}


def _thinking(profile: ModelProfile, effort: Effort | None, max_answer_tokens: int | None) -> dict[str, Any] | None:
    """Return the thinking level or token budget, or None if the model or the request does not specify any."""
    taken = find_accepted_effort(profile, effort)
    if taken is None:
        return None
    include = {} if effort is Effort.NONE else {"includeThoughts": True}
    match profile.reasoning:
        case ReasoningStyle.LEVEL:
            # LOW is the lowest level that all of these models accept: only some accept MINIMAL, and none can turn off
            # thinking.
            return {**include, "thinkingLevel": (Effort.LOW if taken is Effort.NONE else taken).name}
        case ReasoningStyle.BUDGET:
            # Thinking counts as output, so half of the limit, or enough tokens for a spoken answer, is reserved for the
            # answer.
            most = (
                max(max_answer_tokens // 2, max_answer_tokens - _ANSWER_TOKENS)
                if max_answer_tokens
                else _EFFORT_BUDGETS[taken]
            )
            budget = min(_EFFORT_BUDGETS[taken], most)
            return {**include, "thinkingBudget": budget}
        case _:
            return None
