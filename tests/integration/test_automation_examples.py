"""Tests that each automation of the documentation runs and does what its text says, apart from the agent's name."""

from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
import json
from pathlib import Path
from typing import Any

from freezegun.api import FrozenDateTimeFactory
from homeassistant.components.persistent_notification import DOMAIN as NOTIFICATIONS
from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant, ServiceCall, SupportsResponse
from homeassistant.helpers import area_registry as ar, entity_registry as er
from homeassistant.setup import async_setup_component
from homeassistant.util import dt as dt_util
from homeassistant.util.json import JsonValueType
from homeassistant.util.yaml import parse_yaml
import pytest
from pytest_homeassistant_custom_component.common import MockUser, async_fire_time_changed, async_mock_service

from custom_components.windowed_conversation.const import CONF_FALLBACK_AGENTS, CONF_PROVIDER, PROVIDER_OPENAI
from demo.model_server import ModelServer, words
from tests.documents import DOCS, blocks

from .actions import act
from .conftest import AGENT, SayFn, SetUpFn
from .remembered import add_fact, add_suggestion, list_facts

PAGE = DOCS / "automations.md"
EXAMPLES: list[Any] = [
    parse_yaml(block.replace("openai_conversation", AGENT.partition(".")[2])) for block in blocks(PAGE, "yaml")
]
AUTOMATIONS = {each["alias"]: each for each in EXAMPLES if "triggers" in each}
# The source of this module, which names each automation that it tests.
TESTED = Path(__file__).read_text(encoding="utf-8")
# A Monday and a Sunday.
MONDAY, SUNDAY = "2027-03-01", "2027-03-07"

type RunAt = Callable[..., Coroutine[Any, Any, None]]
type Run = Callable[..., Coroutine[Any, Any, list[ServiceCall]]]


@pytest.fixture
def run(home: HomeAssistant) -> Run:
    """Return a function that sets up the automation with this alias, and returns the list of its notifications."""

    async def run(alias: str, **changes: Any) -> list[ServiceCall]:
        assert await async_setup_component(home, "automation", {"automation": {**AUTOMATIONS[alias], **changes}})
        return async_mock_service(home, NOTIFICATIONS, "create")

    return run


@pytest.fixture
def run_at(home: HomeAssistant, run: Run, freezer: FrozenDateTimeFactory) -> RunAt:
    """Return a function that sets up the automation with this alias before its time, which then comes."""

    async def run_at(alias: str, day: str, **changes: Any) -> None:
        (trigger,) = AUTOMATIONS[alias]["triggers"]
        at = datetime.fromisoformat(f"{day}T{trigger['at']}").replace(tzinfo=dt_util.get_default_time_zone())
        freezer.move_to(at - timedelta(seconds=10))
        await run(alias, **changes)
        async_fire_time_changed(home, at)
        await home.async_block_till_done()

    return run_at


@pytest.fixture
def expected_lingering_timers() -> bool:
    """Allow automations to wait for their next time when the test ends."""
    return True


async def press(home: HomeAssistant, *buttons: str) -> None:
    """Press buttons, one after another."""
    for number, button in enumerate(buttons):
        home.states.async_set(button, f"2027-03-01T07:00:0{number}+00:00")
        await home.async_block_till_done()


def read_lines(file: Path) -> list[str]:
    """Return the lines of a file, or none if there is no such file."""
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


async def test_good_night_shows_the_answer(home: HomeAssistant, entry, run: Run, model_server: ModelServer) -> None:
    notifications = await run("Good night")
    model_server.script(words("The kitchen light is on."))

    await press(home, "input_button.good_night")

    assert [call.data["message"] for call in notifications] == ["The kitchen light is on."]


@pytest.mark.usefixtures("entry")
@pytest.mark.parametrize(("day", "announced"), [(MONDAY, ["Good morning."]), (SUNDAY, [])])
async def test_morning_briefing_is_announced_on_weekdays(
    home: HomeAssistant, run_at: RunAt, model_server: ModelServer, day: str, announced: list[str]
) -> None:
    announcements = async_mock_service(home, "assist_satellite", "announce")
    model_server.script(*[words(text) for text in announced])

    await run_at("Morning briefing", day)

    assert [call.data["message"] for call in announcements] == announced


