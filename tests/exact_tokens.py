"""Exact token counts from tiktoken, using the vocabularies of the integration."""

from functools import cache
import gzip
from hashlib import sha1
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import tiktoken

ENCODINGS = ("o200k_base", "cl100k_base")
VOCABULARIES = Path(__file__).parent.parent / "custom_components" / "windowed_conversation" / "vocabularies"


def vocabulary(encoding: str) -> bytes:
    """Return the integration's copy of the vocabulary in the form that OpenAI publishes."""
    return gzip.decompress((VOCABULARIES / f"{encoding}.tiktoken.gz").read_bytes())


@cache
def theirs(encoding: str) -> tiktoken.Encoding:
    """Return tiktoken's encoding, with the vocabulary as a cached download, so that tiktoken checks its hash."""
    url = f"https://openaipublic.blob.core.windows.net/encodings/{encoding}.tiktoken"
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        Path(folder, sha1(url.encode()).hexdigest()).write_bytes(vocabulary(encoding))
        patch.setenv("TIKTOKEN_CACHE_DIR", folder)
        return tiktoken.get_encoding(encoding)


def exact_count(encoding: str, text: str) -> int:
    """Return the number of tokens that tiktoken counts in a text."""
    return len(theirs(encoding).encode_ordinary(text))
