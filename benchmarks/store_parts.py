"""The parts of `benchmarks.store`, each measured in its own process in the folder of a checkout.

    python -P benchmarks/store_parts.py PART ARGUMENTS      the arguments are a JSON object; prints JSON

This module imports no other module of a checkout, so that it can measure any checkout.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
import gc
from itertools import batched
import json
import logging
import os
from pathlib import Path
import random
import sys
import tempfile
import time
from typing import Any, Self, override

from homeassistant import auth, bootstrap, loader
from homeassistant.components import conversation
from homeassistant.config_entries import SOURCE_USER, ConfigEntries, ConfigEntry, ConfigSubentryData
from homeassistant.core import Context, CoreState, HomeAssistant, SupportsResponse
from homeassistant.helpers import entity_registry as er
from homeassistant.setup import async_setup_component

DOMAIN = "windowed_conversation"

_MODEL = "scripted"
_COMPONENTS = ("homeassistant", "conversation", "intent")
# A full window holds at least this share of its tokens, even directly after a trim.
_FULL = 0.6
_WARM_UP = 3
_IMPORTED = 1_000
# Seconds without a write after which everything counts as written, between two checks, and between two sentences.
_QUIET = 0.5
_LOOK = 0.02
_APART = 288.0
# The topic in the conversation that is copied; `topic` never returns it, so it can be replaced safely.
_TOPIC = "the lamp and the door number none, which came to the garden with a letter"
_WORDS = ("lamp", "cat", "door", "garden", "river", "mill", "clock", "bread", "snow", "letter", "boat", "apple", "crow")

type Figures = dict[str, float]


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be moved forward: calls that are due by then run at once."""

    ahead = 0.0

    @override
    def time(self) -> float:
        return super().time() + self.ahead


class Written:
    """Counts the bytes that this process has written: in total, and in files that were replaced atomically."""

    def __init__(self) -> None:
        """Start watching for replaced files, until the process ends."""
        self._replaced: list[tuple[str, int]] = []
        sys.addaudithook(self._on_event)

    def _on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.rename":
            with suppress(OSError):
                self._replaced.append((Path(os.fsdecode(arguments[1])).name, Path(arguments[0]).stat().st_size))

    @staticmethod
    def total() -> int:
        """Return the bytes that were written to all files."""
        return int(field(Path("/proc/self/io").read_text(), "wchar"))

    def now(self) -> Figures:
        """Return the bytes that the integration has written: in total, as JSON, and by SQLite."""
        return split(self.total(), self._replaced)


def field(text: str, name: str) -> str:
    """Return the first word of a field's value in a file of /proc."""
    return next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name}:"))


def split(total: int, replaced: Iterable[tuple[str, int]]) -> Figures:
    """Return the bytes in total, of JSON and of SQLite, without the files that Home Assistant itself has replaced."""
    ours = theirs = 0
    for name, size in replaced:
        if name.startswith(DOMAIN):
            ours += size
        else:
            theirs += size
    return {"bytes": total - theirs, "json": ours, "sqlite": total - theirs - ours}


def topic(number: int) -> str:
    """Return the topic of a sentence, a different one for each number."""
    one, two, three, four = random.Random(number).sample(_WORDS, 4)
    return f"the {one} and the {two} number {number}, which came to the {three} with a {four}"


def _sentence(about: str) -> str:
    # The text has no "me", because memory stores nothing that unknown speakers say about themselves.
    return f"explain {about}"


def _answer(number: int) -> str:
    return f"Nobody knows much about {topic(number)}, but it is said that there were a few others with it."


def copied(exported: Mapping[str, Any], about: str, number: int, first: int) -> dict[str, Any]:
    """Return an exported conversation with `number` copies of its only exchange, each about a different topic.

    The topics replace `about` and are numbered from `first`.
    """
    (exchange,) = exported["exchanges"]
    text = json.dumps(exchange)
    exchanges = [json.loads(text.replace(about, topic(each))) for each in range(first, first + number)]
    return {**exported, "exchanges": exchanges}


@asynccontextmanager
async def model_server() -> AsyncIterator[str]:
    """Run the checkout's scripted server in a separate process and yield its URL."""
    command = (sys.executable, "-m", "demo.model_server", "--port", "0", "--model", _MODEL)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def home_assistant(folder: Path) -> AsyncIterator[HomeAssistant]:
    """Yield a Home Assistant in this process that uses an existing folder, without set-up accounts, and stop it."""
    hass = HomeAssistant(str(folder))
    loader.async_setup(hass)
    hass.config.skip_pip = True
    hass.config_entries = ConfigEntries(hass, {})
    await bootstrap.async_load_base_functionality(hass)
    hass.auth = await auth.auth_manager_from_config(hass, [], [])
    hass.set_state(CoreState.running)
    try:
        for component in _COMPONENTS:
            assert await async_setup_component(hass, component, {})
        await hass.async_block_till_done()
        yield hass
    finally:
        await hass.async_stop(force=True)


