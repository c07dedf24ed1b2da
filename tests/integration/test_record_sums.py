"""Tests that the record, the sensors and the server's log have exactly equal token totals over turns of all kinds.

Set `RECORD_TURNS=10000 RECORD_SEED=1` to run more turns than the test suite does.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
import os
import random

from genai_prices import Usage as PricedUsage, calc_price
from homeassistant.components import conversation
from homeassistant.const import CONF_MODEL, CONF_URL
from homeassistant.core import Context, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.agent import async_loaded_agents
from custom_components.windowed_conversation.const import (
    CONF_FALLBACK_AGENTS,
    CONF_HISTORY_TOKENS,
    CONF_PROVIDER,
    CONF_RECORD,
    CONF_SUMMARIZE,
    PROVIDER_OPENAI,
    RecordLevel,
)
from custom_components.windowed_conversation.memory.core import Memory
from custom_components.windowed_conversation.record import RecordedTurns, TurnListQuery, TurnRecord
from demo.model_server import ModelServer

from .conftest import AGENT, SetUpFn, flush_store, listed, until
from .more_agents import add_agent
from .remembered import memory_of

TURNS, SEED = int(os.environ.get("RECORD_TURNS", "250")), int(os.environ.get("RECORD_SEED", "0"))
MODEL = "gpt-4o-mini"

# Faults after which it is certain whether or not the client has read the usage.
_FAULTS = (
    "400",
    "404",
    "413",
    "500",
    "503",
    "quota",
    "html",
    "context_overflow",
    "cut_before_headers",
    "cut_mid_stream",
    "reset_mid_stream",
    "error_in_stream",
    "length",
    "refusal",
    "empty_answer",
)
# Faults despite which the server reports usage; None means no fault.
_WITH_USAGE = {None, "length", "refusal", "empty_answer"}
_KINDS = {"model": 45, "tool": 10, "local": 10, "fault": 20, "cancelled": 5, "reload": 2, "unknown": 3, "long": 5}


def price(usage: PricedUsage) -> Decimal:
    """Return the price of a request in US dollars."""
    return calc_price(usage, MODEL, provider_id="openai").total_price


@dataclass
class Traffic:
    """Runs random turns of all kinds; `usage`, `cost` and `request_count` are the totals of the server."""

    home: HomeAssistant
    entry: MockConfigEntry
    server: ModelServer
    random: random.Random
    usage: Counter[str] = field(default_factory=Counter)
    cost: Decimal = Decimal()
    request_count: int = 0
    cancelled_count: int = 0

    async def take(self, turns: int) -> None:
        """Take random turns and run the steps after each turn."""
        kinds = self.random.choices(list(_KINDS), list(_KINDS.values()), k=turns)
        for number, kind in enumerate(kinds):
            await getattr(self, f"_{kind}")(number)
            for agent in async_loaded_agents(self.home):
                agent.notify_listeners()
            if number % 20 == 0:
                await self._harvest()
        await self._harvest()

    async def _harvest(self) -> None:
        await self._settle()
        answers = [request for request in self.server.requests if request.for_answer]
        # If a reused connection breaks, the client repeats the request; the agent counts both attempts as one.
        repeated = {
            id(first)
            for first, second in pairwise(answers)
            if first.fault == "cut_before_headers" and first.body == second.body
        }
        self.request_count += len(answers) - len(repeated)
        for request in answers:
            if request.outcome == "answered" and request.fault in _WITH_USAGE:
                used = request.usage
                self.usage.update(used)
                self.cost += price(
                    PricedUsage(
                        input_tokens=used["prompt"],
                        cache_read_tokens=used["cached"],
                        output_tokens=used["completion"],
                    )
                )
        self.server.log.clear()

    async def _settle(self) -> None:
        """Wait for background summaries, so that the next fault does not affect one of them."""
        await self.home.async_block_till_done(wait_background_tasks=True)

    async def _say(self, text: str) -> None:
        talk = f"talk {self.random.randrange(3)}"
        await conversation.async_converse(self.home, text, talk, Context(), "en", AGENT)

    async def _model(self, number: int) -> None:
        await self._say(f"consider that number {number} is blue")

    async def _long(self, number: int) -> None:
        await self._say("tell me a story in 60 words")

    async def _unknown(self, number: int) -> None:
        await self._say("")

    async def _tool(self, number: int) -> None:
        await self._say("I would like the kitchen light switched on")

    async def _local(self, number: int) -> None:
        await self._say("turn on the kitchen light")

    async def _fault(self, number: int) -> None:
        await self._settle()
        self.server.fault(self.random.choice(_FAULTS), self.random.choice((1, 1, 2)))
        await self._say(f"consider that number {number} is red")
        self.server.faults.armed = None

    async def _cancelled(self, number: int) -> None:
        await self._settle()
        self.server.fault(self.random.choice(("no_answer", "silence_mid_stream")), 1)
        before = self.server.open_streams
        turn = asyncio.create_task(self._say(f"consider that number {number} is gone"))
        await until(lambda: turn.done() or self.server.open_streams > before)
        turn.cancel()
        await asyncio.wait([turn])
        self.cancelled_count += turn.cancelled()
        self.server.faults.armed = None

    async def _reload(self, number: int) -> None:
        await self._settle()
        # The reload cancels a summary, whose usage then never arrives.
        hold, before = self.server.hold(2), self.server.open_streams
        turn = asyncio.create_task(self._say(f"consider that number {number} is new"))
        await until(lambda: turn.done() or self.server.open_streams > before)
        await self.home.config_entries.async_reload(self.entry.entry_id)
        hold.release()
        self.server.current_hold = None
        await asyncio.wait([turn])
        await listed(self.home)


@pytest.fixture
async def traffic(home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer) -> Traffic:
    """Return a source of turns; its agent has a fallback agent, summaries, and a model with a known price."""
    model_server.change(models=(MODEL,))
    entry = await set_up(
        account={CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url},
        options={CONF_HISTORY_TOKENS: 400, CONF_SUMMARIZE: True},
        **{CONF_MODEL: MODEL, CONF_FALLBACK_AGENTS: ["conversation.grace"], CONF_RECORD: RecordLevel.FULL},
    )
    await add_agent(home, entry, **{CONF_MODEL: MODEL})
    model_server.log.clear()
    return Traffic(home, entry, model_server, random.Random(SEED))


async def read_record(home: HomeAssistant) -> list[TurnRecord]:
    """Return all turns in the record."""

    def read(memory: Memory) -> list[TurnRecord]:
        found: list[TurnRecord] = []
        turns = RecordedTurns(memory.database)
        while page := turns.list_newest(TurnListQuery(limit=1_000, after=found[-1]["turn_id"] if found else None)):
            found += page
        return found

    return await memory_of(home).async_read(read, [])


def tokens(turns: list[TurnRecord]) -> list[dict[str, int]]:
    return [attempt["usage"] for turn in turns for attempt in turn["attempts"] if attempt["usage"] is not None]


def add_up(usages: list[dict[str, int]], name: str) -> int:
    return sum(each[name] for each in usages)


def price_usage(usage: dict[str, int]) -> Decimal:
    cached, output = usage["cached"], usage["output"]
    return price(PricedUsage(input_tokens=usage["input"], cache_read_tokens=cached, output_tokens=output))


@pytest.mark.long
@pytest.mark.timeout(300 + TURNS)
async def test_record_sensors_and_server_agree_to_the_token_and_the_cent(home: HomeAssistant, traffic: Traffic) -> None:
    await traffic.take(TURNS)
    await flush_store(home)

    turns = await read_record(home)
    used, ends = tokens(turns), Counter(turn["outcome"] for turn in turns)
    taken = [turn for turn in turns if turn["route"] != "summary"]
    statistics = next(agent for agent in async_loaded_agents(home) if agent.config.name == "Ada").statistics
    totals, costs = statistics.on_disk.totals, statistics.on_disk.costs
    answered = Counter(turn["route"] for turn in taken if turn["outcome"] == "answered")
    unknown = sum((price_usage(each) for each in tokens([turn for turn in turns if turn["cost"] is None])), Decimal())
    known = sum((Decimal(turn["cost"]) for turn in turns if turn["cost"] is not None), Decimal())

    assert len(taken) == TURNS
    assert sum(turn["requests"] for turn in turns) == traffic.request_count
    assert sum(len(turn["attempts"]) for turn in turns) == traffic.request_count
    assert [add_up(used, name) for name in ("input", "cached", "output")] == [
        traffic.usage[name] for name in ("prompt", "cached", "completion")
    ]
    assert add_up(used, "input") == totals.input_tokens == sum(turn["usage"]["input"] for turn in turns)
    assert add_up(used, "cached") == totals.cached_input_tokens == sum(turn["usage"]["cached"] for turn in turns)
    assert add_up(used, "output") == totals.output_tokens == sum(turn["usage"]["output"] for turn in turns)
    assert known == costs.known_total
    assert known + unknown == traffic.cost
    assert sum(turn["cost"] is None for turn in turns) == costs.without_price
    assert ends["cancelled"] == traffic.cancelled_count > 0
    assert memory_of(home).writer.counts.dropped == memory_of(home).writer.counts.refused == 0
    assert {"local", "model", "fallback", "summary"} <= {turn["route"] for turn in turns}
    assert totals.turns_local == answered["local"] > 0
    assert totals.turns_fallback == answered["fallback"] > 0
    assert totals.turns_model == answered["model"] + answered["fallback"]
    assert totals.turns_failed == sum(turn["outcome"] == "error" for turn in taken) > 0
    assert totals.tool_calls == sum(len(each["tools"]) for turn in taken for each in turn["attempts"]) > 0
