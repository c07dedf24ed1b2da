"""Facts about models by the vendors' model names: parameters, limits, and which models support conversations."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest
import re
from typing import Any

_GPT = r"gpt-\d+(?:\.\d+)?"

_GEMINI_PREFIX = r"gemini-(?:\d+(?:\.\d+)?-)?"
_SNAPSHOT_PATTERN = re.compile(r"-(?:\d{3,4}|\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


class Effort(StrEnum):
    """The effort of a model's reasoning, in ascending order. Each provider's module maps it to the provider's scale.

    MINIMAL is the lowest effort of the model families that cannot turn off thinking.
    """

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


# The efforts that a user can choose. MINIMAL only replaces NONE for some models.
SELECTABLE_EFFORTS = tuple(effort for effort in Effort if effort is not Effort.MINIMAL)


class ReasoningStyle(StrEnum):
    """The parameter by which a request controls a model's reasoning.

    UNKNOWN: it is not known whether the model reasons or has such a parameter. NONE: the model cannot reason. EFFORT:
    "reasoning.effort" (OpenAI). ADAPTIVE: adaptive thinking and an effort (Anthropic). BUDGET: a number of tokens
    (Anthropic before adaptive thinking, Gemini 2.5). LEVEL: a thinking level (Gemini 3).
    """

    UNKNOWN = "unknown"
    NONE = "none"
    EFFORT = "effort"
    ADAPTIVE = "adaptive"
    BUDGET = "budget"
    LEVEL = "level"


class Caching(StrEnum):
    """The parameters by which a request controls the provider's prompt cache.

    AUTOMATIC: none, because the cache finds identical prefixes by itself. KEY: a key that groups similar requests.
    RETENTION: the key and "prompt_cache_retention" (OpenAI before 5.6). OPTIONS: the key and "prompt_cache_options"
    (OpenAI from 5.6). BREAKPOINTS: cache marks in the request (Anthropic).
    """

    AUTOMATIC = "automatic"
    KEY = "key"
    RETENTION = "retention"
    OPTIONS = "options"
    BREAKPOINTS = "breakpoints"


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """Facts about a model. The defaults suit any compatible server."""

    # The maximum number of tokens that it reads, or None if unknown.
    context_tokens: int | None = None
    # The maximum number of tokens that it writes, or None if unknown.
    output_tokens: int | None = None
    # Whether it accepts a temperature.
    sampling: bool = True
    reasoning: ReasoningStyle = ReasoningStyle.UNKNOWN
    # The accepted efforts in ascending order, or all of them if that is unknown.
    efforts: tuple[Effort, ...] = tuple(Effort)
    # The approximate effort if the request does not specify one.
    default: Effort = Effort.MEDIUM
    caching: Caching = Caching.AUTOMATIC
    # Whether it accepts images and PDFs.
    images: bool = False
    # Whether its provider can clear old tool results (Anthropic).
    context_editing: bool = False
    # Whether it accepts a parameter with the JSON schema of its answer.
    answer_schemas: bool = False
    # Whether its provider can search the web for it.
    web_search: bool = False
    # Whether its provider can read web pages for it, beside the search.
    web_fetch: bool = False
    # Whether its provider answers for half the price if the answer may be slow (OpenAI).
    flexible_tier: bool = False
    # Whether it has a parameter for the length of its answers (OpenAI).
    verbosity: bool = False
    # Whether the result of a tool search can load tools (Anthropic, and OpenAI with Responses).
    loads_tools: bool = False


UNKNOWN_MODEL = ModelProfile()


# The number of tokens reserved for reasoning before an answer: Google's numbers for these efforts, but never below
# 4,096. A limit that is not reached costs nothing, while one that is reached cuts off the answer, and few models keep
# to a thinking budget. Sources: https://ai.google.dev/gemini-api/docs/openai#thinking, and for high effort OpenAI
# recommends about as much as Google: https://platform.openai.com/docs/guides/reasoning#allocating-space-for-reasoning
_EFFORT_TOKENS = {Effort.NONE: 0, Effort.MINIMAL: 4096, Effort.LOW: 4096, Effort.MEDIUM: 8192, Effort.HIGH: 24576}


def find_accepted_effort(profile: ModelProfile, effort: Effort | None) -> Effort | None:
    """Return the highest accepted effort up to the requested one, or else the lowest that the model accepts.

    Return None if the request leaves the effort to the model.
    """
    if effort is None:
        return None
    scale = tuple(Effort)
    no_more = [each for each in profile.efforts if scale.index(each) <= scale.index(effort)]
    return no_more[-1] if no_more else profile.efforts[0]


def calculate_reasoning_tokens(profile: ModelProfile, effort: Effort | None, *, has_reasoned: bool) -> int:
    """Return the number of tokens to allow for reasoning, in addition to the answer's text.

    If the profile does not say whether the model reasons, tokens are allowed only if it `has_reasoned` before and the
    request does not turn off reasoning.
    """
    match profile.reasoning:
        case ReasoningStyle.NONE:
            return 0
        case ReasoningStyle.UNKNOWN:
            return _EFFORT_TOKENS[effort or Effort.LOW] if has_reasoned else 0
    taken = find_accepted_effort(profile, effort or profile.default)
    return _EFFORT_TOKENS[taken] if taken else 0


class Vendor(StrEnum):
    """The vendor of an account's models; a compatible server has none."""

    OPENAI = "openai"
    AZURE = "azure"
    ANTHROPIC = "anthropic"
    GOOGLE = "google"

    @property
    def maker(self) -> Vendor:
        """The vendor whose model names are used: Azure uses OpenAI's names."""
        return Vendor.OPENAI if self is Vendor.AZURE else self


