"""Tests for summaries of evicted exchanges: written after the answer, with the same request prefix, delaying nobody."""

import asyncio
from collections.abc import Callable
import json
from typing import Any

from homeassistant.core import Event, HomeAssistant, callback
from homeassistant.exceptions import HomeAssistantError, ServiceValidationError
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_capture_events

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.const import (
    CONF_MEMORY,
    CONF_SUMMARIZE,
    DOMAIN,
)
from demo.model_server import ModelServer

from .actions import act
from .conftest import AGENT, SayFn, SetUpFn, get_speech, until
from .summarizing import SMALL, STORY, asked_for, count_summaries, the_window


def wire(body: dict[str, Any]) -> list[str]:
    """Return each message of a request as JSON."""
    return [json.dumps(message) for message in body["messages"]]


def count_trims(agent: Agent) -> int:
    """Return the total number of trims in all windows."""
    return sum(window.stats().trims for window in agent.windows.loaded_windows().values())


@pytest.fixture
async def entry_of_agent(set_up: SetUpFn) -> MockConfigEntry:
    """Return an account that summarizes evicted exchanges and has a small window."""
    return await set_up(options=SMALL, **{CONF_MEMORY: "off"})


@pytest.fixture
def agent(entry_of_agent: MockConfigEntry, get_agent: Callable[[MockConfigEntry], Agent]) -> Agent:
    """Return the agent of `entry_of_agent`."""
    return get_agent(entry_of_agent)


@pytest.fixture
def after(home: HomeAssistant) -> Callable[[str, Callable[[], Any]], None]:
    """Return a function that schedules a call for our next event, which fires after the answer and before a summary."""

    def after(event: str, do: Callable[[], Any]) -> None:
        @callback
        def on_event(_event: Event) -> None:
            do()

        home.bus.async_listen_once(f"{DOMAIN}_{event}", on_event)

    return after


@pytest.fixture
def fill(say: SayFn, agent: Agent) -> Callable[[], Any]:
    """Return a function that tells the agent a name and continues the conversation until a trim evicts the name."""

    async def fill() -> None:
        await say("my name is Ada")
        while not count_trims(agent):
            await say(STORY)

    return fill


async def test_what_has_left_is_known_from_its_summary(say: SayFn, agent: Agent, fill) -> None:
    await fill()
    await until(lambda: count_summaries(agent) == 1)

    assert get_speech(await say("what is my name?")) == "Your name is Ada."
    assert "important" in the_window(agent).stats().tag_distribution


async def test_without_the_option_nothing_is_asked(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, get_agent, model_server: ModelServer
) -> None:
    agent = get_agent(await set_up(options=SMALL | {CONF_SUMMARIZE: False}))
    await say("my name is Ada")
    while count_trims(agent) < 2:
        await say(STORY)

    assert asked_for(model_server) == []
    assert get_speech(await say("what is my name?")) == "I do not know your name."


async def test_request_begins_like_the_one_before_the_trim(agent: Agent, fill, model_server: ModelServer) -> None:
    await fill()
    await until(lambda: count_summaries(agent) == 1)

    (asked,) = asked_for(model_server)
    before = model_server.requests[-3].body
    head = wire(asked)[:-1]
    assert len(head) > 2
    assert wire(before)[: len(head)] == head
    assert asked["tools"] == before["tools"]


async def test_request_after_a_summary_differs_only_before_the_newest_exchange(
    say: SayFn, agent: Agent, fill, after, model_server: ModelServer
) -> None:
    left: list[str] = []
    after("trimmed", lambda: left.extend(message.content for message in the_window(agent).messages()))
    await fill()
    await until(lambda: count_summaries(agent) == 1)

    await say("what is my name?")

    sent = [message["content"] for message in model_server.requests[-1].body["messages"]]
    assert len(left) > 4
    assert sent[:-3] == [*left[:-2], "[What was said before, in short?]", "You told me: my name is Ada."]
    assert sent[-3:-1] == left[-2:]


async def test_summary_is_told_and_counted(
    home: HomeAssistant, say: SayFn, agent: Agent, fill, model_server: ModelServer
) -> None:
    told = async_capture_events(home, "windowed_conversation_summarized")
    turns = async_capture_events(home, "windowed_conversation_turn")
    await fill()
    await until(lambda: len(told) == 1)

    data = told[0].data
    assert data["entity_id"] == AGENT
    assert data["conversation_id"] == "test"
    assert data["exchanges"] > 0
    assert 0 < data["summary_tokens"] <= agent.config.policy.summary_tokens
    assert "Ada" not in str(data)
    costs = [event.data["usage"]["input"] for event in (*turns, *told)]
    assert agent.statistics.totals.input_tokens == sum(costs)
    assert agent.statistics.totals.requests == len(model_server.requests) == len(turns) + len(told)


async def test_nobody_waits_for_a_summary(say: SayFn, agent: Agent, fill, after, model_server: ModelServer) -> None:
    after("trimmed", lambda: model_server.fault("no_answer", 1))
    await fill()
    await until(lambda: len(asked_for(model_server)) == 1)

    assert get_speech(await say("my name is Bob")) == "Nice to meet you, Bob."
    assert the_window(agent) in agent.summarizing_windows
    assert len(asked_for(model_server)) == 1


