"""Tests for a satellite with an owner: memory treats its speaker as the owner, whose name is sent to the model."""

from dataclasses import replace
import re
from typing import Any

from homeassistant.components.assist_pipeline.pipeline import (
    PipelineInput,
    PipelineRun,
    PipelineStage,
    async_get_pipeline,
)
from homeassistant.config_entries import ConfigEntry
from homeassistant.const import CONF_PROMPT, CONF_URL
from homeassistant.core import Context, HomeAssistant
from homeassistant.data_entry_flow import FlowResultType, InvalidData
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.chat_session import async_get_chat_session
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser

from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_PLACEMENT,
    CONF_DEVICE_OWNERS,
    CONF_SCOPE,
    DOMAIN,
)
from custom_components.windowed_conversation.turn.context import ContextPlacement
from custom_components.windowed_conversation.turn.routing import Scope
from demo.model_server import ModelServer

from .account_forms import open_options
from .actions import act
from .agent_forms import suggested
from .conftest import AGENT, SayFn, SetUpFn, Submit, flush_store, get_speech
from .remembered import list_facts
from .states import add_satellite
from .store_file import Disk
from .test_options_flow import SMALL
from .test_recall import ada, asked, grace, sent, tell

__all__ = ["ada", "grace"]

SATELLITE = "assist_satellite.bedside"


@pytest.fixture
def bedside(home: HomeAssistant) -> str:
    """Create a satellite with an entity and return its device id."""
    device_id = add_satellite(home, "Bedside")
    satellites = er.async_get(home)
    satellites.async_get_or_create(
        "assist_satellite", "wyoming", "bedside", device_id=device_id, suggested_object_id="bedside"
    )
    return device_id


@pytest.fixture
def owned(bedside: str, ada: Context) -> dict[str, list[dict[str, str | None]]]:
    """Return the account option that makes Ada the owner of the satellite."""
    return {CONF_DEVICE_OWNERS: [{"device": bedside, "person": ada.user_id}]}


def field(form: Submit) -> Any:
    """Return the form field for the owners of satellites."""
    return form.shown["data_schema"].schema["memory"].schema.schema[CONF_DEVICE_OWNERS]


def listed_in(form: Submit) -> list[dict[str, str]]:
    """Return the device owners that the form suggests."""
    return suggested(form).get(CONF_DEVICE_OWNERS, [])


async def test_owner_is_known_in_a_pipeline_that_their_satellite_runs(
    home: HomeAssistant,
    set_up: SetUpFn,
    disk: Disk,
    model_server: ModelServer,
    *,
    owned: dict,
    bedside: str,
    ada: Context,
) -> None:
    await set_up(options=owned)
    pipeline = replace(async_get_pipeline(home), conversation_engine=AGENT, prefer_local_intents=False)
    for text in ("my name is Ada Lovelace", "what is my name?"):
        with async_get_chat_session(home) as session:
            run = PipelineRun(home, Context(), pipeline, PipelineStage.INTENT, PipelineStage.INTENT, lambda event: None)
            given = PipelineInput(
                run=run, session=session, intent_input=text, device_id=bedside, satellite_id=SATELLITE
            )
            await given.validate()
            await given.execute()
        (agent,) = home.config_entries.async_loaded_entries(DOMAIN)[0].runtime_data.agents.values()
        agent.notify_listeners()
        await flush_store(home)

    assert 'Ada: "my name is Ada Lovelace"' in asked(model_server)[1]
    assert set(disk.execute("SELECT person FROM turn WHERE person IS NOT NULL")) == {(ada.user_id,)}


async def test_satellite_without_its_device_is_the_owners_too(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, *, owned: dict, ada: Context
) -> None:
    await set_up(options=owned)
    await tell(home, ("Dentist on Tuesday", ada, True))
    await say("hello there", satellite_id=SATELLITE)

    assert re.search(r"Known of Ada:.*Dentist on Tuesday", asked(model_server)[0], re.DOTALL)


async def test_fact_that_is_told_at_the_satellite_is_its_owners(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, *, owned: dict, bedside: str, ada: Context
) -> None:
    await set_up(options=owned)
    answer = await say("remember that my dentist is on Tuesday", device_id=bedside)

    assert get_speech(answer) == "Noted, only for you: my dentist is on Tuesday"
    assert await list_facts(home) == []
    (fact,) = await list_facts(home, ada.user_id)
    assert fact.private


async def test_integrations_user_at_the_satellite_is_its_owner(
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    model_server: ModelServer,
    *,
    owned: dict,
    bedside: str,
    ada: Context,
) -> None:
    voip = MockUser(name="Voice over IP", system_generated=True).add_to_hass(home)
    await set_up(options=owned, **{CONF_SCOPE: Scope.USER})
    await tell(home, ("Dentist on Tuesday", ada, True))
    await say("hello there", device_id=bedside, context=Context(user_id=voip.id))

    assert re.search(r"Known of Ada:.*Dentist on Tuesday", asked(model_server)[0], re.DOTALL)