def _make_family(names: str, reasoning: ReasoningStyle, caching: Caching, **facts: Any) -> tuple[str, ModelProfile]:
    """Return a family of models with its profile. `names` is a pattern that matches from the first character."""
    facts = {"images": True, "answer_schemas": True, "web_search": True, **facts}
    return names, ModelProfile(reasoning=reasoning, caching=caching, **facts)


_NO_REASONING, _EFFORT, _ADAPTIVE = ReasoningStyle.NONE, ReasoningStyle.EFFORT, ReasoningStyle.ADAPTIVE
_BUDGET, _LEVEL = ReasoningStyle.BUDGET, ReasoningStyle.LEVEL
_AUTOMATIC, _CACHE_KEY, _BREAKPOINTS = Caching.AUTOMATIC, Caching.KEY, Caching.BREAKPOINTS

_OLD_GPT: dict[str, Any] = {"sampling": True, "images": False, "answer_schemas": False, "web_search": False}
# The first matching pattern applies. The models that refuse a temperature, "prompt_cache_retention" or a web search are
# taken from Home Assistant's own integration (components/openai_conversation/const.py and entity.py, 2026.11).
_OPENAI = (
    _make_family(r"gpt-(5\.6|6)", _EFFORT, Caching.OPTIONS, sampling=False),
    _make_family(r"gpt-5-(mini|nano)", _EFFORT, _CACHE_KEY, sampling=False),
    _make_family(r"gpt-5", _EFFORT, Caching.RETENTION, sampling=False),
    _make_family(r"o[13]-mini", _EFFORT, _CACHE_KEY, sampling=False, images=False, web_search=False),
    _make_family(r"o1", _EFFORT, _CACHE_KEY, sampling=False, web_search=False),
    _make_family(r"o\d", _EFFORT, _CACHE_KEY, sampling=False),
    _make_family(r"gpt-4\.1(?!-mini|-nano)", _NO_REASONING, Caching.RETENTION, sampling=True),
    _make_family(r"gpt-4\.1-nano", _NO_REASONING, _CACHE_KEY, sampling=True, web_search=False),
    _make_family(r"chatgpt-4o|gpt-4o-2024-05", _NO_REASONING, _CACHE_KEY, sampling=True, answer_schemas=False),
    _make_family(r"(gpt-4o|gpt-4\.)", _NO_REASONING, _CACHE_KEY, sampling=True),
    _make_family(r"gpt-(3\.5|4)", _NO_REASONING, _CACHE_KEY, **_OLD_GPT),
)

