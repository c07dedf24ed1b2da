"""The rules for each input item of OpenAI's Responses: messages, calls, results, reasoning, compactions."""

from collections.abc import Callable, Iterator
from typing import Any

from .media import DOCUMENT_TYPE, IMAGE_TYPES, decode_data_url
from .residue import unseal_content
from .violations import TOOL_NAME_PATTERN, Violation, find_media_violations, is_json_object, is_nonblank_text

_ROLES = ("user", "assistant", "system", "developer")
_ID_PREFIX_BY_TYPE = {"message": "msg_", "function_call": "fc_", "function_call_output": "fco_", "reasoning": "rs_"}
_TEXT_TYPE_BY_ROLE = {
    "user": "input_text",
    "system": "input_text",
    "developer": "input_text",
    "assistant": "output_text",
}

type _ItemCheck = Callable[[dict[str, Any], str, str], Iterator[Violation]]


def find_item_violations(item: dict[str, Any], where: str, model: str) -> Iterator[Violation]:
    """Yield the violations of an input item in a request to this model."""
    kind = str(item.get("type", "message"))
    check = _CHECK_BY_TYPE.get(kind)
    if check is None:
        yield Violation("item_type", where, "no item of this format that a stateless request may have")
        return
    item_id, prefix = item.get("id"), _ID_PREFIX_BY_TYPE.get(kind)
    if item_id is not None and prefix and not str(item_id).startswith(prefix):
        yield Violation("item_id", where, f"Expected an ID that begins with '{prefix}'")
    yield from check(item, where, model)


def _check_message(item: dict[str, Any], where: str, _model: str) -> Iterator[Violation]:
    role, content = item.get("role"), item.get("content")
    if role not in _ROLES:
        yield Violation("role", where, "no role of this format")
        return
    if isinstance(content, str):
        if not is_nonblank_text(content):
            yield Violation("content_empty", where, "no text")
    elif isinstance(content, list) and content:
        for at, part in enumerate(content):
            yield from _check_part(part, f"{where}.content[{at}]", str(role))
    else:
        yield Violation("content_empty", where, "neither text nor a list of at least one part")


def _check_part(part: object, where: str, role: str) -> Iterator[Violation]:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or kind not in (_TEXT_TYPE_BY_ROLE[role], "refusal", "input_image", "input_file"):
        yield Violation("part_type", where, f"no part of a message of {role}")
    elif kind == "refusal" and role == "assistant":
        return
    elif kind == _TEXT_TYPE_BY_ROLE[role]:
        if not is_nonblank_text(part.get("text")):
            yield Violation("content_empty", where, "no text")
    elif role != "user":
        yield Violation("part_type", where, f"no part of a message of {role}")
    else:
        yield from _check_attachment(part, where)


def _check_attachment(part: dict[str, Any], where: str) -> Iterator[Violation]:
    if part["type"] == "input_image":
        yield from find_media_violations(decode_data_url(part.get("image_url")), where, IMAGE_TYPES)
        return
    yield from find_media_violations(decode_data_url(part.get("file_data")), where, (DOCUMENT_TYPE,))
    if not part.get("filename"):
        yield Violation("file_name", where, "a file has no name")


def _check_call(item: dict[str, Any], where: str, _model: str) -> Iterator[Violation]:
    yield from _check_call_id(item, where)
    if not isinstance(item.get("name"), str) or not TOOL_NAME_PATTERN.fullmatch(item["name"]):
        yield Violation("tool_name", where, "a call names no tool")
    if not is_json_object(item.get("arguments")):
        yield Violation("call_arguments", where, "the arguments are not the text of a JSON object")


def _check_result(item: dict[str, Any], where: str, _model: str) -> Iterator[Violation]:
    yield from _check_call_id(item, where)
    output = item.get("output")
    if not isinstance(output, str) and not (isinstance(output, list) and output):
        yield Violation("result_shape", where, "the output is neither text nor a list of parts")


def _check_call_id(item: dict[str, Any], where: str) -> Iterator[Violation]:
    if not isinstance(item.get("call_id"), str) or not item["call_id"]:
        yield Violation("call_id_empty", where, "no call id")


def _check_reasoning(item: dict[str, Any], where: str, model: str) -> Iterator[Violation]:
    if not isinstance(item.get("summary"), list):
        yield Violation("reasoning_summary", where, "Missing required parameter: 'summary'")
    sealed = item.get("encrypted_content")
    if sealed is None:
        yield Violation("reasoning_content", where, "Items are not persisted, and it brings no encrypted content")
        return
    content = unseal_content(model, sealed)
    if content is None or (item.get("id") is not None and content != str(item["id"]).encode()):
        yield Violation("residue_foreign", where, "The encrypted content could not be verified")


def _check_compaction(item: dict[str, Any], where: str, model: str) -> Iterator[Violation]:
    if unseal_content(model, item.get("encrypted_content")) is None:
        yield Violation("residue_foreign", where, "The encrypted content could not be verified")


def _check_nothing(_item: dict[str, Any], _where: str, _model: str) -> Iterator[Violation]:
    yield from ()


_CHECK_BY_TYPE: dict[str, _ItemCheck] = {
    "message": _check_message,
    "function_call": _check_call,
    "function_call_output": _check_result,
    "reasoning": _check_reasoning,
    "compaction": _check_compaction,
    "compaction_trigger": _check_nothing,
}
