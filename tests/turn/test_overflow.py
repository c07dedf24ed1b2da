"""Tests for requests that are too long for their model: less is sent, fallback agents are tried, a size is learned."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import BadRequest, ContextOverflow
from custom_components.windowed_conversation.providers.models import ModelProfile
from custom_components.windowed_conversation.turn.limits import Budget, Shortfall
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.turn.model_size import ContextSizeTracker
from custom_components.windowed_conversation.turn.routing import Route, RouteDecision, RouteReason
from custom_components.windowed_conversation.window import Window, WindowPolicy
from demo.model_server import ModelServer
from tests.providers.byte_server import DONE, STOP, ByteServer, text
from tests.providers.overflow_bodies import BODIES, Body

from .conftest import Take, provider
from .world import Ear

ANSWER = (text("Good day."), STOP, DONE)
UNEXPLAINED = BODIES["lm_studio"]
KNOWN = BODIES["openai"]

each_body = pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)


@pytest.fixture
async def second_server(socket_enabled: None) -> AsyncIterator[ModelServer]:
    async with ModelServer(strict=True) as server:
        yield server


@pytest.fixture
def chain(byte_question: Question, http_client: Any, second_server: ModelServer) -> Question:
    """Return a question for the server that replies with given bytes, with a second agent as the fallback."""
    second = replace(byte_question.model, agent_id="second", provider=provider(http_client, second_server.url))
    return replace(byte_question, fallback_agents=(replace(second, size=ContextSizeTracker()),))


@pytest.fixture
async def talked(take: Take, byte_question: Question, byte_server: ByteServer) -> None:
    """Take six turns with the server that replies with given bytes."""
    byte_server.set_reply(*ANSWER)
    for number in range(6):
        await take(f"remember that the number {number} is lucky", asked=byte_question)
    byte_server.requests.clear()


def refuse(server: ByteServer, *bodies: Body) -> None:
    """Make the server refuse the next requests with these bodies, and answer the requests after them."""
    first, *others = bodies
    server.set_reply(first.content, status=first.status, headers=first.headers)
    for body in others:
        server.add_reply(body.content, status=body.status, headers=body.headers)
    server.add_reply(*ANSWER)


def refuse_all(server: ByteServer, body: Body) -> None:
    """Make the server refuse every request with this body."""
    server.set_reply(body.content, status=body.status, headers=body.headers)


def sizes(server: ByteServer) -> list[int]:
    """Return the number of messages in each request."""
    return [len(request["messages"]) for request in server.requests]


@each_body
async def test_less_is_sent_after_each_servers_refusal(
    body: Body, talked: None, take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    refuse(byte_server, body)

    outcome = await take("hello", asked=byte_question)

    assert (outcome.error, outcome.sent_text) == (None, "Good day.")
    refused, served = sizes(byte_server)
    assert 2 <= served < refused


@each_body
async def test_next_agent_is_asked_where_nothing_can_be_taken_out(
    body: Body, take: Take, chain: Question, byte_server: ByteServer
) -> None:
    refuse_all(byte_server, body)

    outcome = await take("my name is Ada", asked=chain)

    assert (outcome.sent_text, outcome.answered_by) == ("Nice to meet you, Ada.", "second")
    assert len(byte_server.requests) == 1


@each_body
async def test_next_agent_is_asked_where_less_does_not_help(
    body: Body, talked: None, take: Take, chain: Question, byte_server: ByteServer
) -> None:
    refuse_all(byte_server, body)

    outcome = await take("my name is Ada", asked=chain)

    assert outcome.answered_by == "second"
    sent = sizes(byte_server)
    assert sent == sorted(set(sent), reverse=True)


async def test_history_is_halved_down_to_the_newest_exchange(
    talked: None, take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    refuse_all(byte_server, KNOWN)

    outcome = await take("hello", asked=byte_question)

    assert isinstance(outcome.error, ContextOverflow)
    assert sizes(byte_server) == [14, 10, 6, 4, 2]


async def test_refusal_without_a_known_reason_is_told_as_it_was_if_less_does_not_help(
    talked: None, take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    refuse_all(byte_server, UNEXPLAINED)

    outcome = await take("hello", asked=byte_question)

    assert isinstance(outcome.error, BadRequest)
    assert sizes(byte_server) == [14, 10, 6, 4, 2]


async def test_newest_exchange_alone_is_not_sent_again(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    refuse_all(byte_server, KNOWN)

    outcome = await take("hello", asked=byte_question)

    assert isinstance(outcome.error, ContextOverflow)
    assert len(byte_server.requests) == 1


async def test_less_is_sent_also_where_as_much_was_answered_before(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(*ANSWER)
    await take("a long story " * 50, asked=byte_question)
    await take("another long story " * 50, asked=byte_question)
    byte_question.model.size.on_answered(5000)
    refuse(byte_server, UNEXPLAINED)

    outcome = await take("hello", asked=byte_question)

    assert outcome.sent_text == "Good day."
    refused, answered = sizes(byte_server)[-2:]
    assert answered < refused


async def test_reason_of_the_next_agents_answer_is_the_length(
    take: Take, chain: Question, byte_server: ByteServer
) -> None:
    refuse_all(byte_server, UNEXPLAINED)

    outcome = await take("my name is Ada", asked=chain)

    assert outcome.decision == RouteDecision(Route.FALLBACK, RouteReason.CONTEXT_OVERFLOW)


async def test_nothing_is_sent_again_after_the_first_token(
    talked: None, take: Take, chain: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(text("Good "), BODIES["lm_studio_stream"].content)

    outcome = await take("hello", asked=chain)

    assert outcome.sent_text == "Good "
    assert outcome.error is not None
    assert len(byte_server.requests) == 1


@pytest.mark.usefixtures("talked")
@pytest.mark.parametrize("body", [KNOWN, BODIES["groq"], UNEXPLAINED], ids=["known", "413", "unexplained"])
async def test_refusal_of_less_than_any_server_reads_costs_no_history(
    body: Body, take: Take, window: Window, byte_question: Question, byte_server: ByteServer
) -> None:
    refuse(byte_server, body)

    await take("hello", asked=byte_question)
    await take("hello again", asked=byte_question)

    assert window.stats().evicted_messages == 0
    refused, _, last = sizes(byte_server)
    assert last == refused + 2


@pytest.mark.usefixtures("talked")
@pytest.mark.parametrize("body", [KNOWN, BODIES["groq"], UNEXPLAINED], ids=["known", "413", "unexplained"])
async def test_no_more_is_sent_after_a_refusal_than_was_answered(
    body: Body, take: Take, window: Window, byte_question: Question, byte_server: ByteServer
) -> None:
    asked = replace(byte_question, system_prompt="You are a voice assistant. " * 500)
    refuse(byte_server, body)

    turns = [await take("hello", asked=asked) for _ in range(3)]

    refused, *answered = [len(attempt.request.messages) for turn in turns for attempt in turn.attempts]
    assert len(answered) == 3
    assert max(answered) < refused
    assert window.stats().evicted_messages > 0


async def test_size_that_the_server_names_is_planned_with(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    refuse(byte_server, BODIES["llama_cpp"])
    await take("hello", asked=byte_question)

    assert byte_question.model.planned_budget.context_tokens == 4096


async def test_what_is_refused_in_vain_is_not_learned(
    talked: None, take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    refuse_all(byte_server, KNOWN)
    for _ in range(3):
        await take("hello", asked=byte_question)

    assert byte_question.model.size.get_context_tokens() is None


async def test_tools_belong_to_what_is_learned(take: Take, question: Question, model_server: ModelServer) -> None:
    model = replace(question.model, budget=Budget(WindowPolicy(), schema_tokens=700))
    await take("my name is Ada", asked=replace(question, model=model))

    assert model.size.has_accepted(700)


async def test_figure_of_the_user_wins_over_what_was_learned(question: Question) -> None:
    size = ContextSizeTracker()
    size.on_size_named(2000)
    model = replace(
        question.model, size=size, budget=Budget(WindowPolicy(), context_tokens=128_000, max_answer_tokens=900)
    )

    assert (model.planned_budget.context_tokens, model.planned_budget.max_answer_tokens) == (128_000, 900)


@pytest.mark.parametrize(("entered", "reserved"), [(4096, 256), (8192, 512), (16_000, 1000), (128_000, 1000)])
def test_answer_has_a_sixteenth_at_most_of_a_size_that_the_user_has_entered(
    question: Question, entered: int, reserved: int
) -> None:
    model = replace(question.model, budget=Budget(WindowPolicy(8000), entered, 1000))

    assert (model.planned_budget.context_tokens, model.planned_budget.max_answer_tokens) == (entered, reserved)


@pytest.mark.parametrize(("max_answer_tokens", "reserved"), [(1000, 250), (100, 100)])
async def test_answer_has_a_sixteenth_at_most_of_a_size_that_the_user_has_not_entered(
    max_answer_tokens: int, reserved: int, question: Question
) -> None:
    budget = Budget(WindowPolicy(), max_answer_tokens=max_answer_tokens)
    model = replace(question.model, budget=budget, profile=ModelProfile(context_tokens=4000))

    assert (model.planned_budget.context_tokens, model.planned_budget.max_answer_tokens) == (4000, reserved)


async def test_shortfall_has_the_figures_of_the_size_that_the_server_names(
    take: Take, reply: Ear, window: Window, question: Question
) -> None:
    question.model.size.on_size_named(160)
    budget = Budget(WindowPolicy(), max_answer_tokens=1000, schema_tokens=500)
    asked = replace(question, model=replace(question.model, budget=budget))

    outcome = await take("my name is Ada", asked=asked)

    stats = window.stats()
    answer_tokens = window.messages()[-1].tokens
    assert answer_tokens is not None
    newest = stats.current_tokens - answer_tokens
    assert outcome.run is not None
    assert outcome.run.shortfall == Shortfall(needed_tokens=stats.prefix_tokens + 500 + newest + 10, context_tokens=160)


async def test_small_server_is_learned_and_filled(
    take: Take, question: Question, window: Window, model_server: ModelServer
) -> None:
    model_server.change(context_size=2500)
    place = "on the left of the cellar, behind the old wooden door, " * 3
    for number in range(60):
        await take(f"remember that the locker number {number} is {place} with the key")

    records = model_server.requests
    assert sum(record.status != 200 for record in records) <= len(records) / 10
    assert records[-1].usage["prompt"] >= 0.75 * 2500
