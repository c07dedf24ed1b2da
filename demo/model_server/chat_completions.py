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

from .chat_demands import details, with_demands
from .chat_validation import chat_violations
from .conversation import Answer, Call, Conversation, Finish, Turn
from .media import Attachment, from_data_url
from .openai_errors import openai_error, openai_words
from .refusal import NO_SUCH_PATH, Refusal, RefusedError
from .shapes import call_deltas, pieces, whole_calls
from .state import State
from .usage import Usage, prompt_bytes, to_bytes
from .violations import Violation
from .wire import Frame, FrameKind, Prompt, Reply, WireFormat, bearer, halves, objects

_FINISHES = {
    Finish.LENGTH: "length",
    Finish.WINDOW_EXCEEDED: "length",
    Finish.CONTENT_FILTER: "content_filter",
}

DONE = b"data: [DONE]\n\n"


class ChatCompletions(WireFormat):
    """The format of `POST /v1/chat/completions`."""

    name = "openai_chat"

    @override
    def sent_key(self, headers: Mapping[str, str]) -> str | None:
        """Return the API key from the request headers."""
        return bearer(headers)

    @override
    def check(self, headers: Mapping[str, str]) -> None:
        """Accept every request, because this format requires nothing outside the body."""

    @override
    def violations(self, body: Any) -> list[Violation]:
        """Return the violations of the format's rules in the request."""
        return chat_violations(body)

    @override
    def read(self, body: Any) -> Prompt:
        """Return the parsed request. Raises RefusedError if it is not an object with a list of message objects."""
        messages = body.get("messages") if isinstance(body, dict) else None
        if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
            message = "'messages' must be a list of objects."
            raise RefusedError(Refusal(400, "invalid_request_error", None, message))
        tools = objects(body.get("tools"))
        options = body.get("stream_options")
        return Prompt(
            model=str(body.get("model")),
            conversation=Conversation(
                tuple(_turn(message) for message in messages),
                () if body.get("tool_choice") == "none" else tuple(_tool_names(tools)),
            ),
            cached_form=prompt_bytes(tools, messages),
            stream=body.get("stream") is True,
            body=body,
            stream_usage=isinstance(options, dict) and options.get("include_usage") is True,
        )

    @override
    def frames(self, reply: Reply) -> Iterator[Frame]:
        """Yield the answer as server-sent events if it is streamed, or as the two halves of one document."""
        if "think_tags" in reply.shapes:
            reply = replace(reply, answer=_with_think_tags(reply.answer))
        if reply.prompt.stream:
            yield from _events(reply)
            return
        yield from halves(to_bytes(_document(reply)))

    @override
    def in_own_words(self, refusal: Refusal) -> Refusal:
        """Return the refusal with OpenAI's code for its reason."""
        return openai_words(refusal)

    @override
    def error_body(self, refusal: Refusal) -> dict[str, Any]:
        """Return the JSON error document for the refusal."""
        return openai_error(refusal)

    @override
    def error_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        """Return the stream event that reports the refusal."""
        return _event(self.error_body(refusal))

    @override
    def failure_event(self, refusal: Refusal, reply: Reply, sent: int) -> bytes:
        """Return the error event, because this format has no separate failure event."""
        return self.error_event(refusal, reply, sent)

    @override
    def malformed_event(self) -> bytes:
        """Return an event that is not valid JSON."""
        return b'data: {"id": "chatcmpl-broken", "choices": [{"delta": {"content": "half an ev\n\n'


def model_list(_http: web.Request, state: State) -> dict[str, Any]:
    """Return the list of models."""
    return {"object": "list", "data": [_model(each) for each in state.settings.listed_models()]}


def model(http: web.Request, state: State) -> dict[str, Any]:
    """Return the model that the path names. Raises RefusedError if there is none."""
    return _model(state.named_model(http.match_info["model"]))


def running_models(_http: web.Request, state: State) -> dict[str, Any]:
    """Return the loaded models, as Ollama's `/api/ps` does. Raises RefusedError if this server is not Ollama."""
    running = state.dropping.running(state.settings.models) if state.dropping else None
    if running is None:
        raise RefusedError(NO_SUCH_PATH)
    return running


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "demo"}


def _tool_names(tools: list[dict[str, Any]]) -> Iterator[str]:
    for tool in tools:
        function = tool.get("function")
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            yield function["name"]


def _turn(message: dict[str, Any]) -> Turn:
    return Turn(
        role=str(message.get("role")),
        text=_text(message.get("content")),
        calls=tuple(_call(call) for call in objects(message.get("tool_calls"))),
        call_id=str(message.get("tool_call_id", "")),
        attachments=tuple(_attachments(objects(message.get("content")))),
    )


