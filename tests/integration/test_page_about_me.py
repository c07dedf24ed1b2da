"""Tests for what the page shows of a person: their facts, where these came from, their satellites, and retention."""

from collections.abc import Callable, Coroutine
from datetime import datetime
import time
from typing import Any

from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import HomeAssistantError, ServiceValidationError, Unauthorized
from homeassistant.util import dt as dt_util
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_DEVICE_OWNERS,
    CONF_MEMORY,
    CONF_MEMORY_DAYS,
    CONF_PERSISTENCE,
    CONF_RECORD,
)
from custom_components.windowed_conversation.page import about_me
from tests.window.turns import begin_turn

from .actions import act
from .conftest import AGENT, SayFn, SetUpFn
from .page_reads import read_page
from .remembered import add_fact, add_suggestion, memory_of
from .states import add_satellite
from .store_file import Disk
from .test_memory_actions import BINS, DENTIST, HANSEN, TEA, People, people, told

__all__ = ["people", "told"]

type Read = Callable[..., Coroutine[Any, Any, dict[str, Any]]]


@pytest.fixture
def read(home: HomeAssistant) -> Read:
    """Return a function that reads the page as a caller."""

    async def read(context: Context | None = None) -> dict[str, Any]:
        return await read_page(home, about_me.COMMANDS, context)

    return read


def texts(found: dict[str, Any]) -> list[str]:
    """Return the texts of the facts in a response."""
    return [each["text"] for each in found["facts"]]


@pytest.mark.usefixtures("told")
async def test_person_sees_their_own_facts_and_those_of_the_home(read: Read, people: People) -> None:
    found = await read(people.ada)

    assert found["person"] == {"id": people.ada.user_id, "name": "Ada"}
    assert [(each["text"], each["person"], each["private"]) for each in found["facts"]] == [
        (TEA, "Ada", False),
        (DENTIST, "Ada", True),
        (BINS, None, False),
    ]
    assert found["home_facts_total"] == 1


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(
    ("caller", "seen"),
    [("grace", [HANSEN, BINS]), ("guest", [BINS]), ("admin", [BINS]), ("automation", [BINS])],
)
async def test_nobody_else_sees_a_fact_of_a_person(read: Read, people: People, caller: str, seen: list[str]) -> None:
    found = await read(getattr(people, caller))

    assert texts(found) == seen


@pytest.mark.usefixtures("told")
async def test_automation_is_no_person(read: Read, people: People) -> None:
    assert (await read(people.automation))["person"] is None


async def test_user_who_may_use_no_agent_is_refused(
    home: HomeAssistant, told: None, people: People, read: Read
) -> None:
    stranger = await home.auth.async_create_user("Stranger")

    with pytest.raises(Unauthorized):
        await read(Context(user_id=stranger.id))


async def test_turn_gets_nothing_that_is_private(
    home: HomeAssistant, entry: MockConfigEntry, get_agent, *, people: People, read: Read
) -> None:
    device = add_satellite(home, "Bedside")
    owners = {CONF_DEVICE_OWNERS: [{"device": device, "person": people.ada.user_id}]}
    home.config_entries.async_update_entry(entry, options=owners)
    for text, private in ((TEA, False), (DENTIST, True)):
        await add_fact(
            home, text, person=people.ada.user_id, private=private, quote=f"{text}, I said", conversation="c"
        )

    async with begin_turn(get_agent(entry).windows, "everyone's"):
        found = await read(people.ada)

    assert texts(found) == [TEA]
    assert (found["facts"][0]["quote"], found["devices"]) == ("", [])


async def test_fact_that_was_said_shows_where_it_came_from(
    entry: MockConfigEntry, people: People, say: SayFn, read: Read
) -> None:
    before = dt_util.now()
    await say("remember that I am allergic to nuts", "kitchen talk", context=people.ada)

    (fact,) = (await read(people.ada))["facts"]

    assert (fact["source"], fact["quote"], fact["tellings"]) == ("said", "remember that I am allergic to nuts", 1)
    assert fact["id"] == "fact:1"
    assert datetime.fromisoformat(fact["confirmed"]) >= before.replace(microsecond=0)


