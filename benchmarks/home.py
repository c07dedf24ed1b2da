"""The cost of questions about the home over a day, compared to core's own agent with the same scripted model.

    .venv/demo/bin/python -m benchmarks.home            (--quick, --busy, --size, --talk, --obey)

The homes and the day are those of `benchmarks.home_day`: homes of 20, 200 and 2,000 exposed entities, and a hundred
sentences in conversations of 1 to 6 sentences, in one real Home Assistant in this process. Three agents go through the
same day from the same initial state: core's `openai_conversation`, and this integration's agent with and without states
of the home, in both cases with memory, as after the set-up, and without Home Assistant's local sentences: the day has
only sentences for the model. All use the Responses API of the scripted server, which runs in a thread. The scripted
model answers a question from the states in its context; if they do not suffice, it calls get_states or GetLiveContext
with filters: a name, or an area and a domain. A command is one tool call and an answer. With `--obey`, the model also
does what sentences with MUST order: after an order to look up states with a tool, it uses none of those in its context.

Only this integration's agent with states takes the second day, after all states were registered again and the account
was reloaded: forty questions that mention no entity by name, in a home in which few entities are not in their usual
state. On the bright day, which is like the second, all blinds are open as well; they have no device class.

The server's prompt cache holds every earlier prompt, from 1,024 tokens on in steps of 128, and does not expire. A token
is four bytes of tools and messages. A cached token costs a tenth of an uncached one. Answers are not priced.

"right": the answer is true at that moment, within rounding. "in one": right answers to questions that took a single
request. "first token": the CPU time of the event loop's thread from the sentence to the first text, plus half a second
per request for the model's time to first token, which is not spent waiting here.

"stale" counts requests with a wrong state, a wrong summary of the states that are not listed, or a state in an older
message. "states" is the median number of tokens of the states in a sentence's first request.
"""

import argparse
import asyncio
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
import json
import os
import re
from statistics import median
import tempfile

from homeassistant.core import HomeAssistant

from benchmarks.beside_core import Contender, add_core_agent, run_demo_home, take_turn
from benchmarks.home_busy import measure_busy
from benchmarks.home_day import CONVERSATION_LENGTHS, Sentence, SimulatedDay
from benchmarks.house import DayHouse
from demo.client import Client
from demo.model_server import ModelServer, serve_in_thread
from demo.setup_agent import Account, ModelAccess, add_account, change_agent

HOME_SIZES = (20, 200, 2_000)

_MODEL_NAME = "gpt-4o-mini"
_API_KEY = "scripted-key"
_CACHED_TOKEN_PRICE = 0.1
# Maximum price of this integration's agent relative to core's, by the size of the home.
_MAX_PRICE_BY_SIZE = {20: 0.80, 200: 0.78, 2_000: 0.68}
_MAX_STATE_TOKENS = 240
_BYTES_PER_TOKEN = 4
_STATES_PATTERN = re.compile(r"; states: ([^\]]*)\]")
# Seconds from a request to the beginning of its answer.
_FIRST_TOKEN_SECONDS = 0.5


@dataclass(slots=True)
class DayBill:
    """The totals of a day; `first_token_seconds` has the time to first token of each sentence, in seconds."""

    question_count: int = 0
    right_answers: int = 0
    right_in_one_request: int = 0
    right_commands: int = 0
    request_count: int = 0
    token_count: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    stale_requests: int = 0
    state_tokens: list[int] = field(default_factory=list)
    first_token_seconds: list[float] = field(default_factory=list)

    @property
    def cached_share(self) -> float:
        """The share of the input that was cached."""
        return self.cached_tokens / self.token_count

    @property
    def price_tokens(self) -> float:
        """The price of the input, in uncached tokens."""
        return self.token_count - (1 - _CACHED_TOKEN_PRICE) * self.cached_tokens

    def format_row(self, name: str) -> str:
        """Return the row of the table for this bill."""
        one = f"{self.right_in_one_request / self.question_count:.0%}"
        right = f"{self.right_answers}/{self.question_count}"
        return (
            f"  {name:<22}{right:>9}{one:>9}{self.request_count:>10}{self.token_count:>12,}"
            f"{self.cached_tokens:>12,}{self.cached_share:>8.1%}"
            f"{self.price_tokens:>11,.0f}{self.output_tokens:>9,}"
            f"{median(self.first_token_seconds):>13.2f}{sum(self.first_token_seconds):>9.0f}{median(self.state_tokens):>8.0f}"
            f"{self.stale_requests:>7}"
        )