def _attachments(parts: list[dict[str, Any]]) -> Iterator[Attachment]:
    for part in parts:
        image, document = part.get("image_url"), part.get("file")
        url = image.get("url") if isinstance(image, dict) else None
        url = document.get("file_data") if isinstance(document, dict) else url
        if found := from_data_url(url):
            yield found


def _text(content: object) -> str:
    parts = [{"text": content}] if isinstance(content, str) else objects(content)
    return "\n".join(str(part["text"]) for part in parts if part.get("text"))


def _call(call: dict[str, Any]) -> Call:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except TypeError, ValueError:
        arguments = {}
    return Call(str(function.get("name")), arguments if isinstance(arguments, dict) else {}, str(call.get("id", "")))


def _with_think_tags(answer: Answer) -> Answer:
    if not answer.reasoning:
        return answer
    return replace(answer, text=f"<think>{answer.reasoning}</think>\n\n{answer.text}", reasoning="")


def _finish_reason(reply: Reply) -> str:
    if reply.answer.calls and reply.answer.finish is Finish.STOP and "finish_stop" not in reply.shapes:
        return "tool_calls"
    return _FINISHES.get(reply.answer.finish, "stop")


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    }


def _reasoning_key(shapes: tuple[str, ...]) -> str:
    named = {"reasoning_key", "openrouter", "groq"}.intersection(shapes)
    return "reasoning" if named else "reasoning_content"


def _document(reply: Reply) -> dict[str, Any]:
    answer = reply.answer
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.text or (None if answer.calls or answer.refusal else ""),
        "refusal": answer.refusal or None,
    }
    if answer.reasoning:
        message[_reasoning_key(reply.shapes)] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            with_demands(call, reply, at) for at, call in enumerate(whole_calls(answer.calls, reply.shapes))
        ]
    if beside := details(reply):
        message["reasoning_details"] = beside
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(reply)}
    document = {**_head("chat.completion", reply), "choices": [choice]}
    return document if "no_usage" in reply.shapes else document | {"usage": _usage(reply.usage)}


def _head(kind: str, reply: Reply) -> dict[str, Any]:
    head = {"id": f"chatcmpl-{uuid4().hex}", "object": kind, "created": int(time.time()), "model": reply.model}
    return head | ({"system_fingerprint": "fp_ollama"} if "ollama" in reply.shapes else {})


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + to_bytes(value) + b"\n\n"


def _events(reply: Reply) -> Iterator[Frame]:
    head = _head("chat.completion.chunk", reply)
    reports = reply.prompt.stream_usage and "no_usage" not in reply.shapes
    # OpenAI writes `usage: null` into every chunk before the one that has the usage.
    tail: dict[str, Any] = {"usage": None} if reports else {}

    def frame(kind: FrameKind, delta: dict[str, Any], finish: str | None = None) -> Frame:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return Frame(kind, _event({**head, "choices": [choice], **tail}))

    if "azure" in reply.shapes:
        filtered = {"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}
        yield Frame(FrameKind.OPENING, _event({**head, **filtered}))
    yield frame(FrameKind.OPENING, {"role": "assistant", "content": None if reply.answer.calls else ""})
    for kind, delta in _deltas(reply):
        yield frame(kind, delta)
    at_finish = reports and "usage_at_finish" in reply.shapes
    usage = {"usage": _usage(reply.usage)}
    tail = usage if at_finish else tail
    yield frame(FrameKind.TERMINAL, {}, _finish_reason(reply))
    if reports and not at_finish:
        yield Frame(FrameKind.TERMINAL, _event({**head, "choices": [], **usage}))
    yield Frame(FrameKind.TERMINAL, DONE)


def _deltas(reply: Reply) -> Iterator[tuple[FrameKind, dict[str, Any]]]:
    answer, shapes = reply.answer, reply.shapes
    for piece in pieces(answer.reasoning, shapes):
        yield FrameKind.REASONING, {_reasoning_key(shapes): piece}
    for detail in details(reply):
        yield FrameKind.REASONING, {"reasoning_details": [detail]}
    for piece in pieces(answer.text, shapes):
        yield FrameKind.TEXT, {"content": piece}
    for piece in pieces(answer.refusal, shapes):
        yield FrameKind.TEXT, {"refusal": piece}
    for calls in call_deltas(answer.calls, shapes):
        yield FrameKind.CALL, {"tool_calls": [with_demands(call, reply, call.get("index", 0)) for call in calls]}
