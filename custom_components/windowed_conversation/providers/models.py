"""Facts about models by the vendors' own names: parameters, limits, and which models hold a conversation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest
import re
from typing import Any

# Separates the words of a name, or stands at its ends.
_START, _END = r"(?:^|[^a-z0-9])", r"(?:$|[^a-z])"

# A vendor's families, smallest first: fast and cheap enough for a voice assistant. Of a family the newest counts.
_GPT = r"gpt-\d+(?:\.\d+)?"

_GEMINI = r"gemini-(?:\d+(?:\.\d+)?-)?"
_SNAPSHOT = re.compile(r"-(?:\d{3,4}|\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


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


def accepted_effort(profile: ModelProfile, effort: Effort | None) -> Effort | None:
    """Return the greatest accepted effort up to the requested one, or else the least that the model accepts.

    None if the request leaves it to the model.
    """
    if effort is None:
        return None
    scale = tuple(Effort)
    no_more = [each for each in profile.efforts if scale.index(each) <= scale.index(effort)]
    return no_more[-1] if no_more else profile.efforts[0]


def room_to_think(profile: ModelProfile, effort: Effort | None, *, has_reasoned: bool) -> int:
    """Return the number of tokens that an answer may have besides its words, for reasoning.

    If the profile does not say whether the model reasons, there is room if it `has_reasoned` and was not asked not to.
    """
    match profile.reasoning:
        case ReasoningStyle.NONE:
            return 0
        case ReasoningStyle.UNKNOWN:
            return _ROOM[effort or Effort.LOW] if has_reasoned else 0
    taken = accepted_effort(profile, effort or profile.default)
    return _ROOM[taken] if taken else 0


class Vendor(StrEnum):
    """The vendor of an account's models; a compatible server has none."""

    OPENAI = "openai"
    AZURE = "azure"
    ANTHROPIC = "anthropic"
    GOOGLE = "google"

    @property
    def maker(self) -> Vendor:
        """The vendor whose names the models have: Azure's are OpenAI's."""
        return Vendor.OPENAI if self is Vendor.AZURE else self


def _family(names: str, reasoning: ReasoningStyle, caching: Caching, **facts: Any) -> tuple[str, ModelProfile]:
    """Return a family of models, whose names match from the first character, with its profile."""
    return names, ModelProfile(reasoning=reasoning, caching=caching, **{"images": True, **facts})


_NONE, _EFFORT, _ADAPTIVE = ReasoningStyle.NONE, ReasoningStyle.EFFORT, ReasoningStyle.ADAPTIVE
_BUDGET, _LEVEL = ReasoningStyle.BUDGET, ReasoningStyle.LEVEL
_AUTOMATIC, _KEY, _BREAKPOINTS = Caching.AUTOMATIC, Caching.KEY, Caching.BREAKPOINTS

# The first that matches counts. Which models refuse a temperature or `prompt_cache_retention` is taken from Home
# Assistant's own integration (components/openai_conversation/const.py and entity.py, 2026.11).
_OPENAI = (
    _family(r"gpt-(5\.6|6)", _EFFORT, Caching.OPTIONS, sampling=False),
    _family(r"gpt-5-(mini|nano)", _EFFORT, _KEY, sampling=False),
    _family(r"gpt-5", _EFFORT, Caching.RETENTION, sampling=False),
    _family(r"o[13]-mini", _EFFORT, _KEY, sampling=False, images=False),
    _family(r"o\d", _EFFORT, _KEY, sampling=False),
    _family(r"gpt-4\.1(?!-mini|-nano)", _NONE, Caching.RETENTION, sampling=True),
    _family(r"(chatgpt-4o|gpt-4o|gpt-4\.)", _NONE, _KEY, sampling=True),
    _family(r"gpt-(3\.5|4)", _NONE, _KEY, sampling=True, images=False),
)

