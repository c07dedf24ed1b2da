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
from homeassistant.core import Context, CoreState, HomeAssistant
from homeassistant.helpers import entity_registry as er
from homeassistant.setup import async_setup_component

DOMAIN = "windowed_conversation"

_MODEL_NAME = "scripted"
_COMPONENTS = ("homeassistant", "conversation", "intent")
# A full window holds at least this share of its tokens, even directly after a trim.
_MIN_FULL_SHARE = 0.6
_WARM_UP_TURNS = 3
_IMPORT_BATCH_SIZE = 1_000
# Seconds without a write after which everything counts as written, between two checks, and between two sentences.
_QUIET_SECONDS = 0.5
_POLL_SECONDS = 0.02
_SENTENCE_INTERVAL_SECONDS = 288.0
# The topic in the conversation that is copied; `make_topic` never returns it, so it can be replaced safely.
_TEMPLATE_TOPIC = "the lamp and the door number none, which came to the garden with a letter"
_TOPIC_WORDS = (
    "lamp",
    "cat",
    "door",
    "garden",
    "river",
    "mill",
    "clock",
    "bread",
    "snow",
    "letter",
    "boat",
    "apple",
    "crow",
)

type ValueByMeasurement = dict[str, float]


class SkippingEventLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be moved forward: calls that are due by then run at once."""

    skipped_seconds = 0.0

    @override
    def time(self) -> float:
        return super().time() + self.skipped_seconds


class WriteCounter:
    """Counts the bytes that this process has written: in total, and in files that were replaced atomically."""

    def __init__(self) -> None:
        """Start watching for replaced files, until the process ends."""
        self._replaced_files: list[tuple[str, int]] = []
        sys.addaudithook(self._on_audit_event)

    def _on_audit_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.rename":
            with suppress(OSError):
                self._replaced_files.append((Path(os.fsdecode(arguments[1])).name, Path(arguments[0]).stat().st_size))

    @staticmethod
    def read_total_bytes() -> int:
        """Return the bytes that were written to all files."""
        return int(read_field(Path("/proc/self/io").read_text(), "wchar"))

    def measure(self) -> ValueByMeasurement:
        """Return the bytes that the integration has written: in total, as JSON, and by SQLite."""
        return split_bytes(self.read_total_bytes(), self._replaced_files)


def read_field(text: str, name: str) -> str:
    """Return the first word of a field's value in a file of /proc."""
    return next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name}:"))


def split_bytes(total: int, replaced: Iterable[tuple[str, int]]) -> ValueByMeasurement:
    """Return the bytes in total, of JSON and of SQLite, without the files that Home Assistant itself has replaced."""
    ours = theirs = 0
    for name, size in replaced:
        if name.startswith(DOMAIN):
            ours += size
        else:
            theirs += size
    return {"bytes": total - theirs, "json": ours, "sqlite": total - theirs - ours}


def make_topic(number: int) -> str:
    """Return the topic of a sentence, a different one for each number."""
    one, two, three, four = random.Random(number).sample(_TOPIC_WORDS, 4)
    return f"the {one} and the {two} number {number}, which came to the {three} with a {four}"


def _make_sentence(topic: str) -> str:
    # The text has no "me", because memory stores nothing that unknown speakers say about themselves.
    return f"explain {topic}"


def _make_answer(number: int) -> str:
    return f"Nobody knows much about {make_topic(number)}, but it is said that there were a few others with it."


def copy_exchange(exported: Mapping[str, Any], about: str, number: int, first: int) -> dict[str, Any]:
    """Return an exported conversation with `number` copies of its only exchange, each about a different topic.

    The topics replace `about` and are numbered from `first`.
    """
    (exchange,) = exported["exchanges"]
    text = json.dumps(exchange)
    exchanges = [json.loads(text.replace(about, make_topic(each))) for each in range(first, first + number)]
    return {**exported, "exchanges": exchanges}


