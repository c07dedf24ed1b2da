"""The tokens of a request beside core's own agent, in homes of 20, 60, 200 and 600 entities.

    .venv/demo/bin/python -m benchmarks.request            (--quick, --size)

The homes and the day are those of `benchmarks.home_day`, in one real Home Assistant in this process. Core's
`openai_conversation` and this integration's agent, with all that it offers switched on, send the same sentences to the
scripted server in the format of the Responses API. A request is its instructions with the home, its tools as JSON, and
its messages, each counted with o200k_base; what the format adds around a message is not counted.

The first table has the first request of a conversation, the second one all requests of a day without Home Assistant's
local sentences. The last line has the exchanges that a model of 4,096 tokens still reads after a conversation of
twenty sentences in a home of 60 entities.

With --tools, our agent of the smallest home has the tools of Home Assistant's API for administrators and of an MCP
server, and every fifth sentence needs one of the server's. The tables have the day with all schemas in each request,
and with the tools of large sources found when they are needed. The share of the cache is that of the tokens read from
it in all input of the day, as the scripted server bills it.
"""

import argparse
import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
import json
import os
import tempfile
from typing import Any

from homeassistant.components import conversation
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import llm

from benchmarks.beside_core import Contender, add_core_agent, run_demo_home, take_turn
from benchmarks.home_day import SimulatedDay
from benchmarks.house import DayHouse
from custom_components.windowed_conversation.bridge import tool_search
from demo.client import Client
from demo.model_server import ModelServer, serve_in_thread
from demo.setup_agent import Account, ModelAccess, add_account, change_agent
from demo.tool_server import MANY_PLACES, SUBJECTS, add_tool_server, serve_tools
from tests.exact_tokens import exact_count

HOME_SIZES = (20, 60, 200, 600)

_MODEL_NAME = "gpt-4o-mini"
_API_KEY = "scripted-key"
_EVERYTHING = {"routing": "model_only", "states": True, "memory": "on"}
_TOLD_FACTS = ("remember that the bins go out on Thursdays", "remember that the router is in the cellar")
# Maximum tokens relative to core's, by the size of the home: of the first request, and of all requests of a day.
_MAX_FIRST_SHARES = {20: 0.95, 200: 0.70}
_MAX_DAY_SHARES = {20: 0.60, 200: 0.45}
_SMALL_CONTEXT_TOKENS, _SMALL_HOME_SIZE, _SMALL_SENTENCES, _MIN_KEPT_EXCHANGES = 4_096, 60, 20, 8
# Of the sentences with --tools, one in this many needs a tool of the server.
_TOOL_INTERVAL = 5
# Seconds to wait for an account to be reloaded after its agent was changed.
_RELOAD_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class CountedRequest:
    """The parts of a request, in tokens: the system prompt, the tools, and the other messages."""

    system: int
    tools: int
    messages: int

    @property
    def total(self) -> int:
        """The tokens of all parts."""
        return self.system + self.tools + self.messages


@dataclass(frozen=True, slots=True)
class RequestCosts:
    """The first request of an agent, the number of requests of its day, and their tokens."""

    first: CountedRequest
    request_count: int
    day_tokens: int
    # The share of the cache in the input that the server has billed, and the rest of this input.
    cached_share: float = 0.0
    uncached_tokens: int = 0


def count_request(body: dict[str, Any]) -> CountedRequest:
    """Return the tokens of a request in the format of the Responses API."""
    system, messages = [str(body.get("instructions") or "")], list[str]()
    for item in body["input"]:
        (system if item.get("role") in ("system", "developer") else messages).append(_get_text(item))
    return CountedRequest(
        _count("\n".join(system)), _count(_to_json(body.get("tools", []))), sum(map(_count, messages))
    )


def _get_text(item: dict[str, Any]) -> str:
    match item:
        case {"content": str(text)}:
            return text
        case {"content": list(parts)}:
            return "\n".join(str(part.get("text", "")) for part in parts)
    return _to_json({name: item[name] for name in ("name", "arguments", "output") if name in item})


def _to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _count(text: str) -> int:
    return exact_count(text)


