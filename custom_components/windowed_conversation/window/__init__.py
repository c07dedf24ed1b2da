"""The sliding window: the part of a conversation that is still sent to the model.

Uses the standard library only, and does not depend on Home Assistant or on a provider.
"""

from .errors import (
    DuplicateToolCall as DuplicateToolCall,
    ExchangeStillOpen as ExchangeStillOpen,
    InvalidMessage as InvalidMessage,
    InvalidTag as InvalidTag,
    NoOpenExchange as NoOpenExchange,
    UnansweredToolCalls as UnansweredToolCalls,
    UnknownExchange as UnknownExchange,
    UnknownToolCall as UnknownToolCall,
    WindowBusy as WindowBusy,
    WindowError as WindowError,
)
from .exchange import (
    INTERRUPTED_ANSWER as INTERRUPTED_ANSWER,
    INTERRUPTED_CALL as INTERRUPTED_CALL,
    EvictionCounts as EvictionCounts,
    Exchange as Exchange,
    Snapshot as Snapshot,
    recount_exchange as recount_exchange,
    recount_message as recount_message,
)
from .messages import (
    AUTOMATIC_TAGS as AUTOMATIC_TAGS,
    IMPORTANT as IMPORTANT,
    INCOMPLETE_TAG as INCOMPLETE_TAG,
    MAX_TAG_LENGTH as MAX_TAG_LENGTH,
    MAX_TOKENS as MAX_TOKENS,
    SUMMARY as SUMMARY,
    Attachment as Attachment,
    Message as Message,
    NativeData as NativeData,
    Role as Role,
    ToolCall as ToolCall,
    is_int_in_range as is_int_in_range,
    with_content as with_content,
)
from .policy import ToolResultMode as ToolResultMode, WindowPolicy as WindowPolicy
from .registry import (
    TurnPlace as TurnPlace,
    WindowRegistry as WindowRegistry,
    is_in_turn as is_in_turn,
)
from .summary import (
    QUESTION as QUESTION,
    SummaryInput as SummaryInput,
    build_older_summary_input as build_older_summary_input,
    count_replaced_tokens as count_replaced_tokens,
    find_summary_text as find_summary_text,
    format_plain_summary as format_plain_summary,
    is_summary as is_summary,
    join_summary_inputs as join_summary_inputs,
)
from .tokens import (
    MAX_FACTOR as MAX_FACTOR,
    MESSAGE_FRAME as MESSAGE_FRAME,
    CalibratedCounter as CalibratedCounter,
    Calibration as Calibration,
    Calibrator as Calibrator,
    EstimatedCounter as EstimatedCounter,
    TextCounter as TextCounter,
    TextKind as TextKind,
    TokenCounter as TokenCounter,
    count_attachment_tokens as count_attachment_tokens,
    count_message_tokens as count_message_tokens,
    count_text_tokens as count_text_tokens,
    estimate_request as estimate_request,
    format_tool_definition as format_tool_definition,
)
from .tool_results import CUT_MARK_PREFIX as CUT_MARK_PREFIX, STUB_PREFIX as STUB_PREFIX
from .window import (
    Window as Window,
    WindowStats as WindowStats,
)
