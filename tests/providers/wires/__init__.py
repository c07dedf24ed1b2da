"""Writers for the answers of a provider's server as bytes, one module for each format.

Tests that apply to every format build their answers from the same parts. For features that only one format has, its
module has additional functions.
"""

from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect

from .anthropic import AnthropicWire
from .chat import ChatWire
from .gemini import GeminiWire
from .parts import Wire
from .responses import ResponsesWire

ALL_WIRES: tuple[Wire, ...] = (AnthropicWire(), ChatWire(), GeminiWire(), ResponsesWire())
# Formats whose servers send calls in fragments, and comments while they have nothing else to send.
FRAGMENTING_WIRES: tuple[Wire, ...] = (AnthropicWire(), ChatWire(), ResponsesWire())
# Formats whose servers can be told not to call the tools in a request.
FORBIDDING_WIRES: tuple[Wire, ...] = (AnthropicWire(), ChatWire(Dialect.OPENAI), GeminiWire(), ResponsesWire())
