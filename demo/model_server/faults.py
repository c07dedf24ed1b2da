"""The faults that can be requested, in one table: refusals, malformed answers and broken streams.

How a wire format represents an error, and how a stream is written, are defined in other modules.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum, auto
import re

from .conversation import Answer, Call, Conversation, Finish
from .refusal import NO_SUCH_MODEL, WRONG_KEY, Reason, Refusal


class Break(StrEnum):
    """The kind of connection failure."""

    SILENT_BEFORE_HEADERS = auto()
    CUT_BEFORE_HEADERS = auto()
    SILENT = auto()
    CUT = auto()
    CUT_IN_EVENT = auto()
    RESET = auto()
    MALFORMED = auto()
    ERROR_EVENT = auto()
    FAILURE_EVENT = auto()
    NO_TERMINAL = auto()


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault. Exactly one of `refusal`, `breaks` and `bend` is set. `after_words` None means after the last word."""

    about: str
    refusal: Refusal | None = None
    breaks: Break | None = None
    bend: Callable[[Answer, Conversation], Answer] | None = None
    after_words: int | None = 3

    @property
    def before_answer(self) -> bool:
        """Whether the fault occurs before the answer starts. Such a fault also affects the list of models."""
        return self.refusal is not None or self.breaks in {
            Break.SILENT_BEFORE_HEADERS,
            Break.CUT_BEFORE_HEADERS,
        }


