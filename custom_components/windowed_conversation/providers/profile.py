"""Facts about a model: how much it reads and writes, and which parameters it accepts."""

from dataclasses import dataclass
from enum import StrEnum


class Effort(StrEnum):
    """The effort of a model's reasoning, in ascending order. Each provider's module maps it to its scale.

    MINIMAL is the least effort of the model families that cannot turn thinking off.
    """

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


# The efforts that a user can choose. MINIMAL only replaces NONE for some models.
EFFORTS = tuple(effort for effort in Effort if effort is not Effort.MINIMAL)


class ReasoningStyle(StrEnum):
    """The parameter by which a request asks a model to reason.

    UNKNOWN: nobody knows whether it thinks, or can be told to. NONE: it cannot think. EFFORT: `reasoning.effort`
    (OpenAI). ADAPTIVE: adaptive thinking and an effort (Anthropic). BUDGET: a number of tokens (Anthropic before
    adaptive thinking, Gemini 2.5). LEVEL: a thinking level (Gemini 3).
    """

    UNKNOWN = "unknown"
    NONE = "none"
    EFFORT = "effort"
    ADAPTIVE = "adaptive"
    BUDGET = "budget"
    LEVEL = "level"


class Caching(StrEnum):
    """The requests to the prompt cache that a provider takes.

    AUTOMATIC: nothing, the cache finds identical prefixes by itself. KEY: a key that brings like requests together.
    RETENTION: the key and `prompt_cache_retention` (OpenAI before 5.6). OPTIONS: the key and `prompt_cache_options`
    (OpenAI from 5.6). BREAKPOINTS: marks in the request (Anthropic).
    """

    AUTOMATIC = "automatic"
    KEY = "key"
    RETENTION = "retention"
    OPTIONS = "options"
    BREAKPOINTS = "breakpoints"


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """Facts about a model. The defaults suit any compatible server.

    `context_tokens` is how many tokens it reads and `output_tokens` how many it writes at most, None if unknown.
    `sampling`: whether it accepts a temperature and `top_p`. `efforts` are those that it accepts, in ascending order,
    all if unknown; `default` is about how much it thinks if the request does not say. `images`: whether it accepts
    images and PDFs. `context_editing`: whether its provider can clear old tool results (Anthropic).
    """

    context_tokens: int | None = None
    output_tokens: int | None = None
    sampling: bool = True
    reasoning: ReasoningStyle = ReasoningStyle.UNKNOWN
    efforts: tuple[Effort, ...] = tuple(Effort)
    default: Effort = Effort.MEDIUM
    caching: Caching = Caching.AUTOMATIC
    images: bool = False
    context_editing: bool = False


UNKNOWN_MODEL = ModelProfile()

# The room for reasoning before an answer in tokens: Google's numbers for these words, but never less than
# 4,096. A cap costs nothing where it is not reached and the whole answer where it is, and few models hold to a number.
# https://ai.google.dev/gemini-api/docs/openai#thinking, and OpenAI counts on as much as Google for high:
# https://platform.openai.com/docs/guides/reasoning#allocating-space-for-reasoning
_ROOM = {Effort.NONE: 0, Effort.MINIMAL: 4096, Effort.LOW: 4096, Effort.MEDIUM: 8192, Effort.HIGH: 24576}


def accepted_effort(profile: ModelProfile, asked: Effort | None) -> Effort | None:
    """Return the greatest accepted effort up to the requested one, or else the least that the model accepts.

    None if the request leaves it to the model.
    """
    if asked is None:
        return None
    scale = tuple(Effort)
    no_more = [effort for effort in profile.efforts if scale.index(effort) <= scale.index(asked)]
    return no_more[-1] if no_more else profile.efforts[0]


def room_to_think(profile: ModelProfile, asked: Effort | None, *, has_reasoned: bool) -> int:
    """Return the number of tokens that an answer may have besides its words, for reasoning.

    If the profile does not say whether the model reasons, there is room if it `has_reasoned` and was not asked not to.
    """
    match profile.reasoning:
        case ReasoningStyle.NONE:
            return 0
        case ReasoningStyle.UNKNOWN:
            return _ROOM[asked or Effort.LOW] if has_reasoned else 0
    taken = accepted_effort(profile, asked or profile.default)
    return _ROOM[taken] if taken else 0