class RequestCounter:
    """The sentences of a day in one home, sent to any agent, and the tokens of its requests."""

    def __init__(self, hass: HomeAssistant, house: DayHouse, server: ModelServer, user_id: str | None = None) -> None:
        self._hass = hass
        self._house = house
        self._server = server
        self._user_id = user_id

    async def measure_day(self, contender: Contender, day: SimulatedDay) -> RequestCosts:
        """Send the sentences of the day to an agent, from the initial state of the home."""
        self._house.start_day()
        self._server.home_history = self._house.history
        conversations: dict[int, str | None] = {}
        requests: list[CountedRequest] = []
        billed: Counter[str] = Counter()
        for sentence in day.sentences:
            for change in sentence.changes:
                self._house.set_state(change.entity_id, change.state)
            await asyncio.sleep(0)
            device = self._house.get_satellite_id(sentence.area)
            conversation_id = conversations.get(sentence.conversation_number)
            self._server.log.clear()
            taken = await take_turn(
                self._hass, contender.entity_id, sentence.text, conversation_id, device, user_id=self._user_id
            )
            conversations[sentence.conversation_number] = taken.result.conversation_id
            answered = [record for record in self._server.requests if record.for_answer]
            requests += [count_request(record.body) for record in answered]
            billed.update({name: sum(each.usage.get(name, 0) for each in answered) for name in ("prompt", "cached")})
        total = sum(each.total for each in requests)
        share = billed["cached"] / billed["prompt"]
        return RequestCosts(requests[0], len(requests), total, share, billed["prompt"] - billed["cached"])

    async def count_kept_exchanges(self, contender: Contender, sentences: Sequence[str]) -> int:
        """Return the number of earlier sentences of one conversation that the request of the last one contains."""
        self._house.start_day()
        conversation_id: str | None = None
        for text in sentences:
            self._server.log.clear()
            taken = await take_turn(self._hass, contender.entity_id, text, conversation_id)
            conversation_id = taken.result.conversation_id
        asked = [item for item in self._server.requests[-1].body["input"] if item.get("role") == "user"]
        return len(asked) - 1


async def _add_own_agent(hass: HomeAssistant, client: Client, url: str) -> Account:
    account = await add_account(
        client,
        ModelAccess(url=url, model=_MODEL_NAME, api_key=_API_KEY, form_name="openai", wire_format="responses"),
        "Ours",
    )
    for text in _TOLD_FACTS:
        await conversation.async_converse(hass, text, None, Context(), "en", account.agent_id)
    return account


async def _configure(client: Client, account: Account, changes: dict[str, Any]) -> Contender:
    await change_agent(client, account, changes)
    await asyncio.sleep(_RELOAD_SECONDS)
    return Contender(account.agent_id, account.subentry_id)


def measure_size(size: int, sentences: int) -> tuple[RequestCosts, RequestCosts, int | None]:
    """Return the costs of core's agent and of ours, and the exchanges that a small model keeps in a small home."""
    with serve_in_thread(models=(_MODEL_NAME,)) as server, tempfile.TemporaryDirectory() as folder:
        os.environ["OPENAI_BASE_URL"] = server.url
        return asyncio.run(_measure_size(SimulatedDay(size, sentences=sentences), server, folder))


async def _measure_size(
    day: SimulatedDay, server: ModelServer, folder: str
) -> tuple[RequestCosts, RequestCosts, int | None]:
    async with run_demo_home(folder) as (hass, client):
        core = await add_core_agent(hass, "openai_conversation", {"api_key": _API_KEY}, _MODEL_NAME)
        account = await _add_own_agent(hass, client, server.url)
        house = DayHouse(hass, day)
        await house.set_up(day, account.entry_id)
        counter = RequestCounter(hass, house, server)
        core_costs = await counter.measure_day(core, day)
        our_costs = await counter.measure_day(await _configure(client, account, _EVERYTHING), day)
        if len(day.entities) != _SMALL_HOME_SIZE:
            return core_costs, our_costs, None
        small = await _configure(client, account, {"context_tokens": _SMALL_CONTEXT_TOKENS})
        asked = [sentence.text for sentence in day.sentences if sentence.is_question][:_SMALL_SENTENCES]
        return core_costs, our_costs, await counter.count_kept_exchanges(small, asked)


