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
    IMPORTANT as IMPORTANT,
    INCOMPLETE as INCOMPLETE,
    MAX_COUNT as MAX_COUNT,
    MAX_TAG_LENGTH as MAX_TAG_LENGTH,
    Attachment as Attachment,
    Message as Message,
    Native as Native,
    Role as Role,
    ToolCall as ToolCall,
    is_count as is_count,
    with_content as with_content,
)
from .policy import (
    ToolResults as ToolResults,
    WindowPolicy as WindowPolicy,
)
from .registry import (
    WindowRegistry as WindowRegistry,
    is_in_turn as is_in_turn,
)
from .summary import (
    QUESTION as QUESTION,
    SummaryInput as SummaryInput,
    is_summary as is_summary,
    join_summary_inputs as join_summary_inputs,
    older_summary_input as older_summary_input,
    plain_text as plain_text,
    summary_text as summary_text,
)
from .tokens import (
    GREATEST_FACTOR as GREATEST_FACTOR,
    LEAST_FACTOR as LEAST_FACTOR,
    MESSAGE_OVERHEAD as MESSAGE_OVERHEAD,
    CalibratedCounter as CalibratedCounter,
    Calibration as Calibration,
    Calibrator as Calibrator,
    EstimatedCounter as EstimatedCounter,
    KindCounter as KindCounter,
    TextKind as TextKind,
    TokenCounter as TokenCounter,
    estimate_request as estimate_request,
    frame_tokens as frame_tokens,
    message_tokens as message_tokens,
    text_tokens as text_tokens,
    tool_text as tool_text,
)
from .tool_results import CUT_BEGINS as CUT_BEGINS, STUB_BEGINS as STUB_BEGINS
from .window import (
    Window as Window,
    WindowStats as WindowStats,
)
