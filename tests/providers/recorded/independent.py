"""A second reader for each format, with its own parser, which shares no code with the integration."""

from collections.abc import Callable, Mapping, Sequence
import json
from typing import Any

from .reading import Called, Reading, UsageCounts
from .server_sent_events import payloads

type Json = Any


def read(format_: str, stream: bytes) -> Reading:
    """Return the content of a stream of this format, as this reader understands it."""
    return _READERS[format_]([json.loads(data) for data in payloads(stream) if data != "[DONE]"])


def _chat(events: Sequence[Json]) -> Reading:
    text, thought, ending, refused, error = "", "", "", False, ""
    usage: UsageCounts | None = None
    open_calls: list[dict[str, Json]] = []
    for event in events:
        if "error" in event and not ending:
            error = _find_error_name(event["error"])
            break
        if figures := event.get("usage"):
            usage = _read_chat_usage(figures)
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or {}
            spoken, thinking = _content(delta.get("content"))
            text, thought = text + spoken, thought + (_thinking(delta) or thinking)
            refused = refused or bool(delta.get("refusal"))
            for fragment in delta.get("tool_calls") or []:
                _add_call_fragment(open_calls, fragment)
            ending = ending or choice.get("finish_reason") or ""
    fates = {"length": "Incomplete", "content_filter": "AnswerRefused", "": "BadStream"}
    usual = "AnswerRefused" if refused else "tool_calls" if open_calls else "stop"
    fate = error or fates.get(ending) or usual
    calls = () if fate == "BadStream" else _called(open_calls)
    return Reading(_whole(text), _whole(thought), calls, usage, fate)


def _content(content: Json) -> tuple[str, str]:
    """Return the spoken text and the reasoning; Mistral's reasoning models send both in one list."""
    if not isinstance(content, list):
        return content or "", ""
    spoken = "".join(part["text"] for part in content if part["type"] == "text")
    chunks = [chunk for part in content if part["type"] == "thinking" for chunk in part["thinking"]]
    return spoken, "".join(chunk["text"] for chunk in chunks if chunk["type"] == "text")


def _thinking(delta: Json) -> str:
    fields = (delta.get(name) for name in ("reasoning_content", "reasoning"))
    return next((value for value in fields if value and isinstance(value, str)), "")


def _add_call_fragment(calls: list[dict[str, Json]], fragment: Json) -> None:
    """Add a fragment to the call with its number; a new id, or a name without a number, starts another call."""
    function, number, id_ = fragment.get("function") or {}, fragment.get("index"), fragment.get("id") or ""
    same = [call for call in calls if number in (None, call["index"]) and id_ in ("", call["id"])]
    if not same or (number is None and function.get("name")):
        same = [{"index": number, "id": id_, "name": function.get("name") or "", "written": ""}]
        calls.extend(same)
    arguments = function.get("arguments") or ""
    same[-1]["written"] += json.dumps(arguments) if isinstance(arguments, dict) else arguments


def _called(calls: Sequence[Mapping[str, Json]]) -> tuple[Called, ...]:
    seen: set[str] = {""}
    found = []
    for call in calls:
        arguments = _arguments(call["written"])
        if arguments is not None and call["name"]:
            found.append(Called("" if call["id"] in seen else call["id"], call["name"], arguments))
            seen.add(call["id"])
    return tuple(found)


def _arguments(written: str) -> dict[str, Json] | None:
    """Return the arguments object: empty for null or empty text, None for a call that was cut off."""
    try:
        value = json.loads(_whole(written).strip() or "{}")
    except ValueError:
        return None
    return {} if value is None else value


def _read_chat_usage(counts: Json) -> UsageCounts:
    read_, written = counts.get("prompt_tokens_details") or {}, counts.get("completion_tokens_details") or {}
    return UsageCounts(
        input=counts.get("prompt_tokens") or 0,
        cached=read_.get("cached_tokens") or 0,
        output=counts.get("completion_tokens") or 0,
        cache_written=read_.get("cache_write_tokens") or 0,
        reasoning=written.get("reasoning_tokens") or 0,
    )


def _responses(events: Sequence[Json]) -> Reading:
    """Read the complete response in the terminal event, or the single items if that event contains none."""
    last = events[-1] if events else {}
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    response = last.get("response") or {}
    output = response.get("output") or items
    text, thought, refused, calls = "", "", False, []
    for item in output:
        if item["type"] == "message":
            parts = item["content"]
            paragraph = "\n\n" if text and item.get("phase") else ""
            text += paragraph + "".join(part["text"] for part in parts if part["type"] == "output_text")
            refused = refused or any(part["type"] == "refusal" for part in parts)
        elif item["type"] == "reasoning":
            said = [*(item.get("summary") or []), *(item.get("content") or [])]
            thought += "".join(part["text"] for part in said)
        elif item["type"] == "function_call":
            calls.append({"id": item.get("call_id") or "", "name": item["name"], "written": item["arguments"]})
    figures = response.get("usage")
    fate = _responses_fate(last, refused=refused) or ("tool_calls" if calls else "stop")
    return Reading(_whole(text), _whole(thought), _called(calls), figures and _read_responses_usage(figures), fate)


def _responses_fate(last: Json, *, refused: bool) -> str:
    response = last.get("response") or {}
    match last.get("type"):
        case "response.completed":
            return "AnswerRefused" if refused else ""
        case "response.incomplete":
            filtered = (response.get("incomplete_details") or {}).get("reason") == "content_filter"
            return "AnswerRefused" if filtered else "Incomplete"
        case "response.failed":
            return _find_error_name(response.get("error") or {})
        case "error":
            return _find_error_name(last.get("error") or last)
    return "BadStream"


