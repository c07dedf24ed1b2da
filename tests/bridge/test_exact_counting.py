"""Tests that exact token counts with the bundled vocabulary equal those of tiktoken."""

from custom_components.windowed_conversation.bridge.calibration import load_exact_counter
from tests.exact_tokens import exact_count

TEXTS = (
    "",
    "Mein Name ist Änne.\n\n  1234567 厨房 🍳 you'll \t\r\n",
    "<|endoftext|>",
    "half \ud83d",
    "\u017fS'S x'LL",
    " " * 500,
    "HTTPServer's_x = {1: 'a/b'};\n\n\n  return  \n",
)


def test_texts_have_the_tokens_that_tiktoken_finds() -> None:
    counter = load_exact_counter()

    assert counter is not None
    assert [counter.count(text) for text in TEXTS] == [exact_count(text) for text in TEXTS]