async def test_words_of_another_person_stay_theirs(
    entry: MockConfigEntry, people: People, say: SayFn, read: Read
) -> None:
    await say("remember that the bins go out on Friday", "grace's talk", context=people.grace)

    (of_ada,), (of_grace,) = [(await read(each))["facts"] for each in (people.ada, people.grace)]

    assert of_ada["text"] == of_grace["text"]
    assert of_ada["quote"] == ""
    assert of_grace["quote"] == "remember that the bins go out on Friday"


async def test_fact_in_the_profile_of_a_conversation_is_marked(
    home: HomeAssistant, entry: MockConfigEntry, *, people: People, say: SayFn, read: Read
) -> None:
    await add_fact(home, TEA, person=people.ada.user_id)
    before = (await read(people.ada))["facts"]

    await say("tell me a story about whales", "new", context=people.ada)

    assert [each["in_profile"] for each in before] == [False]
    assert [each["in_profile"] for each in (await read(people.ada))["facts"]] == [True]


async def test_profile_of_another_person_marks_nothing(
    home: HomeAssistant, entry: MockConfigEntry, *, people: People, say: SayFn, read: Read
) -> None:
    await add_fact(home, BINS)

    await say("tell me a story about whales", "new", context=people.grace)

    assert [each["in_profile"] for each in (await read(people.ada))["facts"]] == [False]


async def test_recalled_fact_shows_when_it_was_last_sent(
    home: HomeAssistant, entry: MockConfigEntry, *, people: People, say: SayFn, read: Read
) -> None:
    # newer facts fill the profile, so the older one is recalled
    await add_fact(home, "The spare key hangs behind the blue birdhouse", person=people.ada.user_id, at=1.0)
    for number in range(60):
        text = f"Whale number {number} sang about the sea, the moon and the long way home to the north"
        await add_fact(home, text, person=people.ada.user_id)
    asked_at = dt_util.now().replace(microsecond=0)

    await say("where does the spare key hang?", context=people.ada)

    *others, fact = (await read(people.ada))["facts"]
    assert (fact["in_profile"], {each["last_used"] for each in others}) == (False, {None})
    assert datetime.fromisoformat(fact["last_used"]) >= asked_at


@pytest.mark.usefixtures("told")
async def test_fact_that_was_never_sent_has_no_last_use(read: Read, people: People) -> None:
    assert {each["last_used"] for each in (await read(people.ada))["facts"]} == {None}


async def test_person_sees_which_satellites_are_theirs(
    home: HomeAssistant, set_up: SetUpFn, people: People, read: Read
) -> None:
    owners = {add_satellite(home, "Bedside"): people.ada.user_id, add_satellite(home, "Attic"): people.grace.user_id}
    await set_up(options={CONF_DEVICE_OWNERS: [{"device": each, "person": owner} for each, owner in owners.items()]})

    found = [(await read(each))["devices"] for each in (people.ada, people.grace, people.automation)]

    bedside, attic = owners
    assert found == [[{"id": bedside, "name": "Bedside"}], [{"id": attic, "name": "Attic"}], []]


async def test_retention_of_an_agent_with_default_settings_is_shown(
    entry: MockConfigEntry, people: People, read: Read
) -> None:
    assert (await read(people.ada))["retention"] == [
        {
            "entity_id": AGENT,
            "name": "Ada",
            "memory": True,
            "memory_days": 90,
            "record": "statistics",
            "record_text_days": 0,
            "record_days": 90,
            "persistence": "own",
        }
    ]


@pytest.mark.parametrize(
    ("days", "level", "texts_and_figures"), [(30, "full", (7, 30)), (3, "full", (3, 3)), (30, "off", (0, 0))]
)
async def test_retention_follows_the_options(
    set_up: SetUpFn, people: People, read: Read, *, days: int, level: str, texts_and_figures: tuple[int, int]
) -> None:
    await set_up(options={CONF_MEMORY_DAYS: days, CONF_PERSISTENCE: "off"}, **{CONF_MEMORY: "off", CONF_RECORD: level})

    (kept,) = (await read(people.ada))["retention"]

    assert (kept["memory"], kept["memory_days"], kept["persistence"]) == (False, days, "off")
    assert (kept["record_text_days"], kept["record_days"]) == texts_and_figures


async def test_facts_are_shown_though_memory_is_off_now(
    home: HomeAssistant, set_up: SetUpFn, people: People, read: Read
) -> None:
    await set_up(**{CONF_MEMORY: "off"})
    await act(home, "remember", people.ada, text=TEA, person="person.ada")

    assert texts(await read(people.ada)) == [TEA]


