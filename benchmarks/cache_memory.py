"""The cost of a live context with a provider's prompt cache, compared to a conversation without memory and states.

    .venv/demo/bin/python -m benchmarks.cache_memory            (needs the openai package)

The simulated cache, its prices, and one of the conversations are those of `benchmarks.cache`. The other conversation
has short turns: commands, talk, and questions of the household set. Memory holds a thousand turns at the beginning, and
each new turn is added; it has no facts. Nearly every turn therefore recalls something, which is the most expensive
case. The states are those of the second day of `benchmarks.home`, in its home of 200 entities. Only turns after the
window is full are counted. As in `benchmarks.cache`, tool schemas are left out, although the cache would always serve
them: with them, the live context would be a smaller share of a request.

`found` is the share of turns in which a recall of a name, mentioned long ago, had room for the line with that name.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
import random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks import ours
from benchmarks.cache import Bill, Request, add_requests
from benchmarks.home_day import SimulatedDay
from benchmarks.household import HOUSEHOLD, START_TIMESTAMP
from benchmarks.workload import Turn, WorkloadMessage, build_conversation, build_system_prompt
from tests.memory.dialogues import utterances

if TYPE_CHECKING:
    from custom_components.windowed_conversation.home.core import home, state_text
    from custom_components.windowed_conversation.memory.core import Memory, PastTurn
    from custom_components.windowed_conversation.memory.turn import recall
    from custom_components.windowed_conversation.turn import context
else:
    _package = ours.Window.__module__.partition(".")[0]
    Memory, PastTurn = (getattr(import_module(f"{_package}.memory.core"), name) for name in ("Memory", "PastTurn"))
    context, home, recall, state_text = (
        import_module(f"{_package}.{name}")
        for name in ("turn.context", "home.core.home", "memory.turn.recall", "home.core.state_text")
    )

_NAME_EXAMPLE = ("my name is Ada Lovelace", "Nice to meet you.", "what is my name?")
_BUDGETS_AND_FILL_TURNS = ((8_000, 200), (4_000, 120))
_MEASURED_TURNS = 240
_TRIM_SHARE = 0.25


def build_home() -> home.Home:
    """Return a home of 200 entities, some of which are not in their usual state."""
    day, made = SimulatedDay(200), home.Home()
    made.names_by_area = {area: (area,) for area in day.areas}
    odd = day.choose_unusual_ids()
    for thing in day.entities:
        kind, state = thing.kind, thing.kind.states[1] if thing.entity_id in odd else thing.initial_state
        device_class = kind.attributes.get("device_class")
        text = state_text.state_text(kind.domain, state, kind.attributes, "°C")
        standing = state_text.classify_state(kind.domain, device_class, state, text)
        label = state_text.entity_kind(kind.domain, device_class)
        made.entities[thing.entity_id] = state_text.EntityState(
            thing.area, thing.name, text, label, standing, domain=kind.domain, names=(thing.name,)
        )
    return made


class RememberingConversation:
    """A conversation, optionally with a memory and a home; `asked` and `found` count the recalls of the name."""

    def __init__(self, memory: Memory | None, states: home.Home | None, budget: int) -> None:
        self.memory = memory
        self.home_states = states
        self.window = ours.create_window(build_system_prompt(), budget, _TRIM_SHARE)
        self.asked = self.found = 0

    def iter_requests(self, turns: list[Turn], from_turn: int) -> Iterator[tuple[int, Request]]:
        """Yield each request of the conversation, paired with the number of its turn.

        From turn `from_turn` on, each turn also recalls the name, and `asked` and `found` are counted.
        """
        window = self.window
        for number, turn in enumerate(turns):
            at = START_TIMESTAMP + 2e6 + number * 420
            if self.memory and number >= from_turn:
                line = self._recall(self.memory, _NAME_EXAMPLE[2], at)
                self.asked += 1
                self.found += "Lovelace" in str(line.lines)
            prefix = context.InputStamp(datetime.fromtimestamp(at, UTC), "Anna").format_prefix()
            window.open(prefix + turn[0].text)
            live = context.LiveContext(self._build_live_context(turn[0].text, at))
            yield number, ours.encode_chat_messages(context.add_context(window.messages(), prefix, live))
            for said in turn[1:]:
                window.add(ours.to_message(said))
                if said.role == "tool":
                    yield number, ours.encode_chat_messages(context.add_context(window.messages(), prefix, live))
            window.close()
            if self.memory:
                self.memory.add_turn(PastTurn("c", at, turn[0].text, turn[-1].text, person="anna"))

    def _build_live_context(self, text: str, at: float) -> str:
        """Return the text of a turn's live context: states of the home and recalled lines."""
        lines = self._recall(self.memory, text, at) if self.memory else recall.RecalledLines()
        listed = home.NO_STATES_TEXT
        if self.home_states:
            limit = context.MAX_LIVE_TOKENS - lines.tokens
            listed = home.build_states_text(
                self.home_states.entities,
                self.home_states.find_mentions(text),
                "Kitchen",
                home.NO_STATES_TEXT,
                limit=min(limit, home.MAX_STATES_TOKENS),
                count=ours.CheapTokenCounter.count,
            )
        return context.format_context(listed.text, lines.lines)

    def _recall(self, memory: Memory, text: str, at: float) -> recall.RecalledLines:
        """Return the lines that a turn recalls in addition to the window's content, chosen as the agent does."""
        known = recall.build_sent_context(self.window.exchanges(), None, text)
        found = memory.recall(text, person="anna", speaker="Anna", limit=recall.MAX_RECALL_HITS)
        narrator = recall.RecallText("Anna", datetime.fromtimestamp(at, UTC))
        return recall.choose_recalled_lines(
            found, known, narrator, ours.CheapTokenCounter.count, recall.MAX_RECALLED_TOKENS
        )