def _read_responses_usage(counts: Json) -> UsageCounts:
    read_, written = counts.get("input_tokens_details") or {}, counts.get("output_tokens_details") or {}
    return UsageCounts(
        input=counts.get("input_tokens") or 0,
        cached=read_.get("cached_tokens") or 0,
        output=counts.get("output_tokens") or 0,
        cache_written=read_.get("cache_write_tokens") or 0,
        reasoning=written.get("reasoning_tokens") or 0,
    )


def _anthropic(events: Sequence[Json]) -> Reading:
    """Read block by block. A second `message_start` discards earlier calls, but earlier text remains spoken."""
    text, thought, ending, stopped, cleared = "", "", "", False, 0
    figures: dict[str, int] = {}
    blocks: dict[int, dict[str, Json]] = {}
    for event in events:
        match event["type"]:
            case "message_start":
                blocks = {}
                figures |= _given(event["message"].get("usage"))
            case "content_block_start":
                start = event["content_block"]
                blocks[event["index"]] = {**start, "written": ""}
                text += start.get("text", "") if start["type"] == "text" else ""
                thought += start.get("thinking", "")
            case "content_block_delta":
                delta = event["delta"]
                text += delta.get("text", "")
                thought += delta.get("thinking", "")
                blocks[event["index"]]["written"] += delta.get("partial_json", "")
            case "message_delta":
                figures |= _given(event.get("usage"))
                ending = event["delta"].get("stop_reason") or ending
                edits = (event.get("context_management") or {}).get("applied_edits") or []
                cleared += sum(edit.get("cleared_input_tokens", 0) for edit in edits)
            case "message_stop":
                stopped = True
            case "error":
                return Reading(
                    text, thought, (), _build_anthropic_usage(figures, cleared), _find_error_name(event["error"])
                )
    uses = [
        {**block, "written": block["written"].strip() or json.dumps(block.get("input") or {})}
        for block in blocks.values()
        if block["type"] == "tool_use"
    ]
    fates = {
        "max_tokens": "Incomplete",
        "pause_turn": "Incomplete",
        "refusal": "AnswerRefused",
        "model_context_window_exceeded": "ContextOverflow",
    }
    fate = fates.get(ending) or ("tool_calls" if uses else "stop") if stopped else "BadStream"
    usage = _build_anthropic_usage(figures, cleared) if figures else None
    return Reading(_whole(text), _whole(thought), _called(uses), usage, fate)


def _given(usage: Json) -> dict[str, int]:
    """Return the reported counts; counts that are missing are not included."""
    usage = usage or {}
    details = usage.get("output_tokens_details") or {}
    return {name: value for name, value in {**usage, **details}.items() if isinstance(value, int)}


def _build_anthropic_usage(counts: Mapping[str, int], cleared: int) -> UsageCounts:
    cached, written = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
    return UsageCounts(
        input=counts.get("input_tokens", 0) + cached + written,
        cached=cached,
        output=counts.get("output_tokens", 0),
        cache_written=written,
        reasoning=counts.get("thinking_tokens", 0),
        cleared=cleared,
    )


def _gemini(events: Sequence[Json]) -> Reading:
    text, thought, ending, blocked, calls = "", "", "", False, list[Json]()
    usage: UsageCounts | None = None
    for event in events:
        if "error" in event:
            return Reading(text, thought, _called(calls), usage, _find_error_name(event["error"]))
        if figures := event.get("usageMetadata"):
            usage = _read_gemini_usage(figures)
        blocked = blocked or bool((event.get("promptFeedback") or {}).get("blockReason"))
        for candidate in event.get("candidates") or []:
            ending = candidate.get("finishReason") or ending
            for part in (candidate.get("content") or {}).get("parts") or []:
                if call := part.get("functionCall"):
                    written = json.dumps(call.get("args") or {})
                    calls.append({"id": call.get("id") or "", "name": call["name"], "written": written})
                elif part.get("thought"):
                    thought += part.get("text", "")
                else:
                    text += part.get("text", "")
    fate = "AnswerRefused" if blocked else _gemini_fate(ending, called=bool(calls))
    return Reading(_whole(text), _whole(thought), _called(calls), usage, fate)


def _gemini_fate(ending: str, *, called: bool) -> str:
    if called and ending:
        return "tool_calls"
    refused = {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"}
    other = "AnswerRefused" if ending in refused else "BadStream"
    return {"STOP": "stop", "MAX_TOKENS": "Incomplete"}.get(ending) or other


def _read_gemini_usage(counts: Json) -> UsageCounts:
    thoughts = counts.get("thoughtsTokenCount") or 0
    return UsageCounts(
        input=(counts.get("promptTokenCount") or 0) + (counts.get("toolUsePromptTokenCount") or 0),
        cached=counts.get("cachedContentTokenCount") or 0,
        output=(counts.get("candidatesTokenCount") or 0) + thoughts,
        reasoning=thoughts,
    )


def _find_error_name(error: Json) -> str:
    """Return the name of the error by its code, type or status; `Unavailable` if none of them is known."""
    names = {str(error.get(key)) for key in ("code", "type", "status")} if isinstance(error, dict) else set()
    known = {
        "rate_limit_exceeded": "RateLimited",
        "rate_limit_error": "RateLimited",
        "insufficient_quota": "QuotaError",
        "context_length_exceeded": "ContextOverflow",
        "content_filter": "AnswerRefused",
        "invalid_prompt": "AnswerRefused",
    }
    return next((known[name] for name in sorted(names) if name in known), "Unavailable")


def _whole(text: str) -> str:
    """Return the text with halves of surrogate pairs joined, or replaced if they are unpaired."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_READERS: Mapping[str, Callable[[Sequence[Json]], Reading]] = {
    "anthropic": _anthropic,
    "chat": _chat,
    "gemini": _gemini,
    "responses": _responses,
}