@dataclass(frozen=True, slots=True)
class Home:
    """A Home Assistant whose account is set up."""

    hass: HomeAssistant
    agent_id: str

    @classmethod
    async def add(cls, hass: HomeAssistant, url: str, options: Mapping[str, Any]) -> Self:
        """Add an account with one agent, set it up, and return its home."""
        agent = ConfigSubentryData(
            data={"model": _MODEL, "routing": "llm_only", "llm_hass_api": []},
            subentry_type="conversation",
            title="Bench",
            unique_id=None,
        )
        entry = ConfigEntry(
            data={"provider": "openai_chat", "url": url},
            discovery_keys={},  # type: ignore[arg-type]
            domain=DOMAIN,
            minor_version=1,
            options=options,
            source=SOURCE_USER,
            subentries_data=[agent],
            title="Server",
            unique_id=None,
            version=1,
        )
        await hass.config_entries.async_add(entry)
        await hass.async_block_till_done(wait_background_tasks=True)
        return cls.of(hass)

    @classmethod
    def of(cls, hass: HomeAssistant) -> Self:
        """Return the home of the account that is already set up."""
        source = sys.modules[f"custom_components.{DOMAIN}"].__file__
        if not Path(source or "").is_relative_to(Path.cwd()):
            raise SystemExit(f"measured would be {source}")
        entities = er.async_get(hass).entities.values()
        return cls(hass, next(e.entity_id for e in entities if (e.platform, e.domain) == (DOMAIN, "conversation")))

    async def say(self, text: str, conversation_id: str) -> float:
        """Send a sentence, and return the seconds until the end of its answer."""
        began = time.perf_counter()
        answer = await conversation.async_converse(
            self.hass, text, conversation_id, Context(), "en", agent_id=self.agent_id
        )
        took = time.perf_counter() - began
        if answer.response.error_code:
            raise SystemExit(f"a turn failed: {answer.response.error_code}")
        return took

    async def act(self, action: str, **data: Any) -> Any:
        """Perform an action, and return its response."""
        services = self.hass.services
        answers = services.supports_response(DOMAIN, action) is not SupportsResponse.NONE
        return await services.async_call(DOMAIN, action, data, blocking=True, return_response=answers)

    async def export(self) -> dict[str, Any]:
        """Return an exported conversation of one exchange, which is then no longer stored."""
        mine = {"entity_id": self.agent_id, "conversation_id": "template"}
        await self.say(_sentence(_TOPIC), "template")
        exported: dict[str, Any] = (await self.act("export_conversation", **mine))["conversation"]
        await self.act("reset_window", **mine)
        return exported

    async def fill(self, conversation_id: str, exported: Mapping[str, Any]) -> None:
        """Import an exported conversation under this id."""
        await self.act(
            "import_conversation",
            entity_id=self.agent_id,
            conversation_id=conversation_id,
            conversation=dict(exported),
        )

    async def remember(self, number: int) -> None:
        """Import this many turns into memory, one every seven minutes until now."""
        now, like = time.time(), {"kind": "turn", "conversation": "earlier", "person": None, "agent": None}
        for some in batched(range(1, number + 1), _IMPORTED, strict=False):
            turns = [
                {
                    **like,
                    "id": each,
                    "at": now - 420.0 * each,
                    "said": _sentence(topic(-each)),
                    "answer": _answer(-each),
                }
                for each in some
            ]
            await self.act("import_memories", memories=turns)
            await self.settle()

    async def tokens_of(self, conversation_id: str) -> tuple[int, int]:
        """Return the number of tokens and of exchanges in a window."""
        mine = {"entity_id": self.agent_id, "conversation_id": conversation_id}
        shown = await self.act("get_window", **mine, content="statistics")
        return int(shown["current_tokens"]), int(shown["exchange_count"])

    async def settle(self) -> None:
        """Wait until everything is written after a sentence, and move the clock forward to the next sentence."""
        await self._quiet()
        loop = self.hass.loop
        assert isinstance(loop, Loop)
        loop.ahead += _APART
        await self._quiet()

    async def _quiet(self) -> None:
        await self.hass.async_block_till_done()
        total, since = Written.total(), time.monotonic()
        while time.monotonic() - since < _QUIET:
            await asyncio.sleep(_LOOK)
            if total != (total := Written.total()):
                since = time.monotonic()


