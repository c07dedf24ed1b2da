"""Converts the blocks of an Anthropic request to turns, and to the bytes and marks that the prompt cache compares.

The order of the cache is tools, system, messages: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
"""

from collections.abc import Iterator
import json
from typing import Any

from .conversation import Call, Turn
from .media import Attachment, decode_attachment
from .prompt_cache import CacheMark, CacheRules
from .usage import encode_part
from .wire import get_objects

# The length of the shortest prefix that is cached, by the prefix of the model's name, if it is not the default.
_MIN_TOKENS_BY_PREFIX = {
    "claude-opus-5": 512,
    "claude-fable-5": 512,
    "claude-mythos-5": 512,
    "claude-haiku-4-5": 4096,
    "claude-opus-4-5": 4096,
    "claude-opus-4-6": 4096,
}
_DEFAULT_MIN_TOKENS = 1024


def to_blocks(content: object) -> list[dict[str, Any]]:
    """Return the content as a list of blocks; a plain text becomes one block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else get_objects(content)


def parse_turns(body: dict[str, Any]) -> Iterator[Turn]:
    """Yield the system prompt and messages as turns; tool results in a user's message are separate turns before it."""
    if "system" in body:
        yield Turn("system", _join_text(to_blocks(body["system"])))
    for message in get_objects(body.get("messages")):
        blocks = to_blocks(message.get("content"))
        if message.get("role") == "assistant":
            calls = tuple(_parse_call(block) for block in blocks if block.get("type") == "tool_use")
            yield Turn("assistant", _join_text(blocks), calls)
            continue
        results = [block for block in blocks if block.get("type") == "tool_result"]
        yield from (_parse_result(block) for block in results)
        if len(results) < len(blocks):
            yield Turn(str(message.get("role")), _join_text(blocks), attachments=tuple(_iter_attachments(blocks)))


def _join_text(blocks: list[dict[str, Any]]) -> str:
    return "\n".join(str(block["text"]) for block in blocks if block.get("type") == "text" and block.get("text"))


def _parse_call(block: dict[str, Any]) -> Call:
    arguments = block.get("input")
    return Call(str(block.get("name")), arguments if isinstance(arguments, dict) else {}, str(block.get("id")))


def _parse_result(block: dict[str, Any]) -> Turn:
    text = _join_text(to_blocks(block.get("content")))
    if block.get("is_error") is True and '"error"' not in text:
        text = json.dumps({"error": True, "error_text": text})
    return Turn("tool", text, call_id=str(block.get("tool_use_id")))


def _iter_attachments(blocks: list[dict[str, Any]]) -> Iterator[Attachment]:
    for block in blocks:
        if block.get("type") in ("image", "document") and (found := decode_block_attachment(block)):
            yield found


def decode_block_attachment(block: dict[str, Any]) -> Attachment | None:
    """Return the attachment in an image or document block, or None if it is not base64."""
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") != "base64":
        return None
    return decode_attachment(source.get("media_type"), source.get("data"))


def measure_prompt(body: dict[str, Any]) -> tuple[bytes, CacheRules]:
    """Return the bytes of the prompt, and the positions of its blocks and cache marks."""
    written, blocks, marks = bytearray(), [], []
    for part, control in _iter_parts(body):
        written += encode_part(part)
        blocks.append(len(written))
        if isinstance(control, dict):
            marks.append(CacheMark(len(written), is_long=control.get("ttl") == "1h"))
    # With a top-level `cache_control`, the provider itself marks the last block.
    if blocks and isinstance(control := body.get("cache_control"), dict):
        marks.append(CacheMark(len(written), is_long=control.get("ttl") == "1h"))
    minimum = _find_min_tokens(str(body.get("model")))
    return bytes(written), CacheRules(min_tokens=minimum, step_tokens=1, marks=tuple(marks), block_ends=tuple(blocks))


def _find_min_tokens(model: str) -> int:
    found = (size for start, size in _MIN_TOKENS_BY_PREFIX.items() if model.startswith(start))
    return next(found, _DEFAULT_MIN_TOKENS)


def _iter_parts(body: dict[str, Any]) -> Iterator[tuple[Any, object]]:
    """Yield each block without its cache mark, and the mark, because moving a mark does not change any prefix."""
    for tool in get_objects(body.get("tools")):
        yield _remove_mark(tool), tool.get("cache_control")
    for block in to_blocks(body.get("system")):
        yield {"system": _remove_mark(block)}, block.get("cache_control")
    if "thinking" in body:
        # A different thinking configuration causes a cache miss for the messages.
        yield {"thinking": body["thinking"]}, None
    if "tool_choice" in body:
        # A different tool choice also causes a cache miss for the messages.
        yield {"tool_choice": body["tool_choice"]}, None
    for message in get_objects(body.get("messages")):
        for block in to_blocks(message.get("content")):
            yield {str(message.get("role")): _remove_mark(block)}, block.get("cache_control")


def _remove_mark(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "cache_control"}
