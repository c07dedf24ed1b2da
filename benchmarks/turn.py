"""The cost of a turn, compared to Home Assistant's own agents in one run of one real Home Assistant.

    .venv/demo/bin/python -m benchmarks.turn

1. The first token: from the scripted server's write to the dashboard's websocket, through this agent and through core's
`llama_cpp`, which both use the same server.

2. The first token with memory: from the sentence to the first token, for agents with and without memory, in a home
whose memory has 10,000 turns and in one with 100,000. Both homes run at the same time, and each turn is a new
conversation.

3. The first token with the record of turns, at each of its levels.

4. A local command: its time over the websocket with this agent and with Home Assistant's own agent, and the number of
requests that the model's server received.

All clocks are CLOCK_MONOTONIC, which is the same in every process of a machine. Ratios are more reliable than
milliseconds: the two agents take turns, so that both are affected by the same noise.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import batched
from pathlib import Path
import random
from statistics import median, quantiles
import sys
import tempfile
import time
from typing import Any

import aiohttp

from benchmarks.household import HOUSEHOLD
from benchmarks.memory import build_memory_file
from demo.client import Client, Json, log_in_or_onboard
from demo.home import set_up_home
from demo.home_assistant import REPOSITORY, HomeAssistantProcess, find_free_port
from demo.setup_agent import ModelAccess, add_account, replace_accounts
from demo.turns import take_turn

_MODEL_NAME = "scripted"
_STORY_QUESTION = "tell me a story about the sea"
_CORE_AGENT_ID = "conversation.home_assistant"
_WARM_UP_ROUNDS = 5
_MEMORY_PATH = ".storage/windowed_conversation.db"
_MEMORY_TURN_COUNTS = (10_000, 100_000)
# Seconds over which the stored turns are spread.
_MEMORY_SPAN_SECONDS = 80 * 86_400.0
_RECORD_LEVELS = ("off", "statistics", "full")
# Seconds to wait for an account to be reloaded after its agent was changed.
_RELOAD_SECONDS = 5.0


type _ClientAndPipeline = tuple[Client, str]


@asynccontextmanager
async def run_model_server(*options: str) -> AsyncIterator[str]:
    """Run the scripted server in a separate process and yield its URL; `options` are command-line options."""
    command = (sys.executable, "-m", "demo.model_server", "--port", "0", *options)
    process = await asyncio.create_subprocess_exec(*command, cwd=REPOSITORY, stdout=asyncio.subprocess.PIPE)
    assert process.stdout
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.wait()


async def _add_llama_cpp(client: Client, url: str) -> str:
    """Add core's own integration for compatible servers, and return the entity id of its agent."""
    flows = "/api/config/config_entries/flow"
    form = await client.post(flows, {"handler": "llama_cpp"})
    form = await client.post(f"{flows}/{form['flow_id']}", {"base_url": url})
    await client.post(f"{flows}/{form['flow_id']}", {"chat_model": _MODEL_NAME})
    entities = await client.send_command("config/entity_registry/list")
    return next(str(e["entity_id"]) for e in entities if e["platform"] == "llama_cpp")


async def _add_pipeline(client: Client, agent_id: str) -> str:
    unused = (
        "stt_engine",
        "stt_language",
        "tts_engine",
        "tts_language",
        "tts_voice",
        "wake_word_entity",
        "wake_word_id",
    )
    pipeline = await client.send_command(
        "assist_pipeline/pipeline/create",
        name=agent_id,
        language="en",
        conversation_engine=agent_id,
        conversation_language="*",
        prefer_local_intents=False,
        **dict.fromkeys(unused),
    )
    return str(pipeline["id"])


async def _fetch_requests(control: aiohttp.ClientSession) -> list[Json]:
    async with control.get("control/requests") as answer:
        records: list[Json] = await answer.json()
    return [record for record in records if record["method"] == "POST"]


async def _measure_first_token(client: Client, control: aiohttp.ClientSession, pipeline: str) -> float:
    """Return the milliseconds from the server's write of the first token to its arrival on the websocket."""
    arrived: list[int] = []

    def on_event(kind: str, _: Any) -> None:
        if kind == "text" and not arrived:
            arrived.append(time.monotonic_ns())

    turn = await take_turn(client, _STORY_QUESTION, pipeline=pipeline, watch=on_event)
    if turn.error or not arrived:
        raise SystemExit(f"a turn failed: {turn.error}")
    written: int = (await _fetch_requests(control))[-1]["first_content_ns"]
    return (arrived[0] - written) / 1e6