async def measure_day(tokens: int, sentences: int, remembered: int) -> Figures:
    """Return the bytes that a day writes with a window of this size, which is full from the beginning."""
    written = Written()
    with tempfile.TemporaryDirectory() as folder:
        async with model_server() as url, home_assistant(Path(folder)) as hass:
            home = await Home.add(hass, url, {"history_tokens": tokens})
            exported = await home.export()
            each = sum(message["tokens"] for message in exported["exchanges"][0]["messages"])
            await home.remember(remembered)
            await home.fill("kitchen", copied(exported, _TOPIC, tokens // each + 1, first=0))
            await home.settle()
            for number in range(_WARM_UP):
                await home.say(_sentence(topic(1_000_000 + number)), "kitchen")
                await home.settle()
            if (await home.tokens_of("kitchen"))[0] < _FULL * tokens:
                raise SystemExit("the window is not full")
            if not (await home.act("recall", query="number 1000000", kinds=["turn"]))["memories"]:
                raise SystemExit("nothing is remembered")
            before = written.now()
            for number in range(sentences):
                await home.say(_sentence(topic(2_000_000 + number)), "kitchen")
                await home.settle()
            return {name: value - before[name] for name, value in written.now().items()}


async def make(folder: str, conversations: int, exchanges: int) -> Figures:
    """Set up a home in the folder, with this many conversations, and stop it."""
    async with model_server() as url, home_assistant(Path(folder)) as hass:
        home = await Home.add(hass, url, {"history_tokens": 100_000, "max_windows": conversations + 10})
        exported = await home.export()
        for number in range(conversations):
            await home.fill(f"stored {number}", copied(exported, _TOPIC, exchanges, first=number * exchanges))
        await home.settle()
    return {}


async def measure_start(folder: str, conversations: int, exchanges: int, turns: int) -> dict[str, Any]:
    """Return the cost of that home's set-up, and the extra milliseconds of the first turn in some conversations."""
    async with model_server() as url:
        with tempfile.TemporaryDirectory() as other:
            async with home_assistant(Path(other)) as hass:
                await (await Home.add(hass, url, {})).say(_sentence(topic(0)), "kitchen")
        async with home_assistant(Path(folder)) as hass:
            (entry,) = hass.config_entries.async_entries(DOMAIN)
            hass.config_entries.async_update_entry(entry, data={**entry.data, "url": url})
            figures = await _set_up(hass, entry)
            home = Home.of(hass)
            for number in range(_WARM_UP):
                await home.settle()
                await home.say(_sentence(topic(number)), "another")
            stored = [f"stored {number * conversations // turns}" for number in range(turns)]
            later, busy = zip(*[await _later(home, each, exchanges) for each in stored], strict=True)
            return {**figures, "first turn ms": later, "first turn CPU ms": busy}


async def _set_up(hass: HomeAssistant, entry: ConfigEntry) -> Figures:
    gc.collect()
    before, began, busy = _begin_peak(), time.perf_counter(), time.process_time()
    if not await hass.config_entries.async_setup(entry.entry_id):
        raise SystemExit("the account is not set up")
    took, busy = time.perf_counter() - began, time.process_time() - busy
    await hass.async_block_till_done(wait_background_tasks=True)
    gc.collect()
    grown = {"set-up MB": _resident("VmRSS") - before, "peak MB": _resident("VmHWM") - before}
    return {"set-up s": took, "set-up CPU s": busy, **grown}


def _begin_peak() -> float:
    """Reset the peak of the resident set, and return the current resident set in megabytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _resident("VmRSS")


def _resident(name: str) -> float:
    """Return a field of /proc/self/status, a size of this process, in megabytes."""
    return int(field(Path("/proc/self/status").read_text(), name)) / 1e3


async def _later(home: Home, conversation_id: str, exchanges: int) -> tuple[float, float]:
    """Return the extra milliseconds, of real time and CPU time, of the first turn in a stored conversation."""
    took: list[tuple[float, float]] = []
    for number in range(2):
        await home.settle()
        began = time.process_time()
        seconds = await home.say(_sentence(topic(3_000_000 + number)), conversation_id)
        took.append((seconds, time.process_time() - began))
    if (await home.tokens_of(conversation_id))[1] < exchanges + 2:
        raise SystemExit(f"{conversation_id} was not restored")
    (first, busy_first), (second, busy_second) = took
    return (first - second) * 1e3, (busy_first - busy_second) * 1e3


_PARTS: Mapping[str, Callable[..., Coroutine[Any, Any, Any]]] = {
    "day": measure_day,
    "make": make,
    "start": measure_start,
}


def _take_part(name: str, arguments: str) -> None:
    """Run a part in this process, and print its result as JSON."""
    logging.disable(logging.WARNING)
    figures = asyncio.run(_PARTS[name](**json.loads(arguments)), loop_factory=Loop)
    print(json.dumps(figures))


if __name__ == "__main__":
    _take_part(*sys.argv[1:])
