"""Tests for servers that refuse long requests, with and without the size: turns are answered, few requests are refused.

Each server has 40 turns, then 40 more in another conversation after a restart of Home Assistant.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
import json

import pytest

from custom_components.windowed_conversation.providers.errors import BadRequest, ContextOverflow, ProviderError
from custom_components.windowed_conversation.providers.events import (
    AnswerDone,
    Event,
    FinishReason,
    ListedModel,
    OnBytesCallback,
    Provider,
    Request,
    TextDelta,
    Usage,
    ignore_bytes,
)
from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect
from custom_components.windowed_conversation.providers.sizes import count_request_tokens
from custom_components.windowed_conversation.turn.limits import Budget
from custom_components.windowed_conversation.turn.model import Model, Question
from custom_components.windowed_conversation.turn.model_size import ContextSizeTracker
from custom_components.windowed_conversation.turn.state import Turn
from custom_components.windowed_conversation.window import EstimatedCounter, Window, WindowPolicy
from demo.model_server import ModelServer
from demo.model_server.refusal import OverflowReport
from tests.providers.wires.anthropic import AnthropicWire
from tests.providers.wires.chat import ChatWire
from tests.providers.wires.gemini import GeminiWire
from tests.providers.wires.parts import Wire
from tests.providers.wires.responses import ResponsesWire

from .world import TOOLS, Ear, take_turn

REPORTING_WIRES: Mapping[str, Wire] = {
    "compatible": ChatWire(),
    "openai": ChatWire(Dialect.OPENAI),
    "responses": ResponsesWire(),
}
# Each format with a server that reports nothing, and each other report with one format.
REPORTS = [
    *((name, OverflowReport.NOTHING) for name in REPORTING_WIRES),
    ("compatible", OverflowReport.SIZE),
    ("compatible", OverflowReport.HALF_THE_SIZE),
    ("openai", OverflowReport.CODE),
    ("responses", OverflowReport.TWICE_THE_SIZE),
]
# The servers of these formats have the size in the text of their error only.
SILENT_WIRES: Mapping[str, Wire] = {"anthropic": AnthropicWire(), "gemini": GeminiWire()}
SMALL, LARGE = 3_600, 8_192
TURNS = 40
CHANGE_TURN = 31
# The turns in which a name is said; the second turn after it asks for the name.
NAMES_BY_TURN = {7: "Ada", 17: "Bob", 27: "Cleo", 37: "Dora"}
SYSTEM_PROMPT = "Always be brief and friendly, and never say what nobody asked. " * 70
LINE = "consider that the locker number {0} with the blue and red boxes is on the left of the cellar. " * 11

# Changes the context size of a server.
type SetSize = Callable[[int], object]


@dataclass
class SizedProvider(Provider):
    """A provider whose server refuses each request of more than `size` tokens, and counts `ratio` times our tokens."""

    report: OverflowReport
    ratio: float
    size: int = 0
    name: str = "sized"

    async def stream(self, request: Request, on_bytes: OnBytesCallback = ignore_bytes) -> AsyncGenerator[Event]:
        """Answer with the newest name in the request, see `Provider.stream`."""
        tokens = int(self.ratio * count_request_tokens(request))
        if tokens > self.size:
            raise self._build_error()
        names = [name for name in NAMES_BY_TURN.values() if name in str([each.content for each in request.messages])]
        yield TextDelta(f"Your name is {names[-1]}." if names else "I do not know your name.")
        yield Usage(input=tokens, output=8)
        yield AnswerDone(FinishReason.STOP, "stop")

    def _build_error(self) -> ProviderError:
        match self.report:
            case OverflowReport.NOTHING:
                return BadRequest("status 400, code 400", is_unexplained=True)
            case OverflowReport.CODE:
                return ContextOverflow("status 400")
            case OverflowReport.SIZE:
                return ContextOverflow("status 400", self.size)
            case OverflowReport.TWICE_THE_SIZE:
                return ContextOverflow("status 400", 2 * self.size)
            case OverflowReport.HALF_THE_SIZE:
                return ContextOverflow("status 400", self.size // 2)

    async def list_models(self) -> list[ListedModel]:
        """Return no models, see `Provider.list_models`."""
        return []


@dataclass
class Talk:
    """The turns that are taken with a server whose context size `set_size` sets."""

    provider: Provider
    set_size: SetSize
    size: ContextSizeTracker = field(default_factory=ContextSizeTracker)
    # The turns, and for each of them the name that the answer has to contain, or an empty text.
    turns: list[tuple[Turn, str]] = field(default_factory=list)

    async def take_turns(self, sizes: Sequence[int]) -> None:
        """Take a turn for each context size in a new conversation."""
        budget = Budget(WindowPolicy(), max_answer_tokens=500)
        model = Model("own", self.provider, "scripted+whole_text", budget, size=self.size)
        question = Question(model, SYSTEM_PROMPT, "", TOOLS, "Done.")
        window = Window("conversation", WindowPolicy(), EstimatedCounter())
        for number, size in enumerate(sizes):
            self.set_size(size)
            wanted = NAMES_BY_TURN.get(number - 2, "")
            text = f"my name is {NAMES_BY_TURN[number]}" if number in NAMES_BY_TURN else LINE.format(number)
            turn = await take_turn(window, "what is my name?" if wanted else text, question, Ear({}))
            self.turns.append((turn, wanted))

    def restart(self) -> None:
        """Restore the learned size from its stored form."""
        stored = json.dumps(self.size.as_dict())
        self.size = ContextSizeTracker()
        self.size.restore(json.loads(stored))

    def find_failures(self) -> list[object]:
        """Return the errors, the answers without the newest name, and the refusals of 40 turns if there are over 4."""
        refused = [sum(each.error_name is not None for each in turn.attempts) for turn, _ in self.turns]
        sums = [sum(refused[start : start + TURNS]) for start in range(0, len(refused), TURNS)]
        return [
            *[turn.error for turn, _ in self.turns if turn.error is not None],
            *[(wanted, turn.sent_text) for turn, wanted in self.turns if wanted not in turn.sent_text],
            *[count for count in sums if count > TURNS / 10],
        ]


# Servers whose size stays the same, grows, and shrinks.
COURSES = ((SMALL, SMALL), (LARGE, LARGE), (SMALL, LARGE), (LARGE, SMALL))


async def find_failures(
    provider: Provider, set_size: SetSize, courses: Sequence[tuple[int, int]] = COURSES[-1:]
) -> list[object]:
    """Talk to a server with each course of context sizes, with a restart. Return the failures.

    Over HTTP, where 40 turns take a second, the course that shrinks is enough: only the reports differ by format.
    """
    failures = list[object]()
    for first, last in courses:
        talk = Talk(provider, set_size)
        await talk.take_turns([first] * CHANGE_TURN + [last] * (TURNS - CHANGE_TURN))
        talk.restart()
        await talk.take_turns([last] * TURNS)
        failures += talk.find_failures()
    return failures


@pytest.mark.parametrize("ratio", [0.8, 1.0, 1.25])
@pytest.mark.parametrize("report", OverflowReport)
async def test_every_turn_is_answered_with_the_newest_name_and_few_refusals(
    report: OverflowReport, ratio: float
) -> None:
    provider = SizedProvider(report, ratio)

    def set_size(size: int) -> None:
        provider.size = size

    assert await find_failures(provider, set_size, COURSES) == []


@pytest.mark.long
@pytest.mark.parametrize(("name", "report"), REPORTS)
async def test_servers_of_a_format_are_filled_with_few_refusals(
    name: str, report: OverflowReport, model_server: ModelServer
) -> None:
    model_server.change(overflow_report=report)
    wire = REPORTING_WIRES[name]

    async with import_module(wire.clients[0]).AsyncClient(verify=False) as client:
        provider = wire.connect(model_server.address, client)
        assert await find_failures(provider, lambda size: model_server.change(context_size=size)) == []


@pytest.mark.long
@pytest.mark.parametrize("wire", SILENT_WIRES.values(), ids=SILENT_WIRES)
async def test_servers_that_name_no_size_are_filled_with_few_refusals(wire: Wire, model_server: ModelServer) -> None:
    async with import_module(wire.clients[0]).AsyncClient(verify=False) as client:
        provider = wire.connect(model_server.address, client)
        assert await find_failures(provider, lambda size: model_server.change(context_size=size)) == []
