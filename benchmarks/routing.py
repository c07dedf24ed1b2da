"""Routing and its speed: this agent, Home Assistant's own agent, and its pipeline with "prefer_local_intents".

    .venv/demo/bin/python -m benchmarks.routing
    .venv/test/bin/python -m benchmarks.routing

1. Each set of `tests/routing`: the number of sentences that were answered locally and correctly, answered locally and
wrongly, handed to the model needlessly, and handed to the model correctly; then each wrong answer of this agent, with
intent and slots. Home Assistant's own agent has no model: its error responses count as handed to a model.

2. Sentences of Home Assistant's own templates: the number that Home Assistant handles correctly, and those of them that
this agent handles differently.

3. The delay of the request after a local miss, compared to the routing "model_only", and the cost of a local hit,
compared to Home Assistant's own agent. The two agents take turns, each sentence is new, and both ratios are of medians.

Everything runs in one process, including the model's server, which counts requests and answers all of them alike.
"""

import argparse
import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
import logging

from homeassistant.components.conversation import HOME_ASSISTANT_AGENT
from homeassistant.const import __version__

from benchmarks.in_process import run_home_assistant
from benchmarks.pipeline import make_pipeline_sayer
from benchmarks.routing_times import compare_times
from custom_components.windowed_conversation.const import CONF_ROUTING
from custom_components.windowed_conversation.turn.routing import RoutingMode
from tests.routing import official
from tests.routing.agents import add_agent
from tests.routing.homes import build
from tests.routing.judge import JudgedCase, Verdict, count, judge_set, sayer
from tests.routing.kept import kept
from tests.routing.own_sets import LANGUAGES, file_of, full_home, own, read_empty_home_set
from tests.routing.sets import Set, assist_mini, assist_mini_names, hard, intents
from tests.routing.stub import Stub

_OURS = "Windowed Conversation"
_OFFICIAL_SENTENCES = 200
_HOME_SIZES = (50, 500, 2000)


def _iter_sets() -> Iterator[tuple[str, list[Set]]]:
    """Yield titles, each with the sets that are counted together under it."""
    yield "hard", [hard()]
    yield "intents", [intents()]
    yield "assist-mini", [assist_mini(name) for name in assist_mini_names()]
    for language in LANGUAGES:
        yield f"own, {language}", [own(language)]
        yield f"own, {language}, empty home", [read_empty_home_set(language)]


async def _judge_set(one_set: Set) -> Mapping[str, list[JudgedCase]]:
    """Return each contender's answers to a set with their verdicts; all contenders share one home."""
    async with AsyncExitStack() as stack:
        stub = await stack.enter_async_context(Stub())
        hass = await stack.enter_async_context(run_home_assistant())
        home = await build(hass, one_set.plan)
        ours = await add_agent(hass, stub.url)
        asks_always = await add_agent(hass, stub.url, **{CONF_ROUTING: RoutingMode.MODEL_ONLY})
        contenders = {
            _OURS: sayer(home, ours, stub),
            "Home Assistant's agent": sayer(home, HOME_ASSISTANT_AGENT),
            "its pipeline": await make_pipeline_sayer(home, asks_always, stub),
        }
        return {name: await judge_set(home, one_set, say) for name, say in contenders.items()}


async def _compare_sets() -> None:
    print(f"{'set':<24}{'':<24}" + "".join(f"{verdict:>22}" for verdict in Verdict))
    wrong: list[JudgedCase] = []
    for title, sets in _iter_sets():
        judged = [await _judge_set(one_set) for one_set in sets]
        for name in judged[0]:
            results = [each for of in judged for each in of[name]]
            print(f"{title:<24}{name:<24}" + _format_counts(results))
        wrong += [each for of in judged for each in of[_OURS] if each.is_wrong]
    print(f"\nWrong, of {_OURS}:")
    for each in wrong:
        print(f"  {each}")


async def _compare_official() -> None:
    print(f"\nSentences of Home Assistant's own templates, {_OFFICIAL_SENTENCES} of each language:")
    for language in official.LANGUAGES:
        file = file_of(language)
        async with Stub() as stub, run_home_assistant() as hass:
            home = await build(hass, full_home(file))
            say = sayer(home, await add_agent(hass, stub.url), stub)
            result = await kept(home, file, say, _OFFICIAL_SENTENCES)
        print(f"  {language}: it does {result.right} right; {_OURS} does {len(result.lost)} of these otherwise")
        for each in result.lost:
            print(f"    {each}")


def _format_counts(results: Iterable[JudgedCase]) -> str:
    counts = count(results)
    return "".join(f"{counts.get(verdict, 0):>22}" for verdict in Verdict)


async def _run_benchmark(arguments: argparse.Namespace) -> None:
    print(f"Home Assistant {__version__}\n")
    if not arguments.times_only:
        await _compare_sets()
        await _compare_official()
    for size in _HOME_SIZES:
        await compare_times(size, arguments.turns)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="Who answers, beside Home Assistant's own ways of routing.")
    parser.add_argument("--turns", type=int, default=60, help="turns of each side for the times")
    parser.add_argument("--times-only", action="store_true", help="leave the sets out")
    arguments = parser.parse_args()
    logging.disable()
    asyncio.run(_run_benchmark(arguments))


if __name__ == "__main__":
    main()
