"""Caches for setup steps whose result is the same for every new home.

Home Assistant parses thousands of sentence templates and starts ffmpeg to query its version, which takes most of a
test's time. It also reads each manifest in a job of its own, in a thread that is often started for it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from types import ModuleType
from typing import Any
from unittest.mock import patch

from haffmpeg.tools import FFVersion
from hassil.intents import Intents
from homeassistant import loader
from homeassistant.core import HomeAssistant
from homeassistant.helpers.json import json_bytes
from homeassistant.loader import Integration
from pytest_homeassistant_custom_component import common

from custom_components.windowed_conversation.memory.core import words


@contextmanager
def cache_setup() -> Iterator[None]:
    """Cache what each home would parse, read or ask for again, for all homes that are set up in this context."""
    with ExitStack() as stack:
        for cache in (_cache_sentences, _cache_manifests, _cache_stems, _store_without_mocks):
            stack.enter_context(cache())
        yield


@contextmanager
def _cache_manifests() -> Iterator[None]:
    """Cache the manifests and file names of Home Assistant's own integrations."""
    resolve, get = Integration.resolve_from_root, loader.async_get_integrations
    found: dict[str, tuple[Any, ...]] = {}

    def resolve_from_root(home: HomeAssistant, root: ModuleType, domain: str) -> Integration | None:
        integration = resolve(home, root, domain)
        if integration and integration.is_built_in:
            files = integration._top_level_files
            found[domain] = (integration.pkg_path, integration.file_path, integration.manifest, files)
        return integration

    async def get_integrations(home: HomeAssistant, domains: Iterable[str]) -> dict[str, Integration | Exception]:
        wanted, loaded = list(domains), home.data[loader.DATA_INTEGRATIONS]
        loaded |= {each: Integration(home, *found[each]) for each in wanted if each in found and each not in loaded}
        return await get(home, wanted)

    with (
        patch.object(Integration, "resolve_from_root", resolve_from_root),
        patch.object(loader, "async_get_integrations", get_integrations),
    ):
        yield


@contextmanager
def _cache_stems() -> Iterator[None]:
    """Cache the stems of words by language. Each home would stem the names of the same kinds of entities."""
    load = words._load_stemmers
    stems = defaultdict[tuple[tuple[str, ...], int], dict[str, str]](dict)

    def stem(known: dict[str, str], stem_anew: Callable[[str], str], word: str) -> str:
        if word not in known:
            known[word] = stem_anew(word)
        return known[word]

    def load_stemmers(languages: tuple[str, ...]) -> list[Callable[[str], str]]:
        return [partial(stem, stems[languages, number], each) for number, each in enumerate(load(languages))]

    with patch.object(words, "_load_stemmers", load_stemmers):
        yield


@contextmanager
def _store_without_mocks() -> Iterator[None]:
    """Replace the methods of Home Assistant's storage with the functions of the test harness as they are.

    To build mocks with the signatures of these methods takes three milliseconds for each home.
    """

    @wraps(patch)
    def patch_directly(target: str, *values: Any, **options: Any) -> Any:
        if options.keys() == {"side_effect", "autospec"}:
            return patch(target, options["side_effect"])
        return patch(target, *values, **options)

    with patch.object(common, "patch", patch_directly):
        yield


@contextmanager
def _cache_sentences() -> Iterator[None]:
    """Cache the parsed sentence templates and ffmpeg's version."""
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
