"""Profiles of models: families by name, limits and prices by the bundled table."""

from decimal import Decimal

import pytest

from custom_components.windowed_conversation.providers.events import Usage
from custom_components.windowed_conversation.providers.models import (
    UNKNOWN_MODEL,
    Caching,
    Effort,
    ModelProfile,
    ReasoningStyle,
    Vendor,
    accepted_effort,
    profile_of,
)
from custom_components.windowed_conversation.providers.prices import context_tokens_of, cost_of


@pytest.mark.parametrize(
    ("vendor", "model", "style"),
    [
        (Vendor.OPENAI, "gpt-4o-mini", ReasoningStyle.NONE),
        (Vendor.OPENAI, "gpt-5.4-mini", ReasoningStyle.EFFORT),
        (Vendor.OPENAI, "gpt-6-astra", ReasoningStyle.EFFORT),
        (Vendor.OPENAI, "o4-mini", ReasoningStyle.EFFORT),
        (Vendor.AZURE, "gpt-5.6-luna", ReasoningStyle.EFFORT),
        (Vendor.ANTHROPIC, "claude-3-5-haiku-latest", ReasoningStyle.NONE),
        (Vendor.ANTHROPIC, "claude-3-7-sonnet-latest", ReasoningStyle.BUDGET),
        (Vendor.ANTHROPIC, "claude-opus-4-20250514", ReasoningStyle.BUDGET),
        (Vendor.ANTHROPIC, "claude-haiku-4-5-20251001", ReasoningStyle.BUDGET),
        (Vendor.ANTHROPIC, "claude-sonnet-4-6", ReasoningStyle.ADAPTIVE),
        (Vendor.ANTHROPIC, "claude-haiku-5-5", ReasoningStyle.ADAPTIVE),
        (Vendor.GOOGLE, "gemini-2.0-flash", ReasoningStyle.NONE),
        (Vendor.GOOGLE, "models/gemini-2.5-flash", ReasoningStyle.BUDGET),
        (Vendor.GOOGLE, "gemini-3.1-flash-lite", ReasoningStyle.LEVEL),
        (Vendor.GOOGLE, "gemini-4-argon", ReasoningStyle.LEVEL),
    ],
)
def test_models_are_told_to_think_in_the_way_of_their_family(vendor: Vendor, model: str, style: ReasoningStyle) -> None:
    assert profile_of(vendor, model).reasoning is style


@pytest.mark.parametrize(
    ("vendor", "model", "least"),
    [
        (Vendor.OPENAI, "o3", Effort.LOW),
        (Vendor.OPENAI, "o4-mini", Effort.LOW),
        (Vendor.OPENAI, "gpt-5", Effort.MINIMAL),
        (Vendor.OPENAI, "gpt-5-mini-2025-08-07", Effort.MINIMAL),
        (Vendor.OPENAI, "gpt-5-pro", Effort.HIGH),
        (Vendor.OPENAI, "gpt-5.1", Effort.NONE),
        (Vendor.OPENAI, "gpt-5.2-pro", Effort.MEDIUM),
        (Vendor.OPENAI, "gpt-5.4-mini", Effort.NONE),
        (Vendor.OPENAI, "gpt-5.5-pro-2026-04-23", Effort.MEDIUM),
        (Vendor.OPENAI, "gpt-5.6-luna", Effort.NONE),
        (Vendor.OPENAI, "gpt-6-astra", Effort.LOW),
        (Vendor.OPENAI, "gpt-6-luna", Effort.NONE),
        (Vendor.OPENAI, "gpt-6.1-terra", Effort.NONE),
        (Vendor.AZURE, "gpt-5-nano", Effort.MINIMAL),
        (Vendor.ANTHROPIC, "claude-haiku-4-5", Effort.NONE),
        (Vendor.ANTHROPIC, "claude-opus-5", Effort.NONE),
        (Vendor.GOOGLE, "gemini-2.5-flash", Effort.NONE),
        (Vendor.GOOGLE, "models/gemini-2.5-pro", Effort.MINIMAL),
        (Vendor.GOOGLE, "gemini-3-flash-preview", Effort.MINIMAL),
        (Vendor.GOOGLE, "gemini-3-pro-preview", Effort.LOW),
        (Vendor.GOOGLE, "gemini-3.1-flash-lite", Effort.MINIMAL),
        (Vendor.GOOGLE, "gemini-3.5-flash-lite", Effort.MINIMAL),
        (Vendor.GOOGLE, "gemini-3.6-flash", Effort.MINIMAL),
        (Vendor.GOOGLE, "gemini-3.6-flash-lite", Effort.LOW),
        (Vendor.GOOGLE, "gemini-3.10-flash", Effort.LOW),
        (Vendor.GOOGLE, "gemini-4-flash", Effort.LOW),
        (Vendor.GOOGLE, "gemini-flash-latest", Effort.LOW),
    ],
)
def test_no_effort_is_the_least_that_the_family_takes(vendor: Vendor, model: str, least: Effort) -> None:
    assert accepted_effort(profile_of(vendor, model), Effort.NONE) is least


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
    assert accepted_effort(ModelProfile(efforts=taken), asked) is sent


