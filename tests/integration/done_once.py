"""Caches for setup steps whose result is the same for every new home.

Home Assistant parses thousands of sentence templates and starts ffmpeg to query its version, which takes most of a
test's time. It also reads each manifest in a job of its own, in a thread that is often started for it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

from haffmpeg.tools import FFVersion
from hassil.intents import Intents
from homeassistant.helpers.json import json_bytes


@contextmanager
def cache_setup() -> Iterator[None]:
    """Cache the parsed sentence templates and ffmpeg's version for all homes that are set up in this context."""
    parse, ask = Intents.from_dict, FFVersion.get_version
    parsed: dict[bytes, Intents] = {}
    versions: dict[str, str | None] = {}

    @wraps(parse)
    def from_dict(sentences: dict[str, Any]) -> Intents:
        text = json_bytes(sentences)
        if text not in parsed:
            parsed[text] = parse(sentences)
        return parsed[text]

    async def get_version(program: FFVersion) -> str | None:
        if program._ffmpeg not in versions:
            versions[program._ffmpeg] = await ask(program)
        return versions[program._ffmpeg]

    with patch.object(Intents, "from_dict", from_dict), patch.object(FFVersion, "get_version", get_version):
        yield
