"""The memory of the last turns of an agent, which the page shows whatever the record keeps.

    .venv/demo/bin/python -m benchmarks.recent_turns        (--tokens 8000)

An agent in a Home Assistant in this process takes turns with the model until its window is full. The bytes are
those that are freed when its recent turns are dropped. Requests share messages, instructions and tools with each
other and with the window, and what the window still has is not counted. `one conversation` has all turns; `dropped
conversations` has each of the last 50 turns in another full window, all of which have been dropped: the worst case.
"""

import argparse
import asyncio
import gc
import logging
import tracemalloc

from homeassistant.components.conversation import async_converse
from homeassistant.core import Context, HomeAssistant
from homeassistant.setup import async_setup_component

from benchmarks.in_process import run_home_assistant
from custom_components.windowed_conversation.agents.account import async_agent_states
from custom_components.windowed_conversation.const import CONF_HISTORY_TOKENS, CONF_ROUTING
from custom_components.windowed_conversation.turn.routing import RoutingMode
from demo.model_server.threaded import serve_in_thread
from tests.routing.agents import add_agent

_TURNS = 50
_STORE_SECONDS = 5.0
_CHARS_PER_TOKEN = 4
# The text of a turn, in tokens, is long enough to fill a window soon.
_TURN_TOKENS = 250
_WORDS = "the river and the old mill, "


async def _take_turns(hass: HomeAssistant, agent: str, names: list[str], first: int) -> None:
    for number, name in enumerate(names, first):
        text = f"explain number {number}, {_WORDS * (_TURN_TOKENS * _CHARS_PER_TOKEN // len(_WORDS))}"
        result = await async_converse(hass, text, name, Context(), "en", agent)
        if result.response.error_code:
            raise SystemExit(f"a turn failed: {result.response.error_code}")
        await hass.async_block_till_done()


def _measure_dropped(hass: HomeAssistant) -> int:
    """Drop the recent turns, and return the bytes that this frees."""
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for state in async_agent_states(hass).values():
        state.recent_turns.clear()
    gc.collect()
    return before - tracemalloc.get_traced_memory()[0]


async def _measure(hass: HomeAssistant, agent: str, tokens: int) -> dict[str, int]:
    """Return the bytes that recent turns keep, in one conversation and in others that have been dropped."""
    (state,) = async_agent_states(hass).values()
    turns = 2 * tokens // _TURN_TOKENS
    await _take_turns(hass, agent, ["one"] * turns, 0)
    used = state.windows.stats()["one"].current_tokens
    one = _measure_dropped(hass)
    names = [str(number) for number in range(_TURNS)]
    await _take_turns(hass, agent, turns * names, turns)
    for name in names:
        state.windows.drop(name)
    # The store keeps exchanges until it has deleted them.
    state.conversations.store.async_save()
    await asyncio.sleep(_STORE_SECONDS)
    return {"one conversation": one, "dropped conversations": _measure_dropped(hass), "tokens in the window": used}


async def _run_benchmark(url: str, tokens: int) -> None:
    async with run_home_assistant() as hass:
        for component in ("homeassistant", "conversation", "intent"):
            assert await async_setup_component(hass, component, {})
        account_options = {CONF_HISTORY_TOKENS: tokens}
        agent = await add_agent(hass, url, account_options=account_options, **{CONF_ROUTING: RoutingMode.MODEL_ONLY})
        tracemalloc.start()
        for name, value in (await _measure(hass, agent, tokens)).items():
            print(f"{name:<24}{value:>12,}")


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="The bytes that the last turns of an agent take in memory.")
    parser.add_argument("--tokens", type=int, default=8_000, help="the size of the window")
    arguments = parser.parse_args()
    logging.disable()
    with serve_in_thread() as server:
        asyncio.run(_run_benchmark(server.url, arguments.tokens))


if __name__ == "__main__":
    main()
