"""Exact counting with tiktoken, imported when an agent first wants it, and the vocabularies that we ship."""

import asyncio
from binascii import a2b_base64
import gzip
from hashlib import sha256
from io import BytesIO
import logging
from pathlib import Path
from typing import TYPE_CHECKING
import zlib

from homeassistant.core import HomeAssistant
from homeassistant.util.hass_dict import HassKey

from ..const import DOMAIN, Counting

if TYPE_CHECKING:
    from tiktoken import Encoding

_LOGGER = logging.getLogger(__name__)

_FOLDER = Path(__file__).parent.parent / "vocabularies"

# Of the vocabularies as OpenAI publishes them, by tiktoken_ext/openai_public.py.
_SHA256 = {
    Counting.O200K_BASE: "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    Counting.CL100K_BASE: "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}

# How a text is cut into the pieces that are encoded each for itself, from tiktoken_ext/openai_public.py. Its functions
# download the vocabulary again.
_PATTERNS = {
    Counting.O200K_BASE: (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    Counting.CL100K_BASE: (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
        r"|\s+(?!\S)|\s"
    ),
}


class ExactCounter:
    """Counts the tokens of a text with one of OpenAI's encodings. Control tokens count as their text."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding

    @property
    def encoding(self) -> str:
        """The encoding's name."""
        return self._encoding.name

    def count(self, text: str) -> int:
        """Return the number of tokens, 0 for an empty text."""
        return len(self._encoding.encode_ordinary(text))


_COUNTERS: HassKey[dict[Counting, asyncio.Future[ExactCounter | None]]] = HassKey(f"{DOMAIN}_exact_counters")


async def async_exact_counter(hass: HomeAssistant, counting: Counting) -> ExactCounter | None:
    """Return the exact counter, the same until Home Assistant stops, or None for the estimate.

    None if the estimate was chosen, or if the package does not load or the vocabulary is damaged, which is logged once.
    """
    if counting is Counting.ESTIMATE:
        return None
    counters = hass.data.setdefault(_COUNTERS, {})
    if counting not in counters:
        counters[counting] = hass.async_add_executor_job(load_counter, counting)
    # a cancelled wait does not stop the others
    return await asyncio.shield(counters[counting])


def load_counter(counting: Counting) -> ExactCounter | None:
    """Return the exact counter, or None if it cannot be used. Takes a thread about half a second."""
    try:
        from tiktoken import Encoding  # noqa: PLC0415 - few agents count exactly
    except ImportError as err:
        _log_unusable("package tiktoken", type(err).__name__)
        return None
    try:
        vocabulary = gzip.decompress((_FOLDER / f"{counting}.tiktoken.gz").read_bytes())
    except (OSError, EOFError, zlib.error) as err:
        _log_unusable(f"vocabulary {counting}", type(err).__name__)
        return None
    if sha256(vocabulary).hexdigest() != _SHA256[counting]:
        _log_unusable(f"vocabulary {counting}", "its hash is wrong")
        return None
    encoding = Encoding(
        str(counting), pat_str=_PATTERNS[counting], mergeable_ranks=_ranks(vocabulary), special_tokens={}
    )
    return ExactCounter(encoding)


def _ranks(vocabulary: bytes) -> dict[bytes, int]:
    """Return the ranks of the tokens, line by line, so that other threads get the interpreter in between."""
    ranks: dict[bytes, int] = {}
    for line in BytesIO(vocabulary):
        token, _, rank = line.partition(b" ")
        ranks[a2b_base64(token)] = int(rank)
    return ranks


def _log_unusable(what: str, why: str) -> None:
    _LOGGER.warning("The %s cannot be used, so tokens are estimated: %s", what, why)
