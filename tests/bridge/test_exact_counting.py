"""Tests that exact token counts with the bundled vocabularies equal those of tiktoken."""

import pytest

from custom_components.windowed_conversation.bridge.calibration import load_exact_counter
from custom_components.windowed_conversation.const import Counting
from tests.exact_tokens import ENCODINGS, exact_count

TEXTS = (
    "",
    "Mein Name ist Änne.\n\n  1234567 厨房 🍳 you'll \t\r\n",
    "<|endoftext|>",
    "half \ud83d",
    "\u017fS'S x'LL",
    " " * 500,
)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_texts_have_the_tokens_that_tiktoken_finds(encoding: str) -> None:
    counter = load_exact_counter(Counting(encoding))

    assert counter is not None
    assert [counter.count(text) for text in TEXTS] == [exact_count(encoding, text) for text in TEXTS]
