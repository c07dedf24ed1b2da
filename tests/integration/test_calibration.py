"""Tests for the calibration of token counts, which is learned from usage and stored until the account is removed."""

from dataclasses import replace
import json
import logging
from typing import Any

from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.account import async_load_account_state
from custom_components.windowed_conversation.bridge.calibration import ExactCounter, ModelCalibrations
from custom_components.windowed_conversation.providers.events import Request, ToolSchema, Usage
from custom_components.windowed_conversation.window import Attachment, Message
from custom_components.windowed_conversation.window.tokens import Calibration, estimate_request, format_tool_definition
from demo.model_server import ModelServer
from tests.exact_tokens import theirs

from .conftest import SayFn, SetUpFn, flush_store, listed, start, stop
from .store_file import Disk


async def async_get_calibrations(home: HomeAssistant, entry_id: str) -> ModelCalibrations:
    return (await async_load_account_state(home, entry_id)).calibrations


FACTORS = {"fixed": 1.1, "prose": 1.25, "tools": 0.8}
# The server reports 1.5 tokens for each estimated token of this prompt.
PROMPT = Message.system("The light in the kitchen is on. " * 100)
REQUEST = Request("scripted", (PROMPT,))
USAGE = Usage(input=round(1.5 * estimate_request([PROMPT]).fixed))
EXACT = ExactCounter(theirs())
DEARER = Usage(input=round(1.3 * EXACT.count(PROMPT.content)))


def learned_on(disk: Disk, entry_id: str) -> Any:
    """Return the stored calibrations of an account's models, or None if none are stored."""
    rows = disk.execute("SELECT value FROM value WHERE owner = ? AND name = 'calibrations'", entry_id)
    return json.loads(rows[0][0]) if rows else None


def restored(stored: object) -> ModelCalibrations:
    """Return the calibrations as restored from the stored data at startup."""
    calibrations = ModelCalibrations()
    calibrations.restore(json.loads(json.dumps(stored)))
    return calibrations


def known(
    calibrations: ModelCalibrations, model: str = "scripted", exact: ExactCounter | None = None
) -> dict[str, float]:
    """Return the calibration factors that a new agent would use."""
    return calibrations.get_counter("new agent", model, exact).calibrator.calibration.as_dict()


