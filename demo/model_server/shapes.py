"""The variants ("shapes") in which compatible servers write an answer, especially its tool calls.

Model ids and `--shape` use the same names. Most shapes are for Chat Completions; other formats may ignore them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
import json
import re
from typing import Any
from uuid import uuid4

from .conversation import Call

_CALL_SHAPES: dict[str, str] = {
    "openai": "index, id and name first, then the arguments in fragments (the default)",
    "one_chunk": "all parallel calls whole in one chunk",
    "interleaved": "the fragments of parallel calls take turns",
    "ollama": "each call whole in a chunk of its own, every index 0, each id new",
    "no_index": "each call whole, the index missing",
    "dict_arguments": "each call whole, the arguments an object instead of a string",
    "no_id": "each call whole, the id missing",
    "empty_id": "each call whole, the id an empty string",
}
# Chat Completions servers that require their own fields to be returned, or that refuse them; see `chat_demands.py`.
DEMAND_SHAPES: dict[str, str] = {
    "deepseek": "as DeepSeek: thinks, and refuses an assistant message without `reasoning_content`",
    "openrouter": "as Gemini 3 at OpenRouter: refuses its calls without their `reasoning_details`",
    "google": "as Gemini 3 at Google's compatible endpoint: refuses its calls without their `extra_content`",
    "mistral": "as Mistral: refuses ids of calls that are not nine letters and digits",
    "groq": "as Groq: thinks in `reasoning`, and refuses to see that again",
}
# The shapes of servers whose models think before every answer.
THINKING_SHAPES = frozenset({"reasoning", "deepseek", "openrouter", "groq"})
SHAPES: dict[str, str] = (
    _CALL_SHAPES
    | DEMAND_SHAPES
    | {
        "empty_arguments": "a call without arguments has '' instead of '{}'",
        "broken_arguments": "the arguments are cut off: no JSON",
        "finish_stop": "finish_reason 'stop' with tool calls",
        "reasoning_key": "thinking in `reasoning` instead of `reasoning_content`",
        "think_tags": "thinking in the text, between <think> and </think>",
        "azure": "a first chunk with no choices",
        "tiny_chunks": "text and arguments one character at a time",
        "whole_text": "the text in one piece",
        "no_usage": "usage is never reported",
        "usage_at_finish": "usage in the chunk with the finish_reason",
        "reasoning": "thinks before every answer and before every call",
        "redacted": "Anthropic: the thinking is redacted",
        "nested_error": "Responses: an error in the stream around an error object",
        "refuses_schema": "answers 400 to a parameter with the JSON schema of the answer",
        "ignores_schema_parameter": "ignores such a parameter, and obeys a schema in the text",
        "ignores_schema": "answers in prose, whatever the schema",
        "fenced_json": "JSON between the marks of a code block",
        "broken_json": "the first half of the JSON, as if it were all",
        "wrong_type": "JSON with a value of a wrong type, until the user names the field",
        "raw_reasoning": "Responses: thinking as reasoning_text, as local servers write it",
    }
)

_FRAGMENT_CHARS = 8
_WORD_PATTERN = re.compile(r"\s*\S+\s*|\s+")


def split_text(text: str, shapes: Sequence[str]) -> list[str]:
    """Return the text split into the pieces that are streamed: words with the white space after them."""
    if "whole_text" in shapes:
        return [text] if text else []
    return list(text) if "tiny_chunks" in shapes else _WORD_PATTERN.findall(text)


def build_whole_calls(calls: Iterable[Call], shapes: Sequence[str]) -> list[dict[str, Any]]:
    """Return the calls in the form of an answer that is not streamed."""
    return [_remove_index(_build_whole_call(call, at, shapes)) for at, call in enumerate(calls)]


def iter_call_deltas(calls: Sequence[Call], shapes: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
    """Yield the list for "tool_calls" in the "delta" of each chunk."""
    shape = next((shape for shape in shapes if shape in _CALL_SHAPES), "openai")
    match shape:
        case "openai":
            for at, call in enumerate(calls):
                yield from ([part] for part in _iter_fragments(call, at, shapes))
        case "interleaved":
            rows = zip_longest(*(_iter_fragments(call, at, shapes) for at, call in enumerate(calls)))
            yield from ([part] for row in rows for part in row if part)
        case "one_chunk":
            yield [_build_whole_call(call, at, shapes) for at, call in enumerate(calls)]
        case "ollama":
            yield from ([_build_whole_call(call, 0, shapes)] for call in calls)
        case "no_index":
            yield from ([_remove_index(_build_whole_call(call, at, shapes))] for at, call in enumerate(calls))
        case _:
            yield from ([_build_whole_call(call, at, shapes)] for at, call in enumerate(calls))


def _iter_fragments(call: Call, index: int, shapes: Sequence[str]) -> Iterator[dict[str, Any]]:
    whole = _build_whole_call(call, index, shapes)
    arguments = whole["function"]["arguments"]
    if not isinstance(arguments, str):
        yield whole
        return
    yield {**whole, "function": {"name": call.name, "arguments": ""}}
    for fragment in split_arguments(arguments, shapes):
        yield {"index": index, "function": {"arguments": fragment}}


def _build_whole_call(call: Call, index: int, shapes: Sequence[str]) -> dict[str, Any]:
    function = {"name": call.name, "arguments": _encode_arguments(call, shapes)}
    whole = {"index": index, "id": f"call_{uuid4().hex[:24]}", "type": "function", "function": function}
    if "no_id" in shapes:
        del whole["id"]
    if "empty_id" in shapes:
        whole["id"] = ""
    return whole


def _remove_index(call: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in call.items() if key != "index"}


def _encode_arguments(call: Call, shapes: Sequence[str]) -> str | dict[str, Any]:
    return dict(call.arguments) if "dict_arguments" in shapes else format_arguments(call, shapes)


def split_arguments(written: str, shapes: Sequence[str]) -> list[str]:
    """Return the arguments text split into the fragments that are streamed."""
    step = 1 if "tiny_chunks" in shapes else _FRAGMENT_CHARS
    return [written[at : at + step] for at in range(0, len(written), step)]


def format_arguments(call: Call, shapes: Sequence[str]) -> str:
    """Return the arguments of a call as text for the stream."""
    arguments = dict(call.arguments)
    if "empty_arguments" in shapes and not arguments:
        return ""
    written = json.dumps(arguments, ensure_ascii=False)
    return written[:-1] if "broken_arguments" in shapes else written
