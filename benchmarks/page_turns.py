"""The CPU time of a turn while the page is open, closed, and before it was ever opened.

    .venv/demo/bin/python -m benchmarks.page_turns                (--quick, --rounds)

A real Home Assistant in this process, filled as in `benchmarks.page`, a real browser, and the scripted model in a
process of its own. Blocks of turns in a short conversation, local and with the model, take turns between these states:

- closed: the browser shows a page of Home Assistant that is not ours
- other conversation: the page shows another conversation, so that it takes the figures and loads nothing
- this conversation: the page shows the conversation, and loads it again after each turn

A first block, `never opened`, is measured before the browser opens the page for the first time. A turn counts all CPU
time of the process in the seconds after its start, which include the event and what the page then loads, without the
median of the same time without a turn. Ratios are those of the medians to `closed`; the spread is the middle half.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median, quantiles
import tempfile
import time

from homeassistant.components.conversation import async_converse
from homeassistant.core import Context, HomeAssistant
from playwright.async_api import Browser

from benchmarks.beside_core import run_demo_home
from benchmarks.page import LONG, SHORT, Figures, HomeSize, fill_home, launch_browser, open_page
from benchmarks.turn import run_model_server
from demo.client import Client
from demo.home_assistant import HomeAssistantProcess, find_free_port
from tests.e2e.browser import logged_in

_NEVER, _CLOSED, _OTHER, _THIS = "never opened", "closed", "other conversation", "this conversation"
_IDLE, _LOCAL, _MODEL = "idle", "local", "model"
_OTHER_PAGE = "/profile/general"
_MAX_RATIO = 1.02
# In seconds: for the page to load what has changed, and for the browser to be quiet after it was opened.
_TURN_SECONDS = 1.2
_QUIET_SECONDS = 2.0
_TURNS_PER_BLOCK = 4


@dataclass(slots=True)
class _Turns:
    """Takes turns as the owner of a home, and has their CPU times in milliseconds, by the state and the kind."""

    hass: HomeAssistant
    agent_id: str
    user_id: str
    numbers: count[int] = field(default_factory=count)
    times: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    async def take_block(self, state: str) -> None:
        """Take some turns of each kind."""
        for _ in range(_TURNS_PER_BLOCK):
            for kind in (_IDLE, _LOCAL, _MODEL):
                took = await self._take_turn(kind)
                self.times.setdefault((state, kind), []).append(took)

    async def _take_turn(self, kind: str) -> float:
        began, until = time.process_time(), asyncio.get_running_loop().time() + _TURN_SECONDS
        number = next(self.numbers)
        if kind != _IDLE:
            switched = "on" if number % 2 else "off"
            text = f"turn {switched} the kitchen light" if kind == _LOCAL else f"explain the tide number {number}"
            who = Context(user_id=self.user_id)
            result = await async_converse(self.hass, text, SHORT, who, "en", self.agent_id)
            if result.response.error_code:
                raise SystemExit(f"a turn failed: {result.response.error_code}")
        await asyncio.sleep(until - asyncio.get_running_loop().time())
        return 1_000 * (time.process_time() - began)

    def find_times(self, state: str, kind: str) -> list[float]:
        """Return the times of turns, without the time in which nothing happens."""
        idle = median(self.times[state, _IDLE])
        return [took - idle for took in self.times[state, kind]]


@asynccontextmanager
async def _open_browser(state: str, browser: Browser, client: Client, agent_id: str) -> AsyncIterator[None]:
    """Have the browser show what a state says, and wait until it is quiet."""
    if state == _CLOSED:
        context = await logged_in(browser, client, has_motion=True)
        page = await context.new_page()
        await page.goto(f"{client.url}{_OTHER_PAGE}")
        await asyncio.sleep(_QUIET_SECONDS)
        yield
        await context.close()
    else:
        async with open_page(browser, client, agent_id, SHORT if state == _THIS else LONG, Figures()):
            await asyncio.sleep(_QUIET_SECONDS)
            yield


async def _measure_turns(hass: HomeAssistant, client: Client, agent_id: str, rounds: int) -> _Turns:
    owner = next(user.id for user in await hass.auth.async_get_users() if user.is_owner)
    turns = _Turns(hass, agent_id, owner)
    await turns.take_block("warm up")
    async with launch_browser() as browser:
        async with _open_browser(_CLOSED, browser, client, agent_id):
            for _ in range(rounds):
                await turns.take_block(_NEVER)
        states = (_CLOSED, _OTHER, _THIS)
        for number in range(rounds):
            for at in range(len(states)):
                state = states[(at + number) % len(states)]
                async with _open_browser(state, browser, client, agent_id):
                    await turns.take_block(state)
    return turns


def _print_times(turns: _Turns) -> None:
    print(f"CPU of a turn (ms){'':<22}{'median':>9}{'middle half':>18}{'ratio':>8}{'idle':>8}")
    for kind in (_LOCAL, _MODEL):
        closed = median(turns.find_times(_CLOSED, kind))
        for state in (_NEVER, _CLOSED, _OTHER, _THIS):
            times = turns.find_times(state, kind)
            least, middle, most = quantiles(times, n=4)
            idle = median(turns.times[state, _IDLE])
            print(f"{kind}, {state:<33}{middle:>9.2f}{least:>9.2f}{most:>9.2f}{middle / closed:>8.3f}{idle:>8.2f}")
    print(f"at most {_MAX_RATIO} of closed, {len(turns.times[_CLOSED, _LOCAL])} turns each")


async def _run_benchmark(rounds: int, size: HomeSize) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with run_model_server() as url:
            account = await fill_home(HomeAssistantProcess(Path(folder), find_free_port()), url, size)
            async with run_demo_home(folder) as (hass, client):
                _print_times(await _measure_turns(hass, client, account.agent_id, rounds))


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="The CPU time of a turn while the page is open.")
    parser.add_argument("--rounds", type=int, default=8, help="blocks of turns in each state")
    parser.add_argument("--quick", action="store_true", help="2 rounds, 10 conversations of 50 exchanges, 500 turns")
    arguments = parser.parse_args()
    rounds, size = (2, HomeSize(10, 50, 500)) if arguments.quick else (arguments.rounds, HomeSize())
    asyncio.run(_run_benchmark(rounds, size))


if __name__ == "__main__":
    main()
