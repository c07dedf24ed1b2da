"""The rules for each content block of Anthropic's Messages: text, media, tool calls, tool results, thinking."""

from collections.abc import Callable, Iterator
import re
from typing import Any

from .anthropic_prompt import as_blocks, block_attachment
from .media import DOCUMENT_TYPE, IMAGE_TYPES
from .residue import is_signed, unseal
from .violations import Violation, has_words, media_violations

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_USERS = ("text", "image", "document", "tool_result")
_ASSISTANTS = ("text", "tool_use", "thinking", "redacted_thinking")
_UNMARKED = ("thinking", "redacted_thinking")

type _Check = Callable[[dict[str, Any], str, str], Iterator[Violation]]


def block_violations(block: object, where: str, role: str, model: str) -> Iterator[Violation]:
    """Yield the violations of a content block in a message with this role to this model."""
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(block, dict) or kind not in (_ASSISTANTS if role == "assistant" else _USERS):
        yield Violation("block_type", where, f"no block of a message of {role}")
        return
    if kind in _UNMARKED and block.get("cache_control") is not None:
        yield Violation("cache_place", where, "thinking blocks cannot be cached by themselves")
    yield from _CHECKS[str(kind)](block, where, model)


def _text(block: dict[str, Any], where: str, _model: str) -> Iterator[Violation]:
    if not has_words(block.get("text")):
        yield Violation("content_empty", where, "text content blocks must contain non-whitespace text")


def _image(block: dict[str, Any], where: str, _model: str) -> Iterator[Violation]:
    yield from media_violations(block_attachment(block), where, IMAGE_TYPES)


def _document(block: dict[str, Any], where: str, _model: str) -> Iterator[Violation]:
    yield from media_violations(block_attachment(block), where, (DOCUMENT_TYPE,))


def _tool_use(block: dict[str, Any], where: str, _model: str) -> Iterator[Violation]:
    yield from _id(block.get("id"), where)
    if not isinstance(block.get("name"), str) or not _TOOL_NAME.fullmatch(block["name"]):
        yield Violation("tool_name", where, "a call names no tool")
    if not isinstance(block.get("input"), dict):
        yield Violation("call_arguments", where, "Input should be a valid dictionary")


def _tool_result(block: dict[str, Any], where: str, model: str) -> Iterator[Violation]:
    yield from _id(block.get("tool_use_id"), where)
    content = block.get("content", "")
    if not isinstance(content, str | list):
        yield Violation("result_shape", where, "the content is neither text nor a list of blocks")
    if isinstance(content, list):
        for part in as_blocks(content):
            yield from block_violations(part, where, "user", model)
    if "is_error" in block and not isinstance(block["is_error"], bool):
        yield Violation("result_shape", where, "is_error is neither true nor false")


def _id(call_id: object, where: str) -> Iterator[Violation]:
    if not isinstance(call_id, str) or not _CALL_ID.fullmatch(call_id):
        yield Violation("call_id", where, f"does not match ^{_CALL_ID.pattern}$")


def _thinking(block: dict[str, Any], where: str, model: str) -> Iterator[Violation]:
    thought = block.get("thinking")
    if not isinstance(thought, str) or not is_signed(model, thought, block.get("signature")):
        yield Violation("residue_foreign", where, "Invalid `signature` in `thinking` block")


def _redacted(block: dict[str, Any], where: str, model: str) -> Iterator[Violation]:
    if unseal(model, block.get("data")) is None:
        yield Violation("residue_foreign", where, "Invalid `data` in `redacted_thinking` block")


_CHECKS: dict[str, _Check] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
}
