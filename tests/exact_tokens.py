"""tiktoken itself, with the vocabularies of the integration, to compare exact counts with."""

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
    """Return the vocabulary as OpenAI publishes it."""
    return gzip.decompress((VOCABULARIES / f"{encoding}.tiktoken.gz").read_bytes())


@cache
def theirs(encoding: str) -> tiktoken.Encoding:
    """Return tiktoken's encoding, from the folder where tiktoken keeps its downloads; it checks the hash."""
    url = f"https://openaipublic.blob.core.windows.net/encodings/{encoding}.tiktoken"
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        Path(folder, sha1(url.encode()).hexdigest()).write_bytes(vocabulary(encoding))
        patch.setenv("TIKTOKEN_CACHE_DIR", folder)
        return tiktoken.get_encoding(encoding)


def exact_count(encoding: str, text: str) -> int:
    """Return tiktoken's count."""
    return len(theirs(encoding).encode_ordinary(text))