@pytest.mark.parametrize(
    ("placement", "told"),
    [
        (ContextPlacement.MESSAGE, "speaker: Ada, by this device;"),
        (ContextPlacement.SYSTEM, "## Speaker\nAda, by this device"),
    ],
)
async def test_model_is_told_that_the_owner_speaks_and_how_that_is_known(
    set_up: SetUpFn,
    say: SayFn,
    model_server: ModelServer,
    *,
    owned: dict,
    bedside: str,
    placement: ContextPlacement,
    told: str,
) -> None:
    prompt = {CONF_PROMPT: "You talk to {{ user_name or 'somebody' }}.", CONF_CONTEXT_PLACEMENT: placement}
    await set_up(options=owned, **prompt)
    await say("hello there", device_id=bedside)

    system, said = asked(model_server)
    assert "You talk to somebody." in system
    assert told in system + said


async def test_conversation_at_the_satellite_is_seen_by_its_owner_alone(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, *, owned: dict, bedside: str, ada: Context
) -> None:
    other = Context(user_id=MockUser(name="Leo", is_owner=True).add_to_hass(home).id)
    await set_up(options=owned)
    await say("hello there", device_id=bedside)

    seen = [(await act(home, "list_conversations", context=each))["conversations"] for each in (ada, other)]

    assert [len(each) for each in seen] == [1, 0]


async def test_removed_owner_leaves_an_unknown_speaker(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, disk: Disk, *, bedside: str
) -> None:
    leo = MockUser(name="Leo").add_to_hass(home)
    await set_up(options={CONF_DEVICE_OWNERS: [{"device": bedside, "person": leo.id}]})
    await home.auth.async_remove_user(leo)
    await say("my name is Ada Lovelace", device_id=bedside)
    await say("hello there", device_id=bedside)

    assert disk.execute("SELECT said, person FROM turn") == [("hello there", None)]


async def test_form_offers_satellites_and_people_and_keeps_whose_they_are(
    home: HomeAssistant, entry: MockConfigEntry, *, owned: dict, ada: Context
) -> None:
    MockUser(name="Voice over IP", system_generated=True).add_to_hass(home)
    form = await open_options(home, entry)
    shown = field(form).config
    offered = [each["label"] for each in shown["fields"]["person"]["selector"].config["options"]]
    done = await form(**SMALL, **owned)

    assert offered == ["Ada"]
    # The person is optional, because a form would preselect a value for a required field.
    assert not shown["fields"]["person"]["required"]
    assert (shown["label_field"], shown["description_field"]) == ("device", "person")
    assert shown["fields"]["device"]["selector"].config["entity"] == [{"domain": ["assist_satellite"]}]
    assert done["type"] is FlowResultType.CREATE_ENTRY
    assert entry.options[CONF_DEVICE_OWNERS] == owned[CONF_DEVICE_OWNERS]
    assert suggested(await open_options(home, entry)) | owned == entry.options


async def test_form_takes_a_device_only_once_and_none_without_a_person(
    home: HomeAssistant, entry: MockConfigEntry, *, owned: dict, bedside: str
) -> None:
    form = await open_options(home, entry)
    wrong = {"row_repeated": owned[CONF_DEVICE_OWNERS] * 2, "row_incomplete": [{"device": bedside}]}
    for error, entered in wrong.items():
        refused = await form(**SMALL | {CONF_DEVICE_OWNERS: entered})

        assert refused["errors"] == {"memory": error}
        assert listed_in(form) == entered
        assert not refused["data_schema"].schema["memory"].options["collapsed"]
    assert entry.options == {}


# Rows of the table, with `device` in place of the satellite's id and `person` in place of Ada's, and the error.
ROWS: list[tuple[list[dict[str, Any]], str | None]] = [
    ([{"device": "device", "entity": "sensor.speaker", "seconds": 30, "trusted": True}], None),
    ([{"device": "device", "engine": "stt.tagging", "permission": "no_locks"}], None),
    ([{"device": "device", "permission": "talk"}, {"person": "person", "permission": "own_area"}], None),
    ([{"device": "device", "person": "person"}, {"person": "person", "permission": "everything"}], None),
    ([{"device": "device", "trusted": True, "seconds": 5}], "row_incomplete"),
    ([{"person": "person"}], "row_incomplete"),
    ([{"entity": "sensor.speaker", "permission": "talk"}], "row_incomplete"),
    ([{}], "row_incomplete"),
    ([{"person": "person", "permission": "talk"}] * 2, "row_repeated"),
    (
        [{"device": "device", "entity": "sensor.speaker"}, {"device": "other", "entity": "sensor.speaker"}],
        "row_repeated",
    ),
]


