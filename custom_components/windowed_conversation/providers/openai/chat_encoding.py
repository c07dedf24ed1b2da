"""Encode Chat Completions requests: messages, tools, and the residue that compatible servers expect back."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
import json
from typing import Any

from ...window import Attachment, EstimatedCounter, Message, Role
from ..answer_schemas import COMPATIBLE, OPENAI_STRICT, place_answer_schema
from ..encoder import add_notes, derive_short_id, drop_none, encode_name, is_short_id, native_value, shorten
from ..events import Request, add_picture_messages
from ..json_values import get_objects, read_repaired_json
from .fields import (
    data_url,
    encode_arguments,
    encode_effort,
    encode_sampling,
    encode_tier,
    encode_tool,
    encode_tool_choice,
    encode_verbosity,
    get_file_name,
    is_image,
)

# The fields that contain a model's reasoning: the first for DeepSeek, llama.cpp, LM Studio and vLLM; the second for
# Ollama and OpenRouter.
_REASONING_FIELDS = ("reasoning_content", "reasoning")
_DETAILS_FIELD = "reasoning_details"

# The maximum size of residue in characters of JSON. More is not worth its cost in every later request.
_MAX_NATIVE_CHARS = 64 * 1024

# The members of a detail that OpenRouter streams in fragments; all others arrive complete.
_FRAGMENT_FIELDS = frozenset({"text", "summary"})

_ESTIMATOR = EstimatedCounter()

type _JsonObject = Mapping[str, Any]

# A placeholder that DeepSeek accepts for a message without reasoning; it refuses an empty text:
# https://github.com/NousResearch/hermes-agent/pull/18263
_REASONING_FILLER: _JsonObject = {"reasoning_content": " "}

# Longer ids, which other providers may use, are refused: https://github.com/vercel/ai/issues/5171
_MAX_CALL_ID_CHARS = 40


class EchoMode(StrEnum):
    """The form in which a server expects the additional fields of its messages to be sent back.

    VERBATIM: unchanged. FILLED: with reasoning in every message, as DeepSeek requires, even if another model wrote the
    message or no reasoning exists. NOTHING: without these fields, as Groq requires for some models:
    https://github.com/karthink/gptel/issues/774
    """

    VERBATIM = "verbatim"
    FILLED = "filled"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class NativeFields:
    """The fields to send back to the server that wrote a message.

    These are fields of the message, and of each of its calls by call id.
    """

    message_fields: _JsonObject = field(default_factory=dict)
    call_fields: _JsonObject = field(default_factory=dict)


def read_native_fields(message: Message | None, provider: str, model: str) -> NativeFields | None:
    """Return the residue on a message if this provider and model produced it and it is readable, else None."""
    value = native_value(message, provider, model)
    if not isinstance(value, dict) or not value.keys() <= {"fields", "calls"}:
        return None
    fields, calls = value.get("fields", {}), value.get("calls", {})
    if not isinstance(fields, dict) or not isinstance(calls, dict):
        return None
    return NativeFields(fields, calls) if fields.keys() <= {*_REASONING_FIELDS, _DETAILS_FIELD} else None


def list_echo_alternatives(request: Request, provider: str) -> list[EchoMode]:
    """Return the ways to send the request's residue that differ from `EchoMode.VERBATIM`.

    Reasoning is filled in only if any model has produced residue, because most models do not reason.
    """
    answers = [message for message in request.messages if message.role is Role.ASSISTANT]
    own = [read_native_fields(message, provider, request.model) for message in answers]
    with_fields = [residue is not None and bool(residue.message_fields) for residue in own]
    of_others = [message for message, residue in zip(answers, own, strict=True) if message.native and residue is None]
    may_fill = not all(with_fields) and (any(with_fields) or of_others)
    return [*([EchoMode.FILLED] if may_fill else []), *([EchoMode.NOTHING] if any(with_fields) else [])]


@dataclass(slots=True)
class NativeFieldsReader:
    """Collects the residue of an answer while it arrives. If the residue gets too long, all of it is dropped."""

    _reasoning_texts: dict[str, list[str]] = field(default_factory=dict)
    _details: list[dict[str, Any]] = field(default_factory=list)
    _newest_by_index: dict[str, dict[str, Any]] = field(default_factory=dict)
    _char_count: int = 0

    def on_delta(self, delta: Any) -> str:
        """Add the fields of a delta other than text and calls. Return the delta's reasoning as text."""
        if details := delta.get(_DETAILS_FIELD):
            for detail in get_objects(details):
                self._on_detail(detail)
        for name in _REASONING_FIELDS:
            thought = delta.get(name)
            if thought and isinstance(thought, str):
                if self._add_chars(len(thought)):
                    self._reasoning_texts.setdefault(name, []).append(thought)
                return thought
        return ""

    def reserve_chars(self, value: Any) -> bool:
        """Count the size of a value. Return whether the residue is still short enough."""
        return self._add_chars(_json_length(value))

    def build_value(self, calls: _JsonObject) -> dict[str, Any]:
        """Return the residue as JSON with surrogate pairs repaired; empty if there is none, or if it is too long.

        `calls` has the "extra_content" of each call for which there was room, by this integration's call id.
        """
        if self._char_count > _MAX_NATIVE_CHARS:
            return {}
        fields: dict[str, Any] = {name: "".join(texts) for name, texts in self._reasoning_texts.items()}
        if self._details:
            fields[_DETAILS_FIELD] = self._details
        found = {name: each for name, each in {"fields": fields, "calls": calls}.items() if each}
        try:
            value: dict[str, Any] = read_repaired_json(json.dumps(found))
        except RecursionError:
            return {}
        return value

    def _add_chars(self, count: int) -> bool:
        self._char_count += count
        return self._char_count <= _MAX_NATIVE_CHARS

    def _on_detail(self, detail: dict[str, Any]) -> None:
        """Add a detail, or append it to the detail that it continues."""
        index = str(detail.get("index"))
        newest = self._newest_by_index.get(index)
        if newest and _is_continuation(newest, detail):
            texts = {name: detail[name] for name in _FRAGMENT_FIELDS if detail.get(name)}
            others = {name: each for name, each in detail.items() if name not in _FRAGMENT_FIELDS and each is not None}
            others = {name: each for name, each in others.items() if each != newest.get(name)}
            if self._add_chars(sum(map(len, texts.values())) + (_json_length(others) if others else 0)):
                newest.update(others, **{name: (newest.get(name) or "") + text for name, text in texts.items()})
        elif self.reserve_chars(detail):
            self._details.append(detail)
            self._newest_by_index[index] = detail


