"""Tests for reminders: set by voice or in the list, delivered once, listed, moved and forgotten."""

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
import json
from pathlib import Path
from typing import Any

from freezegun.api import FrozenDateTimeFactory
from homeassistant.components import persistent_notification
from homeassistant.core import Context, Event, HomeAssistant
from homeassistant.helpers import entity_registry as er
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

from custom_components.windowed_conversation.agents.forgetting import async_forget_everywhere
from custom_components.windowed_conversation.agents.hand_over import async_is_in_use
from custom_components.windowed_conversation.bridge import delivery
from custom_components.windowed_conversation.bridge.turn_report import EVENT_REMINDER
from tests.documents import DOCS, blocks

from .conftest import SayFn, SetUpFn, get_speech
from .satellite import SATELLITE, Ask, Heard
from .store_file import Disk

LIST = "todo.reminders"
# A Wednesday, at ten in the morning.
NOW = datetime(2026, 12, 2, 9, tzinfo=UTC)

SENTENCES = json.loads((Path(__file__).parents[1] / "bridge" / "reminder_sentences.json").read_text("utf-8"))
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

    assert heard.text == "A reminder from Wednesday, 2 December, at 10:20 AM: look at the oven."


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
    home: HomeAssistant, *, entry, say: SayFn, ada: Context, at: At, delivered: list[Event]
) -> None:
    phone = MockConfigEntry(domain="mobile_app", data={"user_id": ada.user_id})
    phone.add_to_hass(home)
    er.async_get(home).async_get_or_create("notify", "mobile_app", "phone", config_entry=phone)
    sent = async_mock_service(home, "notify", "send_message")
    await say("Remind me at noon to eat", context=ada)

    await at("2026-12-02T12:00:01")

    assert [call.data["message"] for call in sent] == ["A reminder: eat."]
    assert outcomes(delivered) == [("eat", "notified")]


async def test_a_person_who_never_comes_is_waited_for_for_thirty_days(
    home: HomeAssistant, *, entry, say: SayFn, ada: Context, at: At, delivered: list[Event]
) -> None:
    await say("Remind Ada when she is home to feed the cat")

    await at("2027-01-01T10:00:10")
    move_ada(home, "home")
    await home.async_block_till_done(wait_background_tasks=True)

    assert outcomes(delivered) == [("feed the cat", "expired")]


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
