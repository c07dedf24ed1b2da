"""The window and its Chat Completions encoding for the benchmarks, without Home Assistant.

Importing the integration's package would import Home Assistant, so its modules are imported under an empty parent
package.
"""

from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
import json
from pathlib import Path
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from benchmarks.workload import TOOL_NAME, WorkloadMessage, estimate_tokens

_FOLDER = Path(__file__).parent.parent / "custom_components" / "windowed_conversation"

if TYPE_CHECKING:
    from custom_components.windowed_conversation.window import Message, ToolCall, Window, WindowPolicy
else:
    _parent = ModuleType(_FOLDER.name)
    _parent.__path__ = [str(_FOLDER)]
    sys.modules.setdefault(_FOLDER.name, _parent)
    _window = import_module(f"{_FOLDER.name}.window")
    Message, ToolCall, Window, WindowPolicy = _window.Message, _window.ToolCall, _window.Window, _window.WindowPolicy

POLICY_FIELD_NAMES = frozenset(field.name for field in fields(WindowPolicy))


class CheapTokenCounter:
    """The token counter that all contenders use, called directly so that the window pays for no extra function call."""

    count = staticmethod(estimate_tokens)


def to_message(said: WorkloadMessage) -> Message:
    """Return a text, tool call or tool result of the workload as a Message."""
    if said.role == "tool":
        return Message.tool(said.call_id, TOOL_NAME, said.text)
    if not said.call_id:
        return Message.assistant(said.text)
    return Message.assistant(tool_calls=(ToolCall(said.call_id, TOOL_NAME, json.loads(said.arguments)),))


def create_window(system: str, history_tokens: int, share: float, **policy: Any) -> Window:
    """Return an empty window with a token budget for its history."""
    window = Window("conversation", WindowPolicy(history_tokens, share, **policy), CheapTokenCounter())
    window.set_system_prompt(system)
    return window


def to_question(said: WorkloadMessage) -> Message:
    """Return a user's text of the workload as a Message."""
    return Message.user(said.text)


def can_encode() -> bool:
    """Return whether the openai package, which the integration's encoding needs, is installed."""
    return find_spec("openai") is not None


def encode_chat_messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Return the messages encoded for Chat Completions by the integration's code; requires the openai package."""
    chat = import_module(f"{_FOLDER.name}.providers.openai.chat_encoding")
    encoded: list[dict[str, Any]] = chat.encode_messages(messages)
    return encoded
