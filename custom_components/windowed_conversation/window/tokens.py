"""Token counting: an estimate without a vocabulary, the size of a message, and calibration by reported usage."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
import json
from math import sqrt, sumprod
from typing import Any, Protocol, Self

from .messages import MAX_TOKENS, Attachment, Message, Role, ToolCall, is_number

# OpenAI's chat formats add four tokens to a message: start, role, message, end.
MESSAGE_FRAME = 4
# The model sees each tool call as a separate message that names its recipient, its channel and its format.
TOOL_CALL_OVERHEAD_TOKENS = 8

# The maximum per image at Anthropic, which counts the most tokens of all providers that charge images by token.
# https://docs.claude.com/en/docs/build-with-claude/vision
_IMAGE_TOKENS = 1600
# A PDF page is counted both as text and as an image: https://docs.claude.com/en/docs/build-with-claude/pdf-support
_PDF_PAGE_TOKENS = 3000
# A guess at the size of a page, because nothing here parses PDFs.
_PDF_PAGE_BYTES = 100_000

_encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode

_CONTINUATION, _SPACE, _LOWERCASE, _OTHER_LETTER, _DIGIT_OR_SYLLABLE, _IDEOGRAPH, _PUNCTUATION, _EMOJI, _SYMBOL = (
    bytes([n]) for n in b"- aA0C.!{"
)

# The bytes of each character class. A character's class depends on the first byte of its UTF-8 encoding. All other
# bytes are structure: brackets, colons, dashes ...
_BYTES_BY_CLASS = {
    _CONTINUATION: bytes(range(0x80, 0xC0)),  # continuation bytes, which begin no character
    _SPACE: b" ",
    _LOWERCASE: bytes(range(0x61, 0x7B)),
    _OTHER_LETTER: bytes(range(0x41, 0x5B))
    + bytes(range(0xCE, 0xE2)),  # capital letters, and alphabets other than Latin
    _DIGIT_OR_SYLLABLE: b"0123456789\xe3" + bytes(range(0xEA, 0xEF)),  # digits, kana, hangul
    _IDEOGRAPH: bytes(range(0xE4, 0xEA)),
    _PUNCTUATION: b"\t\n\r.,;!?'\xe2\xef" + bytes(range(0xC0, 0xCE)),  # also accented Latin letters
    _EMOJI: bytes(range(0xF0, 0x100)),
}

_CLASS_BY_BYTE = {member: symbol for symbol, members in _BYTES_BY_CLASS.items() for member in members}
_CLASS_TABLE = b"".join([_CLASS_BY_BYTE.get(member, _SYMBOL) for member in range(256)])
_SPACE_THEN_SYMBOL = _SPACE + _SYMBOL

# The bounds of a factor. Billed input outside them measures something other than the size of the request.
MIN_FACTOR = 0.5

MAX_FACTOR = 2.5

# The standard deviations of a factor before anything is learned, and of a factor from an earlier run.
_INITIAL = 0.3

_RESTORED_DEVIATION = 0.1

# The drift of the factors for prose and tools from one request to the next, because languages and models change.
_DRIFT_DEVIATION = 0.01

# The variance of a text's tokens around its kind's factor, in square tokens per token: sentences of 25 tokens are off
# by 20 %, tool results of 500 tokens by 4 %.
_VARIANCE = 1.0

# The additional variance of a request: it has a chat template, and a fixed part may change without changing its size.
_REQUEST_VARIANCE = 25.0

# Usage that is off by more standard deviations counts as if it were off by this many. If it is also off by more than
# the share `_MAX_SURPRISE_SHARE`, the factors become uncertain again, because another model may be behind the name; a
# second such usage then corrects them.
_MAX_DEVIATIONS = 3.0

_MAX_SURPRISE_SHARE = 0.05


class TextKind(StrEnum):
    """The kinds of text that tokenizers treat differently.

    `FIXED` is the beginning of every request of an agent: the system prompt and the tool schemas. `PROSE` is the text
    of users and models. `TOOLS` are tool calls and their results.
    """

    FIXED = "fixed"
    PROSE = "prose"
    TOOLS = "tools"


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, 0 if it is empty."""
        ...


