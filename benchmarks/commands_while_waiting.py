"""Local commands while a question waits for its model, beside the same commands without a waiting question.

    .venv/demo/bin/python -m benchmarks.commands_while_waiting --seconds 8 40 300

The demo home runs in this process. For each scope of a conversation there are two agents with the same options and two
satellites each. The first agent is asked a question whose model is silent for the given seconds. At each tenth of that
time, both agents are sent the same commands, one after the other, from the satellite of the question and from the other
one; half way, another question follows. At the end, each sentence has to be in a window once, in the order of speech.
"""

import argparse
import asyncio
from collections import Counter, defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import batched
from statistics import median
import sys
import tempfile
import time
from typing import Any

from homeassistant.components import conversation
from homeassistant.components.intent import async_register_timer_handler
from homeassistant.components.intent.const import TIMER_DATA
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.chat_session import async_get_chat_session

from benchmarks.beside_core import SESSION_OWNER_ARGUMENTS, run_demo_home
from benchmarks.waiting import add_satellites, wait_until
import custom_components
from custom_components.windowed_conversation.agents.agent import Agent, async_find_agent
from custom_components.windowed_conversation.const import CONF_SCOPE
from custom_components.windowed_conversation.turn.context import extract_user_text
from custom_components.windowed_conversation.turn.routing import Scope
from demo.client import Client
from demo.home import set_up_home
from demo.home_assistant import REPOSITORY
from demo.model_server import ModelServer
from demo.setup_agent import ModelAccess, add_account, change_agent, ensure_pipeline

_QUESTIONS = ("my name is Ada", "my name is Ben")
_TENTHS = 9
# At most this many times as late as without a waiting question.
_MAX_RATIO = 1.2
_SETTLE_SECONDS = 0.01
_SHORT_SECONDS = 30

# The seconds until the answer while a question waits and without one, by the kind of command and the satellite.
type _Times = dict[tuple[str, int], tuple[list[float], list[float]]]


@dataclass(slots=True)
class Contender:
    """An agent with two satellites, and the sentences that it was sent, in the order of speech."""

    agent: Agent
    entity_id: str
    model: ModelServer
    satellites: list[Any]
    spoken: list[str] = field(default_factory=list)

    async def ask(self, hass: HomeAssistant, question: str) -> None:
        """Ask a question in a new conversation, with a listener as the pipeline has one, so that it can be promised."""
        with (
            async_get_chat_session(hass, None, **SESSION_OWNER_ARGUMENTS) as session,
            conversation.async_get_chat_log(hass, session, chat_log_delta_listener=lambda _log, _delta: None),
        ):
            await self.converse(hass, question, conversation_id=session.conversation_id)

    async def converse(
        self, hass: HomeAssistant, text: str, satellite: int = 0, conversation_id: str | None = None
    ) -> tuple[float, str]:
        """Send a text from a satellite. Return the seconds until the answer, and the answer."""
        self.spoken.append(text)
        entity_id = self.satellites[satellite].entity_id
        device = er.async_get(hass).entities[entity_id].device_id
        own_id = f"{self.entity_id} {satellite}"
        began = time.perf_counter()
        result = await conversation.async_converse(
            hass, text, conversation_id or own_id, Context(), "en", self.entity_id, device, entity_id
        )
        return time.perf_counter() - began, result.response.speech["plain"]["speech"]


async def _add_contender(hass: HomeAssistant, client: Client, model: ModelServer, name: str, scope: Scope) -> Contender:
    name = f"{name} {scope}"
    account = await add_account(client, ModelAccess(url=model.url, model="scripted"), name)
    await change_agent(client, account, {CONF_SCOPE: scope})
    await ensure_pipeline(client, account.agent_id, name)
    # the account is loaded again with the changed scope
    await hass.async_block_till_done()
    agent = async_find_agent(hass, account.subentry_id)
    assert agent is not None
    satellites = await add_satellites(hass, name, name, 2)
    for each in satellites:
        device = er.async_get(hass).entities[each.entity_id].device_id
        assert device is not None
        async_register_timer_handler(hass, device, lambda *_: None)
    return Contender(agent, account.agent_id, model, satellites)


def _list_commands(tenth: int) -> dict[str, str]:
    return {
        "light": f"turn {'on' if tenth % 2 else 'off'} the kitchen light",
        "timer": f"set a timer for {tenth + 5} minutes",
        "memory": "what do you know about me?",
        "remember": f"remember that box {tenth} is in the cellar",
    }