# From Opus 4.6 and Sonnet 4.6 on, models have adaptive thinking and no temperature. Earlier models have a thinking
# budget, and models before Claude 3.7 cannot think:
# https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking Context editing started with Claude 4:
# https://platform.claude.com/docs/en/build-with-claude/context-editing Schemas of answers started with Claude 4.5:
# https://platform.claude.com/docs/en/build-with-claude/structured-outputs
_OLD_CLAUDE: dict[str, Any] = {"sampling": True, "answer_schemas": False}
_CLAUDE_4: dict[str, Any] = {"context_editing": True, "web_fetch": True}
_CLAUDES = (
    _make_family(
        r"claude-(2|v1|3-(5-)?(haiku|sonnet|opus))", _NO_REASONING, _BREAKPOINTS, web_search=False, **_OLD_CLAUDE
    ),
    _make_family(r"claude-3-7", _BUDGET, _BREAKPOINTS, **_OLD_CLAUDE),
    _make_family(r"claude-\w+-4-([0-4](?!\d)|\d{8})", _BUDGET, _BREAKPOINTS, **_CLAUDE_4, **_OLD_CLAUDE),
    _make_family(r"claude-\w+-4-5(?!\d)", _BUDGET, _BREAKPOINTS, sampling=True, **_CLAUDE_4),
    _make_family(r"claude-", _ADAPTIVE, _BREAKPOINTS, sampling=False, **_CLAUDE_4),
)

# The models that accept a temperature, a budget or a level: components/google_generative_ai_conversation/entity.py,
# 2026.11.
_GEMINIS = (
    _make_family(r"gemini-(1\.|2\.0)", _NO_REASONING, _AUTOMATIC, sampling=True, web_search=False),
    _make_family(r"gemini-2\.5", _BUDGET, _AUTOMATIC, sampling=True),
    _make_family(r"gemini-3(\.[0-4])?-|gemini-3\.5-(?!flash-lite|transcribe)", _LEVEL, _AUTOMATIC, sampling=True),
    _make_family(r"gemini-(\d|flash|pro)", _LEVEL, _AUTOMATIC, sampling=False),
)

_EFFORTS_FROM_NONE = (Effort.NONE, Effort.LOW, Effort.MEDIUM, Effort.HIGH)
_EFFORTS_FROM_MINIMAL = (Effort.MINIMAL, Effort.LOW, Effort.MEDIUM, Effort.HIGH)
_EFFORTS_FROM_LOW = (Effort.LOW, Effort.MEDIUM, Effort.HIGH)

# The efforts that reasoning models accept; the first matching pattern applies. Taken from Home Assistant's own
# integration, 2026.11:
# `homeassistant.components.openai_conversation.config_flow.OpenAISubentryFlowHandler._get_reasoning_options`, and for
# GPT-5 Pro its entity.py.
_OPENAI_EFFORTS = (
    (r"gpt-(6-luna|6\.1-terra|5\.6)", _EFFORTS_FROM_NONE),
    (r"gpt-6", _EFFORTS_FROM_LOW),
    (r"gpt-5\.[245]-pro", (Effort.MEDIUM, Effort.HIGH)),
    (r"gpt-5\.[1-5]", _EFFORTS_FROM_NONE),
    (r"gpt-5-pro", (Effort.HIGH,)),
    (r"gpt-5", _EFFORTS_FROM_MINIMAL),
    (r"o\d", _EFFORTS_FROM_LOW),
)

# Anthropic's models think only if the request enables it. The lowest effort is called low, see
# `anthropic.types.OutputConfigParam`.
_ANTHROPIC_EFFORTS = ((r"claude-", _EFFORTS_FROM_NONE),)

