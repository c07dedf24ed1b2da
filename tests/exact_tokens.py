"""Exact token counts from tiktoken, using the vocabulary of the integration."""

from functools import cache
from pathlib import Path

import pytest
import tiktoken

VOCABULARIES = Path(__file__).parent.parent / "custom_components" / "windowed_conversation" / "vocabularies"


@cache
def theirs() -> tiktoken.Encoding:
    """Return tiktoken's encoding o200k_base, with the vocabulary as a cached download, so that its hash is checked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(VOCABULARIES))
        return tiktoken.get_encoding("o200k_base")


def exact_count(text: str) -> int:
    """Return the number of tokens that tiktoken counts in a text."""
    return len(theirs().encode_ordinary(text))
