"""The cost of questions about the home over a day, compared to core's own agent with the same scripted model.

    .venv/demo/bin/python -m benchmarks.home            (--quick, --busy, --size, --talk)

The homes and the day are those of `benchmarks.home_day`: homes of 20, 200 and 2,000 exposed entities, and a hundred
sentences in conversations of 1 to 6 sentences, in one real Home Assistant in this process. Three agents go through the
same day from the same initial state: core's `openai_conversation`, and this integration's agent with and without states
of the home, in both cases without memory and without Home Assistant's local sentences. All use the Responses API of the
scripted server, which runs in a thread. The scripted model answers a question from the states in its context; if they
do not suffice, it calls get_states or GetLiveContext with filters: a name, or an area and a domain. A command is one
tool call and an answer.

Only this integration's agent with states takes the second day, after all states were registered again and the account
was reloaded: forty questions that mention no entity by name, in a home in which few entities are not in their usual
state.

The server's prompt cache holds every earlier prompt, from 1,024 tokens on in steps of 128, and does not expire. A token
is four bytes of tools and messages. A cached token costs a tenth of an uncached one. Answers are not priced.

`right`: the answer is true at that moment, within rounding. `in one`: right answers to questions that took a single
request. `first token`: the CPU time of the event loop's thread from the sentence to the first text, plus half a second
per request for the model's time to first token, which is not spent waiting here.

`stale` counts requests with a wrong state, a wrong summary of the states that are not listed, or a state in an older
message.
"""

import argparse
import asyncio
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
import os
from statistics import median
import tempfile

from homeassistant.core import HomeAssistant

from benchmarks.beside_core import Contender, add_core, running_home, say
from benchmarks.home_busy import measure_busy
from benchmarks.home_day import TALKS, Day, Sentence
from benchmarks.house import House
from demo.client import Client
from demo.model_server import ModelServer, serve_in_thread
from demo.setup_agent import Account, Model, add_account, change_agent

SIZES = (20, 200, 2_000)

_MODEL = "gpt-4o-mini"
_KEY = "scripted-key"
_CACHED_PRICE = 0.1
# Maximum price of this integration's agent relative to core's, by the size of the home.
_MOST_PRICE = {20: 0.80, 200: 0.78, 2_000: 0.68}
# Seconds from a request to the beginning of its answer.
_DELAY = 0.5
# Seconds to wait for an account to be reloaded after its agent was changed.
_RELOAD = 3.0


@dataclass(slots=True)
class Bill:
    """The totals of a day; `first_tokens` has the time to first token of each sentence, in seconds."""

    questions: int = 0
    right: int = 0
    right_in_one: int = 0
    commands_right: int = 0
    requests: int = 0
    tokens: int = 0
    cached: int = 0
    stale: int = 0
    first_tokens: list[float] = field(default_factory=list)

    @property
    def hit(self) -> float:
        """The share of the input that was cached."""
        return self.cached / self.tokens

    @property
    def cost(self) -> float:
        """The price of the input, in uncached tokens."""
        return self.tokens - (1 - _CACHED_PRICE) * self.cached

    def row(self, name: str) -> str:
        """Return the row of the table for this bill."""
        one = f"{self.right_in_one / self.questions:.0%}"
        right = f"{self.right}/{self.questions}"
        return (
            f"  {name:<22}{right:>9}{one:>9}{self.requests:>10}{self.tokens:>12,}{self.hit:>9.1%}"
            f"{self.cost:>11,.0f}{median(self.first_tokens):>13.2f}{sum(self.first_tokens):>9.0f}{self.stale:>7}"
        )


class Bench:
    """One home, one day and the scripted server."""

    def __init__(self, hass: HomeAssistant, house: House, day: Day, server: ModelServer) -> None:
        self._hass = hass
        self._house = house
        self._day = day
        self._server = server

    async def take(self, contender: Contender) -> Bill:
        """Send the sentences of the day to an agent, from the initial state of the home."""
        self._house.begin()
        return await self._take(contender, self._day.sentences)

    async def take_second(self, contender: Contender, entry_id: str) -> Bill:
        """Send the sentences of the second day to an agent, after all states were registered again."""
        self._house.begin_second()
        await self._hass.config_entries.async_reload(entry_id)
        await asyncio.sleep(_RELOAD)
        return await self._take(contender, self._day.second())

    async def _take(self, contender: Contender, sentences: Iterable[Sentence]) -> Bill:
        server, house = self._server, self._house
        server.cache.clear()
        server.home = house.history
        bill = Bill()
        conversations: dict[int, str | None] = {}
        for sentence in sentences:
            for change in sentence.changes:
                house.put(change.entity_id, change.state)
            await asyncio.sleep(0)
            server.log.clear()
            device = house.satellite(sentence.area)
            taken = await say(
                self._hass, contender.entity_id, sentence.text, conversations.get(sentence.conversation), device
            )
            conversations[sentence.conversation] = taken.result.conversation_id
            speech = taken.result.response.speech["plain"]["speech"]
            self._count(bill, sentence, taken.processor, is_right=house.is_right(sentence, speech))
        return bill

    def _count(self, bill: Bill, sentence: Sentence, seconds: float, *, is_right: bool) -> None:
        records = self._server.requests
        for record in records:
            assert record.usage
            bill.tokens += record.usage["prompt"]
            bill.cached += record.usage["cached"]
            bill.stale += any(each.rule.startswith("states_") for each in record.violations)
        bill.first_tokens.append(seconds + len(records) * _DELAY)
        bill.requests += len(records)
        if sentence.is_question:
            bill.questions += 1
            bill.right += is_right
            bill.right_in_one += is_right and len(records) == 1
        else:
            bill.commands_right += is_right


