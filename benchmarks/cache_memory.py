"""What recalled lines take of a window and of a provider's prompt cache, beside the same conversation without memory.

    .venv/demo/bin/python -m benchmarks.cache_memory            (needs the openai package)

The cache and its price are those of `benchmarks.cache`, and so is one conversation. The other one is of short turns:
commands, talk and questions of the household set. A thousand turns are remembered when they begin, and each of their
own; there are no facts. So nearly every turn finds something, which is the dearest case. The figures are of the turns
after the window is full.

`found` asks for a name that was told long before, beside each turn: how often there was room for the line.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
import random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks import ours
from benchmarks.cache import Bill, Request, add_to
from benchmarks.household import HOUSEHOLD, START
from benchmarks.workload import Said, Turn, conversation, system_prompt
from tests.memory.dialogues import utterances

if TYPE_CHECKING:
    from custom_components.windowed_conversation.memory import Memory, PastTurn
    from custom_components.windowed_conversation.turn import context, live_context, narration, recall
else:
    _package = ours.Window.__module__.partition(".")[0]
    Memory, PastTurn = (getattr(import_module(f"{_package}.memory"), name) for name in ("Memory", "PastTurn"))
    context, live_context, narration, recall = (
        import_module(f"{_package}.turn.{name}") for name in ("context", "live_context", "narration", "recall")
    )

_NAME = ("my name is Ada Lovelace", "Nice to meet you.", "what is my name?")
_BUDGETS = ((8_000, 200), (4_000, 120))
_MEASURED = 240
_SHARE = 0.25


class Remembering:
    """A conversation with a memory, or without one; `asked` and `found` count the questions for the name."""

    def __init__(self, memory: Memory | None, budget: int) -> None:
        self.memory = memory
        self.window = ours.new_window(system_prompt(), budget, _SHARE)
        self.asked = self.found = 0

    def requests(self, turns: list[Turn], from_turn: int) -> Iterator[tuple[int, Request]]:
        """Yield every request."""
        window = self.window
        for number, turn in enumerate(turns):
            at = START + 2e6 + number * 420
            if self.memory and number >= from_turn:
                line = self._recall(self.memory, _NAME[2], at)
                self.asked += 1
                self.found += line is not None and "Lovelace" in str(line.lines)
            prefix = context.Stamp(datetime.fromtimestamp(at, UTC), "Anna").prefix()
            window.open(prefix + turn[0].text)
            lines = self._recall(self.memory, turn[0].text, at) if self.memory else None
            live = live_context.LiveContext(live_context.context_text("", lines.lines if lines else ()))
            yield number, ours.encode(live_context.with_context(window.messages(), prefix, live))
            for said in turn[1:]:
                window.add(ours.message(said))
                if said.role == "tool":
                    yield number, ours.encode(live_context.with_context(window.messages(), prefix, live))
            window.close()
            if self.memory:
                self.memory.add_turn(PastTurn("c", at, turn[0].text, turn[-1].text, person="anna"))

    def _recall(self, memory: Memory, text: str, at: float) -> recall.Addition | None:
        """Return what a turn recalls beside what the window holds, as the agent does."""
        known = recall.sent_in(self.window.exchanges(), (), text)
        found = memory.recall(text, person="anna", speaker="Anna", limit=recall.CANDIDATES)
        narrator = narration.Narrator("Anna", datetime.fromtimestamp(at, UTC))
        return recall.chosen_lines(found, known, narrator, ours.CheapCounter.count, recall.RECALLED_TOKENS)


def short_turns(number: int, seed: int) -> list[Turn]:
    """Return commands, talk and questions, each with an answer."""
    chance, talk = random.Random(seed), [said.text.partition(": ")[2] for said in utterances()]
    questions = [question["q"] for question in HOUSEHOLD["questions"]]
    turns: list[Turn] = []
    for _ in range(number):
        command, done = chance.choice(HOUSEHOLD["commands"])
        said = chance.choice((command, command, chance.choice(talk), chance.choice(questions)))
        answer = done if said == command else f"{chance.choice(talk)} {chance.choice(talk)}"
        turns.append((Said("user", said), Said("assistant", answer)))
    return turns


def new_memory(folder: str) -> Memory:
    """Return a memory of a thousand short turns, before which the name was told."""
    memory = Memory(Path(folder) / "memory.db", ("en",))
    memory.add_turn(PastTurn("ada", START, *_NAME[:2], person="anna"))
    for number, turn in enumerate(short_turns(1_000, 99)):
        memory.add_turn(PastTurn(f"c{number // 6}", START + number * 900, turn[0].text, turn[1].text, person="anna"))
    return memory


def main() -> None:
    """Simulate and print."""
    print(f"{'':38}{'cached':>9}{'cost':>8}{'exchanges':>11}{'kept':>8}{'trims':>7}{'found':>8}")
    for budget, filled in _BUDGETS:
        for name, turns, from_turn in (
            ("short turns", short_turns(filled + _MEASURED, 1), filled),
            ("turns of 295 tokens", list(conversation(filled // 2 + _MEASURED, 1)), filled // 2),
        ):
            exchanges: list[float] = []
            for has_memory in (False, True):
                with TemporaryDirectory() as folder:
                    side = Remembering(new_memory(folder) if has_memory else None, budget)
                    bill = Bill()
                    add_to(bill, side.requests(turns, from_turn), from_turn)
                exchanges.append(bill.exchanges / bill.requests)
                row = f"{budget:,} tokens, {name}, {'memory' if has_memory else 'none'}"
                kept, found = exchanges[-1] / exchanges[0], side.found / max(side.asked, 1)
                print(
                    f"{row:38}{bill.hit:9.1%}{bill.cost:8.0f}{exchanges[-1]:11.1f}{kept:8.1%}"
                    f"{side.window.stats().trims:7}{found:8.1%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
