"""Tests that a conversation that is compacted again and again stays small, with one summary in its window."""

from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import async_capture_events

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.bridge.turn_report import EVENT_SUMMARIZED, EVENT_TURN
from custom_components.windowed_conversation.const import CONF_COMPACTION, CONF_MEMORY, CONF_PROVIDER, PROVIDER_OPENAI
from custom_components.windowed_conversation.window.summary import QUESTION
from demo.model_server import ModelServer

from .actions import act
from .conftest import SayFn, SetUpFn
from .summarizing import the_window

FACT = "consider that the paint on shelf {} is light green with a little grey"


def count_summaries_in_window(agent: Agent) -> int:
    """Return the number of summaries in the agent's only window, current and outdated ones."""
    return sum(each.messages[0].content == QUESTION for each in the_window(agent).exchanges())


@pytest.mark.long
@pytest.mark.parametrize(("is_compacted_by_openai", "limit", "turns"), [(False, 1900, 40), (True, 1900, 24)])
async def test_conversation_compacted_over_a_limit_stays_near_it(
    *,
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    get_agent,
    model_server: ModelServer,
    is_compacted_by_openai: bool,
    limit: int,
    turns: int,
) -> None:
    account = {CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url}
    agent = get_agent(await set_up(account=account, **{CONF_COMPACTION: is_compacted_by_openai, CONF_MEMORY: "off"}))
    taken, written = async_capture_events(home, EVENT_TURN), async_capture_events(home, EVENT_SUMMARIZED)

    for number in range(turns):
        await say(FACT.format(number))
        if taken[-1].data["usage"]["input"] > limit:
            await act(home, "summarize_conversation")

    assert max(turn.data["usage"]["input"] for turn in taken) < 1.1 * limit
    assert 1 < len(written) <= turns / 5
    assert count_summaries_in_window(agent) == 1


@pytest.mark.long
async def test_conversation_compacted_every_ten_turns_keeps_its_size(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, get_agent
) -> None:
    agent, sizes = get_agent(await set_up(**{CONF_MEMORY: "off"})), list[int]()

    for number in range(60):
        await say(FACT.format(number))
        if number % 10 == 9:
            await act(home, "summarize_conversation")
            sizes.append(the_window(agent).stats().current_tokens)

    assert max(sizes) < 1.5 * sizes[1]
    assert count_summaries_in_window(agent) == 1
