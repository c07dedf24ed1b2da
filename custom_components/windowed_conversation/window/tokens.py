"""Counting tokens: an estimate that needs no vocabulary, the size of a message, and a calibration by reported usage."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
import json
from math import sqrt, sumprod
from typing import Any, Protocol, Self

from .messages import MAX_COUNT, Attachment, Message, Role, ToolCall

# OpenAI's chat formats frame a message with four tokens: start, role, message, end.
MESSAGE_OVERHEAD = 4
# The model reads a tool call as a message of its own, which names its recipient, its channel and its format.
CALL_OVERHEAD = 8

# Of the providers with a price for images in tokens, Anthropic takes the most: up to this many.
# https://docs.claude.com/en/docs/build-with-claude/vision
_IMAGE_TOKENS = 1600
# A page of a PDF is read as text and as an image: https://docs.claude.com/en/docs/build-with-claude/pdf-support
_PAGE_TOKENS = 3000
# A guess at the size of a page, as nothing here reads PDFs.
_PAGE_BYTES = 100_000

_encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode

_FURTHER, _SPACE, _LOWER, _LETTER, _DENSE, _IDEOGRAPH, _MARK, _EMOJI, _STRUCTURE = (bytes([n]) for n in b"- aA0C.!{")

# Characters by the first of their bytes in UTF-8; all others are structure: brackets, colons, dashes ...
_MEMBERS = {
    _FURTHER: bytes(range(0x80, 0xC0)),  # no character begins with these bytes
    _SPACE: b" ",
    _LOWER: bytes(range(0x61, 0x7B)),
    _LETTER: bytes(range(0x41, 0x5B)) + bytes(range(0xCE, 0xE2)),  # capitals, and alphabets other than Latin
    _DENSE: b"0123456789\xe3" + bytes(range(0xEA, 0xEF)),  # digits, kana, hangul
    _IDEOGRAPH: bytes(range(0xE4, 0xEA)),
    _MARK: b"\t\n\r.,;!?'\xe2\xef" + bytes(range(0xC0, 0xCE)),  # also Latin letters with accents
    _EMOJI: bytes(range(0xF0, 0x100)),
}

_CLASS_OF = {member: symbol for symbol, members in _MEMBERS.items() for member in members}
_CLASSES = b"".join([_CLASS_OF.get(member, _STRUCTURE) for member in range(256)])
_SPACE_THEN_STRUCTURE = _SPACE + _STRUCTURE

# Outside these bounds, the billed input is something other than the size of the request.
LEAST_FACTOR = 0.5

GREATEST_FACTOR = 2.5

# The standard deviation of a factor before anything is learned, and of a factor from an earlier run.
_UNKNOWN = 0.3

_EARLIER_RUN = 0.1

# By how much the factors of prose and tools may differ from one request to the next: languages and models change.
_DRIFT = 0.01

# The variance of the cost of a text around its kind's factor, in square tokens per token: sentences of 25 tokens are
# off by 20 %, results of 500 by 4 %.
_NOISE = 1.0

# The variance of a request apart from that: a chat template, and fixed parts of one size that are not one.
_NOISE_OF_REQUEST = 25.0

# Usage that is off by more standard deviations counts as if it were off by this many. If it is also off by this share
# of the request, the factors are no longer trusted: after a second such usage, another model is behind the name.
_FARTHEST = 3.0

_DOUBTFUL = 0.05


class TextKind(StrEnum):
    """The kind of a text, as a tokenizer sees it.

    `FIXED` is the beginning of every request of an agent: the system prompt and the schemas of the tools. `PROSE` are
    the words of users and models; `TOOLS` are calls and their results.
    """

    FIXED = "fixed"
    PROSE = "prose"
    TOOLS = "tools"


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    def count(self, text: str) -> int:
        """Return the number of tokens, 0 for an empty text."""
        ...


class KindCounter(TokenCounter, Protocol):
    """A counter that distinguishes kinds of text; `count` is for prose."""

    def count_as(self, kind: TextKind, text: str) -> int:
        """Return the number of tokens, 0 for an empty text."""
        ...


def message_tokens(message: Message, counter: TokenCounter, content: str | None = None) -> int:
    """Return the size of a message in a request, in tokens, or with other content. Asks the counter once.

    Counts the content, the name, and each call's name and arguments as JSON; not the ids, which no model reads. Residue
    counts as its provider reported, attachments as the most expensive provider counts them.
    """
    if content is None:
        content = message.content
    calls = message.tool_calls
    if calls or message.name is not None or message.role is Role.SYSTEM:
        tokens = text_tokens(message_kind(message), message_text(message, content), counter)
    else:
        tokens = counter.count(content)
    if calls or message.native is not None or message.attachments:
        return min(MAX_COUNT, tokens + frame_tokens(message))
    return tokens + MESSAGE_OVERHEAD


def text_tokens(kind: TextKind, text: str, counter: TokenCounter) -> int:
    """Return the tokens of a text; passes its kind to a counter that distinguishes kinds."""
    count_as: Callable[[TextKind, str], int] | None = getattr(counter, "count_as", None)
    return counter.count(text) if count_as is None else count_as(kind, text)


def message_text(message: Message, content: str | None = None) -> str:
    """Return the text of a message that is counted, with its own or other content."""
    if content is None:
        content = message.content
    if not message.tool_calls:
        return content if message.name is None else f"{message.name}\n{content}" if content else message.name
    calls = [f"{call.name}\n{arguments_json(call)}" for call in message.tool_calls]
    return "\n".join(filter(None, (message.name, content, *calls)))


def message_kind(message: Message) -> TextKind:
    """Return the kind of a message's text. A message with tool calls counts as TOOLS."""
    if message.role is Role.SYSTEM:
        return TextKind.FIXED
    return TextKind.TOOLS if message.tool_calls or message.role is Role.TOOL else TextKind.PROSE


