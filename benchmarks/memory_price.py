"""The cost of memory in the prompt over a week: without memory, with the integration's memory, and as others do it.

    .venv/test/bin/python -m benchmarks.memory_price

Two people and a satellite send 120 inputs a day to one agent, each in a window of 8,000 tokens: commands, questions,
and facts to remember. The model answers all of them; every fourth turn has a tool call and therefore two requests. Two
thirds of the household's facts are known at the beginning.

*On* is the integration's own code: the profile at the end of the system prompt, which is only rebuilt when one of its
facts changes, and recalled lines in the newest message. *Others* put all facts that the person may see, and the lines
recalled for the question, into the system prompt of every turn, as home-generative-agent and Home Agent do.

A cache is simulated for each window: the leading characters that a request shares with the previous one are cached and
cost a tenth. There is no minimum length and no expiry, and writing is free. A token is four characters. The system
prompt has 500 tokens without memory; tool schemas and answers are not counted.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
import random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from home_assistant_intents import get_intents

from benchmarks import ours
from benchmarks.household import HOUSEHOLD, START_TIMESTAMP
from benchmarks.workload import TOOL_NAME, build_system_prompt, estimate_tokens

if TYPE_CHECKING:
    from custom_components.windowed_conversation.memory.core import Memory, PastTurn, RecallQuery
    from custom_components.windowed_conversation.memory.turn import recall, recall_query
    from custom_components.windowed_conversation.turn import context, routing
    from custom_components.windowed_conversation.window import Message, ToolCall, Window
else:
    memory, context, recall, recall_query, routing = (
        import_module(f"windowed_conversation.{name}")
        for name in ("memory.core", "turn.context", "memory.turn.recall", "memory.turn.recall_query", "turn.routing")
    )
    Memory, PastTurn, RecallQuery = memory.Memory, memory.PastTurn, memory.RecallQuery
    Message, ToolCall, Window = ours.Message, ours.ToolCall, ours.Window

HISTORY_TOKENS = 8_000
TRIM_SHARE = 0.25
DAY_COUNT = 7
TURNS_PER_DAY = 120

_CACHED_TOKEN_PRICE = 0.1
_DAY_SECONDS = 86_400.0
_NAME_BY_PERSON = {"anna": "Anna", "ben": "Ben", None: None}
_INITIAL_FACTS = 44
_QUESTION_SHARE, _FACT_SHARE = 0.1, 0.1
_TOOL_TURN_INTERVAL = 4
_COMMAND_WORDS = frozenset(recall_query.iter_command_words(get_intents("en") or {}))
# Maximum number of turns that the others recall for each question.
_MAX_RECALLED_TURNS = 10


@dataclass(frozen=True, slots=True)
class WeekTurn:
    """The input and answer of a turn, its time and speaker, and the fact that the input states, if any."""

    timestamp: float
    person: str | None
    text: str
    answer: str
    told: dict[str, Any] | None = None


@dataclass(slots=True)
class WeekBill:
    """The totals of all requests: tokens, cached tokens, and the cost in uncached tokens."""

    request_count: int = 0
    token_count: int = 0
    cached_tokens: int = 0
    _last_request_by_window: dict[str | None, str] = field(default_factory=dict)

    def add_request(self, window: str | None, request: str) -> None:
        """Add a request; its cached part is the prefix that it shares with the previous request of the same window."""
        self.request_count += 1
        self.token_count += estimate_tokens(request)
        self.cached_tokens += estimate_tokens(
            _find_common_prefix(self._last_request_by_window.get(window, ""), request)
        )
        self._last_request_by_window[window] = request

    @property
    def cached_share(self) -> float:
        """The share of the input that was cached."""
        return self.cached_tokens / self.token_count

    @property
    def price_tokens(self) -> float:
        """The price of the input, in uncached tokens."""
        return self.token_count - (1 - _CACHED_TOKEN_PRICE) * self.cached_tokens


def _find_common_prefix(first: str, second: str) -> str:
    lengths = range(1, len(second) + 1)
    return second[: bisect_left(lengths, True, key=lambda length: not first.startswith(second[:length]))]


def iter_week(days: int = DAY_COUNT) -> Iterator[WeekTurn]:
    """Yield the turns of these days, always the same ones."""
    chance = random.Random(14)
    told = iter(HOUSEHOLD["told"][_INITIAL_FACTS:])
    for number in range(days * TURNS_PER_DAY):
        at = START_TIMESTAMP + (200 + number / TURNS_PER_DAY) * _DAY_SECONDS
        kind = chance.random()
        if kind < _FACT_SHARE and (fact := next(told, None)):
            yield WeekTurn(at, fact["who"], fact["text"], fact["reply"], fact)
        elif kind < _FACT_SHARE + _QUESTION_SHARE:
            question = chance.choice(HOUSEHOLD["questions"])
            yield WeekTurn(at, question["who"], question["q"], "I have looked that up for you, and it is as you said.")
        else:
            said, answer = chance.choice(HOUSEHOLD["commands"])
            yield WeekTurn(at, chance.choice(tuple(_NAME_BY_PERSON)), said, answer)


class WithoutMemory:
    """The window without memory."""

    def __init__(self, known: Memory) -> None:
        self.memory_store = known
        self.window_by_person = {
            who: ours.create_window(build_system_prompt(), HISTORY_TOKENS, TRIM_SHARE) for who in _NAME_BY_PERSON
        }
        self.recalled_lines: tuple[str, ...] = ()

    def open_turn(self, turn: WeekTurn) -> None:
        """Open an exchange with the input in the speaker's window."""
        self.window_by_person[turn.person].open(f"{_build_prefix(turn)}{turn.text}")

    def build_request(self, turn: WeekTurn) -> str:
        """Return the messages of the current request as one text."""
        live = context.LiveContext(context.format_context("", self.recalled_lines))
        messages = context.add_context(self.window_by_person[turn.person].messages(), _build_prefix(turn), live)
        return "\n".join(
            f"{message.role}: {message.content}{''.join(str(dict(call.arguments)) for call in message.tool_calls)}"
            for message in messages
        )