@pytest.mark.usefixtures("told")
async def test_account_that_is_not_loaded_hides_no_fact(
    home: HomeAssistant, entry: MockConfigEntry, people: People, read: Read
) -> None:
    await home.config_entries.async_unload(entry.entry_id)

    found = await read(people.ada)

    assert (texts(found), found["retention"]) == ([TEA, DENTIST, BINS], [])


async def test_store_that_cannot_be_used_is_an_error(
    *, home: HomeAssistant, entry: MockConfigEntry, say: SayFn, people: People, disk: Disk, read: Read
) -> None:
    await say("hello there")
    await home.async_add_executor_job(memory_of(home).writer.close, 60.0)

    with pytest.raises(HomeAssistantError) as refused:
        await read(people.ada)

    assert refused.value.translation_key == "memory_unavailable"


async def correct(home: HomeAssistant, context: Context, fact: str, text: str) -> Any:
    """Correct a fact as a caller."""
    return await read_page(home, about_me.COMMANDS[1:], context, fact=fact, text=text)


@pytest.mark.usefixtures("told")
async def test_corrected_fact_has_the_owner_and_the_listeners_of_the_old_one(
    home: HomeAssistant, read: Read, people: People
) -> None:
    dentist = (await read(people.ada))["facts"][1]

    await correct(home, people.ada, dentist["id"], "My dentist is Dr. Vogel")

    assert [(each["text"], each["person"], each["private"]) for each in (await read(people.ada))["facts"]] == [
        ("My dentist is Dr. Vogel", "Ada", True),
        (TEA, "Ada", False),
        (BINS, None, False),
    ]


@pytest.mark.usefixtures("told")
async def test_fact_of_the_home_stays_one_of_the_home_when_it_is_corrected(
    home: HomeAssistant, read: Read, people: People
) -> None:
    bins = (await read(people.ada))["facts"][2]

    await correct(home, people.ada, bins["id"], "The bins go out on Monday")

    assert "The bins go out on Monday" in texts(await read(people.grace))
    assert BINS not in texts(await read(people.grace))


@pytest.mark.usefixtures("told")
async def test_correction_leaves_the_conversation_in_which_the_fact_was_told(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, read: Read, people: People
) -> None:
    await say("Remember that my cat is called Mika", "talk", context=people.ada)
    fact = next(each for each in (await read(people.ada))["facts"] if "Mika" in each["text"])

    await correct(home, people.ada, fact["id"], "My cat is called Mila")

    conversation = await act(home, "get_conversation", people.ada, conversation_id="talk")
    assert "Mika" in str(conversation["messages"])


@pytest.mark.usefixtures("told")
async def test_fact_of_another_person_is_not_corrected(home: HomeAssistant, read: Read, people: People) -> None:
    dentist = (await read(people.ada))["facts"][1]

    with pytest.raises(ServiceValidationError) as refused:
        await correct(home, people.grace, dentist["id"], "My dentist is Dr. Vogel")

    assert refused.value.translation_key == "unknown_fact"
    assert DENTIST in texts(await read(people.ada))


@pytest.mark.usefixtures("told")
async def test_user_without_permission_corrects_nothing(home: HomeAssistant, read: Read, people: People) -> None:
    bins = (await read(people.ada))["facts"][2]
    guest = await home.auth.async_create_user("Guest")

    with pytest.raises(Unauthorized):
        await correct(home, Context(user_id=guest.id), bins["id"], "The bins go out on Monday")


async def bring_back(home: HomeAssistant, context: Context, fact: str) -> Any:
    """Bring back as a caller what a fact replaced."""
    return await read_page(home, about_me.COMMANDS[2:], context, fact=fact)


@pytest.mark.usefixtures("told")
async def test_what_was_corrected_is_brought_back(home: HomeAssistant, read: Read, people: People) -> None:
    dentist = (await read(people.ada))["facts"][1]
    corrected = await correct(home, people.ada, dentist["id"], "My dentist is Dr. Vogel")
    shown = next(each for each in (await read(people.ada))["facts"] if each["id"] == corrected["id"])

    brought_back = await bring_back(home, people.ada, corrected["id"])

    assert shown["replaced"] == DENTIST
    assert brought_back == {"id": dentist["id"]}
    assert sorted(texts(await read(people.ada))) == sorted([TEA, DENTIST, BINS])