class TextCounter(TokenCounter, Protocol):
    """A token counter that distinguishes kinds of text. Its `count` is for prose."""

    def count_as(self, kind: TextKind, text: str) -> int:
        """Return the number of tokens of a text of this kind, 0 if it is empty."""
        ...


def count_message_tokens(message: Message, counter: TokenCounter, content: str | None = None) -> int:
    """Return the size of a message in a request, in tokens, with its own or other content. Counts text only once.

    The content, the name, and the name and JSON arguments of each tool call are counted, but not the ids, which no
    model reads. Residue has the tokens that its provider reported; attachments are counted as by the most expensive
    provider.
    """
    if content is None:
        content = message.content
    calls = message.tool_calls
    if calls or message.name is not None or message.role is Role.SYSTEM:
        tokens = count_text_tokens(classify_message(message), format_counted_text(message, content), counter)
    else:
        tokens = counter.count(content)
    if calls or message.native is not None or message.attachments:
        return min(MAX_TOKENS, tokens + frame_tokens(message))
    return tokens + MESSAGE_FRAME


def count_text_tokens(kind: TextKind, text: str, counter: TokenCounter) -> int:
    """Return the tokens of a text. Passes the kind to a counter that distinguishes kinds."""
    count_as: Callable[[TextKind, str], int] | None = getattr(counter, "count_as", None)
    return counter.count(text) if count_as is None else count_as(kind, text)


def format_counted_text(message: Message, content: str | None = None) -> str:
    """Return the text of a message that is counted in tokens, with the message's own or other content."""
    if content is None:
        content = message.content
    if not message.tool_calls:
        return content if message.name is None else f"{message.name}\n{content}" if content else message.name
    calls = [f"{call.name}\n{dump_arguments(call)}" for call in message.tool_calls]
    return "\n".join(filter(None, (message.name, content, *calls)))


def classify_message(message: Message) -> TextKind:
    """Return the kind of a message's text. A message with tool calls is `TextKind.TOOLS`."""
    if message.role is Role.SYSTEM:
        return TextKind.FIXED
    return TextKind.TOOLS if message.tool_calls or message.role is Role.TOOL else TextKind.PROSE


def format_tool_definition(name: str, description: str, parameters: Mapping[str, Any]) -> str:
    """Return the text of a tool definition that is counted in tokens. `parameters` is a JSON schema."""
    return f"{name}\n{description}\n{_encode_json(dict(parameters))}"


def dump_arguments(call: ToolCall) -> str:
    """Return the arguments of a tool call as JSON text."""
    return _encode_json(dict(call.arguments))


def frame_tokens(message: Message) -> int:
    """Return the tokens of a message in addition to its text: its frame, residue and attachments."""
    tokens = MESSAGE_FRAME + TOOL_CALL_OVERHEAD_TOKENS * len(message.tool_calls)
    if message.native is not None:
        tokens += message.native.tokens
    return tokens + sum(map(count_attachment_tokens, message.attachments)) if message.attachments else tokens