def _half(text: str) -> str:
    words = text.split(" ")
    return " ".join(words[: max(1, len(words) // 2)])


def _same_call(answer: Answer, conversation: Conversation) -> Answer:
    preferred = conversation.tool("GetLiveContext") or conversation.tool("GetDateTime")
    name = preferred or next(iter(conversation.tools), None)
    return Answer(calls=(Call(name, {}),)) if name else answer


_SERVER_ERROR = Refusal(
    500, "server_error", None, "The server had an error while processing your request.", reason=Reason.SERVER_ERROR
)
_OVERLOADED = Refusal(503, "server_error", None, "The engine is currently overloaded.", reason=Reason.UNAVAILABLE)
_DECLINED = "I'm sorry, I can't help with that."
_TOO_LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."

FAULTS: dict[str, Fault] = {
    "400": Fault(
        "400, a request the server does not accept",
        Refusal(400, "invalid_request_error", None, "Unrecognized request argument supplied."),
    ),
    "401": Fault("401, the key is wrong", replace(WRONG_KEY, reason=Reason.UNAUTHENTICATED)),
    "403": Fault(
        "403, the key may not do this",
        Refusal(
            403,
            "invalid_request_error",
            "unsupported_country_region_territory",
            "Not allowed.",
            reason=Reason.FORBIDDEN,
        ),
    ),
    "404": Fault("404, no such model", NO_SUCH_MODEL),
    "413": Fault(
        "413, too large",
        Refusal(413, "invalid_request_error", None, "Request entity too large.", reason=Reason.TOO_LARGE),
    ),
    "422": Fault(
        "422, as pydantic-style servers say it",
        Refusal(422, "invalid_request_error", None, "Unprocessable.", reason=Reason.UNPROCESSABLE),
    ),
    "429": Fault(
        "429 with the time to wait",
        Refusal(
            429, "requests", "rate_limit_exceeded", "Rate limit reached.", retry_after=2, reason=Reason.RATE_LIMITED
        ),
    ),
    "quota": Fault(
        "429 (Anthropic: 402), no credit left",
        Refusal(
            429,
            "insufficient_quota",
            "insufficient_quota",
            "You exceeded your current quota.",
            reason=Reason.NO_CREDIT,
        ),
    ),
    "500": Fault("500, the server has failed", _SERVER_ERROR),
    "503": Fault("503, overloaded", _OVERLOADED),
    "529": Fault("529 (Gemini: 503), overloaded", replace(_OVERLOADED, status=529, reason=Reason.OVERLOADED)),
    "context_overflow": Fault(
        "400, the request is longer than the model can read",
        Refusal(400, "invalid_request_error", "context_length_exceeded", _TOO_LONG, reason=Reason.TOO_LONG),
    ),
    "context_overflow_llama": Fault(
        "400, the same as llama.cpp says it (Chat Completions)",
        Refusal(
            400,
            "exceed_context_size_error",
            None,
            "the request exceeds the available context size",
            extra={"code": 400, "n_prompt_tokens": 9000, "n_ctx": 8192},
            reason=Reason.TOO_LONG,
        ),
    ),
    "azure_filter": Fault(
        "400, Azure's filter refused the prompt",
        Refusal(400, "invalid_request_error", "content_filter", "The response was filtered.", reason=Reason.FILTERED),
    ),
    "html": Fault("502 with an HTML page", Refusal(502, "", None, "Bad gateway", html=True, reason=Reason.UNAVAILABLE)),
    "json_200": Fault("HTTP 200 with an error body", replace(_SERVER_ERROR, status=200)),
    "no_answer": Fault("accepts the request, sends nothing", breaks=Break.SILENT_BEFORE_HEADERS),
    "cut_before_headers": Fault("closes the connection, sends nothing", breaks=Break.CUT_BEFORE_HEADERS),
    "silence_after_headers": Fault("headers, then silence", breaks=Break.SILENT, after_words=0),
    "silence_mid_stream": Fault("some words, then silence", breaks=Break.SILENT),
    "cut_mid_stream": Fault("some words, then the connection is closed", breaks=Break.CUT),
    "cut_mid_event": Fault("some words and half an event, then the connection is closed", breaks=Break.CUT_IN_EVENT),
    "reset_mid_stream": Fault("some words, then the connection is reset", breaks=Break.RESET),
    "malformed_event": Fault("an event in the middle is no JSON, the rest is as usual", breaks=Break.MALFORMED),
    "error_in_stream": Fault("some words, then an error object", breaks=Break.ERROR_EVENT),
    "failed_in_stream": Fault("some words, then `response.failed` (elsewhere an error)", breaks=Break.FAILURE_EVENT),
    "no_terminal": Fault("the whole text, then the end without a marker", breaks=Break.NO_TERMINAL, after_words=None),
    "empty_answer": Fault("ends well without a word", bend=lambda *_: Answer()),
    "length": Fault(
        "half of the text, cut off at the length limit",
        bend=lambda answer, _: replace(answer, text=_half(answer.text), calls=(), finish=Finish.LENGTH),
    ),
    "content_filter": Fault(
        "half of the text, cut off by a filter",
        bend=lambda answer, _: replace(answer, text=_half(answer.text), calls=(), finish=Finish.CONTENT_FILTER),
    ),
    "window_exceeded": Fault(
        "half of the text, then the context is full, as Anthropic says it (elsewhere the length limit)",
        bend=lambda answer, _: replace(answer, text=_half(answer.text), calls=(), finish=Finish.WINDOW_EXCEEDED),
    ),
    "malformed_call": Fault(
        "ends with a call that cannot be read, as Gemini says it (elsewhere an empty answer)",
        bend=lambda *_: Answer(finish=Finish.MALFORMED_CALL),
    ),
    "prompt_blocked": Fault(
        "the prompt itself is blocked, as Gemini says it (elsewhere the model declines)",
        bend=lambda *_: Answer(refusal=_DECLINED, finish=Finish.PROMPT_BLOCKED),
    ),
    "refusal": Fault("the model declines", bend=lambda *_: Answer(refusal=_DECLINED)),
    "same_call": Fault("the same tool call for ever, while a tool is offered", bend=_same_call),
}

# The reason that belongs to each of the providers' error codes, for an error inside a stream.
_REASONS = {
    "rate_limit_exceeded": Reason.RATE_LIMITED,
    "rate_limit_error": Reason.RATE_LIMITED,
    "RESOURCE_EXHAUSTED": Reason.RATE_LIMITED,
    "insufficient_quota": Reason.NO_CREDIT,
    "billing_error": Reason.NO_CREDIT,
    "context_length_exceeded": Reason.TOO_LONG,
    "server_error": Reason.SERVER_ERROR,
    "api_error": Reason.SERVER_ERROR,
    "INTERNAL": Reason.SERVER_ERROR,
    "UNAVAILABLE": Reason.UNAVAILABLE,
}

_FAIL = re.compile(r"(?:please )?fail with (?:an? )?(?P<name>.+?)[.!]*", re.IGNORECASE)


def fault_asked_for(said: str) -> str | None:
    """Return the fault named by a text such as "fail with silence mid stream", or None if there is no such fault."""
    found = _FAIL.fullmatch(said)
    name = re.sub(r"\W+", "_", found["name"].lower()) if found else ""
    return name if name in FAULTS else None


@dataclass(frozen=True, slots=True)
class ArmedFault:
    """A fault and its settings. `times` None means until cleared. `code` is for an error inside the stream."""

    name: str
    times: int | None = None
    retry_after: float | None = None
    after_words: int | None = None
    code: str | None = None

    def __post_init__(self) -> None:
        """Validate the settings. Raises ValueError with a message about the invalid one."""
        if self.name not in FAULTS:
            raise ValueError(f"no such fault: {self.name!r}; there are {', '.join(FAULTS)}")
        for label in ("times", "retry_after", "after_words"):
            value = getattr(self, label)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
                raise ValueError(f"{label} must be a number that is not negative")

    @property
    def fault(self) -> Fault:
        """The fault from the table, with these settings applied."""
        fault = FAULTS[self.name]
        if fault.after_words is not None and self.after_words is not None:
            fault = replace(fault, after_words=self.after_words)
        if fault.refusal and self.retry_after is not None:
            fault = replace(fault, refusal=replace(fault.refusal, retry_after=self.retry_after))
        return fault

    @property
    def error_in_stream(self) -> Refusal:
        """The error object inside the stream: the one for `code`, or by default that the model is overloaded."""
        reason = _REASONS.get(self.code or "", Reason.OVERLOADED)
        return replace(_SERVER_ERROR, code=self.code, kind=self.code or "server_error", reason=reason)


class FaultSwitch:
    """Holds the fault that applies to the next requests, as set from outside."""

    def __init__(self) -> None:
        self.armed: ArmedFault | None = None

    def take(self, *, whole_answer: bool) -> ArmedFault | None:
        """Return the armed fault and count its use; a fault that needs an answer waits for the next request for one."""
        armed = self.armed
        if armed is None or not (whole_answer or armed.fault.before_answer):
            return None
        if armed.times is not None:
            self.armed = replace(armed, times=armed.times - 1) if armed.times > 1 else None
        return armed if armed.times != 0 else None
