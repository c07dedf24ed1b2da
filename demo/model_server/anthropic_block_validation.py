"""The rules for each content block of Anthropic's Messages: text, media, tool calls, tool results, thinking."""

from collections.abc import Callable, Iterator
import re
from typing import Any

from .anthropic_prompt import decode_block_attachment, to_blocks
from .media import DOCUMENT_TYPE, IMAGE_TYPES
from .residue import is_signature_valid, unseal_content
from .violations import Violation, find_media_violations, is_nonblank_text

_CALL_ID_PATTERN = re.compile(r"[a-zA-Z0-9_-]+")
_TOOL_NAME_PATTERN = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_USER_BLOCK_TYPES = ("text", "image", "document", "tool_result")
_ASSISTANT_BLOCK_TYPES = (
    "text",
    "tool_use",
    "thinking",
    "redacted_thinking",
    "server_tool_use",
    "web_search_tool_result",
)
_UNCACHEABLE_TYPES = ("thinking", "redacted_thinking")

type _BlockCheck = Callable[[dict[str, Any], str, str], Iterator[Violation]]


def find_block_violations(block: object, where: str, role: str, model: str) -> Iterator[Violation]:
    """Yield the violations of a content block in a message with this role to this model."""
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(block, dict) or kind not in (
        _ASSISTANT_BLOCK_TYPES if role == "assistant" else _USER_BLOCK_TYPES
    ):
        yield Violation("block_type", where, f"no block of a message of {role}")
        return
    if kind in _UNCACHEABLE_TYPES and block.get("cache_control") is not None:
        yield Violation("cache_place", where, "thinking blocks cannot be cached by themselves")
    yield from _CHECK_BY_TYPE[str(kind)](block, where, model)


def _check_text(block: dict[str, Any], where: str, _model: str) -> Iterator[Violation]:
    if not is_nonblank_text(block.get("text")):
        yield Violation("content_empty", where, "text content blocks must contain non-whitespace text")


def _check_image(block: dict[str, Any], where: str, _model: str) -> Iterator[Violation]:
    yield from find_media_violations(decode_block_attachment(block), where, IMAGE_TYPES)


def _check_document(block: dict[str, Any], where: str, _model: str) -> Iterator[Violation]:
    yield from find_media_violations(decode_block_attachment(block), where, (DOCUMENT_TYPE,))


def _check_tool_use(block: dict[str, Any], where: str, _model: str) -> Iterator[Violation]:
    yield from _check_id(block.get("id"), where)
    if not isinstance(block.get("name"), str) or not _TOOL_NAME_PATTERN.fullmatch(block["name"]):
        yield Violation("tool_name", where, "a call names no tool")
    if not isinstance(block.get("input"), dict):
        yield Violation("call_arguments", where, "Input should be a valid dictionary")


def _check_search(block: dict[str, Any], where: str, _model: str) -> Iterator[Violation]:
    yield from _check_id(block.get("id"), where)
    if block.get("name") != "web_search" or not isinstance(block.get("input"), dict):
        yield Violation("search_shape", where, "no call of the web search")


def _check_search_result(block: dict[str, Any], where: str, model: str) -> Iterator[Violation]:
    content = block.get("content")
    if not isinstance(content, list | dict):
        yield Violation("search_shape", where, "neither a list of results nor an error")
    for result in to_blocks(content):
        if unseal_content(model, result.get("encrypted_content")) is None:
            yield Violation("residue_foreign", where, "Invalid `encrypted_content` in `web_search_result`")


def _check_tool_result(block: dict[str, Any], where: str, model: str) -> Iterator[Violation]:
    yield from _check_id(block.get("tool_use_id"), where)
    content = block.get("content", "")
    if not isinstance(content, str | list):
        yield Violation("result_shape", where, "the content is neither text nor a list of blocks")
    if isinstance(content, list):
        for part in to_blocks(content):
            yield from find_block_violations(part, where, "user", model)
    if "is_error" in block and not isinstance(block["is_error"], bool):
        yield Violation("result_shape", where, "is_error is neither true nor false")


def _check_id(call_id: object, where: str) -> Iterator[Violation]:
    if not isinstance(call_id, str) or not _CALL_ID_PATTERN.fullmatch(call_id):
        yield Violation("call_id", where, f"does not match ^{_CALL_ID_PATTERN.pattern}$")


def _check_thinking(block: dict[str, Any], where: str, model: str) -> Iterator[Violation]:
    thought = block.get("thinking")
    if not isinstance(thought, str) or not is_signature_valid(model, thought, block.get("signature")):
        yield Violation("residue_foreign", where, "Invalid `signature` in `thinking` block")


def _check_redacted(block: dict[str, Any], where: str, model: str) -> Iterator[Violation]:
    if unseal_content(model, block.get("data")) is None:
        yield Violation("residue_foreign", where, "Invalid `data` in `redacted_thinking` block")


_CHECK_BY_TYPE: dict[str, _BlockCheck] = {
    "text": _check_text,
    "image": _check_image,
    "document": _check_document,
    "tool_use": _check_tool_use,
    "tool_result": _check_tool_result,
    "thinking": _check_thinking,
    "redacted_thinking": _check_redacted,
    "server_tool_use": _check_search,
    "web_search_tool_result": _check_search_result,
}
