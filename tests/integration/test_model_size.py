"""Tests for a server with a context size of 4,000 tokens: it is learned, stored, and forgotten."""

from statistics import mean

from homeassistant.const import CONF_API_KEY
from homeassistant.core import HomeAssistant
from homeassistant.helpers import issue_registry as ir
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.account import async_load_account_state
from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.bridge.calibration import ModelCalibrations
from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_TOKENS,
    CONF_MAX_ANSWER_TOKENS,
    CONF_ROUTING,
)
from custom_components.windowed_conversation.turn.model import Model
from demo.model_server import ModelServer
from demo.model_server.request_log import RequestRecord

from .conftest import SayFn, SetUpFn, get_speech, start, stop
from .more_agents import change_agent

CONTEXT = 4000
TURNS = 40
FACT = (
    "consider that the locker number {0} with the {0} blue and {0} red boxes is on the left of the cellar, behind the "
    "old wooden door and next to the bicycles"
)


@pytest.fixture
async def small(set_up: SetUpFn, model_server: ModelServer) -> MockConfigEntry:
    """Return an account with a compatible server that has a small context size."""
    model_server.change(context_size=CONTEXT)
    return await set_up(**{CONF_ROUTING: "model_only"})


def get_agent(entry: MockConfigEntry) -> Agent:
    (agent,) = entry.runtime_data.agents.values()
    return agent


def get_model(entry: MockConfigEntry) -> Model:
    model = get_agent(entry).model
    assert model is not None
    return model


async def talk(say: SayFn, server: ModelServer, conversation_id: str) -> tuple[str, list[RequestRecord]]:
    """Take 40 turns, with a name told near the end; return the last answer and all requests for answers."""
    server.log.clear()
    said = [FACT.format(number) for number in range(TURNS - 1)]
    said[-6] = "my name is Ada"
    for text in said:
        await say(text, conversation_id)
    answer = get_speech(await say("what is my name?", conversation_id))
    return answer, [record for record in server.log.records if record.for_answer]


def used(records: list[RequestRecord]) -> tuple[str, bool, bool]:
    """Return the last request's outcome, whether the context was used well, and whether at most a tenth were refused.

    The context is judged by the mean of the last ten answered requests, because a request after a trim is shorter.
    """
    sizes = [record.usage["prompt"] for record in records if record.usage][-10:]
    refused = sum(record.status != 200 for record in records)
    return records[-1].outcome, mean(sizes) >= 0.8 * CONTEXT, refused <= len(records) / 10


WELL = ("answered", True, True)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_small_server_is_filled_and_refuses_little_in_one_conversation_after_the_other_and_after_a_restart(
    home: HomeAssistant, small: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    found = [await talk(say, model_server, "first"), await talk(say, model_server, "second")]
    before = get_model(small).size.get_context_tokens()
    await stop(home, small)
    await start(home, small)
    kept = get_model(small).size.get_context_tokens()
    found.append(await talk(say, model_server, "third"))

    assert [answer for answer, _ in found] == ["Your name is Ada."] * 3
    assert [used(records) for _, records in found] == [WELL] * 3
    assert kept == before


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_one_413_changes_nothing(small: MockConfigEntry, say: SayFn, model_server: ModelServer) -> None:
    for number in range(5):
        await say(FACT.format(number), "before")
    model_server.fault("413", 1)
    await say("hello", "before")
    planned = get_model(small).size.get_context_tokens()

    answer, records = await talk(say, model_server, "after")

    assert planned is None
    assert (answer, used(records)) == ("Your name is Ada.", WELL)


@pytest.mark.parametrize("fault", ["413", "context_overflow"])
async def test_conversation_is_remembered_after_a_single_refusal(
    fault: str, small: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    await say("my name is Bob")
    model_server.fault(fault, 1)
    await say("hello")

    assert get_speech(await say("what is my name?")) == "Your name is Bob."


async def learn(say: SayFn, model_server: ModelServer) -> None:
    """Make the server report its context size in an error."""
    await say("my name is Ada")
    model_server.fault("context_overflow_llama", 1)
    await say("hello")


async def test_size_that_the_user_enters_applies_to_the_next_request(
    home: HomeAssistant, small: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    await learn(say, model_server)

    await change_agent(home, small, **{CONF_CONTEXT_TOKENS: 128_000})

    planned = get_model(small).planned_budget
    assert (planned.context_tokens, planned.max_answer_tokens) == (128_000, 1000)


async def test_agent_that_is_configured_anew_begins_anew(
    home: HomeAssistant, small: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    await learn(say, model_server)
    learned = get_model(small).planned_budget.context_tokens

    await change_agent(home, small, **{CONF_MAX_ANSWER_TOKENS: 700})

    assert (learned, get_model(small).planned_budget.context_tokens) == (8192, None)


async def test_account_that_is_configured_anew_begins_anew(
    home: HomeAssistant, small: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    await learn(say, model_server)

    home.config_entries.async_update_entry(small, data={**small.data, CONF_API_KEY: "another"})
    await home.async_block_till_done()

    assert get_model(small).planned_budget.context_tokens is None


async def test_reload_forgets_nothing(
    home: HomeAssistant, small: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    await learn(say, model_server)

    await home.config_entries.async_reload(small.entry_id)

    assert get_model(small).planned_budget.context_tokens == 8192


def test_limit_that_cannot_be_read_is_forgotten() -> None:
    calibrations = ModelCalibrations()

    calibrations.restore({"models": {}, "exact": {}, "limits": {"scripted": {"tokens": 1168, "at": 1795332846.0}}})

    assert calibrations.get_size_tracker("scripted").get_context_tokens() is None


async def test_issue_names_what_is_needed_and_what_the_model_has(
    home: HomeAssistant, small: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    calibrations = (await async_load_account_state(home, small.entry_id)).calibrations
    calibrations.get_size_tracker("scripted").on_size_named(600)

    await say("my name is Ada")

    (issue,) = ir.async_get(home).issues.values()
    assert issue.translation_placeholders is not None
    needed = int(issue.translation_placeholders["needed"].replace(",", ""))
    sent = model_server.requests[-1].usage["prompt"]
    assert issue.translation_key == "model_too_small"
    assert issue.translation_placeholders["context"] == "600"
    assert needed == pytest.approx(sent + 600 // 16, rel=0.25)


async def test_no_issue_is_raised_for_a_refusal_of_what_fits(
    home: HomeAssistant, small: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    await say("my name is Ada")
    model_server.fault("413", 1)
    await say("hello")
    await say("what is my name?")

    assert not [each for each in ir.async_get(home).issues.values() if each.translation_key == "model_too_small"]
