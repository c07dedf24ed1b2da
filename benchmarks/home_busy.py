"""The time that states of the home add to a turn while 2,000 entities change 50 times a second for a minute.

    .venv/demo/bin/python -m benchmarks.home --busy

Two agents of one Home Assistant, with and without states, take turns in conversations of two sentences. The cost of a
turn is the CPU time of the event loop's thread from the sentence to the end of the answer, including state changes that
happen in between; the scripted servers run in other threads. The column "source" is the time to build the live context
alone. Half of the changes of measurements are real, the others stay within rounding.

Memory is measured with tracemalloc in a second minute: Python's allocations in the modules that follow the states,
after ten seconds, once every module has warmed up, and at the end.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
import os
from pathlib import Path
from random import Random
from statistics import median
import tempfile
import time
import tracemalloc

from homeassistant.core import HomeAssistant

from benchmarks.beside_core import Contender, run_demo_home, take_turn
from benchmarks.home_day import HomeEntity, SimulatedDay
from benchmarks.house import DayHouse
from custom_components.windowed_conversation.agents.live_context import TurnContext
from custom_components.windowed_conversation.turn.context import LiveContext
from custom_components.windowed_conversation.window import Exchange
from demo.client import Client
from demo.model_server import ModelServer, serve_in_thread
from demo.setup_agent import ModelAccess, add_account, change_agent

_ENTITY_COUNT = 2_000
_CHANGES_PER_SECOND = 50
_RUN_SECONDS = 60.0
_WARM = 10.0
_RELOAD_SECONDS = 3.0
_SENTENCES = ("hello", "good evening")
_TRACED_MODULES = ("*/home/bridge/states.py", "*/home/core/home.py", "*/home/core/state_text.py")


class LiveContextTimer:
    """Measures how long the newest turn took to build its live context, in milliseconds of the thread's CPU time."""

    def __init__(self) -> None:
        self.cpu_milliseconds = 0.0
        live = TurnContext.build_live_context
        clock = self

        def timed_build(source: TurnContext, exchanges: Sequence[Exchange], limit: int) -> LiveContext:
            began = time.thread_time()
            context = live(source, exchanges, limit)
            clock.cpu_milliseconds = (time.thread_time() - began) * 1e3
            return context

        setattr(TurnContext, "build_live_context", timed_build)  # noqa: B010


def measure_busy() -> None:
    """Run the benchmark and print the results."""
    with serve_in_thread() as without, serve_in_thread() as having, tempfile.TemporaryDirectory() as folder:
        asyncio.run(_run_benchmark(without, having, folder))


async def _run_benchmark(without: ModelServer, having: ModelServer, folder: str) -> None:
    async with run_demo_home(folder) as (hass, client):
        agents = {}
        for name, server, has_states in (("states off", without, False), ("states on", having, True)):
            agents[name] = await _add_agent(client, server, name, has_states=has_states)
        day = SimulatedDay(_ENTITY_COUNT)
        house = DayHouse(hass, day)
        await house.set_up(day, hass.config_entries.async_entries("windowed_conversation")[0].entry_id)
        await _measure_turns(hass, house, day, agents)
        await _trace_memory(house, day)


async def _add_agent(client: Client, server: ModelServer, name: str, *, has_states: bool) -> Contender:
    account = await add_account(client, ModelAccess(url=server.url, model="scripted"), name)
    await change_agent(client, account, {"routing": "model_only", "states": has_states, "memory": "off"})
    await asyncio.sleep(_RELOAD_SECONDS)
    return Contender(account.agent_id, account.subentry_id)


async def _measure_turns(hass: HomeAssistant, house: DayHouse, day: SimulatedDay, agents: dict[str, Contender]) -> None:
    source, sources = LiveContextTimer(), ([], [])  # type: tuple[LiveContextTimer, tuple[list[float], list[float]]]
    turns: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in agents}
    device, before = house.get_satellite_id(day.satellite_areas[0]), _read_resident_kilobytes()
    async with _background_changes(house, day):
        ends, number = time.monotonic() + _RUN_SECONDS, 0
        while time.monotonic() < ends:
            number += 1
            for name in agents if number % 2 else reversed(agents):
                conversation: str | None = None
                for at, said in enumerate(_SENTENCES):
                    began = time.thread_time()
                    taken = await take_turn(hass, agents[name].entity_id, said, conversation, device)
                    turns[name][at].append((time.thread_time() - began) * 1e3)
                    if name == "states on":
                        sources[at].append(source.cpu_milliseconds)
                    conversation = taken.result.conversation_id
                    # Keep the work after the turn out of the next measurement.
                    await asyncio.sleep(0.1)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(
        f"{_ENTITY_COUNT:,} entities, {_CHANGES_PER_SECOND} changes a second, {number} conversations each; load {load}"
    )
    print(f"  {'median ms of processor time':<30}{'off':>9}{'on':>9}{'added':>9}{'source':>9}{'limit':>8}")
    for at, (name, limit) in enumerate((("first turn", 5), ("second turn", 5))):
        off, on = (median(turns[agent][at]) for agent in agents)
        print(f"  {name:<30}{off:>9.2f}{on:>9.2f}{on - off:>9.2f}{median(sources[at]):>9.2f}{limit:>8}")
    print(f"  resident memory: {before:,} KB before, {_read_resident_kilobytes():,} KB after")


async def _trace_memory(house: DayHouse, day: SimulatedDay) -> None:
    tracemalloc.start()
    # Change every entity first, so that all stored states are traced and only real growth is measured.
    for is_real in (False, True):
        for thing in day.entities:
            house.set_state(thing.entity_id, _choose_next_state(house, thing, Random(thing.entity_id), real=is_real))
    async with _background_changes(house, day):
        await asyncio.sleep(_WARM)
        warm = _measure_traced_kilobytes()
        await asyncio.sleep(_RUN_SECONDS - _WARM)
        end = _measure_traced_kilobytes()
    tracemalloc.stop()
    print(f"  allocated to follow the states, traced: {warm:.1f} KB after {_WARM:.0f} s, {end:.1f} KB at the end")


def _measure_traced_kilobytes() -> float:
    filters = [tracemalloc.Filter(inclusive=True, filename_pattern=each) for each in _TRACED_MODULES]
    statistics = tracemalloc.take_snapshot().filter_traces(filters).statistics("filename")
    return sum(each.size for each in statistics) / 1e3


@asynccontextmanager
async def _background_changes(house: DayHouse, day: SimulatedDay) -> AsyncIterator[None]:
    """Change the states of entities continuously in the background."""
    task = asyncio.create_task(_change_states(house, day))
    try:
        yield
    finally:
        task.cancel()


async def _change_states(house: DayHouse, day: SimulatedDay) -> None:
    chance, began, number = Random(15), time.monotonic(), 0
    while True:
        number += 1
        thing = chance.choice(day.entities)
        house.set_state(thing.entity_id, _choose_next_state(house, thing, chance))
        await asyncio.sleep(max(0, began + number / _CHANGES_PER_SECOND - time.monotonic()))


def _choose_next_state(house: DayHouse, thing: HomeEntity, chance: Random, *, real: bool | None = None) -> str:
    if thing.kind.states:
        return next(each for each in thing.kind.states if each != house.get_state(thing).state)
    step = thing.kind.real_step if (chance.random() < 0.5 if real is None else real) else 0.0
    return f"{thing.kind.initial_value + step + chance.uniform(-1, 1) * thing.kind.rounding_jitter:.2f}"


def _read_resident_kilobytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024
