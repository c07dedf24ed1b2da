"""The sliding window: the part of a conversation that is still sent to the model.

Standard library only; knows no Home Assistant and no provider.
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
from .messages import Attachment, Message, Native, Remembered, Role, Told, ToolCall
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
    "Told",
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
