"""What is known about a model: how much it reads and writes, and which parameters it accepts."""

from dataclasses import dataclass
from enum import StrEnum


class Effort(StrEnum):
    """How much a model is to think before it answers, from the least on; a provider's own scale is its module's.

    MINIMAL is the least that some families take that cannot do without thinking.
    """

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


# What can be asked for; MINIMAL is only what some models take instead of NONE.
EFFORTS = tuple(effort for effort in Effort if effort is not Effort.MINIMAL)


class ReasoningStyle(StrEnum):
    """How a model is told to think.

    UNKNOWN: not at all, and it may think all the same. NONE: not at all, it does not. EFFORT: `reasoning.effort`
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
    """What a request can ask of the prompt cache.

    AUTOMATIC: nothing, identical prefixes are found without asking. KEY: a key that brings like requests together.
    RETENTION: the key and `prompt_cache_retention` (OpenAI before 5.6). OPTIONS: the key and `prompt_cache_options`
    (OpenAI from 5.6). BREAKPOINTS: marks in the request (Anthropic).
    """

    AUTOMATIC = "automatic"
    KEY = "key"
    RETENTION = "retention"
    OPTIONS = "options"
    BREAKPOINTS = "breakpoints"


@dataclass(frozen=True, slots=True)
class Profile:
    """Facts about a model; the defaults are what any compatible server accepts.

    `context_tokens` is what it reads and `output_tokens` what it writes at most, None where nobody says. `sampling`:
    whether it takes a temperature and `top_p`. `efforts` are those that it takes, from the least on, all where nobody
    says, and `default` is about how much it thinks if nothing is asked for.
    `images`: whether it takes images and PDFs. `context_editing`: whether its provider clears old tool results where it
    is asked to (Anthropic).
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


UNKNOWN_MODEL = Profile()

# How many tokens of thought there is room for before an answer: what Google takes these words for, but never less than
# 4,096. A cap costs nothing where it is not reached and the whole answer where it is, and few models hold to a number.
# https://ai.google.dev/gemini-api/docs/openai#thinking, and OpenAI counts on as much as Google for high:
# https://platform.openai.com/docs/guides/reasoning#allocating-space-for-reasoning
_ROOM = {Effort.NONE: 0, Effort.MINIMAL: 4096, Effort.LOW: 4096, Effort.MEDIUM: 8192, Effort.HIGH: 24576}


def taken_effort(profile: Profile, asked: Effort | None) -> Effort | None:
    """Return the greatest effort up to the one asked for that the model takes, else the least that it takes.

    None where none is asked for: then it is the model's own choice.
    """
    if asked is None:
        return None
    scale = tuple(Effort)
    no_more = [effort for effort in profile.efforts if scale.index(effort) <= scale.index(asked)]
    return no_more[-1] if no_more else profile.efforts[0]


def room_to_think(profile: Profile, asked: Effort | None) -> int:
    """Return how many tokens an answer may have besides its words, for the thoughts before them."""
    match profile.reasoning:
        case ReasoningStyle.NONE:
            return 0
        case ReasoningStyle.UNKNOWN:
            return _ROOM[Effort.LOW]
    taken = taken_effort(profile, asked or profile.default)
    return _ROOM[taken] if taken else 0
