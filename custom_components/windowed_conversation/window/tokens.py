"""Token counting: an estimate without a vocabulary, the size of a message, and calibration by reported usage."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
import json
from math import sumprod
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

# The weight of the initial factor of 1 in the factors of prose and tools, in tokens.
_INITIAL_WEIGHT = 15.0

# The share of its weight that earlier usage keeps after each further request, because languages and models change.
_REMAINING_SHARE = 0.98

# By how many tokens a request must differ from the smallest one to get half the weight: the smaller the difference, the
# more the chat template and rounding matter.
_HALF_WEIGHT_TOKENS = 60

# The weight of a further request in the factor of the fixed part.
_FIXED_SHARE = 0.2


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


@dataclass(frozen=True, slots=True)
class _KindFactor:
    """The factor of a kind of text: the quotient of weighted sums of billed and of estimated tokens."""

    billed: float = _INITIAL_WEIGHT
    estimated: float = _INITIAL_WEIGHT

    @property
    def value(self) -> float:
        """The model's tokens per estimated token."""
        return _limit_factor(self.billed / self.estimated)

    def after_difference(self, difference: int, other: int, surprise: float) -> _KindFactor:
        """Return the factor after a request that differs from another by estimated tokens of this and another kind.

        `surprise` is the number of billed tokens that the factors do not explain. Each kind gets its share of it.
        """
        total = abs(difference) + abs(other)
        if not difference:
            return self
        share = abs(difference) / total
        weight = share * difference / (total + _HALF_WEIGHT_TOKENS)
        billed = self.value * difference + surprise * share
        return _KindFactor(
            _REMAINING_SHARE * self.billed + weight * billed, _REMAINING_SHARE * self.estimated + weight * difference
        )


def _limit_factor(factor: float) -> float:
    return min(max(factor, MIN_FACTOR), MAX_FACTOR)


@dataclass(frozen=True, slots=True)
class Calibration:
    """A correction factor for each kind of text: billed tokens per estimated token.

    The fixed part is nearly all of a first request, and its text does not change. So the factors of prose and tools are
    learned from the difference between a request and the smallest one with the same fixed part, and the factor of the
    fixed part from the rest.
    """

    fixed: float = 1.0
    prose: _KindFactor = _KindFactor()
    tools: _KindFactor = _KindFactor()
    # The smallest request with the current fixed part, and the billed tokens of its texts.
    smallest: tuple[RequestEstimate, int] | None = None

    @classmethod
    def from_dict(cls, factors: dict[str, Any]) -> Self:
        """Return the calibration for a dictionary that `as_dict` returned. Raises `ValueError` for any other value."""
        if not isinstance(factors, dict) or set(factors) != set(TextKind):
            raise ValueError("a factor for each kind of text, and nothing else")
        if not all(is_number(factor) and MIN_FACTOR <= factor <= MAX_FACTOR for factor in factors.values()):
            raise ValueError(f"a factor is a number from {MIN_FACTOR} to {MAX_FACTOR}")
        fixed, prose, tools = (float(factors[kind]) for kind in TextKind)
        return cls(fixed, _KindFactor(_INITIAL_WEIGHT * prose), _KindFactor(_INITIAL_WEIGHT * tools))

    @property
    def is_learned(self) -> bool:
        """Whether any factor has been learned."""
        return self != Calibration()

    @property
    def factors(self) -> tuple[float, float, float]:
        """The factors in the order of `TextKind`."""
        return self.fixed, self.prose.value, self.tools.value

    def as_dict(self) -> dict[str, float]:
        """Return the factor of each kind of text: the model's tokens per estimated token."""
        return dict(zip(TextKind, self.factors, strict=True))

    def predict_tokens(self, estimate: RequestEstimate) -> int:
        """Return the number of input tokens that the provider is expected to report for a request."""
        return round(estimate.frame_tokens + sumprod(self.factors, (estimate.fixed, estimate.prose, estimate.tools)))

    def after_request(self, estimate: RequestEstimate, billed: int, cached: int = 0) -> Calibration:
        """Return the calibration after a request for which the provider reported `billed` input tokens.

        A report that cannot match the request is ignored: one that is zero, less than its cached part, or outside the
        bounds of the factors.
        """
        counted = billed - estimate.frame_tokens
        if cached > billed or not MIN_FACTOR * estimate.text_tokens <= counted <= MAX_FACTOR * estimate.text_tokens > 0:
            return self
        smallest, prose, tools, share = self.smallest, self.prose, self.tools, 1.0
        if smallest is None or smallest[0].fixed != estimate.fixed:
            smallest = estimate, counted
        else:
            more_prose, more_tools = estimate.prose - smallest[0].prose, estimate.tools - smallest[0].tools
            surprise = counted - smallest[1] - prose.value * more_prose - tools.value * more_tools
            prose = self.prose.after_difference(more_prose, more_tools, surprise)
            tools = self.tools.after_difference(more_tools, more_prose, surprise)
            smallest = (estimate, counted) if estimate.text_tokens < smallest[0].text_tokens else smallest
            share = _FIXED_SHARE
        rest = counted - prose.value * estimate.prose - tools.value * estimate.tools
        fixed = _limit_factor(rest / estimate.fixed) if estimate.fixed else self.fixed
        return Calibration(self.fixed + share * (fixed - self.fixed), prose, tools, smallest)


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
    eviction. `counter` is the one whose counts `calibrator` corrects, or None for the estimate.
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