# Adaptive thinking, and no temperature, from Opus 4.6 and Sonnet 4.6 on; before, thinking has a budget, and before
# Claude 3.7 there is none: https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking
# Context editing began with Claude 4: https://platform.claude.com/docs/en/build-with-claude/context-editing
_ANTHROPIC = (
    _family(r"claude-(2|v1|3-(5-)?(haiku|sonnet|opus))", _NONE, _BREAKPOINTS, sampling=True),
    _family(r"claude-3-7", _BUDGET, _BREAKPOINTS, sampling=True),
    _family(r"claude-\w+-4-([0-5](?!\d)|\d{8})", _BUDGET, _BREAKPOINTS, sampling=True, context_editing=True),
    _family(r"claude-", _ADAPTIVE, _BREAKPOINTS, sampling=False, context_editing=True),
)

# Which models take a temperature, a budget or a level: components/google_generative_ai_conversation/entity.py, 2026.11.
_GOOGLE = (
    _family(r"gemini-(1\.|2\.0)", _NONE, _AUTOMATIC, sampling=True),
    _family(r"gemini-2\.5", _BUDGET, _AUTOMATIC, sampling=True),
    _family(r"gemini-3(\.[0-4])?-|gemini-3\.5-(?!flash-lite|transcribe)", _LEVEL, _AUTOMATIC, sampling=True),
    _family(r"gemini-(\d|flash|pro)", _LEVEL, _AUTOMATIC, sampling=False),
)

_FROM_NONE = (Effort.NONE, Effort.LOW, Effort.MEDIUM, Effort.HIGH)
_FROM_MINIMAL = (Effort.MINIMAL, Effort.LOW, Effort.MEDIUM, Effort.HIGH)
_FROM_LOW = (Effort.LOW, Effort.MEDIUM, Effort.HIGH)

# Which efforts the models take that think; the first that matches counts. As Home Assistant's own integration has it:
# components/openai_conversation/config_flow.py (`_get_reasoning_options`), 2026.11, and for GPT-5 Pro its entity.py.
_OPENAI_EFFORTS = (
    (r"gpt-(6-luna|6\.1-terra|5\.6)", _FROM_NONE),
    (r"gpt-6", _FROM_LOW),
    (r"gpt-5\.[245]-pro", (Effort.MEDIUM, Effort.HIGH)),
    (r"gpt-5\.[1-5]", _FROM_NONE),
    (r"gpt-5-pro", (Effort.HIGH,)),
    (r"gpt-5", _FROM_MINIMAL),
    (r"o\d", _FROM_LOW),
)

# A model that is not told to think does not. The least effort has the name low, see `OutputConfigParam` of the SDK.
_ANTHROPIC_EFFORTS = ((r"claude-", _FROM_NONE),)

# As `_create_thinking_config` has it in components/google_generative_ai_conversation/entity.py, 2026.11: from Gemini 3
# on no model can be told not to think, nor can 2.5 Pro, whose least budget is not 0.
_GOOGLE_EFFORTS = (
    (r"gemini-2\.5-pro", _FROM_MINIMAL),
    (r"gemini-2\.5", _FROM_NONE),
    (r"gemini-3(\.[0-5])?-(?!.*pro)", _FROM_MINIMAL),
    (r"gemini-3\.6-flash(?!.*-lite)", _FROM_MINIMAL),
    (r"gemini-", _FROM_LOW),
)

_EFFORTS = {Vendor.OPENAI: _OPENAI_EFFORTS, Vendor.ANTHROPIC: _ANTHROPIC_EFFORTS, Vendor.GOOGLE: _GOOGLE_EFFORTS}
_FAMILIES = {Vendor.OPENAI: _OPENAI, Vendor.ANTHROPIC: _ANTHROPIC, Vendor.GOOGLE: _GOOGLE}


def profile_of(vendor: Vendor | None, model: str) -> ModelProfile:
    """Return the facts about a model, without its limits; `UNKNOWN_MODEL` for an unknown one.

    On Azure the name of a deployment says nothing: `model` is the model that the user says it runs.
    """
    name = model.removeprefix("models/")
    profile = _found(_FAMILIES[vendor.maker], name) if vendor else None
    if vendor is None or profile is None:
        return UNKNOWN_MODEL
    efforts = _found(_EFFORTS[vendor.maker], name) or profile.efforts
    return replace(profile, efforts=efforts, default=Effort.NONE if vendor is Vendor.ANTHROPIC else profile.default)


def _found[T](table: Iterable[tuple[str, T]], name: str) -> T | None:
    return next((facts for names, facts in table if re.match(names, name)), None)


