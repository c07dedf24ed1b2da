"""Tests that exact token counts with the bundled vocabulary equal those of tiktoken."""

from collections.abc import Iterator
import os

import pytest

from custom_components.windowed_conversation.bridge.calibration import load_exact_counter
from tests.exact_tokens import exact_count

TEXTS = (
    "",
    "Mein Name ist Änne.\n\n  1234567 厨房 🍳 you'll \t\r\n",
    "<|endoftext|>",
    "half \ud83d",
    "\u017fS'S x'LL",
    " " * 500,
)


def test_texts_have_the_tokens_that_tiktoken_finds() -> None:
    counter = load_exact_counter()

    assert counter is not None
    assert [counter.count(text) for text in TEXTS] == [exact_count(text) for text in TEXTS]


@pytest.fixture
def not_loaded() -> Iterator[None]:
    """Load the vocabulary anew in this test, and again after it."""
    load_exact_counter.cache_clear()
    yield
    load_exact_counter.cache_clear()


@pytest.mark.usefixtures("not_loaded")
def test_vocabulary_that_tiktoken_would_have_to_download_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    # a release of tiktoken that gets the vocabulary from another address
    monkeypatch.setattr("tiktoken_ext.openai_public.o200k_base", lambda: {"name": "o200k_base"})

    assert load_exact_counter() is None


@pytest.mark.usefixtures("not_loaded")
@pytest.mark.parametrize("before", [{}, {"TIKTOKEN_CACHE_DIR": "theirs"}])
def test_environment_is_as_before(before: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    for name, value in before.items():
        monkeypatch.setenv(name, value)

    assert load_exact_counter() is not None
    assert os.environ.get("TIKTOKEN_CACHE_DIR") == before.get("TIKTOKEN_CACHE_DIR")