def build_short_turns(number: int, seed: int) -> list[Turn]:
    """Return `number` turns of commands, talk and questions, each with an answer."""
    chance, talk = random.Random(seed), [said.text.partition(": ")[2] for said in utterances()]
    questions = [question["q"] for question in HOUSEHOLD["questions"]]
    turns: list[Turn] = []
    for _ in range(number):
        command, done = chance.choice(HOUSEHOLD["commands"])
        said = chance.choice((command, command, chance.choice(talk), chance.choice(questions)))
        answer = done if said == command else f"{chance.choice(talk)} {chance.choice(talk)}"
        turns.append((WorkloadMessage("user", said), WorkloadMessage("assistant", answer)))
    return turns


def build_memory(folder: str) -> Memory:
    """Return a memory of a thousand short turns, after an earlier turn that mentions the name."""
    memory = Memory(Path(folder) / "memory.db", ("en",))
    memory.add_turn(PastTurn("ada", START_TIMESTAMP, *_NAME_EXAMPLE[:2], person="anna"))
    for number, turn in enumerate(build_short_turns(1_000, 99)):
        memory.add_turn(
            PastTurn(f"c{number // 6}", START_TIMESTAMP + number * 900, turn[0].text, turn[1].text, person="anna")
        )
    return memory


def main() -> None:
    """Run the simulation and print the table."""
    print(f"{'':38}{'cached':>9}{'cost':>8}{'exchanges':>11}{'kept':>8}{'trims':>7}{'found':>8}")
    for budget, filled in _BUDGETS_AND_FILL_TURNS:
        for name, turns, from_turn in (
            ("short turns", build_short_turns(filled + _MEASURED_TURNS, 1), filled),
            ("turns of 295 tokens", list(build_conversation(filled // 2 + _MEASURED_TURNS, 1)), filled // 2),
        ):
            exchanges: list[float] = []
            for parts in ("none", "memory", "states", "both"):
                with TemporaryDirectory() as folder:
                    memory = build_memory(folder) if parts in ("memory", "both") else None
                    side = RememberingConversation(
                        memory, build_home() if parts in ("states", "both") else None, budget
                    )
                    bill = Bill()
                    add_requests(bill, side.iter_requests(turns, from_turn), from_turn)
                exchanges.append(bill.exchange_count / bill.request_count)
                row = f"{budget:,} tokens, {name}, {parts}"
                kept, found = exchanges[-1] / exchanges[0], side.found / max(side.asked, 1)
                print(
                    f"{row:38}{bill.cached_share:9.1%}{bill.mean_cost:8.0f}{exchanges[-1]:11.1f}{kept:8.1%}"
                    f"{side.window.stats().trims:7}{found:8.1%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