async def _measure_local_command(client: Client, agent_id: str, text: str) -> float:
    """Return the milliseconds that a local command takes."""
    began = time.perf_counter()
    answer = await client.send_command("conversation/process", text=text, agent_id=agent_id)
    took = (time.perf_counter() - began) * 1e3
    if answer["response"]["response_type"] != "action_done":
        raise SystemExit(f"{agent_id} did not understand the command")
    return took


def _format_row(name: str, times: list[float]) -> str:
    ninety = quantiles(times, n=10)[-1]
    return f"  {name:<34}{median(times):9.2f}{ninety:9.2f}{min(times):9.2f}{max(times):9.2f}"


async def _compare_first_tokens(client: Client, control: aiohttp.ClientSession, agents: dict[str, str], n: int) -> None:
    pipelines = {name: await _add_pipeline(client, agent_id) for name, agent_id in agents.items()}
    times: dict[str, list[float]] = {name: [] for name in agents}
    for round_number in range(n + _WARM_UP_ROUNDS):
        for name, pipeline in pipelines.items():
            took = await _measure_first_token(client, control, pipeline)
            times[name] += [took] if round_number >= _WARM_UP_ROUNDS else []
    print(f"First streamed word after the server wrote it, {n} turns each (ms)")
    print(f"  {'':<34}{'median':>9}{'p90':>9}{'min':>9}{'max':>9}")
    for name in agents:
        print(_format_row(name, times[name]))
    ours, theirs = (median(times[name]) for name in agents)
    print(f"  ratio of the medians: {ours / theirs:.2f}\n")


async def _create_memory_home(stack: AsyncExitStack, folder: Path, turns: int) -> dict[str, _ClientAndPipeline]:
    """Return the two sides of a home with this many stored turns: an agent without memory, and one with memory."""
    (folder / _MEMORY_PATH).parent.mkdir(parents=True)
    # No turn is old enough to be deleted, and none belongs to a person who is not a user of this home.
    build_memory_file(
        folder / _MEMORY_PATH,
        turns,
        ("en", "en"),
        begin=time.time() - _MEMORY_SPAN_SECONDS,
        every=_MEMORY_SPAN_SECONDS / turns,
        people=(None,),
    )
    home = await stack.enter_async_context(HomeAssistantProcess(folder, find_free_port()))
    client = await stack.enter_async_context(Client(home.url, await log_in_or_onboard(home.url, "bench", "bench")))
    await client.wait_until_running()
    await set_up_home(client)
    sides: dict[str, _ClientAndPipeline] = {}
    for name, has_memory in (("without memory", False), ("with memory", True)):
        # A server can have only one account, so each agent has its own server.
        url = await stack.enter_async_context(run_model_server("--delay", "0.005"))
        account = await add_account(client, ModelAccess(url=url, model=_MODEL_NAME, has_memory=has_memory), name)
        sides[f"{turns:,} turns, {name}"] = client, await _add_pipeline(client, account.agent_id)
    await asyncio.sleep(_RELOAD_SECONDS)
    return sides


async def _compare_memory(folder: Path, n: int) -> None:
    async with AsyncExitStack() as stack:
        sides: dict[str, _ClientAndPipeline] = {}
        for turns in _MEMORY_TURN_COUNTS:
            sides |= await _create_memory_home(stack, folder / str(turns), turns)
        times: dict[str, list[float]] = {name: [] for name in sides}
        chance = random.Random(6)
        for round_number in range(n + _WARM_UP_ROUNDS):
            asked = f"{_STORY_QUESTION} and {chance.choice(HOUSEHOLD['questions'])['q']}"
            for at, name in enumerate(sides if round_number % 2 else reversed(sides)):
                client, pipeline = sides[name]
                # Home Assistant caches its result for a text, so the same text would save time for the second side.
                turn = await take_turn(client, f"{asked} number {round_number}, {at}", pipeline=pipeline)
                if turn.error or turn.first_token is None:
                    raise SystemExit(f"a turn failed: {turn.error}")
                times[name] += [turn.first_token * 1e3] if round_number >= _WARM_UP_ROUNDS else []
    print(f"First streamed word after the sentence, {n} turns each (ms)")
    print(f"  {'':<34}{'median':>9}{'p90':>9}{'min':>9}{'max':>9}")
    for name in sides:
        print(_format_row(name, times[name]))
    for without, remembering in batched(sides, 2, strict=True):
        later = median(times[remembering]) - median(times[without])
        print(f"  {remembering}: {later:+.1f} ms")
    print(flush=True)


