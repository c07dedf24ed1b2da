"""Tests for model profiles: families by name, limits and prices from the bundled table, and recommended models."""

from decimal import Decimal

import pytest

from custom_components.windowed_conversation.providers.events import Usage
from custom_components.windowed_conversation.providers.models import (
    UNKNOWN_MODEL,
    Effort,
    ModelProfile,
    Vendor,
    filter_conversation_models,
    find_accepted_effort,
    find_profile,
    recommend_model,
)
from custom_components.windowed_conversation.providers.prices import calculate_cost, find_context_tokens
from tests.model_lists import (
    ANTHROPIC,
    GEMINI,
    GEMINI_OTHER,
    LOCAL,
    LOCAL_OTHER,
    OLLAMA,
    OPENAI,
    OPENAI_CHAT_MODELS,
    OPENAI_NEWER,
    ROUTER,
    ROUTER_OTHER,
)

# The reasoning style, the lowest effort and the caching of each model, and whether it accepts a temperature.
PROFILES = {
    Vendor.OPENAI: {
        "gpt-4.1": "none none retention sampling",
        "gpt-4.1-mini": "none none key sampling",
        "gpt-4.1-nano": "none none key sampling",
        "gpt-4o-mini": "none none key sampling",
        "gpt-5": "effort minimal retention",
        "gpt-5-mini": "effort minimal key",
        "gpt-5-mini-2025-08-07": "effort minimal key",
        "gpt-5-nano": "effort minimal key",
        "gpt-5-pro": "effort high retention",
        "gpt-5.1": "effort none retention",
        "gpt-5.2-pro": "effort medium retention",
        "gpt-5.4-mini": "effort none retention",
        "gpt-5.5": "effort none retention",
        "gpt-5.5-pro-2026-04-23": "effort medium retention",
        "gpt-5.6-luna": "effort none options",
        "gpt-6-astra": "effort low options",
        "gpt-6-luna": "effort none options",
        "gpt-6.1-terra": "effort none options",
        "o3": "effort low key",
    },
    Vendor.AZURE: {
        "gpt-5-nano": "effort minimal key",
        "gpt-5.6-luna": "effort none options",
    },
    Vendor.ANTHROPIC: {
        "claude-3-5-haiku-latest": "none none breakpoints sampling",
        "claude-3-7-sonnet-latest": "budget none breakpoints sampling",
        "claude-haiku-4-5-20251001": "budget none breakpoints sampling",
        "claude-haiku-5-5": "adaptive none breakpoints",
        "claude-opus-4-20250514": "budget none breakpoints sampling",
        "claude-opus-4-8": "adaptive none breakpoints",
        "claude-opus-5": "adaptive none breakpoints",
        "claude-sonnet-4-6": "adaptive none breakpoints",
    },
    Vendor.GOOGLE: {
        "gemini-2.0-flash": "none low automatic sampling",
        "gemini-3-flash-preview": "level minimal automatic sampling",
        "gemini-3-pro-preview": "level low automatic sampling",
        "gemini-3.1-flash-lite": "level minimal automatic sampling",
        "gemini-3.10-flash": "level low automatic",
        "gemini-3.5-flash": "level minimal automatic sampling",
        "gemini-3.5-flash-lite": "level minimal automatic",
        "gemini-3.6-flash": "level minimal automatic",
        "gemini-3.6-flash-lite": "level low automatic",
        "gemini-4-flash": "level low automatic",
        "gemini-flash-latest": "level low automatic",
        "models/gemini-2.5-flash": "budget none automatic sampling",
        "models/gemini-2.5-pro": "budget minimal automatic sampling",
    },
}


MODELS = [(vendor, model, facts) for vendor, models in PROFILES.items() for model, facts in models.items()]


def test_model_has_the_profile_of_its_family(subtests: pytest.Subtests) -> None:
    for vendor, model, facts in MODELS:
        with subtests.test(vendor=str(vendor), model=model):
            profile = find_profile(vendor, model)
            least = find_accepted_effort(profile, Effort.NONE)

            assert facts.split() == [
                profile.reasoning,
                least,
                profile.caching,
                *(["sampling"] if profile.sampling else []),
            ]


@pytest.mark.parametrize(
    ("taken", "asked", "sent"),
    [
        ((Effort.LOW, Effort.HIGH), Effort.NONE, Effort.LOW),
        ((Effort.LOW, Effort.HIGH), Effort.LOW, Effort.LOW),
        ((Effort.LOW, Effort.HIGH), Effort.MEDIUM, Effort.LOW),
        ((Effort.LOW, Effort.HIGH), Effort.HIGH, Effort.HIGH),
        ((Effort.NONE, Effort.LOW), Effort.MINIMAL, Effort.NONE),
        ((Effort.HIGH,), Effort.MEDIUM, Effort.HIGH),
        ((Effort.LOW,), None, None),
    ],
)
def test_effort_that_a_model_does_not_take_is_the_next_cheaper_one(
    taken: tuple[Effort, ...], asked: Effort | None, sent: Effort | None
) -> None:
    assert find_accepted_effort(ModelProfile(efforts=taken), asked) is sent


