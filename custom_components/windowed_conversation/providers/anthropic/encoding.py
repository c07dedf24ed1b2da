"""Encoding a conversation for Anthropic's Messages API: content blocks in alternating user and assistant messages.

Pure, and without the SDK.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
import json
import re
from typing import Any

from ...window import Attachment, Message, Role, ToolCall
from ..encoder import UNSEEN, mime_type_of, residue_of
from ..json_values import finite
from ..names import sent_name
from .tools import ArgumentNames, rename_keys

type Block = dict[str, Any]

# The stamp on the residue.
NAME = "anthropic"

THINKING = frozenset({"thinking", "redacted_thinking"})

# The API refuses empty messages and blank text, and a user's message must not vanish.
_NOTHING_SAID = "..."

# https://platform.claude.com/docs/en/build-with-claude/vision
_BLOCKS = dict.fromkeys(("image/gif", "image/jpeg", "image/png", "image/webp"), "image") | {
    "application/pdf": "document"
}

_VALID_ID = re.compile(r"[a-zA-Z0-9_-]+")


@dataclass(slots=True)
class AlternatingMessages:
    """Alternating messages. `history_end` is the last block before the newest user message."""

    messages: list[Block] = field(default_factory=list)
    history_end: Block | None = None

    def add(self, role: str, blocks: list[Block]) -> None:
        """Add blocks to the newest message if it has the same role, else as a new message. No blocks add nothing."""
        if not blocks:
            return
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": blocks})

    def end(self) -> Block | None:
        """Return the last block, or None if there is none."""
        return self.messages[-1]["content"][-1] if self.messages else None


def encode_messages(
    messages: tuple[Message, ...], model: str, names: ArgumentNames, *, images: bool
) -> AlternatingMessages:
    """Return the messages for a model, without the system prompt. `images`: whether it accepts images and PDFs.

    `names` are the names that are sent instead of arguments' own names.
    """
    conversation, ids = AlternatingMessages(), _CallIds()
    newest = max((place for place, message in enumerate(messages) if message.role is Role.USER), default=None)
    for place, message in enumerate(messages):
        if place == newest:
            conversation.history_end = conversation.end()
        match message.role:
            case Role.USER:
                conversation.add("user", _user(message, images=images))
            case Role.TOOL:
                conversation.add("user", [_tool_result(message, ids)])
            case Role.ASSISTANT:
                conversation.add("assistant", _assistant(message, model, ids, names))
    return conversation


def residue_blocks(message: Message, model: str) -> list[Block] | None:
    """Return the residue that this model left on a message, or None if the residue is not its own."""
    residue = residue_of(message, NAME, model)
    return residue if isinstance(residue, list) and all(isinstance(block, dict) for block in residue) else None


class _CallIds:
    """The ids of calls as the API accepts them: letters, digits, `_` and `-`, each unique in a request.

    Other providers use other ids, and ours are unique only within an exchange.
    """

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}
        self._taken: set[str] = set()

    def of_call(self, call_id: str) -> str:
        sent, times = call_id, 0
        while sent in self._taken or not _VALID_ID.fullmatch(sent):
            sent = f"toolu_{sha256(f'{times} {call_id}'.encode(errors='backslashreplace')).hexdigest()[:24]}"
            times += 1
        self._taken.add(sent)
        self._sent[call_id] = sent
        return sent

    def of_result(self, call_id: str | None) -> str:
        return self._sent.get(call_id or "", call_id or "")


def _text(content: str) -> list[Block]:
    return [{"type": "text", "text": content}] if content.strip() else []


def _user(message: Message, *, images: bool) -> list[Block]:
    attached = (_attachment(attachment, images=images) for attachment in message.attachments)
    return [*attached, *_text(message.content)] or _text(_NOTHING_SAID)


def _attachment(attachment: Attachment, *, images: bool) -> Block:
    """Return the block of an image or a PDF, or a note if the model or the API does not read it."""
    media_type = mime_type_of(attachment)
    if not images or media_type not in _BLOCKS:
        return {"type": "text", "text": UNSEEN}
    data = b64encode(attachment.data).decode()
    return {"type": _BLOCKS[media_type], "source": {"type": "base64", "media_type": media_type, "data": data}}


def _tool_result(message: Message, ids: _CallIds) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": ids.of_result(message.tool_call_id)}
    if message.content.strip():
        block["content"] = message.content
    if _is_error(message.content):
        block["is_error"] = True
    return block


def _is_error(content: str) -> bool:
    """Return whether a tool result is a failure: a JSON object with an `error`."""
    if '"error"' not in content:
        return False
    try:
        result = json.loads(content)
    except json.JSONDecodeError, RecursionError:
        return False
    return isinstance(result, dict) and "error" in result


def _assistant(message: Message, model: str, ids: _CallIds, names: ArgumentNames) -> list[Block]:
    """Return the blocks of an answer, with its thinking where the model put it.

    Another order is refused with a 400, and so is an answer that ends in thinking.
    https://platform.claude.com/docs/en/build-with-claude/extended-thinking#preserving-thinking-blocks
    """
    text = _text(message.content)
    calls = [_tool_use(call, ids, names.get(call.name, {})) for call in message.tool_calls]
    if not text and not calls:
        return []
    blocks: list[Block] = []
    for place in residue_blocks(message, model) or ():
        match place.get("type"):
            case "text":
                blocks += text
                text = []
            case "tool_use":
                blocks += [*text, *calls[:1]]
                text, calls = [], calls[1:]
            case kind if kind in THINKING:
                blocks.append(place)
    blocks += [*text, *calls]
    while blocks[-1]["type"] in THINKING:
        blocks.pop()
    return blocks


def _tool_use(call: ToolCall, ids: _CallIds, names: Mapping[str, str]) -> Block:
    given = rename_keys(finite(dict(call.arguments)), names)
    return {"type": "tool_use", "id": ids.of_call(call.id), "name": sent_name(call.name), "input": given}
