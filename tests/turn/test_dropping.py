"""Tests for servers that read 4,096 tokens and silently drop the oldest messages of longer requests."""

from dataclasses import dataclass, replace

import pytest

from custom_components.windowed_conversation.providers import count_tools_tokens
from custom_components.windowed_conversation.turn.limits import Budget
from custom_components.windowed_conversation.turn.model import BilledRequest, Question
from custom_components.windowed_conversation.turn.state import Turn
from custom_components.windowed_conversation.window import (
    CalibratedCounter,
    Calibrator,
    Window,
    WindowPolicy,
    estimate_request,
)
from demo.model_server import ContextTruncation, ModelServer, call, words
from demo.model_server.request_log import RequestRecord
from demo.model_server.usage import encode_prompt, estimate_tokens

from .conftest import Take
from .world import Ear, Home, take_turn

READS = 4096
LINE = "consider that the locker number {0} with the {0} blue boxes is left in the cellar, behind the wooden door"
STORY = "tell me a story about lamp {0} in 300 words"
LOOK = "what is the state of the kitchen light in room {0}?"
STATE_BY_LIGHT = {f"light number {number} in the cellar": "off" for number in range(30)}


@dataclass
class Talk:
    """The requests of a conversation, with the numbers of tokens that were sent and that were read."""

    records: list[RequestRecord]

    def sent(self, record: RequestRecord) -> int:
        return estimate_tokens(encode_prompt(record.body["tools"], record.body["messages"]))

    @property
    def is_dropped(self) -> list[bool]:
        """Whether each request was longer than the part of it that the server read."""
        return [self.sent(record) > record.usage["prompt"] for record in self.records]

    @property
    def dropped_turns(self) -> int:
        """The number of turns whose first request was not read completely."""
        questions = [record.body["messages"][-1]["role"] == "user" for record in self.records]
        return sum(dropped and first for dropped, first in zip(self.is_dropped, questions, strict=True))


@pytest.fixture
def calibrator() -> Calibrator:
    return Calibrator()


@pytest.fixture
def window(calibrator: Calibrator) -> Window:
    """Return a window whose token counter is calibrated by the server's bills."""
    return Window("conversation", WindowPolicy(), CalibratedCounter(calibrator))


@pytest.fixture
def asked(question: Question, calibrator: Calibrator, model_server: ModelServer) -> Question:
    """Return a question for a server that drops messages, with a system prompt as long as that of a real home."""
    model_server.truncation = ContextTruncation(READS)
    model = replace(question.model, budget=Budget(WindowPolicy(), max_answer_tokens=1000))
    return replace(
        question, system_prompt="Always be brief and friendly, and never say what nobody asked. " * 100, model=model
    )


@pytest.fixture
def take(window: Window, reply: Ear, asked: Question, calibrator: Calibrator) -> Take:
    """Return a function that takes a turn and learns from its bills, as an agent does."""

    def learn(billed: BilledRequest) -> None:
        request = billed.request
        if not billed.is_request_cut:
            texts = (tool.text for tool in request.tools)
            calibrator.learn(estimate_request(request.messages, texts), billed.usage.input)

    async def take(text: str) -> Turn:
        tools = count_tools_tokens(asked.tools, CalibratedCounter(calibrator))
        model = replace(asked.model, budget=replace(asked.model.budget, schema_tokens=tools))
        return await take_turn(window, text, replace(asked, model=model), reply, on_billed=learn)

    return take


TALKS = {
    "forty_lines": [LINE] * 40,
    "thirty_two_turns": [LINE, "what can you do, {0}?"] * 16,
    "a_bill_that_jumps": [LINE, STORY, LINE, LINE] * 8,
    "stories": [STORY] * 14,
}


@pytest.mark.parametrize("said", TALKS.values(), ids=TALKS)
async def test_dropped_messages_are_noticed_within_three_turns_and_nothing_larger_is_sent_from_then_on(
    said: list[str], take: Take, asked: Question, model_server: ModelServer
) -> None:
    for number, text in enumerate(said):
        await take(text.format(number))

    talk = Talk(model_server.requests)
    first = talk.is_dropped.index(True)
    assert asked.model.size.readable_tokens is not None
    assert asked.model.size.readable_tokens <= READS
    assert talk.dropped_turns <= 3
    assert not any(talk.is_dropped[first + 3 :])


@pytest.mark.parametrize("said", TALKS.values(), ids=TALKS)
async def test_window_holds_what_is_read(
    said: list[str], take: Take, window: Window, model_server: ModelServer
) -> None:
    for number, text in enumerate(said):
        await take(text.format(number))

    shown = window.stats().current_tokens
    await take("hello")

    newest = model_server.requests[-1]
    read = estimate_tokens(encode_prompt((), newest.body["messages"][1:-1]))
    assert newest.usage["prompt"] == Talk([newest]).sent(newest)
    assert shown == pytest.approx(read, rel=0.05)


@pytest.fixture
def home() -> Home:
    """Return a home whose states make a long tool result."""
    return Home(dict(STATE_BY_LIGHT))


async def test_drops_in_a_tool_loop_are_noticed_within_three_turns(
    take: Take, asked: Question, model_server: ModelServer
) -> None:
    for number in range(32):
        model_server.script(call("GetLiveContext"), call("GetLiveContext", name=f"light {number}"), words("It is off."))
        await take(LOOK.format(number))

    talk = Talk(model_server.requests)
    first = talk.is_dropped.index(True)
    assert asked.model.size.readable_tokens is not None
    assert not any(talk.is_dropped[first + 9 :])


async def test_round_whose_question_may_not_have_been_read_and_that_says_nothing_is_asked_again_smaller(
    take: Take, model_server: ModelServer
) -> None:
    outcomes = []
    for number in range(16):
        model_server.script(call("GetLiveContext"), words(""), words("It is off."))
        outcomes.append(await take(LOOK.format(number)))

    (again,) = [outcome for outcome in outcomes if len(outcome.attempts) == 3]
    cut, smaller = again.attempts[1:]
    assert again.sent_text == "It is off."
    assert len(smaller.request.messages) < len(cut.request.messages)
    assert {outcome.sent_text for outcome in outcomes if outcome is not again} == {"Done."}