def tool_text(name: str, description: str, parameters: Mapping[str, Any]) -> str:
    """Return the text of a tool's definition that is counted; `parameters` is a JSON schema."""
    return f"{name}\n{description}\n{_encode_json(dict(parameters))}"


def arguments_json(call: ToolCall) -> str:
    """Return the arguments of a call as JSON."""
    return _encode_json(dict(call.arguments))


def frame_tokens(message: Message) -> int:
    """Return the tokens that a message costs in addition to its text."""
    tokens = MESSAGE_OVERHEAD + CALL_OVERHEAD * len(message.tool_calls)
    if message.native is not None:
        tokens += message.native.tokens
    return tokens + sum(map(_attachment_tokens, message.attachments)) if message.attachments else tokens


def _attachment_tokens(attachment: Attachment) -> int:
    if attachment.mime_type.startswith("image/"):
        return _IMAGE_TOKENS
    return _PAGE_TOKENS * (1 + len(attachment.data) // _PAGE_BYTES)


class EstimatedCounter:
    """An estimate by classes of characters, without a vocabulary.

    The weights are tokens per character, fitted against o200k_base (non-negative least squares on relative errors, then
    rounded) on Home Assistant's own texts in 21 languages, conversations in six, states as JSON, YAML and CSV, tool
    calls and tool schemas. On other texts of the same kinds the sums came out within 14 % for English, German, Italian,
    Ukrainian, Chinese and Japanese, and within 6 % for states. A single sentence may be off by 30 %. Everyday Italian
    is 17 % short, and Russian is 40 to 48 % over: it looks like Ukrainian and needs fewer tokens.
    """

    def count(self, text: str) -> int:
        """Return the estimated number of tokens, at least 1 unless the text is empty."""
        if not text:
            return 0
        encoded = text.encode("utf-8", "replace")
        count = encoded.translate(_CLASSES).count
        tokens = (
            0.24 * count(_LOWER)
            + 0.38 * count(_LETTER)
            + 0.68 * count(_DENSE)
            + 0.84 * count(_IDEOGRAPH)
            + 0.90 * count(_MARK)
            + 2.00 * count(_EMOJI)
            + 0.19 * count(_STRUCTURE)
            + 0.75 * (count(_SPACE_THEN_STRUCTURE) + encoded.count(b"\n "))
        )
        return round(tokens) or 1


type _Vector = Sequence[float]

_KINDS = tuple(TextKind)


@dataclass(frozen=True, slots=True)
class RequestEstimate:
    """The estimated size of a request in tokens: its texts by kind, and the frames around its messages."""

    fixed: int = 0
    prose: int = 0
    tools: int = 0
    frames: int = 0

    @property
    def texts(self) -> int:
        """The tokens of all texts."""
        return self.fixed + self.prose + self.tools


_estimate = EstimatedCounter()


def estimate_request(
    messages: Iterable[Message], schemas: Iterable[str] = (), counter: TokenCounter | None = None
) -> RequestEstimate:
    """Return the estimated size of a request; `schemas` are the schemas of its tools, as text.

    Counts with `counter`, or estimates without one. Linear in the size of the request: the estimate takes about a
    millisecond for 100,000 tokens.
    """
    count = (counter or _estimate).count
    sums = dict.fromkeys(TextKind, 0)
    frames = 0
    for schema in schemas:
        sums[TextKind.FIXED] += count(schema)
    for message in messages:
        sums[message_kind(message)] += count(message_text(message))
        frames += frame_tokens(message)
    return RequestEstimate(sums[TextKind.FIXED], sums[TextKind.PROSE], sums[TextKind.TOOLS], frames)


def _spread(deviations: Iterable[float]) -> tuple[_Vector, ...]:
    """Return the covariance matrix of independent factors with these standard deviations."""
    variances = [deviation**2 for deviation in deviations]
    places = range(len(variances))
    return tuple([tuple([variances[row] if row == column else 0.0 for column in places]) for row in places])


@dataclass(frozen=True, slots=True)
class Calibration:
    """One factor on the estimate for each kind of text, and how certain each factor is.

    Every request is one equation in these factors, so later requests settle the rest: a Kalman
    filter, in which each factor drifts a little. The fixed part is nearly the same text in every request, so its factor
    is known after one; otherwise its size would drown the conversation's share. It differs by person and area, and
    becomes uncertain by the share of it that has changed: then a request says less about prose and tools.
    """

    factors: _Vector = (1.0,) * len(_KINDS)
    covariance: tuple[_Vector, ...] = _spread((_UNKNOWN,) * len(_KINDS))
    fixed: int = 0

    @classmethod
    def from_dict(cls, factors: dict[str, Any]) -> Self:
        """Return the calibration that `as_dict` wrote in an earlier run. Raises `ValueError` for any other value."""
        if not isinstance(factors, dict) or set(factors) != set(_KINDS):
            raise ValueError("a factor for each kind of text, and nothing else")
        if not all(_is_factor(factor) for factor in factors.values()):
            raise ValueError(f"a factor is a number from {LEAST_FACTOR} to {GREATEST_FACTOR}")
        earlier = tuple(float(factors[kind]) for kind in _KINDS)
        # exactly 1 was never learned
        return cls(earlier, _spread(_UNKNOWN if factor == 1 else _EARLIER_RUN for factor in earlier))

    @property
    def is_learned(self) -> bool:
        """Whether any factor has been learned."""
        return self != Calibration()

    def as_dict(self) -> dict[str, float]:
        """Return the factors by kind of text: the model's tokens per estimated token."""
        return dict(zip(_KINDS, self.factors, strict=True))

    def tokens(self, estimate: RequestEstimate) -> int:
        """Return the input that the provider is expected to report for a request, in tokens."""
        return round(estimate.frames + sumprod(self.factors, (estimate.fixed, estimate.prose, estimate.tools)))

    def after_request(self, estimate: RequestEstimate, billed: int, cached: int = 0) -> Calibration:
        """Return the calibration after a request for which the provider reported this input, in tokens.

        Ignores a report that cannot belong to the request: none, less than the cached part, or outside the bounds of
        the factors.
        """
        counted = billed - estimate.frames
        texts = estimate.fixed, estimate.prose, estimate.tools
        total = sum(texts)
        if cached > billed or not LEAST_FACTOR * total <= counted <= GREATEST_FACTOR * total > 0:
            return self
        # The covariance at the start of the request: no variance exceeds that of an unknown factor.
        changed = abs(estimate.fixed - self.fixed) / max(estimate.fixed, 1)
        covariance = [list(row) for row in self.covariance]
        for place, drift in enumerate((_UNKNOWN * changed, _DRIFT, _DRIFT)):
            covariance[place][place] = min(covariance[place][place] + drift**2, _UNKNOWN**2)
        shared = [sumprod(row, texts) for row in covariance]
        variance = sumprod(shared, texts) + _NOISE_OF_REQUEST + _NOISE * (estimate.prose + estimate.tools)
        farthest = _FARTHEST * sqrt(variance)
        surprise = counted - sumprod(self.factors, texts)
        believed = min(max(surprise, -farthest), farthest)
        factors = [
            min(max(factor + part * believed / variance, LEAST_FACTOR), GREATEST_FACTOR)
            for factor, part in zip(self.factors, shared, strict=True)
        ]
        if surprise != believed and abs(surprise) > _DOUBTFUL * counted:
            return Calibration(tuple(factors))
        rest = [
            tuple([entry - part * other / variance for entry, other in zip(row, shared, strict=True)])
            for row, part in zip(covariance, shared, strict=True)
        ]
        return Calibration(tuple(factors), tuple(rest), estimate.fixed)


class Calibrator:
    """The current calibration of one model."""

    def __init__(self, calibration: Calibration | None = None) -> None:
        self.calibration = calibration or Calibration()

    def learn(self, estimate: RequestEstimate, billed: int, cached: int = 0) -> bool:
        """Learn from the usage of a request; see `Calibration.after_request`. Return whether anything changed."""
        learned = self.calibration.after_request(estimate, billed, cached)
        if learned is self.calibration:
            return False
        self.calibration = learned
        return True


class CalibratedCounter:
    """A token counter that applies a model's calibration to each new text.

    Texts that were counted before keep their count, so a new factor never grows a window and never causes an eviction.
    `counter` is the counter that `calibrator` learned against, or None for the estimate.
    """

    def __init__(self, calibrator: Calibrator, counter: TokenCounter | None = None) -> None:
        self.count_by(calibrator, counter)

    def count_by(self, calibrator: Calibrator, counter: TokenCounter | None = None) -> None:
        """Use another model's calibration, or another counter, from the next text on."""
        self.calibrator = calibrator
        self._count = (counter or _estimate).count

    def count(self, text: str) -> int:
        """Return the tokens of prose, at least 1 unless the text is empty."""
        return self.count_as(TextKind.PROSE, text)

    def count_as(self, kind: TextKind, text: str) -> int:
        """Return the tokens of a text, at least 1 unless it is empty."""
        estimate = self._count(text)
        factor = self.calibrator.calibration.factors[_KINDS.index(kind)]
        return max(round(estimate * factor), 1) if estimate else 0


def _is_factor(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and LEAST_FACTOR <= value <= GREATEST_FACTOR