@pytest.mark.parametrize("effort", Effort)
def test_effort_is_what_was_asked_for_where_nobody_knows_the_model(effort: Effort) -> None:
    assert find_accepted_effort(UNKNOWN_MODEL, effort) is effort


@pytest.mark.parametrize(
    ("vendor", "model"), [(None, "gpt-5"), (Vendor.AZURE, "kitchen"), (Vendor.OPENAI, "llama3:8b")]
)
def test_nothing_is_guessed_about_an_unknown_model(vendor: Vendor | None, model: str) -> None:
    assert find_profile(vendor, model) is UNKNOWN_MODEL


def test_price_counts_cached_tokens_once() -> None:
    usage = Usage(input=1_000_000, cached=500_000, output=0)

    assert calculate_cost(Vendor.OPENAI, "gpt-4o-mini", usage) == Decimal("0.1125")


def test_writing_to_the_cache_is_dearer_than_reading_at_anthropic() -> None:
    plain = calculate_cost(Vendor.ANTHROPIC, "claude-haiku-4-5", Usage(input=100_000))
    written = calculate_cost(Vendor.ANTHROPIC, "claude-haiku-4-5", Usage(input=100_000, cache_written=100_000))
    read = calculate_cost(Vendor.ANTHROPIC, "claude-haiku-4-5", Usage(input=100_000, cached=100_000))

    assert (plain, written, read) == (Decimal("0.1"), Decimal("0.125"), Decimal("0.01"))


def test_price_of_a_usage_that_contradicts_itself_is_unknown() -> None:
    assert calculate_cost(Vendor.OPENAI, "gpt-4o-mini", Usage(input=5, cached=10)) is None


@pytest.mark.parametrize(("vendor", "model"), [(Vendor.AZURE, "kitchen"), (Vendor.OPENAI, "llama3:8b")])
def test_price_of_an_unknown_model_is_unknown(vendor: Vendor, model: str) -> None:
    assert calculate_cost(vendor, model, Usage(input=1000)) is None


@pytest.mark.parametrize(
    ("vendor", "model", "tokens"),
    [
        (Vendor.OPENAI, "gpt-4o-mini", 128_000),
        (Vendor.AZURE, "gpt-4o-mini", 128_000),
        (Vendor.ANTHROPIC, "claude-haiku-4-5", 200_000),
        (Vendor.GOOGLE, "models/gemini-2.5-flash", 1_048_576),
        (Vendor.OPENAI, "llama3:8b", None),
    ],
)
def test_context_size_is_what_the_table_says(vendor: Vendor, model: str, tokens: int | None) -> None:
    assert find_context_tokens(vendor, model) == tokens


@pytest.mark.parametrize(
    ("vendor", "model", "accepted"),
    [
        (Vendor.ANTHROPIC, "claude-3-7-sonnet-latest", False),
        (Vendor.ANTHROPIC, "claude-sonnet-4-20250514", False),
        (Vendor.ANTHROPIC, "claude-opus-4-1", False),
        (Vendor.ANTHROPIC, "claude-haiku-4-5-20251001", True),
        (Vendor.ANTHROPIC, "claude-opus-4-6", True),
        (Vendor.AZURE, "gpt-5", True),
        (Vendor.GOOGLE, "gemini-2.5-flash", True),
        (Vendor.GOOGLE, "gemma-3-27b-it", False),
        (Vendor.OPENAI, "chatgpt-4o-latest", False),
        (Vendor.OPENAI, "gpt-4-turbo", False),
        (Vendor.OPENAI, "gpt-4o-mini", True),
        (None, "gpt-5", False),
    ],
)
def test_model_accepts_schemas_of_answers_from_its_first_version_with_them_on(
    vendor: Vendor | None, model: str, accepted: bool
) -> None:
    assert find_profile(vendor, model).answer_schemas is accepted


@pytest.mark.parametrize(
    ("vendor", "model", "cost"),
    [
        (Vendor.OPENAI, "gpt-5.4", "0.02"),
        (Vendor.AZURE, "gpt-5.4", "0.02"),
        (Vendor.ANTHROPIC, "claude-sonnet-4-5", "0.02"),
        (Vendor.GOOGLE, "gemini-2.5-flash", "0.07"),
    ],
)
def test_price_includes_web_searches(vendor: Vendor, model: str, cost: str) -> None:
    assert calculate_cost(vendor, model, Usage(searches=2)) == Decimal(cost)