class MemoryInPrompt(WithoutMemory):
    """All facts and the recalled lines in the system prompt of every turn, as other integrations do it."""

    def open_turn(self, turn: WeekTurn) -> None:
        """Set the system prompt with the facts and recalled lines, and open an exchange."""
        facts = [fact.text for fact in self.memory_store.get_facts(turn.person)]
        found = self.memory_store.recall(
            turn.text,
            person=turn.person,
            speaker=_NAME_BY_PERSON[turn.person],
            kinds=("turn",),
            limit=_MAX_RECALLED_TURNS,
        )
        lines = [*facts, "", *(" / ".join(each.text.splitlines()) for each in found)]
        self.window_by_person[turn.person].set_system_prompt(
            f"{build_system_prompt()}\n\n" + "\n".join(f"- {line}" for line in lines)
        )
        super().open_turn(turn)


class IntegrationMemory(WithoutMemory):
    """The integration's profile in the system prompt, and recalled lines in the newest message.

    Both are built and chosen as in `agents.live_context`.
    """

    def open_turn(self, turn: WeekTurn) -> None:
        """Set the system prompt with the profile, open an exchange, and choose the lines to recall."""
        window = self.window_by_person[turn.person]
        narrator = recall.RecallText(_NAME_BY_PERSON[turn.person], datetime.fromtimestamp(turn.timestamp, UTC))
        made = recall.build_prompt_facts(self.memory_store.get_facts(turn.person), narrator, estimate_tokens)
        window.set_system_prompt(recall.append_prompt_facts(build_system_prompt(), made))
        super().open_turn(turn)
        query = RecallQuery(
            turn.text,
            turn.person,
            _NAME_BY_PERSON[turn.person],
            recall.MAX_RECALL_HITS,
            command_words=_COMMAND_WORDS,
            is_question=routing.is_question(turn.text),
        )
        find = self.memory_store.recall_relevant(query)
        known = recall.build_sent_context(window.exchanges(), made, turn.text)
        added = recall.choose_recalled_lines(
            recall.interleave_hits(*find), known, narrator, estimate_tokens, recall.MAX_RECALLED_TOKENS
        )
        self.recalled_lines = added.lines


METHOD_BY_NAME: dict[str, Callable[[Memory], WithoutMemory]] = {
    "off": WithoutMemory,
    "on": IntegrationMemory,
    "others": MemoryInPrompt,
}


def calculate_bill(way: str, said: Sequence[WeekTurn], folder: Path) -> WeekBill:
    """Return the bill for the turns, with memory used in one of `METHOD_BY_NAME`."""
    known = Memory(folder / f"{way}.db", ("en",))
    rows: dict[str | None, int] = {}
    for told in HOUSEHOLD["told"][:_INITIAL_FACTS]:
        _store_fact(known, rows, told, START_TIMESTAMP + told["day"] * _DAY_SECONDS)
    bill, side = WeekBill(), METHOD_BY_NAME[way](known)
    for number, turn in enumerate(said):
        window = side.window_by_person[turn.person]
        side.open_turn(turn)
        bill.add_request(turn.person, side.build_request(turn))
        if number % _TOOL_TURN_INTERVAL == _TOOL_TURN_INTERVAL - 1:
            call = ToolCall(f"call_{number}", TOOL_NAME, {"name": turn.text})
            window.add(Message.assistant(tool_calls=(call,)))
            window.add(Message.tool(call.id, TOOL_NAME, '{"success": [{"name": "it", "type": "entity"}]}'))
            bill.add_request(turn.person, side.build_request(turn))
        window.add(Message.assistant(turn.answer))
        window.close()
        known.add_turn(PastTurn(str(turn.person), turn.timestamp, turn.text, turn.answer, person=turn.person))
        if turn.told:
            _store_fact(known, rows, turn.told, turn.timestamp)
    known.close()
    return bill


def _store_fact(known: Memory, rows: dict[str | None, int], fact: dict[str, Any], at: float) -> None:
    owner = None if fact["scope"] == "house" else fact["scope"]
    replaces = rows.get(fact["replaces"])
    row = known.add_fact(fact["fact"], person=owner, private=owner is not None, replaces=replaces, at=at)
    rows[fact["id"]] = row


def _build_prefix(turn: WeekTurn) -> str:
    return context.InputStamp(datetime.fromtimestamp(turn.timestamp, UTC), _NAME_BY_PERSON[turn.person]).format_prefix()


def main() -> None:
    """Run the benchmark and print the results."""
    said = list(iter_week())
    print(f"{len(said)} turns in {DAY_COUNT} days, windows of {HISTORY_TOKENS:,} tokens\n")
    print(f"{'memory':10}{'requests':>10}{'input tokens':>14}{'cached':>9}{'cost':>12}{'cost to off':>13}")
    with TemporaryDirectory() as name:
        bills = {way: calculate_bill(way, said, Path(name)) for way in METHOD_BY_NAME}
    for way, bill in bills.items():
        share = bill.price_tokens / bills["off"].price_tokens
        print(
            f"{way:10}{bill.request_count:10,}{bill.token_count:14,}{bill.cached_share:9.1%}{bill.price_tokens:12,.0f}{share:13.2f}"
        )


if __name__ == "__main__":
    main()
