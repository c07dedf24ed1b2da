"""The sliding window: the part of a conversation that is still sent to the model.

Standard library only; knows no Home Assistant and no provider.
"""

from .calibration import (
    GREATEST_FACTOR,
    LEAST_FACTOR,
    CalibratedCounter,
    Calibration,
    Calibrator,
    estimate_request,
)
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
from .exchange import INTERRUPTED_ANSWER, INTERRUPTED_CALL, Exchange
from .figures import GREATEST_FIGURE, is_figure
from .messages import Attachment, Message, Native, Role, ToolCall, rewritten
from .policy import ToolResults, WindowPolicy
from .registry import WindowRegistry, is_in_turn
from .restore import Evicted, Snapshot, recounted, recounted_message
from .summary import QUESTION, Passage, is_summary, joined, older_passage, plain_text, summary_text
from .tags import IMPORTANT, INCOMPLETE, MAX_TAG_LENGTH
from .tokens import (
    MESSAGE_OVERHEAD,
    EstimatedCounter,
    KindCounter,
    TextKind,
    TokenCounter,
    frame_tokens,
    message_tokens,
    text_tokens,
    tool_text,
)
from .tool_results import CUT_BEGINS, STUB_BEGINS
from .window import Window, WindowStats

__all__ = [
    "CUT_BEGINS",
    "GREATEST_FACTOR",
    "GREATEST_FIGURE",
    "IMPORTANT",
    "INCOMPLETE",
    "INTERRUPTED_ANSWER",
    "INTERRUPTED_CALL",
    "LEAST_FACTOR",
    "MAX_TAG_LENGTH",
    "MESSAGE_OVERHEAD",
    "QUESTION",
    "STUB_BEGINS",
    "Attachment",
    "CalibratedCounter",
    "Calibration",
    "Calibrator",
    "DuplicateToolCall",
    "EstimatedCounter",
    "Evicted",
    "Exchange",
    "ExchangeStillOpen",
    "InvalidMessage",
    "InvalidTag",
    "KindCounter",
    "Message",
    "Native",
    "NoOpenExchange",
    "Passage",
    "Role",
    "Snapshot",
    "TextKind",
    "TokenCounter",
    "ToolCall",
    "ToolResults",
    "UnansweredToolCalls",
    "UnknownExchange",
    "UnknownToolCall",
    "Window",
    "WindowBusy",
    "WindowError",
    "WindowPolicy",
    "WindowRegistry",
    "WindowStats",
    "estimate_request",
    "frame_tokens",
    "is_figure",
    "is_in_turn",
    "is_summary",
    "joined",
    "message_tokens",
    "older_passage",
    "plain_text",
    "recounted",
    "recounted_message",
    "rewritten",
    "summary_text",
    "text_tokens",
    "tool_text",
]