@pytest.mark.parametrize(
    ("sentence", "remembered"), [("Take my umbrella", ["2027-03-02: Take my umbrella"]), (None, [])]
)
async def test_answer_at_a_satellite_is_remembered(
    home: HomeAssistant, entry, run_at: RunAt, sentence: str | None, remembered: list[str]
) -> None:
    ada = MockUser(name="Ada").add_to_hass(home)
    person = {"id": "1", "name": "Ada", "user_id": ada.id}
    assert await async_setup_component(home, "person", {"person": [person]})
    response: dict[str, JsonValueType] = {"id": None, "sentence": sentence, "slots": {}}
    async_mock_service(
        home, "assist_satellite", "ask_question", response=response, supports_response=SupportsResponse.OPTIONAL
    )

    await run_at("Ask what to remember", MONDAY)

    assert [fact.text for fact in await list_facts(home, ada.id)] == remembered


@pytest.mark.parametrize(
    ("day", "age_in_days", "shown"),
    [
        (SUNDAY, 2, ["Things that you mentioned and that wait for you: 1"]),
        (SUNDAY, 8, []),
        (MONDAY, 2, []),
    ],
)
async def test_what_waits_to_be_kept_is_counted_once_a_week_for_its_owner(
    home: HomeAssistant, entry, run_at: RunAt, *, day: str, age_in_days: int, shown: list[str]
) -> None:
    ada = MockUser(name="Ada").add_to_hass(home)
    assert await async_setup_component(home, "person", {"person": [{"id": "1", "name": "Ada", "user_id": ada.id}]})
    at = dt_util.parse_datetime(f"{day}T10:00:00-08:00", raise_on_error=True).timestamp() - age_in_days * 86_400
    await add_suggestion(home, ada.id, "Tom takes antidepressants", at)
    await add_suggestion(home, "grace", "Leo wets the bed", at)
    phone = async_mock_service(home, "notify", "mobile_app_ada")

    await run_at("What waits to be kept", day)

    assert [call.data["message"] for call in phone] == shown


async def test_only_the_last_parcel_is_remembered(
    home: HomeAssistant, entry, run: Run, freezer: FrozenDateTimeFactory
) -> None:
    await run("Remember the parcel")
    freezer.move_to("2027-03-01T17:00:00+00:00")
    await press(home, "input_button.parcel")
    freezer.move_to("2027-03-02T18:30:00+00:00")
    home.states.async_set("input_button.parcel", "2027-03-02T18:30:00+00:00")
    await home.async_block_till_done()

    assert [fact.text for fact in await list_facts(home)] == ["The last parcel came on Tuesday, 02 March, at 10:30"]


async def test_each_room_has_a_conversation(home: HomeAssistant, entry, run: Run) -> None:
    for room in ("kitchen", "office"):
        button = er.async_get(home).async_get_or_create("input_button", "test", room, suggested_object_id=f"ask_{room}")
        area = ar.async_get(home).async_create(room.title())
        er.async_get(home).async_update_entity(button.entity_id, area_id=area.id)
    notifications = await run("Ask in this room")

    await press(home, "input_button.ask_kitchen", "input_button.ask_office")

    kept = (await act(home, "list_conversations"))["conversations"]
    assert {each["conversation_id"] for each in kept} == {"room Kitchen", "room Office"}
    assert [call.data["title"] for call in notifications] == ["Kitchen", "Office"]


async def test_button_without_an_area_asks_about_the_home(
    home: HomeAssistant, entry, run: Run, model_server: ModelServer
) -> None:
    notifications = await run("Ask in this room")

    await press(home, "input_button.ask_office")

    (kept,) = (await act(home, "list_conversations"))["conversations"]
    assert kept["conversation_id"] == "room home"
    assert [call.data["title"] for call in notifications] == ["home"]
    assert "What is different in the home since I last asked?" in str(model_server.requests[-1].body["messages"])


@pytest.mark.parametrize("kept_before", [["good night", "other"], ["other"]])
async def test_conversation_is_deleted_at_night(
    home: HomeAssistant, entry, run_at: RunAt, say: SayFn, kept_before: list[str]
) -> None:
    for conversation_id in kept_before:
        await say("hello there", conversation_id)

    await run_at("Start over every night", MONDAY)

    kept = (await act(home, "list_conversations"))["conversations"]
    assert [each["conversation_id"] for each in kept] == ["other"]


@pytest.mark.parametrize(("words_said", "summaries"), [(900, 1), (100, 0)])
async def test_long_conversation_is_summarized(
    *, home: HomeAssistant, entry, run: Run, say: SayFn, words_said: int, summaries: int
) -> None:
    await run("Summarize a long conversation")

    for _ in range(8):
        await say("I wonder " + "why " * words_said)
        await home.async_block_till_done()

    messages = (await act(home, "get_conversation"))["messages"]
    assert sum("summary" in message["tags"] for message in messages) == 2 * summaries


