"""Messages as JSON, as the record of turns keeps them. Each is written once for requests that follow each other."""

import json
from typing import Any
from weakref import ref

from ..window import Message


class WrittenMessages:
    """A cache of messages as JSON, each as long as its message is in use, such as in a window."""

    def __init__(self) -> None:
        self._written: dict[int, tuple[ref[Message], str]] = {}

    def __len__(self) -> int:
        """Return how many messages are cached."""
        return len(self._written)

    def write(self, message: Message) -> str:
        """Return a message as JSON."""
        key = id(message)
        found = self._written.get(key)
        if found is None:
            found = ref(message, lambda _: self._written.pop(key)), _as_json(message)
            self._written[key] = found
        return found[1]


def compact_json(value: Any) -> str:
    """Return a value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _as_json(message: Message) -> str:
    """Return a message as JSON, without a provider's residue and without the bytes of attachments."""
    known = {
        "role": message.role,
        "content": message.content,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in message.tool_calls
        ],
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "attachments": [
            {"mime_type": each.mime_type, "name": each.name, "bytes": len(each.data)} for each in message.attachments
        ],
    }
    return compact_json({name: value for name, value in known.items() if value not in (None, [])})


WRITTEN_MESSAGES = WrittenMessages()
