"""The delay of a request after a local miss, and the cost of a local hit, in homes of different sizes."""

from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from statistics import median
from time import perf_counter
from typing import Any

from homeassistant.components.conversation import HOME_ASSISTANT_AGENT, async_converse
from homeassistant.core import Context, HomeAssistant

from benchmarks.in_process import run_home_assistant
from custom_components.windowed_conversation.const import CONF_ROUTING
from custom_components.windowed_conversation.turn.routing import RoutingMode
from tests.routing.agents import add_agent
from tests.routing.entities import Spec
from tests.routing.homes import HomePlan, build
from tests.routing.stub import Stub

_AREA_COUNT = 20
_WARM_UP_ROUNDS = 5

type _MeasureFunction = Callable[[int], Coroutine[Any, Any, float]]


async def compare_times(entities: int, turns: int) -> None:
    """Print both comparisons for a home with this many exposed lights."""
    async with AsyncExitStack() as stack:
        stub = await stack.enter_async_context(Stub())
        hass = await stack.enter_async_context(run_home_assistant())
        await build(hass, _build_plan(entities))
        agents = {
            "local_first": await add_agent(hass, stub.url),
            "model_only": await add_agent(hass, stub.url, **{CONF_ROUTING: RoutingMode.MODEL_ONLY}),
        }
        print(f"\n{entities} exposed entities, {turns} turns each (ms)")
        misses = await _measure_alternately(
            {name: _make_miss_measure(hass, stub, agent_id) for name, agent_id in agents.items()}, turns
        )
        _print_comparison("a request leaves", misses)
        hits = await _measure_alternately(
            {
                "Windowed Conversation": _make_hit_measure(hass, agents["local_first"], entities),
                "Home Assistant's own": _make_hit_measure(hass, HOME_ASSISTANT_AGENT, entities),
            },
            turns,
        )
        _print_comparison("a local hit", hits)


def _build_plan(entities: int) -> HomePlan:
    return HomePlan(
        specs=tuple(
            Spec(f"light.lamp_{at}", f"Lamp {at}", f"area_{at % _AREA_COUNT}", None, "off", {})
            for at in range(entities)
        ),
        areas={f"area_{at}": (f"Room {at}", None) for at in range(_AREA_COUNT)},
    )


async def _measure_alternately(sides: dict[str, _MeasureFunction], turns: int) -> dict[str, list[float]]:
    """Measure the sides alternately, swapping their order in each round; every measurement gets a new number."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    number = 0
    for round_number in range(turns + _WARM_UP_ROUNDS):
        for name in sides if round_number % 2 else reversed(sides):
            took = await sides[name](number)
            number += 1
            times[name] += [took] if round_number >= _WARM_UP_ROUNDS else []
    return times


def _make_miss_measure(hass: HomeAssistant, stub: Stub, agent_id: str) -> _MeasureFunction:
    """Return a function that measures the milliseconds from a sentence for the model to the request at the server."""

    async def measure(number: int) -> float:
        began = perf_counter()
        await async_converse(hass, f"tell me about number {number}", None, Context(), "en", agent_id)
        return (stub.arrived - began) * 1e3

    return measure


def _make_hit_measure(hass: HomeAssistant, agent_id: str, entities: int) -> _MeasureFunction:
    """Return a function that measures the milliseconds of a local command with a text that is new to Home Assistant."""

    async def measure(number: int) -> float:
        # Home Assistant caches results by text. Trailing spaces make the text new without changing the command.
        text = f"turn on lamp {number % entities}" + " " * (number // entities)
        began = perf_counter()
        result = await async_converse(hass, text, None, Context(), "en", agent_id)
        took = (perf_counter() - began) * 1e3
        if result.response.as_dict()["response_type"] != "action_done":
            raise SystemExit(f"{agent_id} did not understand the command")
        return took

    return measure


def _print_comparison(what: str, times: dict[str, list[float]]) -> None:
    medians = {name: median(taken) for name, taken in times.items()}
    ours, theirs = medians.values()
    sides = ", ".join(f"{name} {value:.1f}" for name, value in medians.items())
    print(f"  {what:<18}{sides:<58}{ours - theirs:+6.1f}, ratio {ours / theirs:.2f}")