@pytest.mark.usefixtures("told")
async def test_nobody_brings_back_what_another_person_corrected(
    home: HomeAssistant, read: Read, people: People
) -> None:
    dentist = (await read(people.ada))["facts"][1]
    corrected = await correct(home, people.ada, dentist["id"], "My dentist is Dr. Vogel")
    guest = await home.auth.async_create_user("Guest")

    with pytest.raises(ServiceValidationError):
        await bring_back(home, people.grace, corrected["id"])
    with pytest.raises(Unauthorized):
        await bring_back(home, Context(user_id=guest.id), corrected["id"])

    assert DENTIST not in texts(await read(people.ada))


@pytest.mark.usefixtures("told")
async def test_fact_that_replaced_nothing_brings_nothing_back(home: HomeAssistant, read: Read, people: People) -> None:
    bins = (await read(people.ada))["facts"][2]

    with pytest.raises(ServiceValidationError) as refused:
        await bring_back(home, people.ada, bins["id"])

    assert (bins["replaced"], refused.value.translation_key) == ("", "unknown_fact")


MENTIONED = "Tom takes antidepressants"


async def mention(home: HomeAssistant, person: Context, text: str = MENTIONED) -> str:
    """Store a turn of a person with a suggestion, and return the id of the suggestion."""
    return f"fact:{await add_suggestion(home, person.user_id, text, time.time(), f'but {text}')}"


async def decide(home: HomeAssistant, person: Context, fact: str, decision: str) -> None:
    """Decide about a suggestion as the page does."""
    commands = [each for each in about_me.COMMANDS if each[0] == "decide_suggestion"]
    await read_page(home, tuple(commands), person, fact=fact, decision=decision)


@pytest.mark.usefixtures("entry")
async def test_suggestion_stands_apart_from_the_facts(home: HomeAssistant, people: People, read: Read) -> None:
    row = await mention(home, people.ada)

    found = await read(people.ada)

    (suggestion,) = found["suggestions"]
    assert found["facts"] == []
    assert (suggestion["id"], suggestion["text"], suggestion["quote"]) == (row, MENTIONED, f"but {MENTIONED}")
    assert suggestion["replaces"] == ""


@pytest.mark.usefixtures("entry")
@pytest.mark.parametrize("caller", ["grace", "guest", "admin", "automation"])
async def test_nobody_else_sees_or_decides_a_suggestion(
    home: HomeAssistant, people: People, read: Read, caller: str
) -> None:
    row = await mention(home, people.ada)

    assert (await read(getattr(people, caller)))["suggestions"] == []
    for decision in ("keep", "share", "dismiss"):
        with pytest.raises((ServiceValidationError, Unauthorized)):
            await decide(home, getattr(people, caller), row, decision)

    assert [each["id"] for each in (await read(people.ada))["suggestions"]] == [row]


async def test_turn_sees_and_decides_no_suggestion(
    home: HomeAssistant, entry: MockConfigEntry, get_agent, *, people: People, read: Read
) -> None:
    row = await mention(home, people.ada)

    async with begin_turn(get_agent(entry).windows, "everyone's"):
        assert (await read(people.ada))["suggestions"] == []
        with pytest.raises(ServiceValidationError):
            await decide(home, people.ada, row, "share")


@pytest.mark.usefixtures("entry")
@pytest.mark.parametrize(
    ("decision", "kept", "seen_by_grace"),
    [("keep", [MENTIONED], []), ("share", [MENTIONED], [MENTIONED]), ("dismiss", [], [])],
)
async def test_decision_about_a_suggestion_is_carried_out(
    *, home: HomeAssistant, people: People, read: Read, decision: str, kept: list[str], seen_by_grace: list[str]
) -> None:
    row = await mention(home, people.ada)

    await decide(home, people.ada, row, decision)

    found = await read(people.ada)
    assert (found["suggestions"], texts(found)) == ([], kept)
    assert texts(await read(people.grace)) == seen_by_grace


@pytest.mark.usefixtures("entry")
async def test_suggestion_says_which_fact_it_would_correct(home: HomeAssistant, people: People, read: Read) -> None:
    await add_fact(home, "the tablet is due at 8")
    row = await mention(home, people.ada, "the tablet is due at 9")

    assert [each["replaces"] for each in (await read(people.ada))["suggestions"]] == ["the tablet is due at 8"]
    await decide(home, people.ada, row, "share")

    assert texts(await read(people.grace)) == ["the tablet is due at 9"]
