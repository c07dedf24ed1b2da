"""Tests for the list of turns on the page: its texts, their rights, how long they last, and their deletion."""

from typing import Any

from homeassistant.auth.const import GROUP_ID_ADMIN, GROUP_ID_USER
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.account import async_agent_states
from custom_components.windowed_conversation.const import CONF_RECORD

from .conftest import AGENT, SayFn, SetUpFn, flush_store
from .page import Visit, Visitor, visit

__all__ = ["visit"]


async def read_said(visitor: Visitor, **fields: Any) -> list[str | None]:
    """Return the sentences of the turns on the page, newest first, and None for a turn without its text."""
    return [each.get("said") for each in (await visitor.call("turns", **fields))["turns"]]


def drop_recent_turns(home: HomeAssistant) -> None:
    """Leave working memory as a restart does."""
    for state in async_agent_states(home).values():
        state.recent_turns.clear()


async def test_turn_has_what_was_said_and_answered_though_the_record_has_figures_only(
    home: HomeAssistant, entry: MockConfigEntry, visit: Visit, say: SayFn, subtests: pytest.Subtests
) -> None:
    ada = await visit()
    await say("turn on the kitchen light", "adas", context=ada.context)
    await say("what is a herring", "adas", context=ada.context)

    for when in ("now", "after a restart"):
        asked, turned = (await ada.call("turns"))["turns"]
        with subtests.test(when):
            assert [each["said"] for each in (asked, turned)] == ["what is a herring", "turn on the kitchen light"]
            assert [each["route"] for each in (asked, turned)] == ["model", "local"]
            assert "herring" in asked["answer"]
            assert turned["answer"]
        await flush_store(home)
        drop_recent_turns(home)


async def test_local_command_of_another_day_still_names_what_was_done(
    home: HomeAssistant, entry: MockConfigEntry, visit: Visit, say: SayFn
) -> None:
    ada = await visit()
    await say("turn on the kitchen light", "adas", context=ada.context)

    (now,) = (await ada.call("turns"))["turns"]
    await ada.call("delete_conversation", entity_id=AGENT, conversation_id="adas")
    await flush_store(home)
    drop_recent_turns(home)
    (later,) = (await ada.call("turns"))["turns"]
    opened = await ada.call("get_turn", turn_id=later["turn_id"])

    assert [each["text"] for each in (now, later, opened)] == ["shown", "not_kept", "not_kept"]
    assert [each["tools"] for each in (now, later, opened)] == [["HassTurnOn"]] * 3


async def test_text_of_a_conversation_that_is_gone_comes_from_memory(
    home: HomeAssistant, entry: MockConfigEntry, visit: Visit, say: SayFn
) -> None:
    ada = await visit()
    await say("what is a herring", "adas", context=ada.context)
    await ada.call("delete_conversation", entity_id=AGENT, conversation_id="adas")
    await flush_store(home)

    (turn,) = (await ada.call("turns"))["turns"]

    assert (turn["text"], turn["said"]) == ("shown", "what is a herring")


async def test_many_commands_of_one_person_leave_the_turns_of_the_others(
    set_up: SetUpFn, visit: Visit, say: SayFn
) -> None:
    await set_up(**{CONF_RECORD: "off"})
    ada, ben = await visit("Ada"), await visit("Ben")
    for number in range(3):
        await say(f"what is herring {number}", "adas", context=ada.context)
    for _ in range(55):
        await say("turn on the kitchen light", "bens", context=ben.context)

    asked = (await ada.call("turns"))["turns"]
    turn = await ada.call("get_turn", turn_id=asked[-1]["turn_id"], request=1)

    assert [each["said"] for each in asked] == ["what is herring 2", "what is herring 1", "what is herring 0"]
    assert turn["sent"]["messages"][-1]["content"].endswith("what is herring 0")
    assert len((await ben.call("turns", limit=100))["turns"]) == 50


@pytest.mark.parametrize("group", [GROUP_ID_USER, GROUP_ID_ADMIN])
async def test_turn_of_another_person_has_no_text(
    home: HomeAssistant, entry: MockConfigEntry, visit: Visit, say: SayFn, group: str
) -> None:
    ada, grace = await visit("Ada"), await visit("Grace", group)
    await say("what is a herring", "adas", context=ada.context)
    await flush_store(home)

    seen = [await grace.call("turns")]
    drop_recent_turns(home)
    seen.append(await grace.call("turns"))
    (turn,) = (await ada.call("turns"))["turns"]
    seen.append(await grace.call("turns", turn_id=turn["turn_id"]))

    assert "herring" not in str(seen)
    assert [[each["text"] for each in page["turns"]] for page in seen] == [["private"] * (group == GROUP_ID_ADMIN)] * 3


async def test_forgetting_takes_the_turns_that_it_means(
    entry: MockConfigEntry, visit: Visit, say: SayFn, subtests: pytest.Subtests
) -> None:
    ada, ben = await visit("Ada"), await visit("Ben")
    await say("what is a pelican", "bens", context=ben.context)
    await say("what is two plus two", "adas", context=ada.context)
    await ada.call("remember", text="I like smoked herring")
    await say("do I like smoked herring", "adas", context=ada.context)

    await ada.call("forget", query="smoked herring")

    turns = (await ada.call("turns"))["turns"]
    assert [each["text"] for each in turns] == ["not_kept", "shown"]
    assert await read_said(ben) == ["what is a pelican"]
