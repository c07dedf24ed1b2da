"""An HTTP error response sent instead of a model's answer: its reason, and its form at OpenAI.

The modules of other formats have the forms that their providers use for the same reason.
"""

from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any


class RefusalReason(StrEnum):
    """The reasons for a refusal, by which each provider's status, type and code are chosen."""

    INVALID = auto()
    WRONG_KEY = auto()
    UNAUTHENTICATED = auto()
    FORBIDDEN = auto()
    NO_SUCH_MODEL = auto()
    NOT_FOUND = auto()
    TOO_LARGE = auto()
    UNPROCESSABLE = auto()
    RATE_LIMITED = auto()
    NO_CREDIT = auto()
    TOO_LONG = auto()
    FILTERED = auto()
    INVALID_SIGNATURE = auto()
    SERVER_ERROR = auto()
    UNAVAILABLE = auto()
    OVERLOADED = auto()


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP error response instead of an answer, as OpenAI words it. `extra` is merged into the error object.

    `size` is the number of tokens of a request that is too long, and `limit` the maximum.
    """

    status: int
    kind: str
    code: str | None
    message: str
    retry_after: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    is_html: bool = False
    reason: RefusalReason = RefusalReason.INVALID
    size: int = 9000
    limit: int = 8192


class RefusedError(Exception):
    """Raised to respond to the request with a refusal."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


WRONG_KEY_REFUSAL = Refusal(
    401, "invalid_request_error", "invalid_api_key", "Incorrect API key.", reason=RefusalReason.WRONG_KEY
)
NO_SUCH_PATH_REFUSAL = Refusal(
    404, "invalid_request_error", None, "There is no such path.", reason=RefusalReason.NOT_FOUND
)
NO_SUCH_MODEL_REFUSAL = Refusal(
    404, "invalid_request_error", "model_not_found", "The model does not exist.", reason=RefusalReason.NO_SUCH_MODEL
)
