"""The table of model families: the parameters that models accept, by the vendor's own names."""

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
import re
from typing import Any

from .profile import UNKNOWN_MODEL, Caching, Effort, ModelProfile, ReasoningStyle


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
    known = _found(_FAMILIES[vendor.maker], name) if vendor else None
    if vendor is None or known is None:
        return UNKNOWN_MODEL
    efforts = _found(_EFFORTS[vendor.maker], name) or known.efforts
    return replace(known, efforts=efforts, default=Effort.NONE if vendor is Vendor.ANTHROPIC else known.default)


def _found[T](table: Iterable[tuple[str, T]], name: str) -> T | None:
    return next((facts for names, facts in table if re.match(names, name)), None)