def estimate_native_tokens(residue: _JsonObject) -> int:
    """Return the estimated tokens of residue. Details repeat the reasoning, so only one of the two is counted."""
    fields, calls = residue.get("fields", {}), residue.get("calls", {})
    texts = [fields[name] for name in _REASONING_FIELDS if name in fields]
    texts = texts or [json.dumps(each, ensure_ascii=False) for each in (fields,) if each]
    return sum(map(_ESTIMATOR.count, (*texts, *(json.dumps(each, ensure_ascii=False) for each in calls.values()))))


def _is_continuation(newest: _JsonObject, detail: _JsonObject) -> bool:
    """Return whether a detail is the next fragment of the newest detail with the same index.

    Details of different types may share an index: https://github.com/OpenRouterTeam/ai-sdk-provider/issues/519. A
    signed or encrypted detail is complete.
    """
    if newest.get("type") != detail.get("type") or newest.get("signature") or "data" in detail:
        return False
    return all(isinstance(each.get(name) or "", str) for each in (newest, detail) for name in _FRAGMENT_FIELDS)


def _json_length(value: Any) -> int:
    try:
        return len(json.dumps(value))
    except RecursionError:
        return _MAX_NATIVE_CHARS + 1


class Dialect(StrEnum):
    """The kind of server.

    OPENAI: OpenAI itself and Azure. COMPATIBLE: any other server, limited to the parameters that all servers accept.
    """

    OPENAI = "openai"
    COMPATIBLE = "compatible"