# Thinking cannot be turned off from Gemini 3 on, nor for 2.5 Pro, whose smallest budget is not 0. Taken from
# `homeassistant.components.google_generative_ai_conversation.entity._create_thinking_config`, 2026.11.
_GOOGLE_EFFORTS = (
    (r"gemini-2\.5-pro", _EFFORTS_FROM_MINIMAL),
    (r"gemini-2\.5", _EFFORTS_FROM_NONE),
    (r"gemini-3(\.[0-5])?-(?!.*pro)", _EFFORTS_FROM_MINIMAL),
    (r"gemini-3\.6-flash(?!.*-lite)", _EFFORTS_FROM_MINIMAL),
    (r"gemini-", _EFFORTS_FROM_LOW),
)

# Taken from Home Assistant's own integration (components/openai_conversation/const.py and entity.py, 2026.11). Chat and
# Codex models only accept medium verbosity. Azure has no flexible tier, and its older API versions know neither.
_FLEXIBLE_TIER_PATTERN = re.compile(r"(gpt-(5(?!\.3)|6)(?!.*(chat|codex|pro))|o3(?!-mini|-pro|-deep)|o4-mini(?!-deep))")
_VERBOSITY_PATTERN = re.compile(r"gpt-[56](?!.*(chat|codex))")

# OpenAI's since GPT-5.4: https://developers.openai.com/api/docs/guides/tools-tool-search; Anthropic's since 4.5,
# without those that Home Assistant's own integration excludes (components/anthropic/const.py, 2026.11).
_LOADS_TOOLS_PATTERN = re.compile(r"gpt-(5\.[4-9]|6)(?!.*chat)|claude-(?!haiku)[a-z]+-(4-[5-9](?!\d)|[5-9](?!\d))")

_VENDOR_EFFORTS = {Vendor.OPENAI: _OPENAI_EFFORTS, Vendor.ANTHROPIC: _ANTHROPIC_EFFORTS, Vendor.GOOGLE: _GOOGLE_EFFORTS}
_ALL_FAMILIES = {Vendor.OPENAI: _OPENAI, Vendor.ANTHROPIC: _CLAUDES, Vendor.GOOGLE: _GEMINIS}


def find_profile(vendor: Vendor | None, model: str) -> ModelProfile:
    """Return the facts about a model, without its limits; `UNKNOWN_MODEL` for an unknown model.

    On Azure, the name of a deployment does not identify its model, so `model` is the model that the user entered.
    """
    name = model.removeprefix("models/")
    profile = _find_by_pattern(_ALL_FAMILIES[vendor.maker], name) if vendor else None
    if vendor is None or profile is None:
        return UNKNOWN_MODEL
    efforts = _find_by_pattern(_VENDOR_EFFORTS[vendor.maker], name) or profile.efforts
    default = Effort.NONE if vendor is Vendor.ANTHROPIC else profile.default
    is_openai = vendor is Vendor.OPENAI
    return replace(
        profile,
        efforts=efforts,
        default=default,
        flexible_tier=is_openai and bool(_FLEXIBLE_TIER_PATTERN.match(name)),
        verbosity=is_openai and bool(_VERBOSITY_PATTERN.match(name)),
        loads_tools=vendor is not Vendor.AZURE and bool(_LOADS_TOOLS_PATTERN.match(name)),
    )


def _find_by_pattern[T](table: Iterable[tuple[str, T]], name: str) -> T | None:
    return next((facts for names, facts in table if re.match(names, name)), None)


def _compile_word_pattern(*words: str) -> re.Pattern[str]:
    """Return a pattern for any of these words within a model name."""
    return re.compile(rf"(?:^|[^a-z0-9])(?:{'|'.join(words)})(?:$|[^a-z])")