@asynccontextmanager
async def run_model_server() -> AsyncIterator[str]:
    """Run the checkout's scripted server in a separate process and yield its URL."""
    command = (sys.executable, "-m", "demo.model_server", "--port", "0", "--model", _MODEL_NAME)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def run_home_assistant(folder: Path) -> AsyncIterator[HomeAssistant]:
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
class BenchmarkHome:
    """A Home Assistant whose account is set up."""

    hass: HomeAssistant
    agent_id: str

    @classmethod
    async def add_account(cls, hass: HomeAssistant, url: str, options: Mapping[str, Any]) -> Self:
        """Add an account with one agent, set it up, and return its home."""
        agent = ConfigSubentryData(
            data={"model": _MODEL_NAME, "routing": "model_only", "llm_hass_api": []},
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
        return cls.from_account(hass)

    @classmethod
    def from_account(cls, hass: HomeAssistant) -> Self:
        """Return the home of the account that is already set up."""
        source = sys.modules[f"custom_components.{DOMAIN}"].__file__
        if not Path(source or "").is_relative_to(Path.cwd()):
            raise SystemExit(f"measured would be {source}")
        entities = er.async_get(hass).entities.values()
        return cls(hass, next(e.entity_id for e in entities if (e.platform, e.domain) == (DOMAIN, "conversation")))

    async def take_turn(self, text: str, conversation_id: str) -> float:
        """Send a sentence, and return the seconds until the end of its answer."""
        began = time.perf_counter()
        answer = await conversation.async_converse(
            self.hass, text, conversation_id, Context(), "en", agent_id=self.agent_id
        )
        took = time.perf_counter() - began
        if answer.response.error_code:
            raise SystemExit(f"a turn failed: {answer.response.error_code}")
        return took

    async def call_action(self, action: str, **data: Any) -> Any:
        """Perform an action, and return its response."""
        return await self.hass.services.async_call(DOMAIN, action, data, blocking=True, return_response=True)

    async def export_exchange(self) -> dict[str, Any]:
        """Return an exported conversation of one exchange, which is then no longer stored."""
        mine = {"entity_id": self.agent_id, "conversation_id": "template"}
        await self.take_turn(_make_sentence(_TEMPLATE_TOPIC), "template")
        exported: dict[str, Any] = (await self.call_action("get_conversation", **mine, content="export"))["export"]
        await self.call_action("delete_conversation", **mine)
        return exported

    async def import_conversation(self, conversation_id: str, exported: Mapping[str, Any]) -> None:
        """Import an exported conversation under this id."""
        await self.call_action(
            "import_conversation",
            entity_id=self.agent_id,
            conversation_id=conversation_id,
            export=dict(exported),
        )

    async def import_turns(self, number: int) -> None:
        """Import this many turns into memory, one every seven minutes until now."""
        now, like = time.time(), {"kind": "turn", "conversation": "earlier", "person": None, "agent": None}
        for some in batched(range(1, number + 1), _IMPORT_BATCH_SIZE, strict=False):
            turns = [
                {
                    **like,
                    "id": each,
                    "at": now - 420.0 * each,
                    "said": _make_sentence(make_topic(-each)),
                    "answer": _make_answer(-each),
                }
                for each in some
            ]
            await self.call_action("import_memories", memories=turns)
            await self.wait_for_writes()

    async def count_window(self, conversation_id: str) -> tuple[int, int]:
        """Return the number of tokens and of exchanges in a window."""
        mine = {"entity_id": self.agent_id, "conversation_id": conversation_id}
        shown = (await self.call_action("get_conversation", **mine, content="statistics"))["statistics"]
        return int(shown["tokens"]), int(shown["exchanges"])

    async def wait_for_writes(self) -> None:
        """Wait until everything is written after a sentence, and move the clock forward to the next sentence."""
        await self._wait_until_quiet()
        loop = self.hass.loop
        assert isinstance(loop, SkippingEventLoop)
        loop.skipped_seconds += _SENTENCE_INTERVAL_SECONDS
        await self._wait_until_quiet()

    async def _wait_until_quiet(self) -> None:
        await self.hass.async_block_till_done()
        total, since = WriteCounter.read_total_bytes(), time.monotonic()
        while time.monotonic() - since < _QUIET_SECONDS:
            await asyncio.sleep(_POLL_SECONDS)
            if total != (total := WriteCounter.read_total_bytes()):
                since = time.monotonic()


async def measure_day(tokens: int, sentences: int, remembered: int) -> ValueByMeasurement:
    """Return the bytes that a day writes with a window of this size, which is full from the beginning."""
    written = WriteCounter()
    with tempfile.TemporaryDirectory() as folder:
        async with run_model_server() as url, run_home_assistant(Path(folder)) as hass:
            home = await BenchmarkHome.add_account(hass, url, {"history_tokens": tokens})
            exported = await home.export_exchange()
            each = sum(message["tokens"] for message in exported["exchanges"][0]["messages"])
            await home.import_turns(remembered)
            await home.import_conversation(
                "kitchen", copy_exchange(exported, _TEMPLATE_TOPIC, tokens // each + 1, first=0)
            )
            await home.wait_for_writes()
            for number in range(_WARM_UP_TURNS):
                await home.take_turn(_make_sentence(make_topic(1_000_000 + number)), "kitchen")
                await home.wait_for_writes()
            if (await home.count_window("kitchen"))[0] < _MIN_FULL_SHARE * tokens:
                raise SystemExit("the window is not full")
            if not (await home.call_action("recall", query="number 1000000", kinds=["turn"]))["memories"]:
                raise SystemExit("nothing is remembered")
            before = written.measure()
            for number in range(sentences):
                await home.take_turn(_make_sentence(make_topic(2_000_000 + number)), "kitchen")
                await home.wait_for_writes()
            return {name: value - before[name] for name, value in written.measure().items()}


async def create_home(folder: str, conversations: int, exchanges: int) -> ValueByMeasurement:
    """Set up a home in the folder, with this many conversations, at most 100, and stop it."""
    async with run_model_server() as url, run_home_assistant(Path(folder)) as hass:
        home = await BenchmarkHome.add_account(hass, url, {"history_tokens": 100_000})
        exported = await home.export_exchange()
        for number in range(conversations):
            await home.import_conversation(
                f"stored {number}", copy_exchange(exported, _TEMPLATE_TOPIC, exchanges, first=number * exchanges)
            )
        await home.wait_for_writes()
    return {}


async def measure_start(folder: str, conversations: int, exchanges: int, turns: int) -> dict[str, Any]:
    """Return the cost of that home's set-up, and the extra milliseconds of the first turn in some conversations."""
    async with run_model_server() as url:
        with tempfile.TemporaryDirectory() as other:
            async with run_home_assistant(Path(other)) as hass:
                await (await BenchmarkHome.add_account(hass, url, {})).take_turn(
                    _make_sentence(make_topic(0)), "kitchen"
                )
        async with run_home_assistant(Path(folder)) as hass:
            (entry,) = hass.config_entries.async_entries(DOMAIN)
            hass.config_entries.async_update_entry(entry, data={**entry.data, "url": url})
            figures = await _measure_set_up(hass, entry)
            home = BenchmarkHome.from_account(hass)
            for number in range(_WARM_UP_TURNS):
                await home.wait_for_writes()
                await home.take_turn(_make_sentence(make_topic(number)), "another")
            stored = [f"stored {number * conversations // turns}" for number in range(turns)]
            later, busy = zip(*[await _measure_first_turn(home, each, exchanges) for each in stored], strict=True)
            return {**figures, "first turn ms": later, "first turn CPU ms": busy}


async def _measure_set_up(hass: HomeAssistant, entry: ConfigEntry) -> ValueByMeasurement:
    gc.collect()
    before, began, busy = _reset_memory_peak(), time.perf_counter(), time.process_time()
    if not await hass.config_entries.async_setup(entry.entry_id):
        raise SystemExit("the account is not set up")
    took, busy = time.perf_counter() - began, time.process_time() - busy
    await hass.async_block_till_done(wait_background_tasks=True)
    gc.collect()
    grown = {"set-up MB": _read_memory_megabytes("VmRSS") - before, "peak MB": _read_memory_megabytes("VmHWM") - before}
    return {"set-up s": took, "set-up CPU s": busy, **grown}


def _reset_memory_peak() -> float:
    """Reset the peak of the resident set, and return the current resident set in megabytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _read_memory_megabytes("VmRSS")


def _read_memory_megabytes(name: str) -> float:
    """Return a field of /proc/self/status, a size of this process, in megabytes."""
    return int(read_field(Path("/proc/self/status").read_text(), name)) / 1e3


async def _measure_first_turn(home: BenchmarkHome, conversation_id: str, exchanges: int) -> tuple[float, float]:
    """Return the extra milliseconds, of real time and CPU time, of the first turn in a stored conversation."""
    took: list[tuple[float, float]] = []
    for number in range(2):
        await home.wait_for_writes()
        began = time.process_time()
        seconds = await home.take_turn(_make_sentence(make_topic(3_000_000 + number)), conversation_id)
        took.append((seconds, time.process_time() - began))
    if (await home.count_window(conversation_id))[1] < exchanges + 2:
        raise SystemExit(f"{conversation_id} was not restored")
    (first, busy_first), (second, busy_second) = took
    return (first - second) * 1e3, (busy_first - busy_second) * 1e3


_MEASURE_BY_PART: Mapping[str, Callable[..., Coroutine[Any, Any, Any]]] = {
    "day": measure_day,
    "make": create_home,
    "start": measure_start,
}


def _run_part(name: str, arguments: str) -> None:
    """Run a part in this process, and print its result as JSON."""
    logging.disable(logging.WARNING)
    figures = asyncio.run(_MEASURE_BY_PART[name](**json.loads(arguments)), loop_factory=SkippingEventLoop)
    print(json.dumps(figures))


if __name__ == "__main__":
    _run_part(*sys.argv[1:])