async def test_budget_is_reported_once_a_day(home: HomeAssistant, run: Run) -> None:
    (helper,) = [each for each in EXAMPLES if "utility_meter" in each]
    source = helper["utility_meter"]["ai_cost_today"]["source"]
    unit = {"unit_of_measurement": "USD", "state_class": "total_increasing"}
    home.states.async_set(source, "2.00", unit)
    assert await async_setup_component(home, "utility_meter", helper)
    await home.async_start()
    notifications = await run("AI budget of the day")

    for total in ("2.10", "2.40", "2.60", "2.90"):
        home.states.async_set(source, total, unit)
        await home.async_block_till_done()

    assert [call.data["message"] for call in notifications] == ["Today's questions cost $0.6 so far."]


async def test_budget_watches_a_sensor_of_the_agent(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer
) -> None:
    (helper,) = [each for each in EXAMPLES if "utility_meter" in each]
    await set_up(account={CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url})

    assert home.states.get(helper["utility_meter"]["ai_cost_today"]["source"]) is not None


async def test_credit_that_has_run_out_is_reported(entry, run: Run, say: SayFn, model_server: ModelServer) -> None:
    notifications = await run("AI credit has run out")
    model_server.fault("quota")

    await say("my name is Ada")

    assert [call.data["message"] for call in notifications] == ["Ada needs credit."]


async def test_credit_is_not_reported_for_other_turns(entry, run: Run, say: SayFn, model_server: ModelServer) -> None:
    notifications = await run("AI credit has run out")
    model_server.fault("500", 1)

    await say("my name is Ada")
    await say("my name is Ada")

    assert notifications == []


async def test_provider_that_is_down_is_reported_until_it_answers(
    home: HomeAssistant, entry, run: Run, say: SayFn, model_server: ModelServer
) -> None:
    notifications = await run("AI provider is down")
    dismissed = async_mock_service(home, NOTIFICATIONS, "dismiss")
    model_server.fault("500")
    await say("my name is Ada")
    model_server.reset()

    await say("turn on the kitchen light")
    before = list(dismissed)
    await say("my name is Ada")

    assert [call.data["message"] for call in notifications] == ["Ada gets no answer from its model."]
    assert (len(before), len(dismissed)) == (0, 1)


async def test_provider_that_is_down_is_reported_if_another_agent_answers(
    set_up: SetUpFn, run: Run, say: SayFn, model_server: ModelServer
) -> None:
    await set_up(**{CONF_FALLBACK_AGENTS: ["conversation.home_assistant"]})
    notifications = await run("AI provider is down")
    model_server.fault("500")

    await say("my name is Ada")

    assert [call.data["message"] for call in notifications] == ["Ada gets no answer from its model."]


@pytest.mark.usefixtures("entry")
@pytest.mark.parametrize(
    ("text", "messages"), [("my name is Ada", ["Ada: unavailable"]), ("", []), ("turn on the kitchen light", [])]
)
async def test_turn_that_failed_is_reported(
    run: Run, say: SayFn, model_server: ModelServer, text: str, messages: list[str]
) -> None:
    notifications = await run("An answer failed")
    model_server.fault("500")

    await say(text)

    assert [call.data["message"] for call in notifications] == messages


@pytest.mark.usefixtures("entry")
@pytest.mark.parametrize(("day", "texts"), [(SUNDAY, ["The bins go out on Friday"]), (MONDAY, [])])
async def test_memory_is_exported_on_sundays(
    home: HomeAssistant, run_at: RunAt, tmp_path: Path, day: str, texts: list[str]
) -> None:
    home.config.allowlist_external_dirs = {str(tmp_path)}
    (export,) = AUTOMATIONS["Export memory every week"]["actions"]
    file = tmp_path / Path(export["data"]["filename"]).name
    await add_fact(home, "The bins go out on Friday")
    export = {**export, "data": {**export["data"], "filename": str(file)}}

    await run_at("Export memory every week", day, actions=[export])

    lines = await home.async_add_executor_job(read_lines, file)
    assert [line["text"] for line in map(json.loads, lines) if "text" in line] == texts


@pytest.mark.rule("docs-examples")
def test_page_has_ten_automations_and_each_has_a_test() -> None:
    assert len(AUTOMATIONS) >= 10
    assert [alias for alias in AUTOMATIONS if f'"{alias}"' not in TESTED] == []
