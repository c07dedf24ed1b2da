"""Tests for reminders: set by voice or in the list, delivered once, listed, moved and forgotten."""

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
import json
from pathlib import Path
from typing import Any

from freezegun.api import FrozenDateTimeFactory
from homeassistant.components import persistent_notification
from homeassistant.const import EVENT_HOMEASSISTANT_STARTED
from homeassistant.core import Context, CoreState, Event, HomeAssistant, ServiceCall
from homeassistant.helpers import entity_registry as er, label_registry as lr
from homeassistant.setup import async_setup_component
from homeassistant.util.async_ import get_scheduled_timer_handles
from homeassistant.util.yaml import parse_yaml
import pytest
from pytest_homeassistant_custom_component.common import (
    MockConfigEntry,
    MockUser,
    async_capture_events,
    async_fire_time_changed,
    async_mock_service,
)

from custom_components.windowed_conversation.agents import reminders
from custom_components.windowed_conversation.agents.forgetting import async_forget_everywhere
from custom_components.windowed_conversation.agents.hand_over import async_is_in_use
from custom_components.windowed_conversation.bridge import delivery
from custom_components.windowed_conversation.bridge.turn_report import EVENT_REMINDER
from custom_components.windowed_conversation.providers import ToolSchema, count_tools_tokens
from custom_components.windowed_conversation.reminders.bridge.answers import parse_recurrence
from demo.model_server import ModelServer, call, words
from tests.documents import DOCS, blocks

from .conftest import SayFn, SetUpFn, get_speech
from .dashboard import PipelineClient, ending, streamed
from .satellite import SATELLITE, Ask, Heard
from .store_file import Disk

LIST = "todo.reminders"
QUIET_HOURS = "input_boolean.cellar"
# A Wednesday, at ten in the morning.
NOW = datetime(2026, 12, 2, 9, tzinfo=UTC)

SENTENCES = json.loads((Path(__file__).parents[1] / "bridge" / "reminder_sentences.json").read_text("utf-8"))
REQUESTS = json.loads((Path(__file__).parents[1] / "reminders" / "spoken_requests_2.json").read_text("utf-8"))
[AUTOMATION] = map(parse_yaml, blocks(DOCS / "reminders.md", "yaml"))

type At = Callable[[str], Coroutine[Any, Any, None]]


