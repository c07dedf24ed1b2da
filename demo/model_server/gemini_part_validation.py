"""The rules for each part of a Gemini content: text, inline data, a function call, a function response."""

from collections.abc import Callable, Iterator
import re
from typing import Any

from .gemini_prompt import decode_part_attachment, get_object
from .media import DOCUMENT_TYPE
from .violations import Violation, find_media_violations

# The first character is a letter or an underscore; the maximum length is 128 characters.
FUNCTION_NAME_PATTERN = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")

_MEDIA_TYPES = ("image/heic", "image/heif", "image/jpeg", "image/png", "image/webp", DOCUMENT_TYPE)
_ROLES_BY_KIND = {
    "text": ("user", "model"),
    "inlineData": ("user",),
    "functionCall": ("model",),
    "functionResponse": ("user",),
    "toolCall": ("model",),
    "toolResponse": ("model",),
}

type _PartCheck = Callable[[dict[str, Any], str], Iterator[Violation]]


def find_part_violations(part: object, where: str, role: str) -> Iterator[Violation]:
    """Yield the violations of a part in a content with this role."""
    kinds = [kind for kind in _ROLES_BY_KIND if kind in part] if isinstance(part, dict) else []
    if not isinstance(part, dict) or len(kinds) != 1:
        yield Violation("part_empty", where, "contents.parts must not be empty: exactly one kind of data")
        return
    if role not in _ROLES_BY_KIND[kinds[0]]:
        yield Violation("part_role", where, f"no part of a content of {role}")
    yield from _CHECK_BY_KIND[kinds[0]](part, where)


def _check_text(part: dict[str, Any], where: str) -> Iterator[Violation]:
    text = part["text"]
    # The model signs an empty part at the end of its text, which the client must return unchanged.
    if not isinstance(text, str) or not (text or "thoughtSignature" in part):
        yield Violation("content_empty", where, "must have a text parameter that is not empty")


def _check_data(part: dict[str, Any], where: str) -> Iterator[Violation]:
    yield from find_media_violations(decode_part_attachment(part), where, _MEDIA_TYPES)


def _check_call(part: dict[str, Any], where: str) -> Iterator[Violation]:
    call = get_object(part, "functionCall")
    yield from _check_name(call, where)
    if not isinstance(call.get("args", {}), dict):
        yield Violation("call_arguments", where, "args is no object")


def _check_response(part: dict[str, Any], where: str) -> Iterator[Violation]:
    response = get_object(part, "functionResponse")
    yield from _check_name(response, where)
    if not isinstance(response.get("response"), dict):
        yield Violation("result_shape", where, "response is no object")


def _check_search(part: dict[str, Any], where: str) -> Iterator[Violation]:
    invocation = get_object(part, "toolCall") or get_object(part, "toolResponse")
    if not invocation.get("id") or not invocation.get("toolType"):
        yield Violation("search_shape", where, "neither an id nor a type of tool")


def _check_name(function: dict[str, Any], where: str) -> Iterator[Violation]:
    name = function.get("name")
    if not isinstance(name, str) or not FUNCTION_NAME_PATTERN.fullmatch(name):
        yield Violation("tool_name", where, "no name of a function")


_CHECK_BY_KIND: dict[str, _PartCheck] = {
    "text": _check_text,
    "inlineData": _check_data,
    "functionCall": _check_call,
    "functionResponse": _check_response,
    "toolCall": _check_search,
    "toolResponse": _check_search,
}
