"""The window and its Chat Completions encoding as the benchmarks meet them: without Home Assistant.

Importing the integration's package would import Home Assistant, so the package folder is given an empty parent.
"""

from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
import json
from pathlib import Path
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from benchmarks.workload import TOOL_NAME, Said, cheap_count

_FOLDER = Path(__file__).parent.parent / "custom_components" / "windowed_conversation"

if TYPE_CHECKING:
    from custom_components.windowed_conversation.window import Message, ToolCall, Window, WindowPolicy
else:
    _parent = ModuleType(_FOLDER.name)
    _parent.__path__ = [str(_FOLDER)]
    sys.modules.setdefault(_FOLDER.name, _parent)
    _window = import_module(f"{_FOLDER.name}.window")
    Message, ToolCall, Window, WindowPolicy = _window.Message, _window.ToolCall, _window.Window, _window.WindowPolicy

POLICY_FIELDS = frozenset(field.name for field in fields(WindowPolicy))


class CheapCounter:
    """The counter of every contender, without a call around it that nobody else has."""

    count = staticmethod(cheap_count)


def message(said: Said) -> Message:
    """Return the words of the assistant or a tool as a message of ours."""
    if said.role == "tool":
        return Message.tool(said.call_id, TOOL_NAME, said.text)
    if not said.call_id:
        return Message.assistant(said.text)
    return Message.assistant(tool_calls=(ToolCall(said.call_id, TOOL_NAME, json.loads(said.arguments)),))


def new_window(system: str, history_tokens: int, share: float, **policy: Any) -> Window:
    """Return an empty window with a budget of its own for the history."""
    window = Window("conversation", WindowPolicy(history_tokens, share, **policy), CheapCounter())
    window.set_system(system)
    return window


def question(said: Said) -> Message:
    """Return the user's words as a message of ours."""
    return Message.user(said.text)


def can_encode() -> bool:
    """Return whether the openai package is here, with which the integration encodes."""
    return find_spec("openai") is not None


def encode(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Return the messages as they go over the wire, by the integration's own encoding; needs the openai package."""
    chat = import_module(f"{_FOLDER.name}.providers.openai.chat_encoding")
    encoded: list[dict[str, Any]] = chat.encode_messages(messages)
    return encoded