def _words(*words: str) -> re.Pattern[str]:
    return re.compile(f"{_START}(?:{'|'.join(words)}){_END}")


# Models for other things than conversations, anywhere: they write vectors, speech, pictures, or verdicts.
_OF_ANYBODY = _words(
    r"all-mpnet|bge|colbert|e5|\w*embed\w*|gte|\w*minilm|paraphrase|\w*rerank\w*|splade",
    r"audio|bark|kokoro|lyria|orpheus|parakeet|piper|realtime|transcribe|\w*tts|\w*whisper",
    r"dall-e|flux|\w*image\w*|imagen|nano-banana|sd|sdxl|sora|stable-?diffusion|veo",
    r"aqa|babbage|computer-use|davinci|deep-research|\w*guard|\w*guardian|moderation|\w*ocr|shieldgemma",
)
# And a vendor's. Models that take no instructions or no tools are among them, as in Home Assistant's own integrations:
# components/openai_conversation/const.py and components/google_generative_ai_conversation/config_flow.py, 2026.11.
_NOT_FOR_CONVERSATIONS = {
    Vendor.OPENAI: _words("instruct|live|o1-mini|o1-preview|research|search|vision"),
    Vendor.GOOGLE: _words("live|research|robotics|vision"),
}
# The beginnings of a vendor's names on a server that has models of several. "Instruct" says nothing in other names.
_BEGINNINGS = {Vendor.OPENAI: re.compile(r"(?:chat)?gpt-\d|o\d"), Vendor.GOOGLE: re.compile("gemini")}

_RECOMMENDED: dict[Vendor, tuple[str, ...]] = {
    Vendor.OPENAI: (rf"{_GPT}o?-(?:mini|luna)", rf"{_GPT}-nano", rf"{_GPT}(?:o|-terra)?", rf"{_GPT}-sol", r"o\d-mini"),
    Vendor.ANTHROPIC: tuple(rf"claude-(?:[\d.-]*{name}|{name}[\d.-]*)" for name in ("haiku", "sonnet", "opus")),
    Vendor.GOOGLE: tuple(rf"{_GEMINI}{name}(?:-latest)?" for name in ("flash-lite", "flash", "pro")),
}

# Of several vendors first the smallest of each.
_OF_ALL_VENDORS = tuple(names for size in zip_longest(*_RECOMMENDED.values()) for names in size if names)

_UNSTABLE = _words(r"alpha", r"beta", r"exp", r"experimental", r"preview")


def conversation_models(vendor: Vendor | None, names: Iterable[str]) -> list[str]:
    """Return the models that can hold a conversation, in the order of the list; all if none has a name of one."""
    listed = list(names)
    return [name for name in listed if _converses(vendor, name.lower())] or listed


def recommended_model(vendor: Vendor | None, names: Sequence[str]) -> str | None:
    """Return the model to suggest: the newest of a vendor's smallest family, or else the first; None for an empty list.

    Without a vendor, those of all vendors count. Previews come last, and a model's plain name before its snapshots.
    """
    families = _RECOMMENDED[vendor.maker] if vendor else _OF_ALL_VENDORS
    return min(names, key=lambda name: _rank(families, name.lower()), default=None)


def _converses(vendor: Vendor | None, name: str) -> bool:
    own = name.rpartition("/")[2]
    makers = [vendor.maker] if vendor else [maker for maker, names in _BEGINNINGS.items() if names.match(own)]
    others = [_OF_ANYBODY, *(_NOT_FOR_CONVERSATIONS[maker] for maker in makers if maker in _NOT_FOR_CONVERSATIONS)]
    return not any(names.search(name) for names in others)


def _rank(families: Sequence[str], name: str) -> tuple[bool, int, tuple[int, ...], bool]:
    # without the vendor's name, which routers put before it, and without a folder
    own = name.rpartition("/")[2]
    plain = _SNAPSHOT.sub("", own)
    unstable = bool(_UNSTABLE.search(plain))
    family = next((place for place, names in enumerate(families) if re.fullmatch(names, plain)), len(families))
    if family == len(families):
        return unstable, family, (), False
    # the newest first
    major, minor, *_ = (*map(int, re.findall(r"\d+", plain)), 0, 0)
    return unstable, family, (-major, -minor), plain != own