@pytest.mark.parametrize("effort", Effort)
def test_effort_is_what_was_asked_for_where_nobody_knows_the_model(effort: Effort) -> None:
    assert accepted_effort(UNKNOWN_MODEL, effort) is effort


@pytest.mark.parametrize(
    ("vendor", "model", "takes"),
    [
        (Vendor.OPENAI, "gpt-4.1-mini", True),
        (Vendor.OPENAI, "gpt-5-mini", False),
        (Vendor.OPENAI, "o3", False),
        (Vendor.ANTHROPIC, "claude-haiku-4-5", True),
        (Vendor.ANTHROPIC, "claude-opus-4-8", False),
        (Vendor.GOOGLE, "gemini-3.5-flash", True),
        (Vendor.GOOGLE, "gemini-3.5-flash-lite", False),
        (Vendor.GOOGLE, "gemini-3.6-flash", False),
    ],
)
def test_temperature_is_known_to_be_taken_or_refused(vendor: Vendor, model: str, *, takes: bool) -> None:
    assert profile_of(vendor, model).sampling is takes


@pytest.mark.parametrize(
    ("vendor", "model", "caching"),
    [
        (Vendor.OPENAI, "gpt-4o-mini", Caching.KEY),
        (Vendor.OPENAI, "gpt-4.1", Caching.RETENTION),
        (Vendor.OPENAI, "gpt-4.1-nano", Caching.KEY),
        (Vendor.OPENAI, "gpt-5-nano", Caching.KEY),
        (Vendor.OPENAI, "gpt-5.5", Caching.RETENTION),
        (Vendor.OPENAI, "gpt-5.6-luna", Caching.OPTIONS),
        (Vendor.ANTHROPIC, "claude-haiku-4-5", Caching.BREAKPOINTS),
        (Vendor.GOOGLE, "gemini-3.6-flash", Caching.AUTOMATIC),
    ],
)
def test_cache_is_asked_for_in_the_way_of_the_family(vendor: Vendor, model: str, caching: Caching) -> None:
    assert profile_of(vendor, model).caching is caching


@pytest.mark.parametrize(
    ("vendor", "model"), [(None, "gpt-5"), (Vendor.AZURE, "kitchen"), (Vendor.OPENAI, "llama3:8b")]
)
def test_nothing_is_guessed_about_an_unknown_model(vendor: Vendor | None, model: str) -> None:
    assert profile_of(vendor, model) is UNKNOWN_MODEL


def test_price_counts_cached_tokens_once() -> None:
    usage = Usage(input=1_000_000, cached=500_000, output=0)

    assert cost_of(Vendor.OPENAI, "gpt-4o-mini", usage) == Decimal("0.1125")


def test_writing_to_the_cache_is_dearer_than_reading_at_anthropic() -> None:
    plain = cost_of(Vendor.ANTHROPIC, "claude-haiku-4-5", Usage(input=100_000))
    written = cost_of(Vendor.ANTHROPIC, "claude-haiku-4-5", Usage(input=100_000, cache_written=100_000))
    read = cost_of(Vendor.ANTHROPIC, "claude-haiku-4-5", Usage(input=100_000, cached=100_000))

    assert (plain, written, read) == (Decimal("0.1"), Decimal("0.125"), Decimal("0.01"))


def test_price_of_a_usage_that_contradicts_itself_is_unknown() -> None:
    assert cost_of(Vendor.OPENAI, "gpt-4o-mini", Usage(input=5, cached=10)) is None


@pytest.mark.parametrize(("vendor", "model"), [(Vendor.AZURE, "kitchen"), (Vendor.OPENAI, "llama3:8b")])
def test_price_of_an_unknown_model_is_unknown(vendor: Vendor, model: str) -> None:
    assert cost_of(vendor, model, Usage(input=1000)) is None


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
    assert context_tokens_of(vendor, model) == tokens
