"""Extracts turns, declared functions and attachments from a Gemini request.

Calls and results are matched by their ids, or by their order if there are no ids.
"""

from collections.abc import Iterator
import json
import re
from typing import Any

from .conversation import Call, Turn
from .media import Attachment, decode_attachment
from .wire import get_objects

# The values under these keys come from users and functions, so the keys inside them must not be converted.
_OPAQUE_KEYS = frozenset({"args", "parameters", "parametersJsonSchema", "response", "responseJsonSchema"})
_SNAKE_CASE_PATTERN = re.compile(r"_([a-z])")


def to_camel_case(value: Any) -> Any:
    """Return the request with keys as documented: the API also accepts snake case, and the SDK mixes both."""
    if isinstance(value, list):
        return [to_camel_case(each) for each in value]
    if not isinstance(value, dict):
        return value
    named = {_SNAKE_CASE_PATTERN.sub(lambda found: found[1].upper(), key): each for key, each in value.items()}
    return {key: each if key in _OPAQUE_KEYS else to_camel_case(each) for key, each in named.items()}


def get_parts(content: object) -> list[dict[str, Any]]:
    """Return the parts of a content."""
    return get_objects(content.get("parts")) if isinstance(content, dict) else []


def get_object(part: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object under the key `key` of a part, or an empty one if there is none."""
    value = part.get(key)
    return value if isinstance(value, dict) else {}


def get_declarations(body: dict[str, Any]) -> list[object]:
    """Return every function declaration of every tool."""
    lists = [tool.get("functionDeclarations") for tool in get_objects(body.get("tools"))]
    return [declaration for each in lists if isinstance(each, list) for declaration in each]


def can_call(body: dict[str, Any]) -> bool:
    """Return whether the model may call functions."""
    return get_object(get_object(body, "toolConfig"), "functionCallingConfig").get("mode") != "NONE"


def parse_turns(body: dict[str, Any]) -> Iterator[Turn]:
    """Yield the system instruction and the contents as turns; each function response is a separate turn."""
    if "systemInstruction" in body:
        yield Turn("system", _join_text(get_parts(body["systemInstruction"])))
    ids: list[str] = []
    for at, content in enumerate(get_objects(body.get("contents"))):
        parts = get_parts(content)
        if content.get("role") == "model":
            calls = [get_object(part, "functionCall") for part in parts if "functionCall" in part]
            ids = [str(call.get("id") or f"{at}.{number}") for number, call in enumerate(calls)]
            yield Turn("assistant", _join_text(parts), tuple(map(_parse_call, calls, ids, strict=True)))
            continue
        responses = [get_object(part, "functionResponse") for part in parts if "functionResponse" in part]
        for number, response in enumerate(responses):
            in_order = ids[number] if number < len(ids) else ""
            yield Turn("tool", _format_response(response), call_id=str(response.get("id") or in_order))
        if len(responses) < len(parts):
            yield Turn("user", _join_text(parts), attachments=tuple(_iter_attachments(parts)))


def _join_text(parts: list[dict[str, Any]]) -> str:
    spoken = (part["text"] for part in parts if part.get("text") and part.get("thought") is not True)
    return "\n".join(map(str, spoken))


def _parse_call(call: dict[str, Any], call_id: str) -> Call:
    arguments = call.get("args")
    return Call(str(call.get("name")), arguments if isinstance(arguments, dict) else {}, call_id)


def _format_response(response: dict[str, Any]) -> str:
    """Return the function's response as text; the API defines a meaning only for the keys "output" and "error"."""
    said = response.get("response")
    if isinstance(said, dict) and said.keys() == {"output"}:
        said = said["output"]
    return said if isinstance(said, str) else json.dumps(said)


def _iter_attachments(parts: list[dict[str, Any]]) -> Iterator[Attachment]:
    for part in parts:
        if "inlineData" in part and (found := decode_part_attachment(part)):
            yield found


def decode_part_attachment(part: dict[str, Any]) -> Attachment | None:
    """Return the attachment in inline data, or None if the data is not base64 in either alphabet."""
    blob = get_object(part, "inlineData")
    data = blob.get("data")
    return decode_attachment(blob.get("mimeType"), to_standard_base64(data) if isinstance(data, str) else data)


def to_standard_base64(data: str) -> str:
    """Return base64 data, which the SDK writes in the URL-safe alphabet, in the standard alphabet."""
    return data.replace("-", "+").replace("_", "/")
