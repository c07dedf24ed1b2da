"""Converts the blocks of an Anthropic request to turns, and to the bytes and marks that the prompt cache compares.

The order of the cache is tools, system, messages: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
"""

from collections.abc import Iterator
import json
from typing import Any

from .conversation import Call, Turn
from .media import Attachment, attachment
from .prompt_cache import Caching, Mark
from .usage import part_bytes
from .wire import objects

# The length of the shortest prefix that is cached, by the prefix of the model's name, if it is not the default.
_MINIMUM_TOKENS = {
    "claude-opus-5": 512,
    "claude-fable-5": 512,
    "claude-mythos-5": 512,
    "claude-haiku-4-5": 4096,
    "claude-opus-4-5": 4096,
    "claude-opus-4-6": 4096,
}
_DEFAULT_MINIMUM_TOKENS = 1024


def as_blocks(content: object) -> list[dict[str, Any]]:
    """Return the content as a list of blocks; a plain text becomes one block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


def turns(body: dict[str, Any]) -> Iterator[Turn]:
    """Yield the system prompt and messages as turns; tool results in a user's message are separate turns before it."""
    if "system" in body:
        yield Turn("system", _text(as_blocks(body["system"])))
    for message in objects(body.get("messages")):
        blocks = as_blocks(message.get("content"))
        if message.get("role") == "assistant":
            calls = tuple(_call(block) for block in blocks if block.get("type") == "tool_use")
            yield Turn("assistant", _text(blocks), calls)
            continue
        results = [block for block in blocks if block.get("type") == "tool_result"]
        yield from (_result(block) for block in results)
        if len(results) < len(blocks):
            yield Turn(str(message.get("role")), _text(blocks), attachments=tuple(_attachments(blocks)))


def _text(blocks: list[dict[str, Any]]) -> str:
    return "\n".join(str(block["text"]) for block in blocks if block.get("type") == "text" and block.get("text"))


def _call(block: dict[str, Any]) -> Call:
    arguments = block.get("input")
    return Call(str(block.get("name")), arguments if isinstance(arguments, dict) else {}, str(block.get("id")))


def _result(block: dict[str, Any]) -> Turn:
    text = _text(as_blocks(block.get("content")))
    if block.get("is_error") is True and '"error"' not in text:
        text = json.dumps({"error": True, "error_text": text})
    return Turn("tool", text, call_id=str(block.get("tool_use_id")))


def _attachments(blocks: list[dict[str, Any]]) -> Iterator[Attachment]:
    for block in blocks:
        if block.get("type") in ("image", "document") and (found := block_attachment(block)):
            yield found


def block_attachment(block: dict[str, Any]) -> Attachment | None:
    """Return the attachment in an image or document block, or None if it is not base64."""
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") != "base64":
        return None
    return attachment(source.get("media_type"), source.get("data"))


def cached_parts(body: dict[str, Any]) -> tuple[bytes, Caching]:
    """Return the bytes of the prompt, and the positions of its blocks and cache marks."""
    written, blocks, marks = bytearray(), [], []
    for part, control in _parts(body):
        written += part_bytes(part)
        blocks.append(len(written))
        if isinstance(control, dict):
            marks.append(Mark(len(written), long=control.get("ttl") == "1h"))
    # With a top-level `cache_control`, the provider itself marks the last block.
    if blocks and isinstance(control := body.get("cache_control"), dict):
        marks.append(Mark(len(written), long=control.get("ttl") == "1h"))
    minimum = _minimum(str(body.get("model")))
    return bytes(written), Caching(minimum=minimum, step=1, marks=tuple(marks), blocks=tuple(blocks))


def _minimum(model: str) -> int:
    found = (size for start, size in _MINIMUM_TOKENS.items() if model.startswith(start))
    return next(found, _DEFAULT_MINIMUM_TOKENS)


def _parts(body: dict[str, Any]) -> Iterator[tuple[Any, object]]:
    """Yield each block without its cache mark, and the mark, because moving a mark does not change any prefix."""
    for tool in objects(body.get("tools")):
        yield _without_mark(tool), tool.get("cache_control")
    for block in as_blocks(body.get("system")):
        yield {"system": _without_mark(block)}, block.get("cache_control")
    if "thinking" in body:
        # A different thinking configuration causes a cache miss for the messages.
        yield {"thinking": body["thinking"]}, None
    if "tool_choice" in body:
        # A different tool choice also causes a cache miss for the messages.
        yield {"tool_choice": body["tool_choice"]}, None
    for message in objects(body.get("messages")):
        for block in as_blocks(message.get("content")):
            yield {str(message.get("role")): _without_mark(block)}, block.get("cache_control")


def _without_mark(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "cache_control"}