def measure_tools(count: int, sentences: int) -> tuple[RequestCosts, RequestCosts]:
    """Return the costs of our agent with all schemas in each request, and with tools that are found when needed."""
    with (
        serve_in_thread(models=(_MODEL_NAME,)) as server,
        serve_tools("Archive", MANY_PLACES[: count // len(SUBJECTS)]) as url,
        tempfile.TemporaryDirectory() as folder,
    ):
        day = SimulatedDay(HOME_SIZES[0], sentences=sentences)
        rows = list(product(SUBJECTS, MANY_PLACES[: count // len(SUBJECTS)]))[::7]
        asked = [f"use a tool to list the {subject} of the {place}, amount: 3" for subject, place in rows]
        day.sentences = tuple(
            replace(each, text=asked[at % len(asked)]) if at % _TOOL_INTERVAL == 0 else each
            for at, each in enumerate(day.sentences)
        )
        return asyncio.run(_measure_tools(day, server, url, folder))


async def _measure_tools(
    day: SimulatedDay, server: ModelServer, url: str, folder: str
) -> tuple[RequestCosts, RequestCosts]:
    async with run_demo_home(folder) as (hass, client):
        account = await _add_own_agent(hass, client, server.url)
        house = DayHouse(hass, day)
        await house.set_up(day, account.entry_id)
        entry_id = await add_tool_server(client, url)
        (owner,) = [user for user in await hass.auth.async_get_users() if user.is_owner]
        admin = [api.id for api in llm.async_get_apis(hass) if getattr(api, "requires_admin", False)]
        apis = ["assist", *admin, f"mcp-{entry_id}"]
        agent = await _configure(client, account, {**_EVERYTHING, "llm_hass_api": apis})
        counter = RequestCounter(hass, house, server, owner.id)
        limit, tool_search._MAX_SCHEMA_TOKENS = tool_search._MAX_SCHEMA_TOKENS, 10**9  # noqa: SLF001 - to compare
        share, tool_search._MAX_CONTEXT_SHARE = tool_search._MAX_CONTEXT_SHARE, 10**9  # noqa: SLF001
        whole = await counter.measure_day(agent, day)
        tool_search._MAX_SCHEMA_TOKENS, tool_search._MAX_CONTEXT_SHARE = limit, share  # noqa: SLF001
        return whole, await counter.measure_day(agent, day)


def _print_tools(count: int, whole: RequestCosts, found: RequestCosts) -> None:
    print(f"{count:,} tools of an MCP server, beside Home Assistant's own")
    print(f"  {'':<14}{'tools':>9}{'first':>9}{'requests':>10}{'day':>12}{'cached':>9}{'uncached':>10}")
    for name, costs in (("all sent", whole), ("found", found)):
        print(
            f"  {name:<14}{costs.first.tools:>9,}{costs.first.total:>9,}{costs.request_count:>10,}"
            f"{costs.day_tokens:>12,}{costs.cached_share:>9.1%}{costs.uncached_tokens:>10,}"
        )
    print(f"  {'found / all':<14}{found.first.total / whole.first.total:>18.2f}{'':>10}", end="")
    print(f"{found.day_tokens / whole.day_tokens:>12.2f}\n", flush=True)


def _iter_goals(size: int, shares: tuple[float, float], kept: int | None) -> Iterator[tuple[str, str, bool]]:
    for name, most, share in zip(
        ("first request", "all requests"), (_MAX_FIRST_SHARES, _MAX_DAY_SHARES), shares, strict=True
    ):
        if size in most:
            yield f"{name} beside core's, at most {most[size]:.2f}", f"{share:.2f}", share <= most[size]
    if kept is not None:
        yield (
            f"exchanges that 4,096 tokens keep, at least {_MIN_KEPT_EXCHANGES}",
            f"{kept}",
            kept >= _MIN_KEPT_EXCHANGES,
        )


def _print_results(size: int, core: RequestCosts, ours: RequestCosts, kept: int | None) -> None:
    print(f"{size:,} entities")
    print(f"  {'':<14}{'system':>9}{'tools':>9}{'messages':>10}{'first':>9}{'requests':>10}{'day':>12}")
    for name, costs in (("core's agent", core), ("ours", ours)):
        first = costs.first
        print(
            f"  {name:<14}{first.system:>9,}{first.tools:>9,}{first.messages:>10,}{first.total:>9,}"
            f"{costs.request_count:>10,}{costs.day_tokens:>12,}"
        )
    shares = ours.first.total / core.first.total, ours.day_tokens / core.day_tokens
    print(f"  {'ours / core':<14}{'':>28}{shares[0]:>9.2f}{'':>10}{shares[1]:>12.2f}")
    for goal, value, is_met in _iter_goals(size, shares, kept):
        print(f"    {goal:<60}{value:>8}  {'met' if is_met else 'MISSED'}")
    print(flush=True)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="The tokens of a request beside core's own agent.")
    parser.add_argument("--size", type=int, choices=HOME_SIZES, action="append", help="entities of the home")
    parser.add_argument("--quick", action="store_true", help="ten sentences in the smallest home")
    parser.add_argument("--tools", type=int, choices=(88, 400), action="append", help="tools of an MCP server instead")
    arguments = parser.parse_args()
    for count in arguments.tools or ():
        with ProcessPoolExecutor(1) as process:
            _print_tools(count, *process.submit(measure_tools, count, 10 if arguments.quick else 100).result())
    if arguments.tools:
        return
    sizes = arguments.size or (HOME_SIZES[:1] if arguments.quick else HOME_SIZES)
    for size in sizes:
        # Home Assistant can be set up only once in a process.
        with ProcessPoolExecutor(1) as process:
            _print_results(size, *process.submit(measure_size, size, 10 if arguments.quick else 100).result())


if __name__ == "__main__":
    main()