async def test_conversation_that_was_forgotten_gets_no_summary(
    home: HomeAssistant, agent: Agent, fill, after, model_server: ModelServer
) -> None:
    after("trimmed", lambda: model_server.change(delay=0.05))
    await fill()
    await until(lambda: len(asked_for(model_server)) == 1)
    window = the_window(agent)

    await act(home, "delete_conversation")

    await until(lambda: window not in agent.summarizing_windows)
    assert len(agent.windows) == 0
    assert "summary" not in window.stats().tag_distribution


async def test_failure_costs_the_summary_and_it_is_tried_once_more(
    *, say: SayFn, agent: Agent, fill, after, model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    after("trimmed", lambda: model_server.fault("500", 1))
    await fill()
    before = the_window(agent).messages()
    await until(lambda: "No summary from" in caplog.text)

    assert the_window(agent).messages() == before
    assert count_summaries(agent) == 0
    assert "Ada" not in caplog.text.partition("No summary from")[2].partition("\n")[0]
    await say("order pizza")
    await until(lambda: count_summaries(agent) == 1)
    assert get_speech(await say("what is my name?")) == "Your name is Ada."
    assert agent.statistics.totals.requests == len(model_server.requests)


def failures(agent: Agent) -> int:
    """Return the number of failed attempts to write the pending summary."""
    unsummarized = the_window(agent).pending_summary
    assert unsummarized is not None
    return unsummarized.failed_attempts


async def test_it_is_not_tried_again_after_the_second_failure(
    say: SayFn, agent: Agent, fill, after, model_server: ModelServer
) -> None:
    after("trimmed", lambda: model_server.fault("500", 1))
    await fill()
    await until(lambda: failures(agent) == 1)
    after("turn", lambda: model_server.fault("empty_answer", 1))
    await say("order pizza")

    await until(lambda: the_window(agent).pending_summary is None)
    await say("order pizza")
    assert len(asked_for(model_server)) == 2


async def test_local_turn_sends_nothing(say: SayFn, agent: Agent, model_server: ModelServer) -> None:
    while not count_trims(agent):
        await say("turn on kitchen light")
    await asyncio.sleep(0.1)
    assert model_server.requests == []

    await say("my name is Ada")

    await until(lambda: count_summaries(agent) == 1)


async def test_summary_ends_with_the_account(
    *, home: HomeAssistant, entry_of_agent: MockConfigEntry, agent: Agent, fill, after, model_server: ModelServer
) -> None:
    after("trimmed", lambda: model_server.fault("no_answer"))
    await fill()
    await until(lambda: len(asked_for(model_server)) == 1)
    window = the_window(agent)

    await home.config_entries.async_unload(entry_of_agent.entry_id)

    assert agent.summarizing_windows == set()
    assert window.pending_summary is not None


async def test_window_that_is_summarized_by_hand(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, get_agent, model_server: ModelServer
) -> None:
    for text in ("my name is Ada", STORY, "hello", "order pizza"):
        await say(text)
    told = async_capture_events(home, "windowed_conversation_summarized")

    response = await act(home, "summarize_conversation")

    agent = get_agent(entry)
    assert response["exchanges"] == 2
    assert response == told[0].data
    assert count_summaries(agent) == 1
    assert the_window(agent).stats().evicted_exchanges == 2
    assert get_speech(await say("a large one")) == "Your large pizza is on its way."
    assert get_speech(await say("what is my name?")) == "Your name is Ada."


async def test_important_exchanges_are_not_summarized(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, get_agent
) -> None:
    await say("my name is Ada")
    await act(home, "tag_exchange", add=["important"])
    for text in ("order pizza", "hello", "hi"):
        await say(text)

    assert (await act(home, "summarize_conversation", keep=1))["exchanges"] == 2

    assert "my name is Ada" in str(the_window(get_agent(entry)).messages())


async def test_nothing_to_summarize_is_told(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    await say("my name is Ada")
    await say("order pizza")

    with pytest.raises(ServiceValidationError, match="nothing to summarize"):
        await act(home, "summarize_conversation")


async def test_conversation_is_summarized_once_at_a_time(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, get_agent, model_server: ModelServer
) -> None:
    for text in ("my name is Ada", "hello", "hi"):
        await say(text)
    model_server.change(delay=0.01)
    first = asyncio.create_task(act(home, "summarize_conversation"))
    await until(lambda: len(get_agent(entry).summarizing_windows) == 1)

    with pytest.raises(ServiceValidationError, match="being answered or summarized"):
        await act(home, "summarize_conversation")

    assert (await first)["exchanges"] == 1


async def test_conversation_that_is_forgotten_meanwhile_is_unknown(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    for text in ("my name is Ada", "hello", "hi"):
        await say(text)
    model_server.change(delay=0.02)
    summary = asyncio.create_task(act(home, "summarize_conversation"))
    await until(lambda: len(asked_for(model_server)) == 1)
    await act(home, "delete_conversation")

    with pytest.raises(ServiceValidationError, match="no conversation test"):
        await summary


@pytest.mark.parametrize(
    ("fault", "told"), [("500", "cannot be reached"), ("same_call", "did not write a summary"), ("429", "too many")]
)
async def test_failure_of_the_model_is_told(
    *,
    home: HomeAssistant,
    entry: MockConfigEntry,
    say: SayFn,
    get_agent,
    model_server: ModelServer,
    fault: str,
    told: str,
) -> None:
    for text in ("my name is Ada", "hello", "hi"):
        await say(text)
    before = the_window(get_agent(entry)).snapshot()
    model_server.fault(fault)

    with pytest.raises(HomeAssistantError, match=told):
        await act(home, "summarize_conversation")

    assert the_window(get_agent(entry)).snapshot() == before
