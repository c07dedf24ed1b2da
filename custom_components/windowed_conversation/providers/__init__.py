"""Wire formats, one folder for each vendor: a request in, a stream of our events or one of our errors out.

The modules at the top are shared: the streaming skeleton, events, errors, model profiles and prices.
"""

from .characters import whole
from .encoder import UNSEEN
from .errors import (
    AWAY,
    AuthError,
    BadRequest,
    BadStream,
    ContextOverflow,
    DeadlineExceeded,
    Incomplete,
    ModelNotFound,
    ProviderError,
    QuotaError,
    RateLimited,
    Redirected,
    Refused,
    Unavailable,
)
from .events import (
    OLLAMA,
    AnswersWhole,
    Compacts,
    CountsTokens,
    Event,
    Finished,
    ListedModel,
    NamesItsSize,
    OnBytes,
    Provider,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCallDone,
    ToolSchema,
    Usage,
)
from .profile import EFFORTS, UNKNOWN_MODEL, Effort, Profile, room_to_think
from .profiles import Vendor, profile_of
from .recommended import conversation_models, recommended_model
from .settings import DEFAULT_SETTINGS, ModelSettings
from .sizes import messages_tokens, request_tokens, tools_tokens
from .transport import open_connection

__all__ = [
    "AWAY",
    "DEFAULT_SETTINGS",
    "EFFORTS",
    "OLLAMA",
    "UNKNOWN_MODEL",
    "UNSEEN",
    "AnswersWhole",
    "AuthError",
    "BadRequest",
    "BadStream",
    "Compacts",
    "ContextOverflow",
    "CountsTokens",
    "DeadlineExceeded",
    "Effort",
    "Event",
    "Finished",
    "Incomplete",
    "ListedModel",
    "ModelNotFound",
    "ModelSettings",
    "NamesItsSize",
    "OnBytes",
    "Profile",
    "Provider",
    "ProviderError",
    "QuotaError",
    "RateLimited",
    "ReasoningDelta",
    "Redirected",
    "Refused",
    "Request",
    "TextDelta",
    "ToolCallDone",
    "ToolSchema",
    "Unavailable",
    "Usage",
    "Vendor",
    "conversation_models",
    "messages_tokens",
    "open_connection",
    "profile_of",
    "recommended_model",
    "request_tokens",
    "room_to_think",
    "tools_tokens",
    "whole",
]
