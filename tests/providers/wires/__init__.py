"""Answers as the bytes that a provider's server writes, one module for each format.

The promises of all formats are tested over all of them with the same parts of answers; where a format has words of
its own for something, its module has a function of its own for it.
"""

from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect

from .anthropic import AnthropicWire
from .chat import ChatWire
from .gemini import GeminiWire
from .parts import Wire
from .responses import ResponsesWire

WIRES: tuple[Wire, ...] = (AnthropicWire(), ChatWire(), GeminiWire(), ResponsesWire())
# Those whose servers write calls in fragments, and a comment where they have nothing to say.
FRAGMENTING_WIRES: tuple[Wire, ...] = (AnthropicWire(), ChatWire(), ResponsesWire())
# Those whose servers can be told that the tools in a request may not be called.
FORBIDDING_WIRES: tuple[Wire, ...] = (AnthropicWire(), ChatWire(Dialect.OPENAI), GeminiWire(), ResponsesWire())
