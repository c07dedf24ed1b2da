"""Tests for the models that a form lists and suggests, with model lists as servers return them."""

import pytest

from custom_components.windowed_conversation.providers.models import Vendor, filter_conversation_models, recommend_model
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
