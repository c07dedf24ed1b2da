"""The faults that can be requested, in one table: refusals, malformed answers and broken streams.

How a wire format represents an error, and how a stream is written, are defined in other modules.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum, auto
import re

from .conversation import Answer, AnswerFinish, Call, Conversation
from .refusal import NO_SUCH_MODEL_REFUSAL, WRONG_KEY_REFUSAL, Refusal, RefusalReason


class ConnectionBreak(StrEnum):
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
    """A fault. Exactly one of `refusal`, `breaks` and `bend` is set."""

    description: str
    refusal: Refusal | None = None
    breaks: ConnectionBreak | None = None
    bend: Callable[[Answer, Conversation], Answer] | None = None
    # None means after the last word.
    after_words: int | None = 3

    @property
    def is_before_answer(self) -> bool:
        """Whether the fault occurs before the answer starts. Such a fault also affects the list of models."""
        return self.refusal is not None or self.breaks in {
            ConnectionBreak.SILENT_BEFORE_HEADERS,
            ConnectionBreak.CUT_BEFORE_HEADERS,
        }


def _cut_in_half(text: str) -> str:
    words = text.split(" ")
    return " ".join(words[: max(1, len(words) // 2)])


def _repeat_call(answer: Answer, conversation: Conversation) -> Answer:
    preferred = conversation.find_tool("GetLiveContext") or conversation.find_tool("get_states")
    name = preferred or next(iter(conversation.tool_names), None)
    return Answer(calls=(Call(name, {}),)) if name else answer


_SERVER_ERROR_REFUSAL = Refusal(
    500,
    "server_error",
    None,
    "The server had an error while processing your request.",
    reason=RefusalReason.SERVER_ERROR,
)
_OVERLOADED_REFUSAL = Refusal(
    503, "server_error", None, "The engine is currently overloaded.", reason=RefusalReason.UNAVAILABLE
)
_DECLINED_TEXT = "I'm sorry, I can't help with that."
_TOO_LONG_MESSAGE = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
)

FAULTS: dict[str, Fault] = {
    "400": Fault(
        "400, a request the server does not accept",
        Refusal(400, "invalid_request_error", None, "Unrecognized request argument supplied."),
    ),
    "401": Fault("401, the key is wrong", replace(WRONG_KEY_REFUSAL, reason=RefusalReason.UNAUTHENTICATED)),
    "403": Fault(
        "403, the key may not do this",
        Refusal(
            403,
            "invalid_request_error",
            "unsupported_country_region_territory",
            "Not allowed.",
            reason=RefusalReason.FORBIDDEN,
        ),
    ),
    "404": Fault("404, no such model", NO_SUCH_MODEL_REFUSAL),
    "413": Fault(
        "413, too large",
        Refusal(413, "invalid_request_error", None, "Request entity too large.", reason=RefusalReason.TOO_LARGE),
    ),
    "422": Fault(
        "422, as pydantic-style servers say it",
        Refusal(422, "invalid_request_error", None, "Unprocessable.", reason=RefusalReason.UNPROCESSABLE),
    ),
    "429": Fault(
        "429 with the time to wait",
        Refusal(
            429,
            "requests",
            "rate_limit_exceeded",
            "Rate limit reached.",
            retry_after=2,
            reason=RefusalReason.RATE_LIMITED,
        ),
    ),
    "quota": Fault(
        "429 (Anthropic: 402), no credit left",
        Refusal(
            429,
            "insufficient_quota",
            "insufficient_quota",
            "You exceeded your current quota.",
            reason=RefusalReason.NO_CREDIT,
        ),
    ),
    "500": Fault("500, the server has failed", _SERVER_ERROR_REFUSAL),
    "503": Fault("503, overloaded", _OVERLOADED_REFUSAL),
    "529": Fault(
        "529 (Gemini: 503), overloaded", replace(_OVERLOADED_REFUSAL, status=529, reason=RefusalReason.OVERLOADED)
    ),
    "context_overflow": Fault(
        "400, the request is longer than the model can read",
        Refusal(
            400, "invalid_request_error", "context_length_exceeded", _TOO_LONG_MESSAGE, reason=RefusalReason.TOO_LONG
        ),
    ),
    "context_overflow_llama": Fault(
        "400, the same as llama.cpp says it (Chat Completions)",
        Refusal(
            400,
            "exceed_context_size_error",
            None,
            "the request exceeds the available context size",
            extra={"code": 400, "n_prompt_tokens": 9000, "n_ctx": 8192},
            reason=RefusalReason.TOO_LONG,
        ),
    ),
    "azure_filter": Fault(
        "400, Azure's filter refused the prompt",
        Refusal(
            400, "invalid_request_error", "content_filter", "The response was filtered.", reason=RefusalReason.FILTERED
        ),
    ),
    "html": Fault(
        "502 with an HTML page", Refusal(502, "", None, "Bad gateway", is_html=True, reason=RefusalReason.UNAVAILABLE)
    ),
    "json_200": Fault("HTTP 200 with an error body", replace(_SERVER_ERROR_REFUSAL, status=200)),
    "no_answer": Fault("accepts the request, sends nothing", breaks=ConnectionBreak.SILENT_BEFORE_HEADERS),
    "cut_before_headers": Fault("closes the connection, sends nothing", breaks=ConnectionBreak.CUT_BEFORE_HEADERS),
    "silence_after_headers": Fault("headers, then silence", breaks=ConnectionBreak.SILENT, after_words=0),
    "silence_mid_stream": Fault("some words, then silence", breaks=ConnectionBreak.SILENT),
    "cut_mid_stream": Fault("some words, then the connection is closed", breaks=ConnectionBreak.CUT),
    "cut_mid_event": Fault(
        "some words and half an event, then the connection is closed", breaks=ConnectionBreak.CUT_IN_EVENT
    ),
    "reset_mid_stream": Fault("some words, then the connection is reset", breaks=ConnectionBreak.RESET),
    "malformed_event": Fault(
        "an event in the middle is no JSON, the rest is as usual", breaks=ConnectionBreak.MALFORMED
    ),
    "error_in_stream": Fault("some words, then an error object", breaks=ConnectionBreak.ERROR_EVENT),
    "failed_in_stream": Fault(
        "some words, then `response.failed` (elsewhere an error)", breaks=ConnectionBreak.FAILURE_EVENT
    ),
    "no_terminal": Fault(
        "the whole text, then the end without a marker", breaks=ConnectionBreak.NO_TERMINAL, after_words=None
    ),
    "empty_answer": Fault("ends well without a word", bend=lambda *_: Answer()),
    "length": Fault(
        "half of the text, cut off at the length limit",
        bend=lambda answer, _: replace(answer, text=_cut_in_half(answer.text), calls=(), finish=AnswerFinish.LENGTH),
    ),
    "content_filter": Fault(
        "half of the text, cut off by a filter",
        bend=lambda answer, _: replace(
            answer, text=_cut_in_half(answer.text), calls=(), finish=AnswerFinish.CONTENT_FILTER
        ),
    ),
    "window_exceeded": Fault(
        "half of the text, then the context is full, as Anthropic says it (elsewhere the length limit)",
        bend=lambda answer, _: replace(
            answer, text=_cut_in_half(answer.text), calls=(), finish=AnswerFinish.WINDOW_EXCEEDED
        ),
    ),
    "malformed_call": Fault(
        "ends with a call that cannot be read, as Gemini says it (elsewhere an empty answer)",
        bend=lambda *_: Answer(finish=AnswerFinish.MALFORMED_CALL),
    ),
    "prompt_blocked": Fault(
        "the prompt itself is blocked, as Gemini says it (elsewhere the model declines)",
        bend=lambda *_: Answer(refusal=_DECLINED_TEXT, finish=AnswerFinish.PROMPT_BLOCKED),
    ),
    "refusal": Fault("the model declines", bend=lambda *_: Answer(refusal=_DECLINED_TEXT)),
    "same_call": Fault("the same tool call for ever, while a tool is offered", bend=_repeat_call),
}

# The reason that belongs to each of the providers' error codes, for an error inside a stream.
_REASON_BY_CODE = {
    "rate_limit_exceeded": RefusalReason.RATE_LIMITED,
    "rate_limit_error": RefusalReason.RATE_LIMITED,
    "RESOURCE_EXHAUSTED": RefusalReason.RATE_LIMITED,
    "insufficient_quota": RefusalReason.NO_CREDIT,
    "billing_error": RefusalReason.NO_CREDIT,
    "context_length_exceeded": RefusalReason.TOO_LONG,
    "server_error": RefusalReason.SERVER_ERROR,
    "api_error": RefusalReason.SERVER_ERROR,
    "INTERNAL": RefusalReason.SERVER_ERROR,
    "UNAVAILABLE": RefusalReason.UNAVAILABLE,
}

_FAIL_PATTERN = re.compile(r"(?:please )?fail with (?:an? )?(?P<name>.+?)[.!]*", re.IGNORECASE)


def find_requested_fault(said: str) -> str | None:
    """Return the fault named by a text such as "fail with silence mid stream", or None if there is no such fault."""
    found = _FAIL_PATTERN.fullmatch(said)
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
    def stream_error(self) -> Refusal:
        """The error object inside the stream: the one for `code`, or by default that the model is overloaded."""
        reason = _REASON_BY_CODE.get(self.code or "", RefusalReason.OVERLOADED)
        return replace(_SERVER_ERROR_REFUSAL, code=self.code, kind=self.code or "server_error", reason=reason)


class FaultSwitch:
    """Holds the fault that applies to the next requests, as set from outside."""

    def __init__(self) -> None:
        self.armed: ArmedFault | None = None

    def take_fault(self, *, for_answer: bool) -> ArmedFault | None:
        """Return the armed fault and count its use; a fault that needs an answer waits for the next request for one."""
        armed = self.armed
        if armed is None or not (for_answer or armed.fault.is_before_answer):
            return None
        if armed.times is not None:
            self.armed = replace(armed, times=armed.times - 1) if armed.times > 1 else None
        return armed if armed.times != 0 else None