@pytest.fixture(autouse=True)
async def _home(home: HomeAssistant, freezer: FrozenDateTimeFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock of a home in Berlin, whose satellites count as idle at once."""
    await home.config.async_set_time_zone("Europe/Berlin")
    freezer.move_to(NOW)
    monkeypatch.setattr(delivery, "_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(delivery, "_RETRY_SECONDS", 0.01)


@pytest.fixture
def delivered(home: HomeAssistant) -> list[Event]:
    """Return the events of reminders."""
    return async_capture_events(home, EVENT_REMINDER)


@pytest.fixture
def at(home: HomeAssistant, freezer: FrozenDateTimeFactory) -> At:
    """Return a function that moves the clock to a local time, and waits for the deliveries."""

    async def move(local: str) -> None:
        freezer.move_to(datetime.fromisoformat(local).replace(tzinfo=UTC) - timedelta(hours=1))
        # timers know the real time alone, and those that are too early wait again
        async_fire_time_changed(home, fire_all=True)
        await home.async_block_till_done(wait_background_tasks=True)

    return move


async def items(home: HomeAssistant) -> list[dict[str, Any]]:
    """Return the items of the list."""
    answer = await home.services.async_call(
        "todo", "get_items", {"entity_id": LIST}, blocking=True, return_response=True
    )
    found: Any = answer
    return list(found[LIST]["items"])


async def add(home: HomeAssistant, item: str, **fields: str) -> None:
    """Add an item to the list by hand."""
    await home.services.async_call("todo", "add_item", {"entity_id": LIST, "item": item, **fields}, blocking=True)


def outcomes(delivered: list[Event]) -> list[tuple[str, str]]:
    """Return the texts of the reminders with their outcomes."""
    return [(event.data["summary"], event.data["outcome"]) for event in delivered]


async def test_a_reminder_is_spoken_at_the_satellite_where_it_was_set(
    heard: Heard, ask: Ask, at: At, delivered: list[Event]
) -> None:
    answer = await ask("Remind me tomorrow at seven pm to call Grace")
    await at("2026-12-03T18:59:00")
    before = list(delivered)
    heard.begin()

    await at("2026-12-03T19:00:01")

    assert answer.startswith("I will remind you. Thursday, 3 December, at 7:00 PM: call Grace.")
    assert not before
    assert heard.text == "A reminder: call Grace."
    assert outcomes(delivered) == [("call Grace", "announced")]


async def test_only_the_first_answer_says_who_hears_reminders(heard: Heard, ask: Ask) -> None:
    first = await ask("Remind me in twenty minutes to look at the oven")
    second = await ask("Remind me in twenty minutes to look at the oven")

    assert first.endswith("Everybody in the home can see and hear reminders.")
    assert second == "I will remind you. Wednesday, 2 December, at 10:20 AM: look at the oven."


async def test_a_reminder_is_delivered_once(at: At, entry, say: SayFn, delivered: list[Event]) -> None:
    await say("Remind me in twenty minutes to look at the oven")

    for minute in (21, 22, 23):
        await at(f"2026-12-02T10:{minute}:00")

    assert len(delivered) == 1


async def test_an_hour_that_may_be_in_the_morning_is_asked(heard: Heard, ask: Ask) -> None:
    question = await ask("Remind me on Friday at seven to put the bins out")
    answer = await ask("In the evening")

    assert question == "At 7 in the morning or in the evening?"
    assert "Friday, 4 December, at 7:00 PM: put the bins out." in answer


async def test_a_time_that_is_missing_is_asked(entry, say: SayFn) -> None:
    question = await say("Remind me to buy milk")
    answer = await say("tomorrow at noon")

    assert get_speech(question) == "When shall I remind you?"
    assert "Thursday, 3 December, at 12:00 PM: buy milk." in get_speech(answer)


async def test_a_sentence_that_is_no_reply_drops_the_question(home: HomeAssistant, entry, say: SayFn) -> None:
    await say("Remind me to buy milk")
    await say("turn on the kitchen light")
    await say("in the evening")

    assert await items(home) == []


async def test_a_reminder_is_on_disk_when_it_is_answered(entry, say: SayFn, disk: Disk) -> None:
    await say("Remind me in twenty minutes to look at the oven")

    assert "look at the oven" in disk.execute("SELECT content FROM reminder")[0][0]


async def test_a_reminder_is_stored_although_nothing_else_is(set_up: SetUpFn, say: SayFn, disk: Disk) -> None:
    await set_up(memory="off", record="off", options={"persistence": "off"})
    await say("Remind me in twenty minutes to look at the oven")

    assert len(disk.execute("SELECT content FROM reminder")) == 1


async def test_a_reminder_outlives_a_reload_during_its_delivery(
    home: HomeAssistant, *, entry, heard: Heard, ask: Ask, at: At, delivered: list[Event]
) -> None:
    await ask("Remind me in twenty minutes to look at the oven")
    heard.begin()
    await home.config_entries.async_reload(entry.entry_id)

    await at("2026-12-02T10:20:01")
    await home.config_entries.async_reload(entry.entry_id)
    await at("2026-12-02T10:21:01")

    assert heard.text == "A reminder: look at the oven."
    assert len(delivered) == 1


async def test_a_reminder_missed_while_nothing_ran_is_said_with_its_time(
    home: HomeAssistant, *, entry, heard: Heard, ask: Ask, at: At
) -> None:
    await ask("Remind me in twenty minutes to look at the oven")
    await home.config_entries.async_unload(entry.entry_id)
    await at("2026-12-02T12:00:00")
    heard.begin()

    await home.config_entries.async_setup(entry.entry_id)
    await at("2026-12-02T12:00:02")

    assert heard.text == "A reminder: Wednesday, 2 December, at 10:20 AM: look at the oven."


async def test_a_reminder_that_was_missed_waits_until_home_assistant_has_started(
    home: HomeAssistant, *, entry, say: SayFn, at: At, delivered: list[Event]
) -> None:
    await say("Remind me in twenty minutes to look at the oven")
    await home.config_entries.async_unload(entry.entry_id)
    home.set_state(CoreState.starting)
    await home.config_entries.async_setup(entry.entry_id)
    await at("2026-12-02T12:00:00")
    before = list(delivered)

    home.set_state(CoreState.running)
    home.bus.async_fire(EVENT_HOMEASSISTANT_STARTED)
    await home.async_block_till_done(wait_background_tasks=True)

    assert not before
    assert outcomes(delivered) == [("look at the oven", "ready")]


async def test_the_event_names_the_list_although_that_is_not_loaded(
    home: HomeAssistant, entry, say: SayFn, at: At, delivered: list[Event]
) -> None:
    await say("Remind me in twenty minutes to look at the oven")
    await home.config_entries.async_unload_platforms(entry, ["todo"])
    # the reminders of a start, beside those before it
    home.data.pop(reminders._REMINDERS_KEY)
    await reminders.async_acquire_reminders(home, lambda _satellite: False)

    await at("2026-12-02T10:20:01")

    assert {event.data["entity_id"] for event in delivered} == {LIST}


async def test_a_reminder_missed_for_more_than_a_day_is_only_listed(
    home: HomeAssistant, *, entry, say: SayFn, at: At, delivered: list[Event]
) -> None:
    await say("Remind me in twenty minutes to look at the oven")
    await home.config_entries.async_unload(entry.entry_id)
    await at("2026-12-03T12:00:00")

    await home.config_entries.async_setup(entry.entry_id)
    await at("2026-12-03T12:00:02")

    assert outcomes(delivered) == [("look at the oven", "missed")]
    assert [each["summary"] for each in await items(home)] == ["look at the oven"]


async def test_without_a_satellite_and_a_phone_a_notification_says_it(
    home: HomeAssistant, *, entry, say: SayFn, at: At, delivered: list[Event]
) -> None:
    await say("Remind me in twenty minutes to look at the oven")

    await at("2026-12-02T10:20:01")

    shown = persistent_notification._async_get_or_create_notifications(home).values()
    assert [each["message"] for each in shown] == ["A reminder: look at the oven."]
    assert outcomes(delivered) == [("look at the oven", "ready")]


async def test_a_reminder_goes_elsewhere_if_its_satellite_was_removed(
    home: HomeAssistant, *, entry, heard: Heard, ask: Ask, at: At, delivered: list[Event]
) -> None:
    await ask("Remind me in twenty minutes to look at the oven")
    er.async_get(home).async_remove(SATELLITE)
    await home.async_block_till_done()

    await at("2026-12-02T10:20:01")

    assert outcomes(delivered) == [("look at the oven", "ready")]


async def test_two_reminders_at_the_same_time_are_both_spoken(heard: Heard, ask: Ask, at: At) -> None:
    await ask("Remind me at noon to look at the oven")
    await ask("Remind me at noon to call Grace")
    heard.begin()

    await at("2026-12-02T12:00:01")

    assert sorted(heard.utterances) == ["A reminder: call Grace.", "A reminder: look at the oven."]


async def test_a_reminder_waits_for_a_conversation_at_its_satellite(
    home: HomeAssistant,
    *,
    entry,
    heard: Heard,
    ask: Ask,
    at: At,
    freezer: FrozenDateTimeFactory,
    delivered: list[Event],
) -> None:
    await ask("Remind me at noon to look at the oven")
    await ask("Remind me to buy milk")
    assert async_is_in_use(home, SATELLITE)
    freezer.move_to("2026-12-02T10:59:50+00:00")
    await ask("Remind me to buy milk")
    freezer.move_to("2026-12-02T11:00:01+00:00")
    async_fire_time_changed(home, fire_all=True)
    await home.async_block_till_done()
    before = list(delivered)

    # the question is open for half a minute
    await at("2026-12-02T12:00:31")

    assert not before
    assert outcomes(delivered) == [("look at the oven", "announced")]


async def test_a_weekly_reminder_is_due_again_after_a_week(home: HomeAssistant, entry, say: SayFn, at: At) -> None:
    await say("Remind us every Friday at 6 pm to put the bins out")
    first = [each["due"] for each in await items(home)]

    await at("2026-12-04T18:00:01")

    assert first == ["2026-12-04T18:00:00+01:00"]
    assert [(each["due"], each["status"]) for each in await items(home)] == [
        ("2026-12-11T18:00:00+01:00", "needs_action")
    ]


async def test_a_reminder_stays_at_its_local_time_in_another_time_zone(
    home: HomeAssistant, *, entry, say: SayFn, at: At, delivered: list[Event]
) -> None:
    await say("Remind me at noon to eat")
    await home.config.async_update(time_zone="Europe/London")

    await at("2026-12-02T12:00:01")
    before = list(delivered)
    await at("2026-12-02T13:00:01")

    assert not before
    assert len(delivered) == 1


async def test_the_reminders_of_a_year_come_once_each_at_their_local_time(
    home: HomeAssistant, *, entry, say: SayFn, at: At, freezer: FrozenDateTimeFactory, delivered: list[Event]
) -> None:
    await say("Remind us every Friday at 6 pm to put the bins out")
    local = []
    for _ in range(52):
        [item] = await items(home)
        freezer.move_to(datetime.fromisoformat(item["due"]) + timedelta(seconds=1))
        async_fire_time_changed(home, fire_all=True)
        await home.async_block_till_done(wait_background_tasks=True)
        local.append(item["due"])

    assert len(delivered) == len(set(local)) == 52
    assert {each[10:19] for each in local} == {"T18:00:00"}
    assert {each[19:] for each in local} == {"+01:00", "+02:00"}


async def test_a_clock_that_is_set_forward_delays_a_reminder_by_an_hour_at_most(
    home: HomeAssistant, *, entry, say: SayFn
) -> None:
    await say("Remind me tomorrow at noon to eat")
    waits = [
        each.when() - home.loop.time()
        for each in get_scheduled_timer_handles(home.loop)
        if "ReminderList" in repr(each) and not each.cancelled()
    ]

    assert len(waits) == 1
    assert waits[0] <= 3601


async def test_the_documented_automation_runs_with_each_reminder(
    home: HomeAssistant, entry, say: SayFn, at: At
) -> None:
    assert await async_setup_component(home, "automation", {"automation": AUTOMATION})
    flashed = async_mock_service(home, "light", "turn_on")
    await say("Remind me at noon to eat")

    await at("2026-12-02T12:00:01")

    assert [call.data["flash"] for call in flashed] == ["short"]


# --- in each language


@pytest.mark.long
async def test_a_sentence_of_each_language_sets_an_item_to_the_minute(
    home: HomeAssistant, entry, say: SayFn, subtests: pytest.Subtests
) -> None:
    for language, kinds in SENTENCES.items():
        for said, (due, text, *_) in kinds["set"].items():
            with subtests.test(language=language, said=said):
                await say(said, None, language=language)
                [item] = await items(home)
                await home.services.async_call(
                    "todo", "remove_item", {"entity_id": LIST, "item": item["uid"]}, blocking=True
                )
                assert (item["due"], item["summary"]) == (f"{due.replace(' ', 'T')}:00+01:00", text)


@pytest.mark.long
async def test_an_ambiguous_sentence_of_each_language_is_answered_with_a_question(
    home: HomeAssistant, entry, say: SayFn, subtests: pytest.Subtests
) -> None:
    for language, kinds in SENTENCES.items():
        for said in kinds["asked"]:
            with subtests.test(language=language, said=said):
                result = await say(said, None, language=language)
                assert result.continue_conversation
                assert await items(home) == []


@pytest.mark.long
async def test_a_recurrence_is_read_back_and_shown_in_each_language(
    home: HomeAssistant, entry, say: SayFn, subtests: pytest.Subtests
) -> None:
    for language, rows in REQUESTS.items():
        for said in [row["say"] for row in rows if "repeats" in row]:
            with subtests.test(language=language, said=said):
                result = await say(said, None, language=language)
                [item] = await items(home)
                state = home.states.get(LIST)
                assert state is not None
                rules = list(state.attributes["recurrences"].values())
                await home.services.async_call(
                    "todo", "remove_item", {"entity_id": LIST, "item": item["uid"]}, blocking=True
                )
                repeats, *_ = item["description"].splitlines()
                assert "".join(repeats.split()) in "".join(said.split())
                assert f"{repeats}: {item['summary']}" in get_speech(result)
                assert [str(parse_recurrence(repeats, language))] == rules


# --- by the words of the speaker


async def test_reminders_are_listed(entry, say: SayFn) -> None:
    nothing = await say("What are my reminders?")
    await say("Remind me at noon to eat")
    await say("Remind me on Friday at noon to rest")
    today = await say("What do I have to think of today?")
    everything = await say("What are my reminders?")

    assert get_speech(nothing) == "There is nothing to think of."
    assert get_speech(today) == "Wednesday, 2 December, at 12:00 PM: eat."
    assert get_speech(everything) == ("Wednesday, 2 December, at 12:00 PM: eat; Friday, 4 December, at 12:00 PM: rest.")


async def test_a_reminder_is_moved(home: HomeAssistant, entry, say: SayFn) -> None:
    await say("Remind me at noon to call Grace")
    await say("Move the reminder to call Grace to Friday at 8 pm")

    assert [each["due"] for each in await items(home)] == ["2026-12-04T20:00:00+01:00"]


async def test_a_reminder_is_deleted(home: HomeAssistant, entry, say: SayFn) -> None:
    await say("Remind me at noon to call Grace")
    await say("Remind me at noon to call Linus")
    several = await say("Cancel the reminder to call")
    await say("Cancel the reminder to call Linus")
    unknown = await say("Cancel the reminder to call Linus")

    assert get_speech(several).startswith("There is more than one:")
    assert get_speech(unknown) == "I do not know this reminder."
    assert [each["summary"] for each in await items(home)] == ["call Grace"]


@pytest.mark.parametrize(
    ("language", "new", "delete"),
    [
        ("en", "Remind me at noon to call dentists", "Cancel the reminder about the dentist"),
        ("de", "Erinnere mich um 12 Uhr an Zahnarzttermine", "Lösche die Erinnerung an den Zahnarzttermin"),
        ("ja", "正午に歯医者をリマインドして", "歯医者のリマインダーを消して"),
    ],
)
async def test_a_reminder_is_found_by_its_words_without_their_endings(
    home: HomeAssistant, *, entry, say: SayFn, language: str, new: str, delete: str
) -> None:
    await say(new, language=language)
    before = await items(home)
    await say(delete, language=language)

    assert (len(before), await items(home)) == (1, [])


async def test_a_reminder_moved_to_another_hour_stays_on_its_day(home: HomeAssistant, entry, say: SayFn) -> None:
    await say("Remind me on Friday at noon to call Grace")
    await say("Move the reminder to call Grace to 8 pm")

    assert [each["due"] for each in await items(home)] == ["2026-12-04T20:00:00+01:00"]


async def test_a_reminder_comes_again_when_that_was_asked(heard: Heard, ask: Ask, at: At) -> None:
    await ask("Remind me at noon to look at the oven")
    await at("2026-12-02T12:00:01")
    answer = await ask("Remind me again in ten minutes")
    heard.begin()

    await at("2026-12-02T12:10:02")

    assert answer == "I will remind you. Wednesday, 2 December, at 12:10 PM: look at the oven."
    assert heard.text == "A reminder: look at the oven."


async def test_done_finishes_the_reminder_that_was_heard(home: HomeAssistant, heard: Heard, ask: Ask, at: At) -> None:
    await ask("Remind me at noon to look at the oven")
    await at("2026-12-02T12:00:01")

    answer = await ask("done")

    assert answer == "All right."
    assert [each["status"] for each in await items(home)] == ["completed"]


async def test_done_is_no_request_five_minutes_after_a_reminder(
    home: HomeAssistant, heard: Heard, ask: Ask, at: At
) -> None:
    await ask("Remind me at noon to look at the oven")
    await at("2026-12-02T12:00:01")
    await at("2026-12-02T12:05:30")

    await ask("done")

    assert [each["status"] for each in await items(home)] == ["needs_action"]


# --- by persons


@pytest.fixture
async def ada(home: HomeAssistant, hass_owner_user: MockUser) -> Context:
    """Return the context of Ada, who is a person of the home, away."""
    home.states.async_set("person.ada", "not_home", {"user_id": hass_owner_user.id, "friendly_name": "Ada Lovelace"})
    return Context(user_id=hass_owner_user.id)


def move_ada(home: HomeAssistant, state: str) -> None:
    """Set the state of Ada, and nothing else of hers."""
    ada = home.states.get("person.ada")
    assert ada is not None
    home.states.async_set("person.ada", state, ada.attributes)


async def test_a_reminder_waits_until_a_person_is_home(
    home: HomeAssistant, *, entry, say: SayFn, ada: Context, at: At, delivered: list[Event]
) -> None:
    answer = await say("Remind me when I get home to feed the cat", context=ada)
    move_ada(home, "unavailable")
    move_ada(home, "not_home")
    await home.async_block_till_done(wait_background_tasks=True)
    before = list(delivered)

    move_ada(home, "home")
    await home.async_block_till_done(wait_background_tasks=True)

    assert "When Ada Lovelace comes home: feed the cat." in get_speech(answer)
    assert not before
    assert outcomes(delivered) == [("feed the cat", "ready")]


async def test_a_reminder_of_a_person_goes_to_their_phone(
    *, entry, say: SayFn, ada: Context, at: At, sent: list[ServiceCall], delivered: list[Event]
) -> None:
    await say("Remind me at noon to eat", context=ada)

    await at("2026-12-02T12:00:01")

    assert [call.data["message"] for call in sent] == ["A reminder: eat."]
    assert outcomes(delivered) == [("eat", "notified")]


@pytest.fixture
def sent(home: HomeAssistant, ada: Context) -> list[ServiceCall]:
    """Return the messages to the phone of Ada."""
    phone = MockConfigEntry(domain="mobile_app", data={"user_id": ada.user_id})
    phone.add_to_hass(home)
    er.async_get(home).async_get_or_create("notify", "mobile_app", "phone", config_entry=phone)
    return async_mock_service(home, "notify", "send_message")


async def switch_quiet_hours(home: HomeAssistant, service: str) -> None:
    """Turn the toggle with the label of quiet hours on or off."""
    label = lr.async_get(home).async_get_label_by_name("Quiet hours") or lr.async_get(home).async_create("Quiet hours")
    er.async_get(home).async_update_entity(QUIET_HOURS, labels={label.label_id})
    await home.services.async_call("input_boolean", service, {"entity_id": QUIET_HOURS}, blocking=True)


async def test_in_quiet_hours_a_reminder_goes_to_phones_only(
    home: HomeAssistant, *, heard: Heard, ask: Ask, at: At, sent: list[ServiceCall], delivered: list[Event]
) -> None:
    await ask("Remind me at noon to eat")
    await switch_quiet_hours(home, "turn_on")
    heard.begin()

    await at("2026-12-02T12:00:01")

    assert heard.text == ""
    assert [call.data["message"] for call in sent] == ["A reminder: eat."]
    assert outcomes(delivered) == [("eat", "notified")]


async def test_a_lamp_with_the_label_makes_no_quiet_hours(home: HomeAssistant, heard: Heard, ask: Ask, at: At) -> None:
    lamp = er.async_get(home).async_get_or_create("light", "test", "lamp")
    label = lr.async_get(home).async_create("Quiet hours")
    er.async_get(home).async_update_entity(lamp.entity_id, labels={label.label_id})
    home.states.async_set(lamp.entity_id, "on")
    await ask("Remind me at noon to eat")
    heard.begin()

    await at("2026-12-02T12:00:01")

    assert heard.text == "A reminder: eat."


async def test_after_quiet_hours_reminders_are_spoken(home: HomeAssistant, heard: Heard, ask: Ask, at: At) -> None:
    await ask("Remind me at noon to eat")
    await switch_quiet_hours(home, "turn_on")
    await switch_quiet_hours(home, "turn_off")
    heard.begin()

    await at("2026-12-02T12:00:01")

    assert heard.text == "A reminder: eat."


async def test_a_reminder_that_nobody_heard_is_said_at_the_next_talk(
    home: HomeAssistant, *, heard: Heard, ask: Ask, at: At, delivered: list[Event]
) -> None:
    await ask("Remind me at noon to eat")
    await switch_quiet_hours(home, "turn_on")
    await at("2026-12-02T12:00:01")

    first = await ask("turn on the kitchen light")
    second = await ask("turn off the kitchen light")
    done = await ask("done")

    assert first.endswith("A reminder: Wednesday, 2 December, at 12:00 PM: eat.")
    assert "eat" not in second
    assert done == "All right."
    assert outcomes(delivered) == [("eat", "ready")]


async def test_a_reminder_that_nobody_heard_is_said_in_the_dialog_after_a_restart(
    home: HomeAssistant, *, entry, say: SayFn, at: At, hass_ws_client, model_server: ModelServer
) -> None:
    client = PipelineClient(await hass_ws_client())
    pipeline = await client.create(prefer_local_intents=False)
    await say("Remind me at noon to eat")
    await at("2026-12-02T12:00:01")
    await home.config_entries.async_reload(entry.entry_id)
    model_server.script(words("Blue."))

    events = await client.run(pipeline, "which colour is the sky?")

    expected = "Blue.\n\nA reminder: Wednesday, 2 December, at 12:00 PM: eat."
    speech = ending(events)["intent_output"]["response"]["speech"]["plain"]["speech"]
    assert ("".join(streamed(events)), speech) == (expected, expected)


async def test_an_automation_that_talks_hears_no_reminder(entry, say: SayFn, at: At) -> None:
    await say("Remind me at noon to eat")
    await at("2026-12-02T12:00:01")

    answer = await say("turn on the kitchen light")

    assert "eat" not in get_speech(answer)


async def test_a_person_who_never_comes_is_waited_for_for_thirty_days(
    home: HomeAssistant, *, entry, say: SayFn, ada: Context, at: At, delivered: list[Event]
) -> None:
    await say("Remind Ada when she is home to feed the cat")

    await at("2027-01-01T10:00:10")
    move_ada(home, "home")
    await home.async_block_till_done(wait_background_tasks=True)

    assert outcomes(delivered) == [("feed the cat", "expired")]


async def test_an_arrival_after_a_gap_counts(
    home: HomeAssistant, *, entry, say: SayFn, ada: Context, delivered: list[Event]
) -> None:
    await say("Remind me when I get home to feed the cat", context=ada)
    for state in ("unavailable", "home"):
        move_ada(home, state)
    await home.async_block_till_done(wait_background_tasks=True)

    assert outcomes(delivered) == [("feed the cat", "ready")]


async def test_an_arrival_while_nothing_ran_counts_at_the_start(
    home: HomeAssistant, *, entry, say: SayFn, ada: Context, delivered: list[Event]
) -> None:
    await say("Remind me when I get home to feed the cat", context=ada)
    await home.config_entries.async_unload(entry.entry_id)
    move_ada(home, "home")

    await home.config_entries.async_setup(entry.entry_id)
    await home.async_block_till_done(wait_background_tasks=True)

    assert outcomes(delivered) == [("feed the cat", "ready")]


async def test_somebody_who_is_at_home_has_to_leave_before_they_arrive(
    home: HomeAssistant, *, entry, say: SayFn, ada: Context, delivered: list[Event]
) -> None:
    move_ada(home, "home")
    await say("Remind me when I get home to feed the cat", context=ada)
    await home.config_entries.async_reload(entry.entry_id)
    await home.async_block_till_done(wait_background_tasks=True)
    before = list(delivered)
    for state in ("not_home", "home"):
        move_ada(home, state)
        await home.async_block_till_done(wait_background_tasks=True)

    assert not before
    assert outcomes(delivered) == [("feed the cat", "ready")]


async def test_an_arrival_counts_although_a_departure_was_not_waited_for(
    home: HomeAssistant, *, entry, say: SayFn, ada: Context, delivered: list[Event]
) -> None:
    await say("Remind me when I get home to feed the cat", context=ada)
    for state in ("home", "not_home"):
        move_ada(home, state)
        await home.async_block_till_done(wait_background_tasks=True)
    await say("Remind me when I get home to eat", context=ada)
    move_ada(home, "home")
    await home.async_block_till_done(wait_background_tasks=True)

    assert outcomes(delivered) == [("feed the cat", "ready"), ("eat", "ready")]


@pytest.mark.parametrize(
    ("said", "text", "states"),
    [
        ("Remind me when I get to work to call Grace", "When Ada Lovelace arrives at Work", ["home", "Work"]),
        ("Remind me to call Grace when I leave work", "When Ada Lovelace leaves Work", ["Work", "home"]),
    ],
)
async def test_a_reminder_waits_for_another_zone_than_the_home(
    home: HomeAssistant, *, entry, say: SayFn, ada: Context, said: str, text: str, states: list[str], delivered
) -> None:
    home.states.async_set("zone.work", "0", {"friendly_name": "Work"})

    answer = await say(said, context=ada)
    for state in states[:-1]:
        move_ada(home, state)
        await home.async_block_till_done(wait_background_tasks=True)
    before = list(delivered)
    move_ada(home, states[-1])
    await home.async_block_till_done(wait_background_tasks=True)

    assert f"{text}: call Grace." in get_speech(answer)
    assert not before
    assert outcomes(delivered) == [("call Grace", "ready")]


async def test_a_zone_in_a_task_is_a_word_of_it(home: HomeAssistant, entry, say: SayFn) -> None:
    home.states.async_set("zone.work", "0", {"friendly_name": "Work"})

    await say("Remind me at noon to go to work")

    assert [each["summary"] for each in await items(home)] == ["go to work"]


async def test_an_expired_reminder_says_so_in_its_description(
    home: HomeAssistant, entry, say: SayFn, ada: Context, at: At
) -> None:
    await say("Remind Ada when she is home to feed the cat")

    await at("2027-01-01T10:00:10")

    shown = persistent_notification._async_get_or_create_notifications(home).values()
    assert [each["description"] for each in await items(home)] == ["stopped waiting after 30 days"]
    assert [each["message"] for each in shown] == ["feed the cat: stopped waiting after 30 days"]


async def test_an_unknown_speaker_and_an_unknown_name_go_to_the_model(
    home: HomeAssistant, *, entry, say: SayFn, ada: Context
) -> None:
    await say("Remind me when I get home to feed the cat")
    await say("Remind Grace at noon to feed the cat")

    assert await items(home) == []


async def test_forgetting_a_person_deletes_their_reminders(
    home: HomeAssistant, *, entry, say: SayFn, ada: Context, disk: Disk
) -> None:
    await say("Remind me at noon to feed the cat", context=ada)
    await say("Remind us at noon to eat", context=ada)

    await async_forget_everywhere(home, person=ada.user_id)

    assert [each["summary"] for each in await items(home)] == ["eat"]
    assert len(disk.execute("SELECT id FROM reminder")) == 1


# --- in the list


async def test_an_item_added_by_hand_is_spoken_when_it_is_due(home: HomeAssistant, heard: Heard, at: At) -> None:
    await add(home, "water the plants", due_datetime="2026-12-02T11:00:00+01:00")
    heard.begin()

    await at("2026-12-02T11:00:01")

    assert heard.text == "A reminder: water the plants."


async def test_an_item_for_a_day_is_spoken_at_nine(home: HomeAssistant, heard: Heard, at: At) -> None:
    await add(home, "water the plants", due_date="2026-12-03")
    await at("2026-12-03T08:59:00")
    heard.begin()

    await at("2026-12-03T09:00:01")

    assert heard.text == "A reminder: water the plants."
    assert [each["due"] for each in await items(home)] == ["2026-12-03"]


async def test_an_item_without_a_time_is_never_spoken(home: HomeAssistant, entry, at: At, delivered) -> None:
    await add(home, "water the plants")
    await add(home, "rest", due_datetime="2026-12-01T11:00:00+01:00")

    await at("2026-12-09T09:00:01")

    assert not delivered


async def test_the_first_line_of_the_description_is_the_recurrence(home: HomeAssistant, entry, at: At) -> None:
    await add(home, "water", due_datetime="2026-12-02T11:00:00+01:00", description="every two weeks\nthe big one, too")
    state = home.states.get(LIST)
    assert state is not None
    rules = state.attributes["recurrences"]

    await at("2026-12-02T11:00:01")

    [item] = await items(home)
    assert list(rules.values()) == ["FREQ=WEEKLY;INTERVAL=2"]
    assert (item["due"], item["description"]) == ("2026-12-16T11:00:00+01:00", "every two weeks\nthe big one, too")


async def test_a_recurring_item_that_is_completed_is_due_the_next_time(home: HomeAssistant, entry) -> None:
    await add(home, "water", due_datetime="2026-12-02T11:00:00+01:00", description="every day")
    await home.services.async_call(
        "todo", "update_item", {"entity_id": LIST, "item": "water", "status": "completed"}, blocking=True
    )

    [item] = await items(home)
    assert (item["due"], item["status"]) == ("2026-12-03T11:00:00+01:00", "needs_action")


async def test_an_item_is_changed_and_removed_by_actions(home: HomeAssistant, entry, at: At, delivered) -> None:
    await add(home, "water", due_datetime="2026-12-02T11:00:00+01:00")
    await add(home, "rest", due_datetime="2026-12-02T11:00:00+01:00")
    changed = {"entity_id": LIST, "item": "water", "rename": "wash", "due_datetime": "2026-12-02T12:00:00+01:00"}
    await home.services.async_call("todo", "update_item", changed, blocking=True)
    await home.services.async_call("todo", "remove_item", {"entity_id": LIST, "item": "rest"}, blocking=True)

    await at("2026-12-02T11:00:01")
    before = list(delivered)
    await at("2026-12-02T12:00:01")

    assert not before
    assert outcomes(delivered) == [("wash", "ready")]


async def test_models_do_not_see_the_list_until_it_is_exposed(home: HomeAssistant, entry) -> None:
    entity = er.async_get(home).async_get(LIST)

    assert entity is not None
    assert entity.options["conversation"] == {"should_expose": False}


async def test_the_list_moves_to_another_account(home: HomeAssistant, set_up: SetUpFn, say: SayFn, at: At) -> None:
    first, second = await set_up(), await set_up()
    await add(home, "water", due_datetime="2026-12-02T11:00:00+01:00")

    await home.config_entries.async_remove(first.entry_id)
    await home.async_block_till_done()

    entity = er.async_get(home).async_get(LIST)
    assert entity is not None
    assert entity.config_entry_id == second.entry_id
    assert [each["summary"] for each in await items(home)] == ["water"]


async def test_a_store_that_is_away_refuses_a_reminder(home: HomeAssistant, *, entry, say: SayFn, disk: Disk) -> None:
    await say("Remind me at noon to eat")
    disk(lambda path: path.rename(path.with_suffix(".away")))

    answer = await say("Remind me at noon to rest")

    assert get_speech(answer) == "I can't use my memory right now. Please try again later."


# --- by the tools of a model


def list_tools(model_server: ModelServer) -> list[dict[str, Any]]:
    """Return the tools of the last request."""
    return [each["function"] for each in model_server.requests[-1].body["tools"]]


DENTIST = "I have to be at the dentist on Friday at 3 pm, make sure I get there"


async def test_a_model_sets_a_reminder_to_the_time_that_was_said(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.script(call("remind", text="be at the dentist", when="on Friday at 3 pm"), words("I will."))

    await say(DENTIST)

    assert [(each["summary"], each["due"]) for each in await items(home)] == [
        ("be at the dentist", "2026-12-04T15:00:00+01:00")
    ]


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("be at the dentist", "on Saturday at 3 pm"),
        ("be at the dentist", "on Friday at 4 pm"),
        ("be at the dentist", "make sure"),
        ("water the green plants", "on Friday at 3 pm"),
    ],
)
async def test_a_model_sets_nothing_that_was_not_said(
    home: HomeAssistant, *, entry, say: SayFn, model_server: ModelServer, text: str, when: str
) -> None:
    model_server.script(call("remind", text=text, when=when), words("I could not."))

    await say(DENTIST)

    assert await items(home) == []


async def test_a_time_that_may_be_two_is_asked_by_the_model_and_answered_without_it(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.script(call("remind", text="be at the dentist", when="on Friday at 3"), words("Morning or evening?"))
    await say("I have to be at the dentist on Friday at 3, make sure I get there")

    answer = await say("in the afternoon")

    assert "Friday, 4 December, at 3:00 PM: be at the dentist." in get_speech(answer)


async def test_a_model_moves_and_finishes_reminders(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer
) -> None:
    await say("Remind me at noon to call Grace")
    model_server.script(call("change_reminder", reminder="Grace", when="until 4 pm"), words("No."))
    await say("the call to Grace can wait until 4 pm")
    model_server.script(call("change_reminder", reminder="Grace", when="4 pm"), words("Moved."))
    await say("the call to Grace can wait until 4 pm")
    moved = [each["due"] for each in await items(home)]
    model_server.script(call("change_reminder", reminder="Grace", when=""), words("Done."))
    await say("no need for that reminder about the call to Grace any more")

    assert moved == ["2026-12-02T16:00:00+01:00"]
    assert [each["status"] for each in await items(home)] == ["completed"]


@pytest.mark.parametrize("said", ["no need for that reminder any more", "is the reminder to call Grace still needed?"])
async def test_a_model_finishes_only_what_the_speaker_means(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer, said: str
) -> None:
    await say("Remind me at noon to call Grace")
    model_server.script(call("change_reminder", reminder="call Grace", when=""), words("Done."))

    await say(said)

    assert [each["status"] for each in await items(home)] == ["needs_action"]


async def test_a_model_lists_reminders(entry, say: SayFn, model_server: ModelServer) -> None:
    await say("Remind me at noon to call Grace")
    model_server.script(call("reminders"), words("One."))

    await say("is there a reminder about Grace somewhere?")

    assert "Wednesday, 2 December, at 12:00 PM: call Grace" in str(model_server.requests[-1])


@pytest.mark.parametrize(
    ("said", "is_offered"),
    [
        (DENTIST, True),
        ("I should not forget my umbrella when I leave", True),
        ("there was something with a reminder", True),
        ("tell me a joke", False),
        ("what happened on Friday at 3 pm?", False),
    ],
)
async def test_tools_are_offered_where_a_time_or_a_place_is_meant(
    entry, say: SayFn, model_server: ModelServer, said: str, is_offered: bool
) -> None:
    model_server.script(words("Fine."))

    await say(said)

    names = {each["name"] for each in list_tools(model_server)}
    assert [name in names for name in ("remind", "reminders", "change_reminder")] == [is_offered] * 3


async def test_the_tools_take_less_than_200_tokens(home: HomeAssistant, entry, say: SayFn, model_server) -> None:
    model_server.script(words("Fine."), words("Fine."))
    await say("tell me a joke")
    without = list_tools(model_server)
    await say(DENTIST)
    added = [ToolSchema(**each) for each in list_tools(model_server) if each not in without]

    assert len(added) == 3
    assert count_tools_tokens(added) <= 200
