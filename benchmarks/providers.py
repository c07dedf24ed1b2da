"""The cost of a turn with a model as the history grows, compared to core's own integration for the same provider.

    .venv/demo/bin/python -m benchmarks.providers

One real Home Assistant runs in this process and one scripted server in another; the two agents of each provider take
turns. Core's agents are set up with their own config flows. If such a flow has no field for a URL, the environment
variable that core's client reads is set (OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL); nothing in core
is patched. This integration's agent has a window of 8,000 tokens and gets the URL in its config flow.

Each turn has its own conversation, whose history is written directly into Home Assistant's chat log, and for this
integration also into the window: really exchanging 500 messages before each of some hundred turns would take hours.

First token (column "first word"): from the input to the first text in the chat log, minus the server's time to produce
it. Answer: the CPU time of the complete process until the end of the answer. Settled: the same until a tenth of a
second later, to include the work after the turn (sensors, events, and their recording by Home Assistant). Peak: the
peak of Python's allocations above the level before the turn, measured in separate turns because tracing slows them
down.
"""

import argparse
import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
import gc
import os
from statistics import median
import sys
import tempfile
import time
import tracemalloc
from typing import Any
from weakref import WeakSet

import aiohttp
from homeassistant.components import conversation
from homeassistant.components.conversation import AssistantContent, UserContent
from homeassistant.core import HomeAssistant
from homeassistant.helpers.chat_session import async_get_chat_session
from homeassistant.util.ulid import ulid_now

from benchmarks.beside_core import SESSION_OWNER_ARGUMENTS, Contender, add_core_agent, run_demo_home, take_turn
from benchmarks.turn import run_model_server
from custom_components.windowed_conversation.agents.agent import async_find_agent
from custom_components.windowed_conversation.window import Message
from demo.home import set_up_home
from demo.setup_agent import ModelAccess, add_account

_EXCHANGE_COUNTS = (5, 50, 500)
_WINDOW_TOKENS = 8_000
_STORY_QUESTION = "tell me a story about the sea"
_SETTLE_SECONDS = 0.1
_MODEL_NAMES = ("gpt-4o-mini", "claude-haiku-5-5", "gemini-3.1-flash-lite", "scripted")
_API_KEY = "scripted-key"
_CLIENT_PACKAGES = {"anthropic", "google", "httpcore", "httpcore2", "httpx", "httpx2", "openai"}

_QUESTION_TEMPLATE = "What do you know of the number {0}, and of the day on which somebody first counted up to it?"
_ANSWER_TEMPLATE = (
    "The number {0} comes after the one before it and before the one after it. Somebody counted up to it a long time "
    "ago, on a quiet day by the sea, with stones, and forgot about it in the evening when it began to rain. "
    "There is no more to tell of it than that, and it will be told in the same words whenever you ask."
)


@dataclass(frozen=True, slots=True)
class ProviderRivals:
    """Core's integration and this one for the same provider; `core` and `ours` are the inputs of their config flows."""

    domain: str
    core: Mapping[str, str]
    ours: ModelAccess


def _list_rivals(url: str) -> tuple[ProviderRivals, ...]:
    host = url.removesuffix("/v1")
    responses = ModelAccess(
        url=url,
        model=_MODEL_NAMES[0],
        api_key=_API_KEY,
        form_name="openai",
        wire_format="responses",
        window_tokens=_WINDOW_TOKENS,
    )
    claude = ModelAccess(
        url=host, model=_MODEL_NAMES[1], api_key=_API_KEY, form_name="anthropic", window_tokens=_WINDOW_TOKENS
    )
    gemini = ModelAccess(
        url=host, model=_MODEL_NAMES[2], api_key=_API_KEY, form_name="gemini", window_tokens=_WINDOW_TOKENS
    )
    key = {"api_key": _API_KEY}
    return (
        ProviderRivals("openai_conversation", key, responses),
        ProviderRivals("anthropic", key, claude),
        ProviderRivals("google_generative_ai_conversation", key, gemini),
        ProviderRivals(
            "llama_cpp", {"base_url": url}, ModelAccess(url=url, model=_MODEL_NAMES[3], window_tokens=_WINDOW_TOKENS)
        ),
    )


@dataclass(slots=True)
class TurnCosts:
    """The costs of turns: three times in milliseconds, and the peak of memory in kilobytes."""

    first_token_ms: list[float] = field(default_factory=list)
    answer_cpu_ms: list[float] = field(default_factory=list)
    settled_cpu_ms: list[float] = field(default_factory=list)
    peak_kilobytes: list[float] = field(default_factory=list)

    def calculate_medians(self) -> tuple[float, ...]:
        """Return the medians in the order of the fields."""
        return tuple(map(median, (self.first_token_ms, self.answer_cpu_ms, self.settled_cpu_ms, self.peak_kilobytes)))


