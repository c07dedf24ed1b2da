"""Providers for the wire formats, with one folder per vendor.

A provider sends a request and returns a stream of this integration's events, or raises one of its errors. The modules
at the top level are shared: the streaming skeleton, events, errors, model profiles and prices.
"""

from .encoder import UNSEEN_NOTE as UNSEEN_NOTE
from .errors import (
    CONNECTION_ERRORS as CONNECTION_ERRORS,
    AnswerRefused as AnswerRefused,
    AuthError as AuthError,
    BadRequest as BadRequest,
    BadStream as BadStream,
    ContextOverflow as ContextOverflow,
    DeadlineExceeded as DeadlineExceeded,
    Incomplete as Incomplete,
    ModelNotFound as ModelNotFound,
    ProviderError as ProviderError,
    QuotaError as QuotaError,
    RateLimited as RateLimited,
    Redirected as Redirected,
    Unavailable as Unavailable,
)
from .events import (
    DEFAULT_SETTINGS as DEFAULT_SETTINGS,
    AnswerDone as AnswerDone,
    AnswerSchema as AnswerSchema,
    Event as Event,
    ListedModel as ListedModel,
    ModelSettings as ModelSettings,
    Provider as Provider,
    ReasoningDelta as ReasoningDelta,
    Request as Request,
    Source as Source,
    Sources as Sources,
    TextDelta as TextDelta,
    ToolCallDone as ToolCallDone,
    ToolSchema as ToolSchema,
    Usage as Usage,
    WebSearch as WebSearch,
)
from .json_values import fix_surrogates as fix_surrogates, read_repaired_json as read_repaired_json
from .models import (
    SELECTABLE_EFFORTS as SELECTABLE_EFFORTS,
    UNKNOWN_MODEL as UNKNOWN_MODEL,
    Effort as Effort,
    ModelProfile as ModelProfile,
    Vendor as Vendor,
    calculate_reasoning_tokens as calculate_reasoning_tokens,
    filter_conversation_models as filter_conversation_models,
    find_profile as find_profile,
    recommend_model as recommend_model,
)
from .sizes import (
    count_messages_tokens as count_messages_tokens,
    count_request_tokens as count_request_tokens,
    count_tools_tokens as count_tools_tokens,
)
from .transport import preconnect as preconnect