async def _measure(
    hass: HomeAssistant, contenders: tuple[Contender, ...], seconds: float, lock: asyncio.Lock
) -> _Times:
    """Send commands to the agent that waits for its model and to the idle one. Return the seconds of each command."""
    times: _Times = defaultdict(lambda: ([], []))
    waiting = contenders[0]
    waiting.model.change(latency=seconds)
    asked_at = time.monotonic()
    questions = [asyncio.create_task(waiting.ask(hass, _QUESTIONS[0]))]
    for tenth in range(1, _TENTHS + 1):
        await asyncio.sleep(max(0, asked_at + seconds * tenth / 10 - time.monotonic()))
        for satellite in (0, 1):
            for kind, text in _list_commands(tenth).items():
                for at, contender in list(enumerate(contenders))[:: 1 if tenth % 2 else -1]:
                    async with lock:
                        took, answer = await contender.converse(hass, text, satellite)
                        await asyncio.sleep(_SETTLE_SECONDS)
                    times[kind, satellite][at].append(took)
                    if not answer:
                        raise SystemExit(f"{text}: no answer")
        if tenth == _TENTHS // 2 + 1:
            questions.append(asyncio.create_task(waiting.ask(hass, _QUESTIONS[1])))
            await asyncio.sleep(_SETTLE_SECONDS)
    await asyncio.gather(*questions)
    return times


def _list_faults(contender: Contender) -> list[str]:
    """Return the sentences that are missing from the windows, twice in them, or not in the order of speech."""
    contender.agent.notify_listeners()
    windows = contender.agent.windows.loaded_windows().values()
    rows = [[extract_user_text(each.messages[0].content) for each in window.exchanges()] for window in windows]
    counts, spoken = Counter(text for row in rows for text in row), Counter(contender.spoken)
    faults = [
        f"{text!r}: {counts[text]} times instead of {spoken[text]}"
        for text in counts | spoken
        if counts[text] != spoken[text]
    ]
    for row in rows:
        rest = iter(contender.spoken)
        if not all(text in rest for text in row):
            faults.append(f"not in the order of speech: {row}")
    return faults


async def _run_round(hass: HomeAssistant, client: Client, stack: AsyncExitStack, seconds: float) -> int:
    lock = asyncio.Lock()
    pairs: dict[Scope, tuple[Contender, ...]] = {}
    for scope in Scope:
        # an account for each, and two accounts cannot have the same server
        pairs[scope] = tuple(
            [
                await _add_contender(
                    hass, client, await stack.enter_async_context(ModelServer()), f"{name} {seconds:g}", scope
                )
                for name in ("Waiting", "Idle")
            ]
        )
    await hass.async_block_till_done()
    for pair in pairs.values():
        for contender in pair:
            for text in _list_commands(0).values():
                await contender.converse(hass, text)
    measured: dict[Scope, _Times] = {}
    # in a short wait, the commands of all scopes would be at work at the same time
    for group in batched(Scope, 1 if seconds < _SHORT_SECONDS else len(Scope), strict=False):
        times = await asyncio.gather(*(_measure(hass, pairs[scope], seconds, lock) for scope in group))
        measured |= zip(group, times, strict=True)
    for pair in pairs.values():
        if seconds >= pair[0].agent.config.turn_timeout:
            # questions without an answer leave no exchange
            pair[0].spoken = [text for text in pair[0].spoken if text not in _QUESTIONS]
    await wait_until(lambda: not any(_list_faults(pair[0]) for pair in pairs.values()), 2 * seconds + 30)
    return sum(_print_row(f"{seconds:5g} s  {scope:<13}", pairs[scope][0], times) for scope, times in measured.items())


def _print_row(name: str, waiting: Contender, times: _Times) -> int:
    """Print the times and the faults of an agent. Return the number of faults; a late command is one."""
    late = 0
    for satellite, place in enumerate(("the same", "another")):
        rows = {kind: row for (kind, at), row in times.items() if at == satellite}
        medians = ", ".join(
            f"{kind} {median(row[0]) * 1e3:.1f}/{median(row[1]) * 1e3:.1f}" for kind, row in rows.items()
        )
        ratio = median([first / second for row in rows.values() for first, second in zip(*row, strict=True)])
        late += ratio > _MAX_RATIO
        longest = max(took for row in rows.values() for took in row[0]) * 1e3
        print(f"{name} {place:<9} {ratio:5.2f}  {medians}; longest {longest:.0f}")
    faults = _list_faults(waiting)
    print(f"{name} {len(waiting.spoken)} sentences, {len(faults)} faults", *faults, sep="\n  ", flush=True)
    return len(faults) + late


async def _run(folder: str, silences: list[float]) -> int:
    async with AsyncExitStack() as stack:
        hass, client = await stack.enter_async_context(run_demo_home(folder))
        await set_up_home(client)
        print("   wait  scope         satellite ratio  milliseconds while a question waits/without")
        faults = sum([await _run_round(hass, client, stack, seconds) for seconds in silences])
        for timer in [*hass.data[TIMER_DATA].timers]:
            hass.data[TIMER_DATA].cancel_timer(timer)
    return faults


def main() -> int:
    """Run the benchmark; the exit code says whether a command was late, or a sentence lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, nargs="+", default=[8], help="how long the model is silent")
    arguments = parser.parse_args()
    custom_components.__path__.append(str(REPOSITORY / "demo"))
    with tempfile.TemporaryDirectory() as folder:
        return int(asyncio.run(_run(folder, arguments.seconds)) > 0)


if __name__ == "__main__":
    sys.exit(main())