@pytest.mark.parametrize(
    ("vendor", "listed", "offered"),
    [
        (Vendor.OPENAI, OPENAI, OPENAI_CHAT_MODELS),
        (Vendor.ANTHROPIC, ANTHROPIC, ANTHROPIC),
        (None, OLLAMA, ("llama3.2-vision:11b", "llama3.2:3b-instruct-q4_K_M", "qwen3:8b")),
        (None, LOCAL + LOCAL_OTHER, LOCAL),
        (None, ROUTER + ROUTER_OTHER, ROUTER),
        (None, OPENAI, OPENAI_CHAT_MODELS),
        (None, LOCAL_OTHER, LOCAL_OTHER),
        (None, (), ()),
    ],
)
def test_models_that_cannot_converse_are_not_offered(
    vendor: Vendor | None, listed: tuple[str, ...], offered: tuple[str, ...]
) -> None:
    assert filter_conversation_models(vendor, listed) == list(offered)


def test_models_of_google_that_cannot_converse_are_not_offered() -> None:
    gone = set(GEMINI + GEMINI_OTHER) - set(filter_conversation_models(Vendor.GOOGLE, GEMINI + GEMINI_OTHER))

    assert gone == {
        *GEMINI_OTHER,
        "deep-research-pro-preview-12-2025",
        "gemini-2.0-flash-exp-image-generation",
        "gemini-2.5-flash-image",
        "gemini-2.5-flash-preview-tts",
        "gemini-3.8-live",
        "gemini-robotics-er-1.6",
        "nano-banana-pro-preview",
    }


RECOMMENDATIONS = [
    (Vendor.OPENAI, OPENAI, "gpt-5-mini"),
    (Vendor.OPENAI, OPENAI_NEWER, "gpt-6-luna"),
    (Vendor.OPENAI, ["gpt-4.1-mini-2025-04-14", "gpt-4o-mini"], "gpt-4.1-mini-2025-04-14"),
    (Vendor.OPENAI, ["gpt-4o-mini-2024-07-18", "gpt-4o-mini"], "gpt-4o-mini"),
    (Vendor.OPENAI, ["gpt-5-nano", "gpt-5.1"], "gpt-5-nano"),
    (Vendor.OPENAI, ["gpt-3.5-turbo", "gpt-5-pro", "gpt-5.1"], "gpt-5.1"),
    (Vendor.OPENAI, ["gpt-3.5-turbo", "gpt-9-mini-preview"], "gpt-3.5-turbo"),
    (Vendor.OPENAI, ["mistral-large", "openai/gpt-5-mini"], "openai/gpt-5-mini"),
    (Vendor.OPENAI, ["scripted", "scripted+9"], "scripted"),
    (Vendor.ANTHROPIC, ANTHROPIC, "claude-haiku-4-5-20251001"),
    (Vendor.ANTHROPIC, [*ANTHROPIC, "claude-haiku-5-5"], "claude-haiku-5-5"),
    (Vendor.ANTHROPIC, ["claude-mythos-preview", "claude-opus-5", "claude-sonnet-4-6"], "claude-sonnet-4-6"),
    (Vendor.GOOGLE, GEMINI, "gemini-3.1-flash-lite"),
    (Vendor.GOOGLE, ["gemini-3-flash-preview", "gemini-2.5-flash", "gemini-2.5-pro"], "gemini-2.5-flash"),
    (Vendor.GOOGLE, ["gemini-10-flash-lite", "gemini-9.9-flash-lite"], "gemini-10-flash-lite"),
    (None, OLLAMA, "llama3.2-vision:11b"),
    (None, ["mistral", "qwen3:8b"], "mistral"),
    (None, ["babbage-002", "gpt-4", "gpt-5-mini", "qwen3:8b"], "gpt-5-mini"),
    (None, OPENAI, "gpt-5-mini"),
    (None, ROUTER, "openai/gpt-5-mini"),
    (None, [name for name in ROUTER if "mini" not in name], "anthropic/claude-haiku-4.5"),
    (None, ["openai/gpt-5-mini-2025-08-07", "openai/gpt-5-mini"], "openai/gpt-5-mini"),
    (None, ["models/gemini-2.5-flash", "models/gemini-2.5-flash-lite"], "models/gemini-2.5-flash-lite"),
    (Vendor.OPENAI, [], None),
]


def test_newest_stable_small_model_is_recommended(subtests: pytest.Subtests) -> None:
    for vendor, listed, recommended in RECOMMENDATIONS:
        with subtests.test(vendor=str(vendor), listed=listed):
            assert recommend_model(vendor, filter_conversation_models(vendor, listed)) == recommended