async def test_estimate_is_within_three_percent_of_what_is_billed_after_five_turns(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    calibrations = await async_get_calibrations(home, entry.entry_id)
    errors = []
    learn = calibrations.learn_usage

    def checked(request: Request, usage: Usage) -> None:
        schemas = [format_tool_definition(tool.name, tool.description, tool.parameters) for tool in request.tools]
        calibration = calibrations.get_counter("new agent", "scripted").calibrator.calibration
        estimate = calibration.predict_tokens(estimate_request(request.messages, schemas))
        errors.append(abs(estimate / usage.input - 1))
        learn(request, usage)

    (agent,) = entry.runtime_data.agents.values()
    agent.learn_usage = checked
    for number in range(6):
        await say(f"consider that the locker number {number} is the {number} times seventh on the left")

    assert len(errors) == 6
    assert errors[0] > 0.03
    assert errors[5] <= 0.03


async def test_answers_are_counted_by_what_their_own_request_has_taught(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn
) -> None:
    calibrations = await async_get_calibrations(home, entry.entry_id)

    await say("my name is Ada")

    assert known(calibrations) != Calibration().as_dict()
    (agent,) = entry.runtime_data.agents.values()
    answer = next(iter(agent.windows.loaded_windows().values())).messages()[-1]
    assert answer.tokens == 4 + calibrations.get_counter("new agent", "scripted").count(answer.content)


async def test_what_is_stored_has_factors_and_nothing_that_was_said(
    entry: MockConfigEntry, say: SayFn, disk: Disk
) -> None:
    await say("my name is Ada")

    data = learned_on(disk, entry.entry_id)
    assert {model: set(learned) for model, learned in data["models"].items()} == {"scripted": {*FACTORS}}
    assert set(data) == {"models", "exact", "limits"}
    assert data["exact"] == {}


async def test_models_and_accounts_are_known_apart(home: HomeAssistant) -> None:
    calibrations = await async_get_calibrations(home, "one")

    calibrations.learn_usage(REQUEST, USAGE)

    assert known(calibrations)["fixed"] == pytest.approx(1.5, rel=0.05)
    assert known(calibrations, "another")["fixed"] == 1
    assert known(await async_get_calibrations(home, "two"))["fixed"] == 1


@pytest.mark.parametrize("price", [85, 4_800])
async def test_price_of_a_picture_teaches_nothing_about_texts(home: HomeAssistant, price: int) -> None:
    calibrations = await async_get_calibrations(home, "one")
    system = Message.system(PROMPT.content * 12)
    text_tokens = estimate_request([system]).fixed
    calibrations.learn_usage(Request("scripted", (system,)), Usage(input=text_tokens))
    before = known(calibrations)
    seen = Message.tool("call", "look", "Front door", attachments=(Attachment("image/jpeg", b"picture"),))

    for _ in range(3):
        calibrations.learn_usage(
            Request("scripted", (system, Message.user("who is there?"), seen)), Usage(input=text_tokens + price)
        )

    assert known(calibrations) == before


async def test_what_a_provider_cleared_by_itself_was_sent_all_the_same(home: HomeAssistant) -> None:
    calibrations = await async_get_calibrations(home, "one")

    calibrations.learn_usage(REQUEST, replace(USAGE, input=USAGE.input // 2, cleared=USAGE.input - USAGE.input // 2))

    assert known(calibrations)["fixed"] == pytest.approx(1.5, rel=0.05)


async def test_nothing_is_learned_where_nobody_knows_what_the_server_reads_of_the_tools(home: HomeAssistant) -> None:
    calibrations = await async_get_calibrations(home, "one")
    tools = (ToolSchema("turn_on", "Turn something on.", {"type": "object"}),)

    calibrations.learn_usage(replace(REQUEST, tools=tools, may_call=False), USAGE)

    assert known(calibrations)["fixed"] == 1


async def test_estimate_and_exact_counts_of_a_model_are_learned_apart(home: HomeAssistant) -> None:
    calibrations = await async_get_calibrations(home, "one")

    calibrations.learn_usage(REQUEST, DEARER, EXACT)

    assert known(calibrations, exact=EXACT)["fixed"] > 1.2
    assert known(calibrations)["fixed"] == 1


async def test_agent_that_changes_its_way_to_count_is_followed_by_its_windows(home: HomeAssistant) -> None:
    calibrations = await async_get_calibrations(home, "one")
    counter = calibrations.get_counter("agent", "scripted")
    estimated = counter.count(PROMPT.content)

    calibrations.get_counter("agent", "scripted", EXACT)
    assert counter.count(PROMPT.content) == EXACT.count(PROMPT.content) != estimated

    calibrations.get_counter("agent", "scripted")
    assert counter.count(PROMPT.content) == estimated


async def test_what_was_learned_against_exact_counts_is_there_after_a_restart(
    home: HomeAssistant, entry: MockConfigEntry
) -> None:
    calibrations = await async_get_calibrations(home, entry.entry_id)
    calibrations.learn_usage(REQUEST, USAGE)
    calibrations.learn_usage(REQUEST, DEARER, EXACT)

    await stop(home, entry)
    await start(home, entry)

    again = await async_get_calibrations(home, entry.entry_id)
    assert again is not calibrations
    assert known(again) == known(calibrations)
    assert known(again, exact=EXACT) == known(calibrations, exact=EXACT) != known(again)


async def test_agent_that_changes_its_model_counts_by_the_new_one(home: HomeAssistant) -> None:
    calibrations = await async_get_calibrations(home, "one")
    calibrations.learn_usage(REQUEST, USAGE)
    counter = calibrations.get_counter("agent", "scripted")

    calibrations.get_counter("agent", "another")

    assert counter.calibrator.calibration == Calibration()


async def test_answer_after_the_account_is_gone_brings_nothing_back(
    home: HomeAssistant, entry: MockConfigEntry, set_up: SetUpFn, disk: Disk
) -> None:
    await set_up()
    calibrations = await async_get_calibrations(home, entry.entry_id)
    await home.config_entries.async_remove(entry.entry_id)
    await listed(home)

    calibrations.learn_usage(REQUEST, USAGE)
    await flush_store(home)

    assert learned_on(disk, entry.entry_id) is None


def stored(models: Any) -> dict[str, Any]:
    """Return calibrations in the format in which they are stored."""
    return {"models": models, "exact": {}, "limits": {}}


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(stored([]), id="models are no mapping"),
        pytest.param(stored({"scripted": 1.2}), id="factors are no mapping"),
        pytest.param(stored({"scripted": FACTORS | {"prose": 1e9}}), id="factor out of bounds"),
        pytest.param(stored({"scripted": FACTORS, "other": {}}), id="one model is damaged"),
        pytest.param({}, id="no models"),
        pytest.param({"models": {}, "exact": {"scripted": 1}}, id="exact is damaged"),
        pytest.param([1, 2], id="a list"),
        pytest.param("text", id="text"),
    ],
)
def test_what_cannot_be_read_is_ignored_with_one_line_in_the_log(
    damaged: Any, caplog: pytest.LogCaptureFixture
) -> None:
    calibrations = restored(damaged)

    assert known(calibrations) == Calibration().as_dict()
    ours = [r for r in caplog.records if r.name == ModelCalibrations.__module__]
    assert [r.levelno for r in ours] == [logging.WARNING]


async def test_account_is_set_up_and_learns_where_what_is_stored_cannot_be_read(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, disk: Disk
) -> None:
    await say("hello there")
    await stop(home, entry)
    disk.execute("UPDATE value SET value = '7' WHERE name = 'calibrations'")

    await start(home, entry)
    await say("my name is Ada")

    assert known(await async_get_calibrations(home, entry.entry_id)) != Calibration().as_dict()
    assert "scripted" in learned_on(disk, entry.entry_id)["models"]


def test_no_more_than_a_hundred_models_are_kept() -> None:
    calibrations = ModelCalibrations()
    for number in range(120):
        calibrations.learn_usage(Request(f"model {number}", (PROMPT,)), USAGE)

    again = restored(calibrations.as_dict())
    assert [known(again, f"model {number}")["fixed"] > 1 for number in (0, 19, 20, 119)] == [False, False, True, True]
