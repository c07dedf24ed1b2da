"""The overview of the home beside Home Assistant's own list of entities: tokens, and CPU time after a change.

    .venv/demo/bin/python -m benchmarks.overview            (--quick)

The homes are those of `benchmarks.home_day`, in a real Home Assistant in this process, with the areas on four floors
and an alias for every tenth entity. Tokens are those of o200k_base.

`core's list`: Home Assistant makes its list, as it does for every turn. `overview`: the overview is made from the
registries. `after change`: the prompt of the first turn after an entity was renamed gets the overview, which includes
making Home Assistant's list again for the comparison, with the parts of all other entities from a cache. `next turn`:
the prompt of a turn without such a change. All are medians of CPU time, in one run.
"""

import argparse
import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from statistics import median
import time

from homeassistant.components.homeassistant import llm as home_llm
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import area_registry as ar, entity_registry as er, floor_registry as fr, llm
from homeassistant.setup import async_setup_component
from homeassistant.util import yaml as yaml_util

from benchmarks.home_day import SimulatedDay
from benchmarks.in_process import run_home_assistant
from custom_components.windowed_conversation.home.bridge.overview import build_overview
from custom_components.windowed_conversation.home.bridge.states import HomeStates
from custom_components.windowed_conversation.window import EstimatedCounter
from tests.exact_tokens import exact_count

HOME_SIZES = (20, 200, 2_000)

_ROUNDS = 15
_ALIAS_INTERVAL = 10
_FLOOR_NAMES = ("Ground floor", "Upper floor", "Attic", "Basement")
# The most CPU time for making the overview of the largest home, in milliseconds.
_MAX_OVERVIEW_MS = 5.0
_ASSISTANT = "conversation"


@dataclass(frozen=True, slots=True)
class Measurement:
    """The sizes in tokens and the CPU times in milliseconds for a home."""

    core_tokens: int
    overview_tokens: int
    core_ms: float
    overview_ms: float
    changed_ms: float
    next_turn_ms: float


def measure_overview(size: int) -> Measurement:
    """Return the measurement for a home with this number of entities."""
    return asyncio.run(_measure_overview(size))


async def _measure_overview(size: int) -> Measurement:
    async with run_home_assistant() as hass:
        for component in ("homeassistant", "conversation", "intent"):
            assert await async_setup_component(hass, component, {})
        entity_ids = _furnish(hass, SimulatedDay(size, "short", 1))
        states = HomeStates(hass)
        states.async_start()
        shorten = partial(states.overview.shorten_prompt, limit=None)
        api = await _async_get_api(hass)
        shortened = shorten(api)
        entities = home_llm.async_get_exposed_entities(hass, _ASSISTANT, include_state=False)
        changed_ms = []
        for _ in range(_ROUNDS):
            _rename_entity(hass, next(entity_ids))
            await hass.async_block_till_done()
            api = await _async_get_api(hass)
            changed_ms.append(_measure_ms(partial(shorten, api), rounds=1))
        return Measurement(
            exact_count(api.api_prompt),
            exact_count(shortened),
            _measure_ms(lambda: yaml_util.dump(_list_core_entities(hass))),
            _measure_ms(lambda: build_overview(hass, entities).build_text(None, "", EstimatedCounter().count)),
            median(changed_ms),
            _measure_ms(partial(shorten, api)),
        )


async def _async_get_api(hass: HomeAssistant) -> llm.APIInstance:
    context = llm.LLMContext("bench", Context(), "en", _ASSISTANT, None)
    return await llm.async_get_api(hass, "assist", context)


def _list_core_entities(hass: HomeAssistant) -> list[dict[str, str]]:
    return list(home_llm.async_get_exposed_entities(hass, _ASSISTANT, include_state=False).values())


def _furnish(hass: HomeAssistant, day: SimulatedDay) -> Iterator[str]:
    """Create the exposed entities of a home, and return their ids, over and over again."""
    floors = [fr.async_get(hass).async_create(name) for name in _FLOOR_NAMES]
    areas = {
        name: ar.async_get(hass).async_create(name, floor_id=floor.floor_id).id
        for name, floor in zip(day.areas, cycle(floors), strict=False)
    }
    registry = er.async_get(hass)
    for number, thing in enumerate(day.entities):
        domain, _, object_id = thing.entity_id.partition(".")
        entry = registry.async_get_or_create(
            domain, "bench", object_id, suggested_object_id=object_id, original_name=thing.name
        )
        aliases: list[str | er.ComputedNameType] = [er.COMPUTED_NAME]
        if number % _ALIAS_INTERVAL == 0:
            aliases.append(f"{thing.name} two")
        registry.async_update_entity(entry.entity_id, area_id=areas[thing.area], aliases=aliases)
        hass.states.async_set(entry.entity_id, thing.initial_state, {"friendly_name": thing.name})
        async_expose_entity(hass, _ASSISTANT, entry.entity_id, should_expose=True)
    return cycle([thing.entity_id for thing in day.entities])


def _rename_entity(hass: HomeAssistant, entity_id: str) -> None:
    registry = er.async_get(hass)
    name = registry.entities[entity_id].name
    registry.async_update_entity(entity_id, name=f"{name or entity_id} again")


def _measure_ms(work: Callable[[], object], rounds: int = _ROUNDS) -> float:
    """Return the median CPU time of some work, in milliseconds."""
    times = []
    for _ in range(rounds):
        began = time.thread_time()
        work()
        times.append(1_000 * (time.thread_time() - began))
    return median(times)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="The overview of the home beside Home Assistant's list of entities.")
    parser.add_argument("--quick", action="store_true", help="only the smaller homes")
    columns = ("tokens", "core's", "share", "core's list", "overview", "after change", "next turn")
    print(f"{'entities':>10}" + "".join(f"{column:>13}" for column in columns))
    for size in HOME_SIZES[:-1] if parser.parse_args().quick else HOME_SIZES:
        # Home Assistant can be set up only once in a process.
        with ProcessPoolExecutor(1) as process:
            found = process.submit(measure_overview, size).result()
        share = found.overview_tokens / found.core_tokens
        print(
            f"{size:>10,}{found.overview_tokens:>13,}{found.core_tokens:>13,}{share:>13.2f}{found.core_ms:>10.2f} ms"
            f"{found.overview_ms:>10.2f} ms{found.changed_ms:>10.2f} ms{found.next_turn_ms:>10.3f} ms"
        )
        if size == HOME_SIZES[-1]:
            is_met = found.overview_ms <= _MAX_OVERVIEW_MS
            print(f"making the overview, at most {_MAX_OVERVIEW_MS:.0f} ms: {'met' if is_met else 'MISSED'}")


if __name__ == "__main__":
    main()
