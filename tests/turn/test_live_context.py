"""Tests for the live context: it is only in the newest message, built after the history, and within its share."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings, strategies as st
import pytest

from custom_components.windowed_conversation.providers import (
    AnswerDone,
    ListedModel,
    Provider,
    Request,
    TextDelta,
    count_messages_tokens,
)
from custom_components.windowed_conversation.providers.events import FinishReason
from custom_components.windowed_conversation.turn.context import MAX_LIVE_TOKENS, LiveContext, format_recalled_lines
from custom_components.windowed_conversation.turn.limits import Budget, calculate_max_live_tokens, free_tokens
from custom_components.windowed_conversation.turn.model import Model, Question
from custom_components.windowed_conversation.window import EstimatedCounter, Exchange, Window, WindowPolicy
from demo.model_server import ModelServer, call, words
from tests.providers.byte_server import DONE, STOP, ByteServer, text

from .conftest import PREFIX, Take
from .world import Ear, take_turn

_COUNT = EstimatedCounter().count
_LIVE = "; states: Kitchen: Window=open | rest off"
_SECTIONS = "\n\n## Time\nMonday 2026-11-23 08:00\n\n## States\nKitchen: Window=open"


@dataclass
class Source:
    """Builds live contexts with a new source id each time, and records the arguments that it was called with."""

    text: str = _LIVE
    calls: list[tuple[list[int], int]] = field(default_factory=list)

    def live(self, exchanges: Sequence[Exchange], limit: int) -> LiveContext:
        self.calls.append(([exchange.number for exchange in exchanges], limit))
        return LiveContext(self.text, _COUNT(self.text), frozenset({f"fact:{len(self.calls)}"}))


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def asked(question: Question, source: Source) -> Question:
    return _planned(replace(question, build_live_context=source.live))


def _planned(question: Question, **budget: Any) -> Question:
    model = question.model
    return replace(question, model=replace(model, budget=replace(model.budget, live_tokens=MAX_LIVE_TOKENS, **budget)))


def _contents(request: Any, role: str = "user") -> list[str]:
    return [message["content"] for message in request.body["messages"] if message["role"] == role]


async def test_all_requests_of_a_turn_have_the_same_context(
    take: Take, asked: Question, source: Source, model_server: ModelServer
) -> None:
    model_server.script(call("HassTurnOn", name="kitchen light"), words("Done."))

    await take("turn it on", asked=asked)

    lines = [_contents(request)[-1] for request in model_server.requests]
    assert lines == [f"{PREFIX[:-3]}{_LIVE}]\n\nturn it on"] * 2
    assert len(source.calls) == 1


async def test_context_of_the_system_prompt_is_at_its_end_and_not_in_the_window(
    take: Take, asked: Question, source: Source, window: Window, model_server: ModelServer
) -> None:
    source.text = _SECTIONS

    await take("hello", asked=replace(asked, stamp_prefix=""))

    (request,) = model_server.requests
    assert _contents(request, "system") == [f"{asked.system_prompt}{_SECTIONS}"]
    assert window.messages()[0].content == asked.system_prompt


async def test_context_is_the_whole_system_prompt_if_there_are_no_instructions(
    take: Take, asked: Question, source: Source, model_server: ModelServer
) -> None:
    source.text = _SECTIONS

    await take("hello", asked=replace(asked, stamp_prefix="", system_prompt=""))

    assert _contents(model_server.requests[-1], "system") == [_SECTIONS.strip()]


async def test_exchange_has_the_sources_of_its_context(take: Take, asked: Question, window: Window) -> None:
    await take("hello", asked=asked)
    await take("and you?", asked=asked)

    assert [exchange.sources for exchange in window.exchanges()] == [{"fact:1"}, {"fact:2"}]


async def test_context_is_made_for_the_exchanges_that_a_trim_has_left(
    take: Take, asked: Question, source: Source, window: Window
) -> None:
    small = _planned(asked, context_tokens=500, max_answer_tokens=50)
    for number in range(12):
        await take(f"remember that the number {number} is lucky", asked=small)

    sent, _ = source.calls[-1]
    assert sent == [exchange.number for exchange in window.exchanges()[:-1]]
    assert window.stats().evicted_exchanges > 0


async def test_context_is_made_again_for_what_is_left_after_a_refusal(
    take: Take, byte_question: Question, byte_server: ByteServer, source: Source
) -> None:
    asked = _planned(replace(byte_question, build_live_context=source.live))
    byte_server.set_reply(text("Good day."), STOP, DONE)
    for number in range(6):
        await take(f"remember that the number {number} is lucky", asked=asked)
    byte_server.set_reply(b'{"error": {"code": "context_length_exceeded", "message": "too long"}}', status=400)
    byte_server.add_reply(text("Good day."), STOP, DONE)

    await take("hello", asked=asked)

    (refused, _), (served, _) = source.calls[-2:]
    assert set(served) < set(refused)


async def test_context_is_all_that_is_left_to_remove_after_a_refusal(
    take: Take, byte_question: Question, byte_server: ByteServer, source: Source
) -> None:
    asked = _planned(replace(byte_question, build_live_context=source.live))
    byte_server.set_reply(b'{"error": {"code": "context_length_exceeded", "message": "too long"}}', status=400)
    byte_server.add_reply(text("Good day."), STOP, DONE)

    await take("hello", asked=asked)

    (_, first), (_, second) = source.calls
    assert first > second == 0


async def test_context_is_made_again_when_results_have_left_less_room_for_it(
    take: Take, asked: Question, source: Source, model_server: ModelServer
) -> None:
    small = _planned(asked, context_tokens=500, max_answer_tokens=50)
    model_server.script(call("HassTurnOn", name="kitchen light " * 150), words("Done."))

    await take("turn it on", asked=small)

    (_, first), (_, second) = source.calls
    assert first > second


budgets = st.builds(
    Budget,
    st.integers(1, 20_000).map(WindowPolicy),
    st.none() | st.integers(1, 20_000),
    st.integers(0, 1_000),
    st.integers(0, 3_000),
    st.integers(0, MAX_LIVE_TOKENS),
)


@given(budgets, st.integers(0, 3_000), st.integers(0, 20_000))
def test_context_takes_at_most_its_share_and_what_is_left(budget: Budget, system: int, history: int) -> None:
    live = calculate_max_live_tokens(budget, system, history)

    assert 0 <= live <= min(budget.live_tokens, 0.15 * budget.policy.history_tokens)
    assert (
        live == 0
        or budget.context_tokens is None
        or system + budget.schema_tokens + budget.max_answer_tokens + history + live <= budget.context_tokens
    )


@given(budgets, st.integers(0, 3_000))
def test_room_for_exchanges_leaves_the_whole_share(budget: Budget, system: int) -> None:
    left = free_tokens(budget, system)

    assert (
        left is None
        or left <= 0
        or calculate_max_live_tokens(budget, system, left) == calculate_max_live_tokens(budget, system, 0)
    )


@dataclass
class Recorder(Provider):
    """A provider that gives the same answer to every request, and records the requests."""

    name: str = "recorder"
    requests: list[Request] = field(default_factory=list)

    async def stream(self, request: Request, on_bytes: Any = None) -> AsyncGenerator[Any]:
        self.requests.append(request)
        yield TextDelta("All right.")
        yield AnswerDone(FinishReason.STOP, "stop")

    async def list_models(self) -> list[ListedModel]:
        return []


@dataclass
class SimpleMemory:
    """A simple replacement for memory: recalls past inputs that are not in the request, newest first."""

    said: list[str] = field(default_factory=list)
    limit: int = 0

    def live(self, exchanges: Sequence[Exchange], limit: int) -> LiveContext:
        sent = "\n".join(exchange.messages[0].content for exchange in exchanges)
        lines, self.limit = tuple[str, ...](), limit
        for line in reversed(self.said):
            longer = (line, *lines)
            if f"\n\n{line}" not in sent and _COUNT(format_recalled_lines(longer)) <= limit:
                lines = longer
        text = format_recalled_lines(lines)
        return LiveContext(text, _COUNT(text))


sentences = st.tuples(st.sampled_from(["name", "colour", "code"]), st.integers(0, 60)).map(
    lambda told: f"my {told[0]} is {'very ' * told[1]}X"
)


@settings(max_examples=60)
@given(
    st.lists(sentences, min_size=1, max_size=14),
    st.integers(300, 1_500),
    st.integers(250, 1_500),
    st.sampled_from(["", PREFIX]),
)
async def test_what_was_said_last_is_in_the_request_if_it_fits(
    told: list[str], context_tokens: int, history_tokens: int, prefix: str
) -> None:
    policy = WindowPolicy(history_tokens)
    provider, notebook, window = Recorder(), SimpleMemory(), Window("c", policy, EstimatedCounter())
    budget = Budget(policy, context_tokens, 50, 100, MAX_LIVE_TOKENS)
    model = Model("own", provider, "recorded", budget)
    question = Question(model, "Be brief.", prefix, (), "Done.", build_live_context=notebook.live)

    for text_said in told:
        outcome = await take_turn(window, text_said, question, Ear({}))
        assert outcome.error is None
        request = provider.requests[-1]
        size = count_messages_tokens(request.messages) + budget.schema_tokens + model.planned_budget.max_answer_tokens
        assert outcome.run is not None
        assert size <= context_tokens or outcome.run.shortfall
        before = notebook.said[-1] if notebook.said else ""
        is_there = any(before in message.content for message in request.messages)
        assert is_there or _COUNT(format_recalled_lines((before,))) > notebook.limit
        notebook.said.append(text_said)
