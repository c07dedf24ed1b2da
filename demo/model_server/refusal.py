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


class OverflowReport(StrEnum):
    """The report of OpenAI's formats about a request that exceeds the context size.

    A code, the context size, a wrong context size, or nothing but a text, as vLLM does.
    """

    CODE = auto()
    SIZE = auto()
    TWICE_THE_SIZE = auto()
    HALF_THE_SIZE = auto()
    NOTHING = auto()


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

_SIZE_SHARES = {OverflowReport.SIZE: 1.0, OverflowReport.TWICE_THE_SIZE: 2.0, OverflowReport.HALF_THE_SIZE: 0.5}


def build_overflow_refusal(size: int, limit: int, report: OverflowReport) -> Refusal:
    """Return the refusal of a request of `size` tokens by a model that reads `limit` tokens."""
    message = f"This model's maximum context length is {limit} tokens. Your messages resulted in {size} tokens."
    kind, code, extra = "invalid_request_error", None, dict[str, Any]()
    if report is OverflowReport.CODE:
        code = "context_length_exceeded"
    elif report is OverflowReport.NOTHING:
        kind, extra = "BadRequestError", {"code": 400}
    else:
        kind, extra = "exceed_context_size_error", {"code": 400, "n_ctx": int(_SIZE_SHARES[report] * limit)}
    return Refusal(400, kind, code, message, extra=extra, reason=RefusalReason.TOO_LONG, size=size, limit=limit)