def count_attachment_tokens(attachment: Attachment) -> int:
    """Return the estimated size of an attachment in tokens, as counted by the most expensive provider."""
    if attachment.mime_type.startswith("image/"):
        return _IMAGE_TOKENS
    return _PDF_PAGE_TOKENS * (1 + len(attachment.data) // _PDF_PAGE_BYTES)


class EstimatedCounter:
    """Estimates tokens by classes of characters, without a vocabulary.

    The weights are tokens per character. They were fitted to o200k_base (non-negative least squares on relative errors,
    then rounded) with Home Assistant's own texts in 21 languages, conversations in six languages, states as JSON, YAML
    and CSV, tool calls and tool schemas. On other texts of the same kinds, the totals are within 14 % for English,
    German, Italian, Ukrainian, Chinese and Japanese, and within 6 % for states. A single sentence may be off by 30 %.
    Everyday Italian is underestimated by 17 %, and Russian overestimated by 40 to 48 %, because it looks like Ukrainian
    but needs fewer tokens.
    """

    def count(self, text: str) -> int:
        """Return the estimated number of tokens, at least 1 unless the text is empty."""
        if not text:
            return 0
        encoded = text.encode("utf-8", "replace")
        count = encoded.translate(_CLASS_TABLE).count
        tokens = (
            0.24 * count(_LOWERCASE)
            + 0.38 * count(_OTHER_LETTER)
            + 0.68 * count(_DIGIT_OR_SYLLABLE)
            + 0.84 * count(_IDEOGRAPH)
            + 0.90 * count(_PUNCTUATION)
            + 2.00 * count(_EMOJI)
            + 0.19 * count(_SYMBOL)
            + 0.75 * (count(_SPACE_THEN_SYMBOL) + encoded.count(b"\n "))
        )
        return round(tokens) or 1


type _Vector = Sequence[float]

_TEXT_KINDS = tuple(TextKind)


@dataclass(frozen=True, slots=True)
class RequestEstimate:
    """The estimated size of a request in tokens: its texts by kind, and the frames around its messages."""

    fixed: int = 0
    prose: int = 0
    tools: int = 0
    frame_tokens: int = 0

    @property
    def text_tokens(self) -> int:
        """The tokens of all texts, without frames."""
        return self.fixed + self.prose + self.tools


_estimated_counter = EstimatedCounter()


def estimate_request(
    messages: Iterable[Message], schemas: Iterable[str] = (), counter: TokenCounter | None = None
) -> RequestEstimate:
    """Return the estimated size of a request. `schemas` are the texts of its tool schemas.

    Tokens are counted with `counter`, or estimated if it is None. The time is linear in the size of the request: an
    estimate of 100,000 tokens takes about a millisecond.
    """
    count = (counter or _estimated_counter).count
    sums = dict.fromkeys(TextKind, 0)
    frames = 0
    for schema in schemas:
        sums[TextKind.FIXED] += count(schema)
    for message in messages:
        sums[classify_message(message)] += count(format_counted_text(message))
        frames += frame_tokens(message)
    return RequestEstimate(sums[TextKind.FIXED], sums[TextKind.PROSE], sums[TextKind.TOOLS], frames)


def _build_covariance(deviations: Iterable[float]) -> tuple[_Vector, ...]:
    """Return the covariance matrix of independent factors with these standard deviations."""
    variances = [deviation**2 for deviation in deviations]
    places = range(len(variances))
    return tuple([tuple([variances[row] if row == column else 0.0 for column in places]) for row in places])


@dataclass(frozen=True, slots=True)
class Calibration:
    """A correction factor for each kind of text (billed tokens per estimated token), and how certain the factors are.

    Each request gives one equation in these factors, so several requests determine them: a Kalman filter, with a small
    drift of each factor. The fixed part is nearly the same text in every request, so its factor is known after one
    request; otherwise its size would hide the share of the conversation. It differs by person and area. When a part of
    it has changed, its factor becomes less certain in proportion, and the request says less about prose and tools.
    """

    factors: _Vector = (1.0,) * len(_TEXT_KINDS)
    covariance: tuple[_Vector, ...] = _build_covariance((_INITIAL,) * len(_TEXT_KINDS))
    fixed_tokens: int = 0

    @classmethod
    def from_dict(cls, factors: dict[str, Any]) -> Self:
        """Return the calibration from a dictionary of `as_dict`. Raises `ValueError` for any other value."""
        if not isinstance(factors, dict) or set(factors) != set(_TEXT_KINDS):
            raise ValueError("a factor for each kind of text, and nothing else")
        if not all(is_number(factor) and MIN_FACTOR <= factor <= MAX_FACTOR for factor in factors.values()):
            raise ValueError(f"a factor is a number from {MIN_FACTOR} to {MAX_FACTOR}")
        earlier = tuple(float(factors[kind]) for kind in _TEXT_KINDS)
        # A factor of exactly 1 was never learned.
        return cls(earlier, _build_covariance(_INITIAL if factor == 1 else _RESTORED_DEVIATION for factor in earlier))

    @property
    def is_learned(self) -> bool:
        """Whether any factor has been learned."""
        return self != Calibration()

    def as_dict(self) -> dict[str, float]:
        """Return the factor of each kind of text: the model's tokens per estimated token."""
        return dict(zip(_TEXT_KINDS, self.factors, strict=True))

    def predict_tokens(self, estimate: RequestEstimate) -> int:
        """Return the number of input tokens that the provider is expected to report for a request."""
        return round(estimate.frame_tokens + sumprod(self.factors, (estimate.fixed, estimate.prose, estimate.tools)))

    def after_request(self, estimate: RequestEstimate, billed: int, cached: int = 0) -> Calibration:
        """Return the calibration after a request for which the provider reported `billed` input tokens.

        A report that cannot match the request is ignored: one that is zero, less than its cached part, or outside the
        bounds of the factors.
        """
        counted = billed - estimate.frame_tokens
        texts = estimate.fixed, estimate.prose, estimate.tools
        total = sum(texts)
        if cached > billed or not MIN_FACTOR * total <= counted <= MAX_FACTOR * total > 0:
            return self
        # The covariance at the start of the request. No variance may exceed that of an unknown factor.
        changed = abs(estimate.fixed - self.fixed_tokens) / max(estimate.fixed, 1)
        covariance = [list(row) for row in self.covariance]
        for place, drift in enumerate((_INITIAL * changed, _DRIFT_DEVIATION, _DRIFT_DEVIATION)):
            covariance[place][place] = min(covariance[place][place] + drift**2, _INITIAL**2)
        shared = [sumprod(row, texts) for row in covariance]
        variance = sumprod(shared, texts) + _REQUEST_VARIANCE + _VARIANCE * (estimate.prose + estimate.tools)
        farthest = _MAX_DEVIATIONS * sqrt(variance)
        surprise = counted - sumprod(self.factors, texts)
        believed = min(max(surprise, -farthest), farthest)
        factors = [
            min(max(factor + part * believed / variance, MIN_FACTOR), MAX_FACTOR)
            for factor, part in zip(self.factors, shared, strict=True)
        ]
        if surprise != believed and abs(surprise) > _MAX_SURPRISE_SHARE * counted:
            return Calibration(tuple(factors))
        rest = [
            tuple([entry - part * other / variance for entry, other in zip(row, shared, strict=True)])
            for row, part in zip(covariance, shared, strict=True)
        ]
        return Calibration(tuple(factors), tuple(rest), estimate.fixed)


class Calibrator:
    """Holds the current calibration of one model."""

    def __init__(self, calibration: Calibration | None = None) -> None:
        self.calibration = calibration or Calibration()

    def learn(self, estimate: RequestEstimate, billed: int, cached: int = 0) -> bool:
        """Update the calibration with the usage of a request. Return whether it changed."""
        learned = self.calibration.after_request(estimate, billed, cached)
        if learned is self.calibration:
            return False
        self.calibration = learned
        return True


class CalibratedCounter:
    """A token counter that applies a model's calibration to each new text.

    Texts that are already counted keep their count, so that a new factor never enlarges a window and never causes an
    eviction. `counter` is the counter that `calibrator` is learned against, or None for the estimate.
    """

    def __init__(self, calibrator: Calibrator, counter: TokenCounter | None = None) -> None:
        self.set_calibrator(calibrator, counter)

    def set_calibrator(self, calibrator: Calibrator, counter: TokenCounter | None = None) -> None:
        """Use another model's calibration or another counter for all later texts."""
        self.calibrator = calibrator
        self._count_uncalibrated = (counter or _estimated_counter).count

    def count(self, text: str) -> int:
        """Return the number of tokens of prose, at least 1 unless the text is empty."""
        return self.count_as(TextKind.PROSE, text)

    def count_as(self, kind: TextKind, text: str) -> int:
        """Return the number of tokens of a text of this kind, at least 1 unless the text is empty."""
        estimate = self._count_uncalibrated(text)
        factor = self.calibrator.calibration.factors[_TEXT_KINDS.index(kind)]
        return max(round(estimate * factor), 1) if estimate else 0
