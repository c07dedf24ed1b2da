"""Chat Completions: reads requests and writes answers and errors, as OpenAI and compatible servers do.

The skills choose the answer, `shapes` splits tool calls into deltas, and `chat_validation` has the rules for requests.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
import json
import time
from typing import Any, override
from uuid import uuid4

from aiohttp import web

from .chat_demands import add_demanded_fields, build_reasoning_details
from .chat_validation import find_chat_violations
from .conversation import Answer, AnswerFinish, Call, Conversation, Turn
from .media import Attachment, decode_data_url
from .openai_errors import build_openai_error, convert_to_openai
from .refusal import NO_SUCH_PATH_REFUSAL, Refusal, RefusedError
from .shapes import build_whole_calls, iter_call_deltas, split_text
from .state import ServerState
from .usage import Usage, encode_json, encode_prompt
from .violations import Violation
from .wire import (
    Frame,
    FrameKind,
    Prompt,
    Reply,
    WireFormat,
    get_bearer_token,
    get_objects,
    parse_tools,
    split_document,
)

_FINISH_REASON_BY_FINISH = {
    AnswerFinish.LENGTH: "length",
    AnswerFinish.WINDOW_EXCEEDED: "length",
    AnswerFinish.CONTENT_FILTER: "content_filter",
}

DONE_EVENT = b"data: [DONE]\n\n"


class ChatCompletionsFormat(WireFormat):
    """The format of `POST /v1/chat/completions`."""

    name = "openai_chat"

    @override
    def read_api_key(self, headers: Mapping[str, str]) -> str | None:
        """Return the API key from the request headers."""
        return get_bearer_token(headers)

    @override
    def check_headers(self, headers: Mapping[str, str]) -> None:
        """Accept every request, because this format requires nothing outside the body."""

    @override
    def find_violations(self, body: Any) -> list[Violation]:
        """Return the violations of the format's rules in the request."""
        return find_chat_violations(body)

    @override
    def parse_request(self, body: Any) -> Prompt:
        """Return the parsed request. Raises RefusedError if it is not an object with a list of message objects."""
        messages = body.get("messages") if isinstance(body, dict) else None
        if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
            message = "'messages' must be a list of objects."
            raise RefusedError(Refusal(400, "invalid_request_error", None, message))
        tools = get_objects(body.get("tools"))
        options = body.get("stream_options")
        return Prompt(
            model=str(body.get("model")),
            conversation=Conversation(
                tuple(_parse_turn(message) for message in messages),
                () if body.get("tool_choice") == "none" else parse_tools(_iter_functions(tools)),
            ),
            cache_bytes=encode_prompt(tools, messages),
            is_streamed=body.get("stream") is True,
            body=body,
            includes_usage=isinstance(options, dict) and options.get("include_usage") is True,
        )

    @override
    def iter_frames(self, reply: Reply) -> Iterator[Frame]:
        """Yield the answer as server-sent events if it is streamed, or as the two halves of one document."""
        if "think_tags" in reply.shapes:
            reply = replace(reply, answer=_add_think_tags(reply.answer))
        if reply.prompt.is_streamed:
            yield from _iter_frames(reply)
            return
        yield from split_document(encode_json(_build_document(reply)))

    @override
    def convert_refusal(self, refusal: Refusal) -> Refusal:
        """Return the refusal with OpenAI's code for its reason."""
        return convert_to_openai(refusal)

    @override
    def build_error_body(self, refusal: Refusal) -> dict[str, Any]:
        """Return the JSON error document for the refusal."""
        return build_openai_error(refusal)

    @override
    def build_error_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        """Return the stream event that reports the refusal."""
        return _encode_event(self.build_error_body(refusal))

    @override
    def build_failure_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        """Return the error event, because this format has no separate failure event."""
        return self.build_error_event(refusal, reply, sent)

    @override
    def build_malformed_event(self) -> bytes:
        """Return an event that is not valid JSON."""
        return b'data: {"id": "chatcmpl-broken", "choices": [{"delta": {"content": "half an ev\n\n'


def build_model_list(_http: web.Request, state: ServerState) -> dict[str, Any]:
    """Return the list of models."""
    return {"object": "list", "data": [_build_model(each) for each in state.settings.list_model_ids()]}


def build_model_body(http: web.Request, state: ServerState) -> dict[str, Any]:
    """Return the model that the path names. Raises RefusedError if there is none."""
    return _build_model(state.require_model(http.match_info["model"]))


def build_loaded_models(_http: web.Request, state: ServerState) -> dict[str, Any]:
    """Return the loaded models, as Ollama's `/api/ps` does. Raises RefusedError if this server is not Ollama."""
    if state.truncation is None:
        raise RefusedError(NO_SUCH_PATH_REFUSAL)
    return state.truncation.build_loaded_models(state.settings.models)


def _build_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "demo"}