class DayRunner:
    """One home, one day and the scripted server."""

    def __init__(self, hass: HomeAssistant, house: DayHouse, day: SimulatedDay, server: ModelServer) -> None:
        self._hass = hass
        self._house = house
        self._day = day
        self._server = server

    async def take_day(self, contender: Contender) -> DayBill:
        """Send the sentences of the day to an agent, from the initial state of the home."""
        self._house.start_day()
        return await self._take_sentences(contender, self._day.sentences)

    async def take_second_day(self, contender: Contender, entry_id: str, *, is_bright: bool = False) -> DayBill:
        """Send the sentences of the second or the bright day to an agent, after all states were registered again."""
        self._house.start_second_day(is_bright=is_bright)
        await self._hass.config_entries.async_reload(entry_id)
        await self.wait_for_reload()
        return await self._take_sentences(contender, self._day.iter_second_day(is_bright=is_bright))

    async def wait_for_reload(self) -> None:
        """Wait until an account is reloaded, and its background tasks have loaded what a request needs."""
        await self._hass.async_block_till_done(wait_background_tasks=True)

    async def _take_sentences(self, contender: Contender, sentences: Iterable[Sentence]) -> DayBill:
        server, house = self._server, self._house
        server.cache.clear()
        server.home_history = house.history
        bill = DayBill()
        conversations: dict[int, str | None] = {}
        for sentence in sentences:
            for change in sentence.changes:
                house.set_state(change.entity_id, change.state)
            await asyncio.sleep(0)
            server.log.clear()
            device = house.get_satellite_id(sentence.area)
            taken = await take_turn(
                self._hass, contender.entity_id, sentence.text, conversations.get(sentence.conversation_number), device
            )
            conversations[sentence.conversation_number] = taken.result.conversation_id
            speech = taken.result.response.speech["plain"]["speech"]
            self._add_to_bill(bill, sentence, taken.cpu_seconds, is_right=house.is_right(sentence, speech))
        return bill

    def _add_to_bill(self, bill: DayBill, sentence: Sentence, seconds: float, *, is_right: bool) -> None:
        records = self._server.requests
        for record in records:
            assert record.usage
            bill.token_count += record.usage["prompt"]
            bill.cached_tokens += record.usage["cached"]
            bill.output_tokens += record.usage["completion"]
            bill.stale_requests += any(each.rule.startswith("states_") for each in record.violations)
        found = _STATES_PATTERN.findall(json.dumps(records[0].body, ensure_ascii=False))
        bill.state_tokens.append(len(found[-1].encode()) // _BYTES_PER_TOKEN if found else 0)
        bill.first_token_seconds.append(seconds + len(records) * _FIRST_TOKEN_SECONDS)
        bill.request_count += len(records)
        if sentence.is_question:
            bill.question_count += 1
            bill.right_answers += is_right
            bill.right_in_one_request += is_right and len(records) == 1
        else:
            bill.right_commands += is_right


async def _add_own_agent(client: Client, url: str) -> Account:
    return await add_account(
        client,
        ModelAccess(url=url, model=_MODEL_NAME, api_key=_API_KEY, form_name="openai", wire_format="responses"),
        "Ours",
    )


async def _take_all_days(client: Client, bench: DayRunner, core: Contender, ours: Account) -> Mapping[str, DayBill]:
    bills = {"core's agent": await bench.take_day(core)}
    for name, has_states in (("ours, states off", False), ("ours, states on", True)):
        await change_agent(client, ours, {"routing": "model_only", "states": has_states})
        await bench.wait_for_reload()
        bills[name] = await bench.take_day(Contender(ours.agent_id, ours.subentry_id))
    for name, is_bright in (("ours, second day", False), ("ours, bright day", True)):
        contender = Contender(ours.agent_id, ours.subentry_id)
        bills[name] = await bench.take_second_day(contender, ours.entry_id, is_bright=is_bright)
    return bills


def measure_day(size: int, talk: str, sentences: int, *, obedient: bool = False) -> Mapping[str, DayBill]:
    """Return the bill of each agent for a day. An obedient model does what sentences with MUST order."""
    with serve_in_thread(models=(_MODEL_NAME,), obedient=obedient) as server, tempfile.TemporaryDirectory() as folder:
        os.environ["OPENAI_BASE_URL"] = server.url
        return asyncio.run(_measure_day(SimulatedDay(size, talk, sentences), server, folder))


async def _measure_day(day: SimulatedDay, server: ModelServer, folder: str) -> Mapping[str, DayBill]:
    async with run_demo_home(folder) as (hass, client):
        core = await add_core_agent(hass, "openai_conversation", {"api_key": _API_KEY}, _MODEL_NAME)
        ours = await _add_own_agent(client, server.url)
        house = DayHouse(hass, day)
        await house.set_up(day, ours.entry_id)
        return await _take_all_days(client, DayRunner(hass, house, day, server), core, ours)


def _iter_goals(size: int, bills: Mapping[str, DayBill]) -> Iterator[tuple[str, str, bool]]:
    core, off, on, second, bright = bills.values()
    most, stale = _MAX_PRICE_BY_SIZE[size], sum(each.stale_requests for each in (on, second, bright))
    in_one = on.right_in_one_request / on.question_count
    requests = 1 - on.request_count / core.request_count
    price, cached = on.price_tokens / core.price_tokens, 100 * (off.cached_share - on.cached_share)
    yield "right in one request, at least 80 %", f"{in_one:.0%}", in_one >= 0.8
    yield "fewer requests than core's, at least 30 %", f"{requests:.0%}", requests >= 0.3
    yield f"price beside core's, at most {most:.0%}", f"{price:.0%}", price <= most
    yield "requests with a state that is not so, none", f"{stale}", not stale
    for name, bill in {"second": second, "bright": bright}.items() if size < HOME_SIZES[-1] else ():
        nameless, tokens = bill.right_in_one_request / bill.question_count, median(bill.state_tokens)
        yield f"{name} day, right in one request, at least 90 %", f"{nameless:.0%}", nameless >= 0.9
        yield (
            f"{name} day, tokens of the states, at most {_MAX_STATE_TOKENS}",
            f"{tokens:.0f}",
            tokens <= _MAX_STATE_TOKENS,
        )
    yield "cached share under that without states, at most 3 points", f"{cached:.1f}", cached <= 3


def _print_results(size: int, talk: str, sentences: int, bills: Mapping[str, DayBill]) -> None:
    print(f"{size:,} entities, {sentences} sentences, conversations: {talk}")
    columns = f"{'right':>9}{'in one':>9}{'requests':>10}{'tokens':>12}{'cached':>12}{'share':>8}{'price':>11}"
    print(f"  {'':<22}{columns}{'output':>9}{'first token':>13}{'in all':>9}{'states':>8}{'stale':>7}")
    for name, bill in bills.items():
        print(bill.format_row(name))
    for goal, value, is_met in _iter_goals(size, bills):
        print(f"    {goal:<60}{value:>8}  {'met' if is_met else 'MISSED'}")
    print(flush=True)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description="What questions about the home cost over a day.")
    parser.add_argument("--size", type=int, choices=HOME_SIZES, action="append", help="entities of the home")
    parser.add_argument(
        "--talk", choices=tuple(CONVERSATION_LENGTHS), action="append", help="lengths of the conversations"
    )
    parser.add_argument("--quick", action="store_true", help="twenty sentences in the smallest home")
    parser.add_argument("--busy", action="store_true", help="what states add to a turn while the home changes")
    parser.add_argument("--obey", action="store_true", help="a model that does what sentences with MUST order")
    arguments = parser.parse_args()
    if arguments.busy:
        measure_busy()
        return
    sizes = arguments.size or (HOME_SIZES[:1] if arguments.quick else HOME_SIZES)
    sentences = 20 if arguments.quick else 100
    for talk in arguments.talk or ("short",):
        for size in sizes:
            # Home Assistant can be set up only once in a process.
            with ProcessPoolExecutor(1) as process:
                bills = process.submit(measure_day, size, talk, sentences, obedient=arguments.obey).result()
                _print_results(size, talk, sentences, bills)


if __name__ == "__main__":
    main()
