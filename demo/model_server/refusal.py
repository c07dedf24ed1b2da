"""An HTTP answer instead of a model's: why, and in OpenAI's words.

Another provider's words for the same reason are in the modules of its format.
"""

from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any


class Reason(StrEnum):
    """Reasons of a refusal, by which a provider's own status, type and code are chosen."""

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
    FOREIGN_RESIDUE = auto()
    SERVER_ERROR = auto()
    UNAVAILABLE = auto()
    OVERLOADED = auto()


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP answer instead of a model's, in OpenAI's words. `extra` goes into the error object.

    `size` and `limit` are the tokens of a request that is too long, and of the longest.
    """

    status: int
    kind: str
    code: str | None
    message: str
    retry_after: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    html: bool = False
    reason: Reason = Reason.INVALID
    size: int = 9000
    limit: int = 8192


class RefusedError(Exception):
    """The request is answered with a refusal."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


WRONG_KEY = Refusal(401, "invalid_request_error", "invalid_api_key", "Incorrect API key.", reason=Reason.WRONG_KEY)
NO_SUCH_PATH = Refusal(404, "invalid_request_error", None, "There is no such path.", reason=Reason.NOT_FOUND)
NO_SUCH_MODEL = Refusal(
    404, "invalid_request_error", "model_not_found", "The model does not exist.", reason=Reason.NO_SUCH_MODEL
)
