"""Providers for the wire formats, with one folder per vendor.

A provider sends a request and returns a stream of this integration's events, or raises one of its errors. The modules
at the top level are shared: the streaming skeleton, events, errors, model profiles and prices.
"""

from .encoder import UNSEEN as UNSEEN
from .errors import (
    CONNECTION_ERRORS as CONNECTION_ERRORS,
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
    Refused as Refused,
    Unavailable as Unavailable,
)
from .events import (
    DEFAULT_SETTINGS as DEFAULT_SETTINGS,
    OLLAMA as OLLAMA,
    AnswersUnstreamed as AnswersUnstreamed,
    Compacts as Compacts,
    CountsTokens as CountsTokens,
    Event as Event,
    Finished as Finished,
    ListedModel as ListedModel,
    ModelSettings as ModelSettings,
    NamesItsSize as NamesItsSize,
    Provider as Provider,
    ReasoningDelta as ReasoningDelta,
    Request as Request,
    TextDelta as TextDelta,
    ToolCallDone as ToolCallDone,
    ToolSchema as ToolSchema,
    Usage as Usage,
)
from .json_values import repair_surrogates as repair_surrogates
from .models import (
    EFFORTS as EFFORTS,
    UNKNOWN_MODEL as UNKNOWN_MODEL,
    Effort as Effort,
    ModelProfile as ModelProfile,
    Vendor as Vendor,
    conversation_models as conversation_models,
    profile_of as profile_of,
    recommended_model as recommended_model,
    room_to_think as room_to_think,
)
from .sizes import messages_tokens as messages_tokens, request_tokens as request_tokens, tools_tokens as tools_tokens
from .transport import open_connection as open_connection