def _iter_functions(tools: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (tool["function"] for tool in tools if isinstance(tool.get("function"), dict))


def _parse_turn(message: dict[str, Any]) -> Turn:
    return Turn(
        role=str(message.get("role")),
        text=_join_text(message.get("content")),
        calls=tuple(_parse_call(call) for call in get_objects(message.get("tool_calls"))),
        call_id=str(message.get("tool_call_id", "")),
        attachments=tuple(_iter_attachments(get_objects(message.get("content")))),
    )


def _iter_attachments(parts: list[dict[str, Any]]) -> Iterator[Attachment]:
    for part in parts:
        image, document = part.get("image_url"), part.get("file")
        url = image.get("url") if isinstance(image, dict) else None
        url = document.get("file_data") if isinstance(document, dict) else url
        if found := decode_data_url(url):
            yield found


def _join_text(content: object) -> str:
    parts = [{"text": content}] if isinstance(content, str) else get_objects(content)
    return "\n".join(str(part["text"]) for part in parts if part.get("text"))


def _parse_call(call: dict[str, Any]) -> Call:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except TypeError, ValueError:
        arguments = {}
    return Call(str(function.get("name")), arguments if isinstance(arguments, dict) else {}, str(call.get("id", "")))


def _add_think_tags(answer: Answer) -> Answer:
    if not answer.reasoning:
        return answer
    return replace(answer, text=f"<think>{answer.reasoning}</think>\n\n{answer.text}", reasoning="")


def _get_finish_reason(reply: Reply) -> str:
    if reply.answer.calls and reply.answer.finish is AnswerFinish.STOP and "finish_stop" not in reply.shapes:
        return "tool_calls"
    return _FINISH_REASON_BY_FINISH.get(reply.answer.finish, "stop")


def _build_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    }


def _choose_reasoning_key(shapes: tuple[str, ...]) -> str:
    named = {"reasoning_key", "openrouter", "groq"}.intersection(shapes)
    return "reasoning" if named else "reasoning_content"


def _build_document(reply: Reply) -> dict[str, Any]:
    answer = reply.answer
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.text or (None if answer.calls or answer.refusal else ""),
        "refusal": answer.refusal or None,
    }
    if answer.reasoning:
        message[_choose_reasoning_key(reply.shapes)] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            add_demanded_fields(call, reply, at)
            for at, call in enumerate(build_whole_calls(answer.calls, reply.shapes))
        ]
    if beside := build_reasoning_details(reply):
        message["reasoning_details"] = beside
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _get_finish_reason(reply)}
    document = {**_build_head("chat.completion", reply), "choices": [choice]}
    return document if "no_usage" in reply.shapes else document | {"usage": _build_usage(reply.usage)}


def _build_head(kind: str, reply: Reply) -> dict[str, Any]:
    head = {"id": f"chatcmpl-{uuid4().hex}", "object": kind, "created": int(time.time()), "model": reply.model}
    return head | ({"system_fingerprint": "fp_ollama"} if "ollama" in reply.shapes else {})


def _encode_event(value: dict[str, Any]) -> bytes:
    return b"data: " + encode_json(value) + b"\n\n"


def _iter_frames(reply: Reply) -> Iterator[Frame]:
    head = _build_head("chat.completion.chunk", reply)
    reports = reply.prompt.includes_usage and "no_usage" not in reply.shapes
    # OpenAI writes `usage: null` into every chunk before the one that has the usage.
    tail: dict[str, Any] = {"usage": None} if reports else {}

    def build_frame(kind: FrameKind, delta: dict[str, Any], finish: str | None = None) -> Frame:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return Frame(kind, _encode_event({**head, "choices": [choice], **tail}))

    if "azure" in reply.shapes:
        filtered = {"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}
        yield Frame(FrameKind.OPENING, _encode_event({**head, **filtered}))
    yield build_frame(FrameKind.OPENING, {"role": "assistant", "content": None if reply.answer.calls else ""})
    for kind, delta in _iter_deltas(reply):
        yield build_frame(kind, delta)
    at_finish = reports and "usage_at_finish" in reply.shapes
    usage = {"usage": _build_usage(reply.usage)}
    tail = usage if at_finish else tail
    yield build_frame(FrameKind.TERMINAL, {}, _get_finish_reason(reply))
    if reports and not at_finish:
        yield Frame(FrameKind.TERMINAL, _encode_event({**head, "choices": [], **usage}))
    yield Frame(FrameKind.TERMINAL, DONE_EVENT)


def _iter_deltas(reply: Reply) -> Iterator[tuple[FrameKind, dict[str, Any]]]:
    answer, shapes = reply.answer, reply.shapes
    for piece in split_text(answer.reasoning, shapes):
        yield FrameKind.REASONING, {_choose_reasoning_key(shapes): piece}
    for detail in build_reasoning_details(reply):
        yield FrameKind.REASONING, {"reasoning_details": [detail]}
    for piece in split_text(answer.text, shapes):
        yield FrameKind.TEXT, {"content": piece}
    for piece in split_text(answer.refusal, shapes):
        yield FrameKind.TEXT, {"refusal": piece}
    for calls in iter_call_deltas(answer.calls, shapes):
        yield FrameKind.CALL, {"tool_calls": [add_demanded_fields(call, reply, call.get("index", 0)) for call in calls]}
