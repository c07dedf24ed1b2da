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

from benchmarks import ours
from benchmarks.household import HOUSEHOLD, START
from benchmarks.workload import TOOL_NAME, cheap_count, system_prompt

if TYPE_CHECKING:
    from custom_components.windowed_conversation.memory import Memory, PastTurn
    from custom_components.windowed_conversation.turn import context, recall
    from custom_components.windowed_conversation.window import Message, ToolCall, Window
else:
    memory, context, recall = (
        import_module(f"windowed_conversation.{name}") for name in ("memory", "turn.context", "turn.recall")
    )
    Memory, PastTurn = memory.Memory, memory.PastTurn
    Message, ToolCall, Window = ours.Message, ours.ToolCall, ours.Window

HISTORY_TOKENS = 8_000
TRIM_SHARE = 0.25
DAYS = 7
TURNS_A_DAY = 120

_CACHED_PRICE = 0.1
_DAY = 86_400.0
_PEOPLE = {"anna": "Anna", "ben": "Ben", None: None}
_KNOWN_AT_FIRST = 44
_QUESTIONS, _TOLD = 0.1, 0.1
_TOOL_TURN = 4
# Maximum number of turns that the others recall for each question.
_RECALLED_BY_OTHERS = 10


@dataclass(frozen=True, slots=True)
class Said:
    """The input and answer of a turn, its time and speaker, and the fact that the input states, if any."""

    at: float
    person: str | None
    text: str
    answer: str
    told: dict[str, Any] | None = None


@dataclass(slots=True)
class Bill:
    """The totals of all requests: tokens, cached tokens, and the cost in uncached tokens."""

    requests: int = 0
    tokens: int = 0
    cached: int = 0
    _last: dict[str | None, str] = field(default_factory=dict)

    def add(self, window: str | None, request: str) -> None:
        """Add a request; its cached part is the prefix that it shares with the previous request of the same window."""
        self.requests += 1
        self.tokens += cheap_count(request)
        self.cached += cheap_count(_common_beginning(self._last.get(window, ""), request))
        self._last[window] = request

    @property
    def hit(self) -> float:
        """The share of the input that was cached."""
        return self.cached / self.tokens

    @property
    def cost(self) -> float:
        """The price of the input, in uncached tokens."""
        return self.tokens - (1 - _CACHED_PRICE) * self.cached


def _common_beginning(first: str, second: str) -> str:
    lengths = range(1, len(second) + 1)
    return second[: bisect_left(lengths, True, key=lambda length: not first.startswith(second[:length]))]


def week(days: int = DAYS) -> Iterator[Said]:
    """Yield the turns of these days, always the same ones."""
    chance = random.Random(14)
    told = iter(HOUSEHOLD["told"][_KNOWN_AT_FIRST:])
    for number in range(days * TURNS_A_DAY):
        at = START + (200 + number / TURNS_A_DAY) * _DAY
        kind = chance.random()
        if kind < _TOLD and (fact := next(told, None)):
            yield Said(at, fact["who"], fact["text"], fact["reply"], fact)
        elif kind < _TOLD + _QUESTIONS:
            question = chance.choice(HOUSEHOLD["questions"])
            yield Said(at, question["who"], question["q"], "I have looked that up for you, and it is as you said.")
        else:
            said, answer = chance.choice(HOUSEHOLD["commands"])
            yield Said(at, chance.choice(tuple(_PEOPLE)), said, answer)


class Off:
    """The window without memory."""

    def __init__(self, known: Memory) -> None:
        self.memory = known
        self.windows = {who: ours.new_window(system_prompt(), HISTORY_TOKENS, TRIM_SHARE) for who in _PEOPLE}
        self.lines: tuple[str, ...] = ()

    def begin(self, said: Said) -> None:
        """Open an exchange with the input in the speaker's window."""
        self.windows[said.person].open(f"{_prefix(said)}{said.text}")

    def request(self, said: Said) -> str:
        """Return the messages of the current request as one text."""
        live = context.LiveContext(context.context_text("", self.lines))
        messages = context.with_context(self.windows[said.person].messages(), _prefix(said), live)
        return "\n".join(
            f"{message.role}: {message.content}{''.join(str(dict(call.arguments)) for call in message.tool_calls)}"
            for message in messages
        )


