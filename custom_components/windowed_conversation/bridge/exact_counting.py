"""Exact counting: the vocabularies that come with the integration, read and checked when an agent first wants one.

What is counted with them is `window.byte_pairs`'s business, what it stands for at a model `bridge.calibration`'s.
"""

import asyncio
import gzip
from hashlib import sha256
import logging
from pathlib import Path
import zlib

from homeassistant.core import HomeAssistant
from homeassistant.util.hass_dict import HassKey

from ..const import DOMAIN, Counting
from ..window.byte_pairs import BytePairCounter, read_ranks

_LOGGER = logging.getLogger(__name__)

_FOLDER = Path(__file__).parent.parent / "vocabularies"

# Of the vocabularies as OpenAI publishes them, by tiktoken_ext/openai_public.py.
_SHA256 = {
    Counting.O200K_BASE: "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    Counting.CL100K_BASE: "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}

_COUNTERS: HassKey[dict[Counting, asyncio.Future[BytePairCounter | None]]] = HassKey(f"{DOMAIN}_exact_counters")


async def async_exact_counter(hass: HomeAssistant, counting: Counting) -> BytePairCounter | None:
    """Return what counts exactly, the same until Home Assistant stops; None where the estimate is to be used.

    That is what was chosen, or the vocabulary is not what it should be, which is logged once.
    """
    if counting is Counting.ESTIMATE:
        return None
    counters = hass.data.setdefault(_COUNTERS, {})
    if counting not in counters:
        counters[counting] = hass.async_add_executor_job(load_counter, counting)
    # whoever stops waiting does not stop the others
    return await asyncio.shield(counters[counting])


def load_counter(counting: Counting) -> BytePairCounter | None:
    """Return what counts exactly, None where that cannot be; for a thread, as it takes 150 ms and more."""
    try:
        vocabulary = gzip.decompress((_FOLDER / f"{counting}.tiktoken.gz").read_bytes())
    except (OSError, EOFError, zlib.error) as err:
        _log_unusable(counting, type(err).__name__)
        return None
    if sha256(vocabulary).hexdigest() != _SHA256[counting]:
        _log_unusable(counting, "its hash is wrong")
        return None
    return BytePairCounter(counting, read_ranks(vocabulary))


def _log_unusable(counting: Counting, why: str) -> None:
    _LOGGER.warning("The vocabulary %s cannot be used, so tokens are estimated: %s", counting, why)