# Models of any vendor that are not for conversations: they produce embeddings, speech, images, or classifications.
_NON_CONVERSATION_PATTERN = _compile_word_pattern(
    r"all-mpnet|bge|colbert|e5|\w*embed\w*|gte|\w*minilm|paraphrase|\w*rerank\w*|splade",
    r"audio|bark|kokoro|lyria|orpheus|parakeet|piper|realtime|transcribe|\w*tts|\w*whisper",
    r"dall-e|flux|\w*image\w*|imagen|nano-banana|sd|sdxl|sora|stable-?diffusion|veo",
    r"aqa|babbage|computer-use|davinci|deep-research|\w*guard|\w*guardian|moderation|\w*ocr|shieldgemma",
)
# Further models of a vendor that are not for conversations, including those that accept no instructions or no tools, as
# in Home Assistant's own integrations: components/openai_conversation/const.py and
# components/google_generative_ai_conversation/config_flow.py, 2026.11.
_NON_CONVERSATION_BY_VENDOR = {
    Vendor.OPENAI: _compile_word_pattern("instruct|live|o1-mini|o1-preview|research|search|vision"),
    Vendor.GOOGLE: _compile_word_pattern("live|research|robotics|vision"),
}
# How a vendor's model names begin, to recognize them on servers that offer models of several vendors. The words above
# apply only to these names: other vendors' models with "instruct" in their names are for conversations.
_NAME_PATTERNS = {Vendor.OPENAI: re.compile(r"(?:chat)?gpt-\d|o\d"), Vendor.GOOGLE: re.compile("gemini")}

# Patterns for each vendor's model families, smallest first: these are fast and cheap enough for a voice assistant.
_RECOMMENDED: dict[Vendor, tuple[str, ...]] = {
    Vendor.OPENAI: (rf"{_GPT}o?-(?:mini|luna)", rf"{_GPT}-nano", rf"{_GPT}(?:o|-terra)?", rf"{_GPT}-sol", r"o\d-mini"),
    Vendor.ANTHROPIC: tuple(rf"claude-(?:[\d.-]*{name}|{name}[\d.-]*)" for name in ("haiku", "sonnet", "opus")),
    Vendor.GOOGLE: tuple(rf"{_GEMINI_PREFIX}{name}(?:-latest)?" for name in ("flash-lite", "flash", "pro")),
}

# The families of all vendors together, with the smallest family of each vendor first.
_ALL_VENDORS = tuple(names for size in zip_longest(*_RECOMMENDED.values()) for names in size if names)

_UNSTABLE_NAME_PATTERN = _compile_word_pattern(r"alpha", r"beta", r"exp", r"experimental", r"preview")


def filter_conversation_models(vendor: Vendor | None, names: Iterable[str]) -> list[str]:
    """Return the models that support conversations, in the order of the list; all models if none of them does."""
    listed = list(names)
    return [name for name in listed if _supports_conversations(vendor, name.lower())] or listed


def recommend_model(vendor: Vendor | None, names: Sequence[str]) -> str | None:
    """Return the model to suggest, or None for an empty list.

    This is the newest model of the vendor's smallest listed family, or else the first in the list. Without a vendor,
    the families of all vendors count. Previews come last, and a model's plain name precedes its snapshots.
    """
    families = _RECOMMENDED[vendor.maker] if vendor else _ALL_VENDORS
    return min(names, key=lambda name: _rank_model(families, name.lower()), default=None)


def _supports_conversations(vendor: Vendor | None, name: str) -> bool:
    own = name.rpartition("/")[2]
    makers = [vendor.maker] if vendor else [maker for maker, names in _NAME_PATTERNS.items() if names.match(own)]
    others = [
        _NON_CONVERSATION_PATTERN,
        *(_NON_CONVERSATION_BY_VENDOR[maker] for maker in makers if maker in _NON_CONVERSATION_BY_VENDOR),
    ]
    return not any(names.search(name) for names in others)


def _rank_model(families: Sequence[str], name: str) -> tuple[bool, int, tuple[int, ...], bool]:
    # The name without the vendor's name, which routers prepend, or a folder.
    own = name.rpartition("/")[2]
    plain = _SNAPSHOT_PATTERN.sub("", own)
    unstable = bool(_UNSTABLE_NAME_PATTERN.search(plain))
    family = next((place for place, names in enumerate(families) if re.fullmatch(names, plain)), len(families))
    if family == len(families):
        return unstable, family, (), False
    # The newest version comes first.
    major, minor, *_ = (*map(int, re.findall(r"\d+", plain)), 0, 0)
    return unstable, family, (-major, -minor), plain != own