class TurnRunner:
    """Runs turns in one home, and reads the log of the scripted server."""

    def __init__(self, hass: HomeAssistant, control: aiohttp.ClientSession) -> None:
        self._hass = hass
        self._control_session = control
        self._open_streams = _track_streams()

    async def measure_turn(self, contender: Contender, history: int, cost: TurnCosts) -> None:
        """Take a turn after `history` exchanges, and record its time to first token and its CPU times."""
        conversation_id = await self._create_conversation(contender, history)
        began, processor = time.monotonic_ns(), time.process_time()
        first_token = (
            await take_turn(self._hass, contender.entity_id, _STORY_QUESTION, conversation_id)
        ).first_token_ns
        cost.answer_cpu_ms.append((time.process_time() - processor) * 1e3)
        await asyncio.sleep(_SETTLE_SECONDS)
        cost.settled_cpu_ms.append((time.process_time() - processor) * 1e3)
        cost.first_token_ms.append((first_token - began - await self._read_server_nanoseconds()) / 1e6)
        await self._close_streams()

    async def trace_turn(self, contender: Contender, history: int, cost: TurnCosts) -> None:
        """Take a turn after `history` exchanges, and record its peak of memory."""
        conversation_id = await self._create_conversation(contender, history)
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        await take_turn(self._hass, contender.entity_id, _STORY_QUESTION, conversation_id)
        cost.peak_kilobytes.append((tracemalloc.get_traced_memory()[1] - before) / 1e3)
        tracemalloc.stop()
        await self._read_server_nanoseconds()
        await self._close_streams()

    async def _create_conversation(self, contender: Contender, history: int) -> str:
        """Return the id of a new conversation with this many exchanges."""
        conversation_id = ""
        said = [(_QUESTION_TEMPLATE.format(number), _ANSWER_TEMPLATE.format(number)) for number in range(history)]
        with (
            async_get_chat_session(self._hass, ulid_now(), **SESSION_OWNER_ARGUMENTS) as session,
            conversation.async_get_chat_log(self._hass, session) as chat_log,
        ):
            conversation_id = session.conversation_id
            for question, answer in said:
                chat_log.async_add_user_content(UserContent(question))
                content = AssistantContent(agent_id=contender.entity_id, content=answer)
                chat_log.async_add_assistant_content_without_tools(content)
        agent = async_find_agent(self._hass, contender.agent_id) if contender.agent_id else None
        if agent is not None:
            with agent.windows.reserve(conversation_id) as place:
                window = await place.enter()
                for question, answer in said:
                    window.add_exchange((Message.user(question), Message.assistant(answer)), tags={"route:model"})
        return conversation_id

    async def _read_server_nanoseconds(self) -> int:
        """Return the nanoseconds from a request's arrival at the server to its first token, and clear the log."""
        async with self._control_session.get("control/requests") as answer:
            record = [each for each in await answer.json() if each["method"] == "POST"][-1]
        async with self._control_session.delete("control/requests"):
            pass
        return int(record["first_content_ns"] - record["arrived_ns"])

    async def _close_streams(self) -> None:
        """Close streams that were not read to their end, as with core's llama.cpp, one generator after the other.

        Otherwise the event loop would close all of them at once when it ends, and close nested generators twice.
        """
        for generator in list(self._open_streams):
            if not generator.ag_running:
                await generator.aclose()


def _track_streams() -> WeakSet[Any]:
    """Return a weak set to which each async generator of the SDKs and HTTP clients is added when it starts."""
    streams = WeakSet[Any]()
    on_begin_of_loop: Any = sys.get_asyncgen_hooks().firstiter

    def on_first_iteration(generator: Any) -> None:
        on_begin_of_loop(generator)
        if generator.ag_frame.f_globals["__name__"].partition(".")[0] in _CLIENT_PACKAGES:
            streams.add(generator)

    sys.set_asyncgen_hooks(firstiter=on_first_iteration)
    return streams


def _format_comparison(ours: float, theirs: float) -> str:
    return f"{ours:9.1f}{theirs:9.1f}{ours / theirs:7.2f}"


async def _compare_agents(bench: TurnRunner, ours: Contender, theirs: Contender, history: int, turns: int) -> None:
    costs = {ours: TurnCosts(), theirs: TurnCosts()}
    for round_number in range(-2, turns):
        for contender in (ours, theirs) if round_number % 2 else (theirs, ours):
            await bench.measure_turn(contender, history, costs[contender] if round_number >= 0 else TurnCosts())
    for _ in range(max(2, turns // 5)):
        for contender in (ours, theirs):
            await bench.trace_turn(contender, history, costs[contender])
    pairs = zip(costs[ours].calculate_medians(), costs[theirs].calculate_medians(), strict=True)
    print(f"  {history:>9}" + "".join(_format_comparison(*pair) for pair in pairs), flush=True)


async def _run_benchmark(turns: int) -> None:
    options = [word for model in _MODEL_NAMES for word in ("--model", model)]
    with tempfile.TemporaryDirectory() as folder:
        async with run_model_server(*options) as url:
            host = url.removesuffix("/v1")
            os.environ |= {"OPENAI_BASE_URL": url, "ANTHROPIC_BASE_URL": host, "GOOGLE_GEMINI_BASE_URL": host}
            async with run_demo_home(folder) as (hass, client), aiohttp.ClientSession(base_url=f"{host}/") as control:
                await set_up_home(client)
                bench = TurnRunner(hass, control)
                print(f"Medians of {turns} turns each: ours, core's, ratio; window {_WINDOW_TOKENS:,} tokens")
                print(
                    f"  {'exchanges':>9}{'first word (ms)':>25}{'answer (ms)':>25}{'settled (ms)':>25}{'peak (KB)':>25}"
                )
                for rivals in _list_rivals(url):
                    account = await add_account(client, rivals.ours, f"Ours {rivals.domain}")
                    ours = Contender(account.agent_id, account.subentry_id)
                    theirs = await add_core_agent(hass, rivals.domain, rivals.core, rivals.ours.model)
                    print(rivals.domain, flush=True)
                    for history in _EXCHANGE_COUNTS:
                        await _compare_agents(bench, ours, theirs, history, turns)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="What a turn with a model costs beside core's own integrations.")
    parser.add_argument("--turns", type=int, default=30, help="turns of each agent for each history")
    parser.add_argument("--quick", action="store_true", help="five turns")
    arguments = parser.parse_args()
    asyncio.run(_run_benchmark(5 if arguments.quick else arguments.turns))


if __name__ == "__main__":
    main()