async def _add_ours(client: Client, url: str) -> Account:
    return await add_account(
        client, Model(url=url, model=_MODEL, api_key=_KEY, form="openai", wire_format="responses"), "Ours"
    )


async def _days(client: Client, bench: Bench, core: Contender, ours: Account) -> Mapping[str, Bill]:
    bills = {"core's agent": await bench.take(core)}
    for name, has_states in (("ours, states off", False), ("ours, states on", True)):
        home, conversations = {"states": has_states}, {"memory": False}
        await change_agent(client, ours, {"routing": "llm_only", "home": home, "conversations": conversations})
        await asyncio.sleep(_RELOAD)
        bills[name] = await bench.take(Contender(ours.agent_id, ours.subentry_id))
    bills["ours, second day"] = await bench.take_second(Contender(ours.agent_id, ours.subentry_id), ours.entry_id)
    return bills


def measure(size: int, talk: str, sentences: int) -> Mapping[str, Bill]:
    """Return the bill of each agent for a day."""
    with serve_in_thread(models=(_MODEL,)) as server, tempfile.TemporaryDirectory() as folder:
        os.environ["OPENAI_BASE_URL"] = server.url
        return asyncio.run(_measure(Day(size, talk, sentences), server, folder))


async def _measure(day: Day, server: ModelServer, folder: str) -> Mapping[str, Bill]:
    async with running_home(folder) as (hass, client):
        core = await add_core(hass, "openai_conversation", {"api_key": _KEY}, _MODEL)
        ours = await _add_ours(client, server.url)
        house = House(hass, day)
        await house.furnish(day, ours.entry_id)
        return await _days(client, Bench(hass, house, day, server), core, ours)


def _judged(size: int, bills: Mapping[str, Bill]) -> Iterator[tuple[str, str, bool]]:
    core, off, on, second = bills.values()
    most, nameless = _MOST_PRICE[size], second.right_in_one / second.questions
    in_one = on.right_in_one / on.questions
    requests = 1 - on.requests / core.requests
    price, cached = on.cost / core.cost, 100 * (off.hit - on.hit)
    yield "right in one request, at least 80 %", f"{in_one:.0%}", in_one >= 0.8
    yield "fewer requests than core's, at least 30 %", f"{requests:.0%}", requests >= 0.3
    yield f"price beside core's, at most {most:.0%}", f"{price:.0%}", price <= most
    yield "requests with a state that is not so, none", f"{on.stale + second.stale}", not on.stale + second.stale
    if size < SIZES[-1]:
        yield "second day, right in one request, at least 90 %", f"{nameless:.0%}", nameless >= 0.9
    yield "cached share under that without states, at most 3 points", f"{cached:.1f}", cached <= 3


def _print(size: int, talk: str, sentences: int, bills: Mapping[str, Bill]) -> None:
    print(f"{size:,} entities, {sentences} sentences, conversations: {talk}")
    columns = f"{'right':>9}{'in one':>9}{'requests':>10}{'tokens':>12}{'cached':>9}{'price':>11}{'first token':>13}"
    print(f"  {'':<22}{columns}{'in all':>9}{'stale':>7}")
    for name, bill in bills.items():
        print(bill.row(name))
    for goal, value, is_met in _judged(size, bills):
        print(f"    {goal:<60}{value:>8}  {'met' if is_met else 'MISSED'}")
    print(flush=True)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="What questions about the home cost over a day.")
    parser.add_argument("--size", type=int, choices=SIZES, action="append", help="entities of the home")
    parser.add_argument("--talk", choices=tuple(TALKS), action="append", help="lengths of the conversations")
    parser.add_argument("--quick", action="store_true", help="twenty sentences in the smallest home")
    parser.add_argument("--busy", action="store_true", help="what states add to a turn while the home changes")
    arguments = parser.parse_args()
    if arguments.busy:
        measure_busy()
        return
    sizes = arguments.size or (SIZES[:1] if arguments.quick else SIZES)
    sentences = 20 if arguments.quick else 100
    for talk in arguments.talk or ("short",):
        for size in sizes:
            # Home Assistant can be set up only once in a process.
            with ProcessPoolExecutor(1) as process:
                _print(size, talk, sentences, process.submit(measure, size, talk, sentences).result())


if __name__ == "__main__":
    main()
