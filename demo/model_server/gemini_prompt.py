"""Extracts turns, declared functions and attachments from a Gemini request.

Calls and results are matched by their ids, or by their order if there are no ids.
"""

from collections.abc import Iterator
import json
import re
from typing import Any

from .conversation import Call, Turn
from .media import Attachment, attachment
from .wire import objects

# The values under these keys come from users and functions, so the keys inside them must not be converted.
_OPAQUE = frozenset({"args", "parameters", "parametersJsonSchema", "response"})
_SNAKE = re.compile(r"_([a-z])")


def in_camel_case(value: Any) -> Any:
    """Return the request with keys as documented: the API also accepts snake case, and the SDK mixes both."""
    if isinstance(value, list):
        return [in_camel_case(each) for each in value]
    if not isinstance(value, dict):
        return value
    named = {_SNAKE.sub(lambda found: found[1].upper(), key): each for key, each in value.items()}
    return {key: each if key in _OPAQUE else in_camel_case(each) for key, each in named.items()}


def parts_of(content: object) -> list[dict[str, Any]]:
    """Return the parts of a content."""
    return objects(content.get("parts")) if isinstance(content, dict) else []


def inner(part: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the object under the key `kind` of a part, or an empty one if there is none."""
    value = part.get(kind)
    return value if isinstance(value, dict) else {}


def declarations(body: dict[str, Any]) -> list[object]:
    """Return every function declaration of every tool."""
    lists = [tool.get("functionDeclarations") for tool in objects(body.get("tools"))]
    return [declaration for each in lists if isinstance(each, list) for declaration in each]


def may_call(body: dict[str, Any]) -> bool:
    """Return whether the model may call functions."""
    return inner(inner(body, "toolConfig"), "functionCallingConfig").get("mode") != "NONE"


def turns(body: dict[str, Any]) -> Iterator[Turn]:
    """Yield the system instruction and the contents as turns; each function response is a separate turn."""
    if "systemInstruction" in body:
        yield Turn("system", _text(parts_of(body["systemInstruction"])))
    ids: list[str] = []
    for at, content in enumerate(objects(body.get("contents"))):
        parts = parts_of(content)
        if content.get("role") == "model":
            calls = [inner(part, "functionCall") for part in parts if "functionCall" in part]
            ids = [str(call.get("id") or f"{at}.{number}") for number, call in enumerate(calls)]
            yield Turn("assistant", _text(parts), tuple(map(_call, calls, ids, strict=True)))
            continue
        responses = [inner(part, "functionResponse") for part in parts if "functionResponse" in part]
        for number, response in enumerate(responses):
            in_order = ids[number] if number < len(ids) else ""
            yield Turn("tool", _response_text(response), call_id=str(response.get("id") or in_order))
        if len(responses) < len(parts):
            yield Turn("user", _text(parts), attachments=tuple(_attachments(parts)))


def _text(parts: list[dict[str, Any]]) -> str:
    spoken = (part["text"] for part in parts if part.get("text") and part.get("thought") is not True)
    return "\n".join(map(str, spoken))


def _call(call: dict[str, Any], call_id: str) -> Call:
    arguments = call.get("args")
    return Call(str(call.get("name")), arguments if isinstance(arguments, dict) else {}, call_id)


def _response_text(response: dict[str, Any]) -> str:
    """Return the function's response as text; the API defines a meaning only for the keys `output` and `error`."""
    said = response.get("response")
    if isinstance(said, dict) and said.keys() == {"output"}:
        said = said["output"]
    return said if isinstance(said, str) else json.dumps(said)


def _attachments(parts: list[dict[str, Any]]) -> Iterator[Attachment]:
    for part in parts:
        if "inlineData" in part and (found := part_attachment(part)):
            yield found


def part_attachment(part: dict[str, Any]) -> Attachment | None:
    """Return the attachment in inline data, or None if the data is not base64 in either alphabet."""
    blob = inner(part, "inlineData")
    data = blob.get("data")
    return attachment(blob.get("mimeType"), standard_base64(data) if isinstance(data, str) else data)


def standard_base64(data: str) -> str:
    """Return base64 data, which the SDK writes in the URL-safe alphabet, in the standard alphabet."""
    return data.replace("-", "+").replace("_", "/")