def encode_request(
    request: Request, dialect: Dialect, provider: str, echo: EchoMode, caching: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters of a request, without those that have no value or that the model does not accept.

    Residue of `provider` and the request's model is sent as `echo` says. `caching` has the prompt cache parameters.
    """
    is_openai = dialect is Dialect.OPENAI
    wanted = None
    if request.answer_schema is not None:
        request, wanted = place_answer_schema(request, OPENAI_STRICT if is_openai else COMPATIBLE)
    has_pictures = [each for each in request.messages if each.attachments]
    messages = add_picture_messages(request.messages) if has_pictures else request.messages
    strict = {"strict": True} if is_openai else {}
    schema = {**strict, "name": encode_name(wanted.name), "schema": wanted.schema} if wanted else None
    images, limit = request.profile.images, request.answer_limit
    visible = [
        _mark_unseen(each, dialect, images=images) if each.attachments and each.role is Role.USER else each
        for each in messages
    ]
    limits = (
        {
            "max_completion_tokens": limit,
            "reasoning_effort": encode_effort(request),
            **encode_verbosity(request),
            **encode_tier(request),
        }
        if is_openai
        else {"max_tokens": limit, "reasoning_effort": request.settings.effort}
    )
    return {
        "model": request.model,
        "messages": encode_messages(_merge(visible, provider, request.model), dialect, provider, request.model, echo),
        **(_encode_tools(request, dialect) if request.tools or request.settings.web_search else {}),
        **drop_none(**encode_sampling(request), **limits),
        **({"response_format": {"type": "json_schema", "json_schema": schema}} if schema else {}),
        **caching,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def encode_messages(
    messages: Iterable[Message],
    dialect: Dialect = Dialect.COMPATIBLE,
    provider: str = "",
    model: str = "",
    echo: EchoMode = EchoMode.VERBATIM,
) -> list[dict[str, Any]]:
    """Return the messages in this format, in the same order, with the residue that `provider` and `model` produced."""
    encoded: list[dict[str, Any]] = []
    ids: dict[str, str] = {}
    for message in messages:
        if message.role is Role.ASSISTANT:
            residue = read_native_fields(message, provider, model)
            ids = {call.id: _encode_id(call.id, dialect, is_own=residue is not None) for call in message.tool_calls}
            encoded.append(_encode_assistant(message, ids, residue, echo))
        elif message.role is Role.TOOL:
            call_id = message.tool_call_id or ""
            sent = ids.get(call_id) or _encode_id(call_id, dialect)
            encoded.append({"role": "tool", "tool_call_id": sent, "content": message.content})
        else:
            content: Any = message.content
            if message.attachments:
                text = [{"type": "text", "text": content}] if content else []
                content = [*text, *map(_encode_attachment, message.attachments)]
            encoded.append({"role": message.role.value, "content": content})
    return encoded


def _encode_tools(request: Request, dialect: Dialect) -> dict[str, Any]:
    """Return the tools, with the choice between them if they may not or must be called.

    Some compatible servers ignore that choice, so they are offered no tools in that case.
    """
    if not request.may_call and dialect is not Dialect.OPENAI:
        return {}
    tools: list[dict[str, Any]] = [{"type": "function", "function": encode_tool(tool)} for tool in request.tools]
    if request.settings.web_search:
        # only OpenRouter has one in this format
        tools.append({"type": "openrouter:web_search", "parameters": {"engine": "auto"}})
    return {"tools": tools, **encode_tool_choice(request)}


def _mark_unseen(message: Message, dialect: Dialect, *, images: bool) -> Message:
    """Return the message with a note for attachments that the model cannot see."""
    is_openai = dialect is Dialect.OPENAI
    seen = tuple(each for each in message.attachments if images and (is_image(each) or is_openai))
    if seen == message.attachments:
        return message
    content = add_notes(message.content, len(message.attachments) - len(seen))
    return replace(message, content=content, attachments=seen)


def _merge(messages: Iterable[Message], provider: str, model: str) -> Iterator[Message]:
    """Yield the messages, merging neighbors of the same role, which llama.cpp's chat templates refuse.

    An assistant message without text and calls is skipped. One with residue of this provider's model is unchanged.
    """
    last: Message | None = None
    for message in messages:
        if message.role is Role.ASSISTANT and not message.content.strip() and not message.tool_calls:
            continue
        goes_together = last and last.role is message.role is not Role.TOOL and not last.tool_calls
        if last and goes_together and not read_native_fields(last, provider, model):
            last = replace(
                last,
                content="\n\n".join(filter(None, (last.content, message.content))),
                tool_calls=message.tool_calls,
                native=message.native,
                attachments=(*last.attachments, *message.attachments),
            )
            continue
        if last:
            yield last
        last = message
    if last:
        yield last


def _encode_assistant(
    message: Message, ids: Mapping[str, str], residue: NativeFields | None, echo: EchoMode
) -> dict[str, Any]:
    """Return an encoded assistant message with the fields that its server expects back."""
    sent = residue if residue and echo is not EchoMode.NOTHING else NativeFields()
    fields = sent.message_fields or (_REASONING_FILLER if echo is EchoMode.FILLED else {})
    if not message.tool_calls:
        return {"role": "assistant", "content": message.content, **fields}
    calls = [
        {
            "type": "function",
            "id": ids[call.id],
            "function": {"name": encode_name(call.name), "arguments": encode_arguments(call.arguments)},
            **drop_none(extra_content=sent.call_fields.get(call.id)),
        }
        for call in message.tool_calls
    ]
    content = message.content if message.content.strip() else None
    return {"role": "assistant", "content": content, "tool_calls": calls, **fields}


def _encode_attachment(attachment: Attachment) -> dict[str, Any]:
    if is_image(attachment):
        return {"type": "image_url", "image_url": {"url": data_url(attachment)}}
    return {"type": "file", "file": {"filename": get_file_name(attachment), "file_data": data_url(attachment)}}


def _encode_id(call_id: str, dialect: Dialect, *, is_own: bool = False) -> str:
    if dialect is Dialect.OPENAI:
        return shorten(_MAX_CALL_ID_CHARS, call_id)
    # A server may have encoded information in its call ids that it needs later.
    return call_id if is_own or is_short_id(call_id) else derive_short_id(call_id)
