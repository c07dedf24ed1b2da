"""The sliding window: which part of a conversation is still sent. Standard library only, and no Home Assistant.

How a request is written is the provider's, when a window is opened and closed is the turn's.
"""

from .errors import (
    DuplicateToolCall,
    ExchangeStillOpen,
    InvalidMessage,
    InvalidTag,
    NoOpenExchange,
    UnansweredToolCalls,
    UnknownExchange,
    UnknownToolCall,
    WindowBusy,
    WindowError,
)
from .exchange import Exchange
from .incomplete import INTERRUPTED_ANSWER, INTERRUPTED_CALL
from .messages import Attachment, Message, Native, Remembered, Role, ToolCall
from .policy import WindowPolicy
from .registry import WindowRegistry
from .stats import WindowStats
from .tokens import EstimatedCounter, TokenCounter, message_tokens
from .window import Window

__all__ = [
    "INTERRUPTED_ANSWER",
    "INTERRUPTED_CALL",
    "Attachment",
    "DuplicateToolCall",
    "EstimatedCounter",
    "Exchange",
    "ExchangeStillOpen",
    "InvalidMessage",
    "InvalidTag",
    "Message",
    "Native",
    "NoOpenExchange",
    "Remembered",
    "Role",
    "TokenCounter",
    "ToolCall",
    "UnansweredToolCalls",
    "UnknownExchange",
    "UnknownToolCall",
    "Window",
    "WindowBusy",
    "WindowError",
    "WindowPolicy",
    "WindowRegistry",
    "WindowStats",
    "message_tokens",
]
