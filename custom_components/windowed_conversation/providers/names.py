"""Names and ids that a format does not accept: their replacements, and the way back.

OpenAI's and Anthropic's formats accept the same characters, https://platform.openai.com/docs/api-reference/chat/create
and https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use; for Gemini's see its module.
"""

from base64 import b32encode
from collections.abc import Collection, Iterable
from hashlib import sha256
import re

from .events import ToolSchema

_VALID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID_LENGTH = 9
# Mistral refuses any other id of a call: https://github.com/langchain-ai/langchain/issues/24668
_SHORT_ID = re.compile(rf"[a-zA-Z0-9]{{{_ID_LENGTH}}}")
_INVALID_CHARACTER = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64

# The names that Anthropic accepts for the properties at the top of a tool's schema, by its own error message:
# https://github.com/anthropics/claude-code/issues/79418
_VALID_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def shortened(length: int, text: str) -> str:
    """Return the text, shortened to this many characters if it is longer. Different texts stay different."""
    if len(text) <= length:
        return text
    mark = f"_{_digest(text)}"
    return text[: length - len(mark)] + mark


def short_id(text: str) -> str:
    """Return an id of a call that every server accepts, made of a text. Different texts get different ids."""
    return b32encode(sha256(text.encode(errors="backslashreplace")).digest())[:_ID_LENGTH].decode()


def is_short(call_id: str) -> bool:
    """Return whether every server accepts an id of a call."""
    return _SHORT_ID.fullmatch(call_id) is not None


def sent_name(name: str) -> str:
    """Return the name under which a tool is sent: its own if the formats accept it."""
    return name if _VALID.fullmatch(name) else _made_valid(name)


def own_names(tools: Iterable[ToolSchema]) -> dict[str, str]:
    """Return the tools' own names by the names that are sent."""
    return {sent_name(tool.name): tool.name for tool in tools}


def replacement_names(properties: Collection[str]) -> dict[str, str]:
    """Return the replacements for property names that Anthropic refuses. No two get the same replacement."""
    taken = set(properties)
    sent: dict[str, str] = {}
    for own in properties:
        if _VALID_PROPERTY.fullmatch(own):
            continue
        name = own
        while name in taken:
            name = _made_valid(name)
        taken.add(name)
        sent[own] = name
    return sent


def _made_valid(name: str) -> str:
    return shortened(_LONGEST_NAME, f"{_INVALID_CHARACTER.sub('_', name)}_{_digest(name)}")


def _digest(text: str) -> str:
    # half a character has no form in UTF-8
    return sha256(text.encode(errors="backslashreplace")).hexdigest()[:8]