@pytest.mark.parametrize(("rows", "error"), ROWS)
async def test_form_takes_a_row_that_says_something_once(
    home: HomeAssistant,
    entry: MockConfigEntry,
    bedside: str,
    ada: Context,
    *,
    rows: list[dict[str, Any]],
    error: str | None,
) -> None:
    ids = {"device": bedside, "person": ada.user_id, "other": add_satellite(home, "Hall")}
    entered = [{name: ids.get(value, value) for name, value in row.items()} for row in rows]
    form = await open_options(home, entry)
    done = await form(**SMALL | {CONF_DEVICE_OWNERS: entered})

    assert (done.get("errors") or {}).get("memory") == error
    assert entry.options.get(CONF_DEVICE_OWNERS) == (None if error else entered)


@pytest.mark.parametrize("wrong", [{"permission": "all"}, {"seconds": 0}, {"seconds": 301}, {"engine": "tts.piper"}])
async def test_form_takes_no_value_that_it_does_not_offer(
    home: HomeAssistant, entry: MockConfigEntry, bedside: str, *, wrong: dict[str, Any]
) -> None:
    form = await open_options(home, entry)
    with pytest.raises(InvalidData):
        await form(**SMALL | {CONF_DEVICE_OWNERS: [{"device": bedside, "entity": "sensor.speaker", **wrong}]})

    assert entry.options == {}


async def test_row_of_a_person_who_is_gone_keeps_what_else_it_says(
    home: HomeAssistant, set_up: SetUpFn, bedside: str
) -> None:
    rows = [{"device": bedside, "person": "gone", "permission": "talk"}, {"person": "gone", "permission": "talk"}]
    entry = await set_up(options={CONF_DEVICE_OWNERS: rows})

    assert listed_in(await open_options(home, entry)) == [{"device": bedside, "permission": "talk"}]


async def test_form_does_not_show_a_person_who_is_not_there_any_more(
    home: HomeAssistant, set_up: SetUpFn, bedside: str
) -> None:
    entry = await set_up(options={CONF_DEVICE_OWNERS: [{"device": bedside, "person": "gone"}]})
    form = await open_options(home, entry)

    assert listed_in(form) == []


@pytest.mark.parametrize("person", ["nobody", ""])
async def test_form_takes_no_owner_that_it_does_not_offer(
    home: HomeAssistant, entry: MockConfigEntry, *, bedside: str, person: str
) -> None:
    form = await open_options(home, entry)
    with pytest.raises(InvalidData):
        await form(**SMALL | {CONF_DEVICE_OWNERS: [{"device": bedside, "person": person}]})

    assert entry.options == {}


async def test_devices_of_one_account_are_those_of_all(
    *,
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    model_server: ModelServer,
    owned: dict,
    bedside: str,
    ada: Context,
) -> None:
    await set_up()
    other = await set_up(account={CONF_URL: f"{model_server.url}/"})
    await (await open_options(home, other))(**SMALL, **owned)
    await tell(home, ("Dentist on Tuesday", ada, True))
    await say("hello there", device_id=bedside)

    assert "Dentist on Tuesday" in sent(model_server)
    assert [entry.options[CONF_DEVICE_OWNERS] for entry in accounts(home)] == [owned[CONF_DEVICE_OWNERS]] * 2


async def test_device_leaves_the_list_of_all_accounts(
    *,
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    disk: Disk,
    model_server: ModelServer,
    owned: dict,
    bedside: str,
) -> None:
    entry = await set_up(options=owned)
    other = await set_up(account={CONF_URL: f"{model_server.url}/"})
    form = await open_options(home, other)
    listed = listed_in(form)
    await form(**SMALL | {CONF_DEVICE_OWNERS: []})
    await say("hello there", device_id=bedside)

    assert listed == owned[CONF_DEVICE_OWNERS]
    assert [dict(entry.options), dict(other.options)] == [{}, SMALL]
    assert disk.execute("SELECT person FROM turn") == [(None,)]


async def test_account_that_is_added_has_the_list_and_keeps_it_when_the_other_one_is_removed(
    *,
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    disk: Disk,
    model_server: ModelServer,
    owned: dict,
    bedside: str,
) -> None:
    entry = await set_up(options=owned)
    await set_up(account={CONF_URL: f"{model_server.url}/"})
    await home.config_entries.async_remove(entry.entry_id)
    await home.async_block_till_done(wait_background_tasks=True)
    await say("hello there", device_id=bedside, agent_id="conversation.ada_2")

    ((person,),) = disk.execute("SELECT person FROM turn")
    assert person == owned[CONF_DEVICE_OWNERS][0]["person"]


async def test_first_account_that_names_a_device_counts(
    home: HomeAssistant, set_up: SetUpFn, *, owned: dict, bedside: str, grace: Context, model_server: ModelServer
) -> None:
    await set_up(options=owned)
    hers = {CONF_DEVICE_OWNERS: [{"device": bedside, "person": grace.user_id}]}
    other = await set_up(account={CONF_URL: f"{model_server.url}/"}, options=hers)

    assert other.options == owned


def accounts(home: HomeAssistant) -> list[ConfigEntry]:
    """Return the accounts of this integration."""
    return home.config_entries.async_entries(DOMAIN)