class Others(Off):
    """All facts and the recalled lines in the system prompt of every turn, as other integrations do it."""

    def begin(self, said: Said) -> None:
        """Set the system prompt with the facts and recalled lines, and open an exchange."""
        facts = [fact.text for fact in self.memory.facts(said.person)]
        found = self.memory.recall(
            said.text, person=said.person, speaker=_PEOPLE[said.person], kinds=("turn",), limit=_RECALLED_BY_OTHERS
        )
        lines = [*facts, "", *(" / ".join(each.text.splitlines()) for each in found)]
        self.windows[said.person].set_system(f"{system_prompt()}\n\n" + "\n".join(f"- {line}" for line in lines))
        super().begin(said)


class On(Off):
    """The integration's profile in the system prompt, and recalled lines in the newest message.

    Both are built and chosen as in `agents.live_context`.
    """

    def begin(self, said: Said) -> None:
        """Set the system prompt with the profile, open an exchange, and choose the lines to recall."""
        window = self.windows[said.person]
        narrator = recall.Narrator(_PEOPLE[said.person], datetime.fromtimestamp(said.at, UTC))
        made = recall.build_prompt_facts(self.memory.facts(said.person), narrator, cheap_count)
        window.set_system(recall.with_profile(system_prompt(), made))
        super().begin(said)
        find = [
            self.memory.recall(
                said.text, person=said.person, speaker=_PEOPLE[said.person], kinds=kinds, limit=recall.CANDIDATES
            )
            for kinds in (("fact",), ("episode", "turn"))
        ]
        known = recall.sent_context(window.exchanges(), made.sources, said.text)
        added = recall.choose_lines(recall.alternate(*find), known, narrator, cheap_count, recall.RECALLED_TOKENS)
        self.lines = added.lines


WAYS: dict[str, Callable[[Memory], Off]] = {"off": Off, "on": On, "others": Others}


def price(way: str, said: Sequence[Said], folder: Path) -> Bill:
    """Return the bill for the turns, with memory used in one of `WAYS`."""
    known = Memory(folder / f"{way}.db", ("en",))
    rows: dict[str | None, int] = {}
    for told in HOUSEHOLD["told"][:_KNOWN_AT_FIRST]:
        _tell(known, rows, told, START + told["day"] * _DAY)
    bill, side = Bill(), WAYS[way](known)
    for number, turn in enumerate(said):
        window = side.windows[turn.person]
        side.begin(turn)
        bill.add(turn.person, side.request(turn))
        if number % _TOOL_TURN == _TOOL_TURN - 1:
            call = ToolCall(f"call_{number}", TOOL_NAME, {"name": turn.text})
            window.add(Message.assistant(tool_calls=(call,)))
            window.add(Message.tool(call.id, TOOL_NAME, '{"success": [{"name": "it", "type": "entity"}]}'))
            bill.add(turn.person, side.request(turn))
        window.add(Message.assistant(turn.answer))
        window.close()
        known.add_turn(PastTurn(str(turn.person), turn.at, turn.text, turn.answer, person=turn.person))
        if turn.told:
            _tell(known, rows, turn.told, turn.at)
    known.close()
    return bill


def _tell(known: Memory, rows: dict[str | None, int], told: dict[str, Any], at: float) -> None:
    owner = None if told["scope"] == "house" else told["scope"]
    replaces = rows.get(told["replaces"])
    row = known.add_fact(told["fact"], person=owner, private=owner is not None, replaces=replaces, at=at)
    rows[told["id"]] = row


def _prefix(said: Said) -> str:
    return context.Stamp(datetime.fromtimestamp(said.at, UTC), _PEOPLE[said.person]).prefix()


def main() -> None:
    """Run the benchmark and print the results."""
    said = list(week())
    print(f"{len(said)} turns in {DAYS} days, windows of {HISTORY_TOKENS:,} tokens\n")
    print(f"{'memory':10}{'requests':>10}{'input tokens':>14}{'cached':>9}{'cost':>12}{'cost to off':>13}")
    with TemporaryDirectory() as name:
        bills = {way: price(way, said, Path(name)) for way in WAYS}
    for way, bill in bills.items():
        share = bill.cost / bills["off"].cost
        print(f"{way:10}{bill.requests:10,}{bill.tokens:14,}{bill.hit:9.1%}{bill.cost:12,.0f}{share:13.2f}")


if __name__ == "__main__":
    main()