async def _compare_record(client: Client, n: int) -> None:
    """Compare agents with different levels of the record of turns, in conversations of several turns."""
    async with AsyncExitStack() as stack:
        pipelines: dict[str, str] = {}
        for level in _RECORD_LEVELS:
            url = await stack.enter_async_context(run_model_server("--delay", "0.005"))
            account = await add_account(client, ModelAccess(url=url, model=_MODEL_NAME, record_level=level), level)
            pipelines[level] = await _add_pipeline(client, account.agent_id)
        await asyncio.sleep(_RELOAD_SECONDS)
        times: dict[str, list[float]] = {level: [] for level in _RECORD_LEVELS}
        for round_number in range(n + _WARM_UP_ROUNDS):
            for level in _RECORD_LEVELS if round_number % 2 else reversed(_RECORD_LEVELS):
                turn = await take_turn(
                    client, f"{_STORY_QUESTION}, number {round_number}, {level}", pipeline=pipelines[level]
                )
                if turn.error or turn.first_token is None:
                    raise SystemExit(f"a turn failed: {turn.error}")
                times[level] += [turn.first_token * 1e3] if round_number >= _WARM_UP_ROUNDS else []
    print(f"First streamed word after the sentence by what is recorded, {n} turns each (ms)")
    print(f"  {'':<34}{'median':>9}{'p90':>9}{'min':>9}{'max':>9}")
    for level in _RECORD_LEVELS:
        later = median(times[level]) - median(times[_RECORD_LEVELS[0]])
        print(f"{_format_row(level, times[level])}  {later:+.2f} ms")
    print(flush=True)


async def _compare_local_commands(client: Client, control: aiohttp.ClientSession, agent_id: str, n: int) -> None:
    async with control.delete("control/requests"):
        pass
    agents = {"Windowed Conversation": agent_id, "Home Assistant's own agent": _CORE_AGENT_ID}
    times: dict[str, list[float]] = {name: [] for name in agents}
    for round_number in range(n + _WARM_UP_ROUNDS):
        for at, name in enumerate(agents if round_number % 2 else reversed(agents)):
            text = f"turn {'on' if at else 'off'} the kitchen light"
            took = await _measure_local_command(client, agents[name], text)
            times[name] += [took] if round_number >= _WARM_UP_ROUNDS else []
    async with control.get("control/requests") as answer:
        seen = len(await answer.json())
    print(f"A local command over the websocket, {n} each (ms)")
    print(f"  {'':<34}{'median':>9}{'p90':>9}{'min':>9}{'max':>9}")
    for name in agents:
        print(_format_row(name, times[name]))
    ours, theirs = (median(times[name]) for name in agents)
    print(f"  ratio of the medians: {ours / theirs:.2f}; requests that the model's server saw: {seen}")


async def _run_benchmark(n: int, n_local: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await _compare_memory(Path(folder), n)
        async with run_model_server("--delay", "0.005") as url:
            home = HomeAssistantProcess(Path(folder) / "peers", find_free_port())
            async with home, Client(home.url, await log_in_or_onboard(home.url, "bench", "bench")) as client:
                await client.wait_until_running()
                await set_up_home(client)
                account = await replace_accounts(client, ModelAccess(url=url, model=_MODEL_NAME))
                agents = {
                    "Windowed Conversation": account.agent_id,
                    "core's llama_cpp": await _add_llama_cpp(client, url),
                }
                await _compare_record(client, n)
                async with aiohttp.ClientSession(base_url=url.removesuffix("v1")) as control:
                    await _compare_first_tokens(client, control, agents, n)
                    await _compare_local_commands(client, control, account.agent_id, n_local)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="What a turn costs beside Home Assistant's own agents.")
    parser.add_argument("--turns", type=int, default=50, help="turns of each agent for the first word")
    parser.add_argument("--commands", type=int, default=200, help="local commands of each agent")
    arguments = parser.parse_args()
    asyncio.run(_run_benchmark(arguments.turns, arguments.commands))


if __name__ == "__main__":
    main()
