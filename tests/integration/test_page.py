"""Tests for the commands of the page: rights, text, working memory, and the subscription to figures."""

from datetime import timedelta
import logging
from typing import Any

from homeassistant.auth.const import GROUP_ID_ADMIN, GROUP_ID_READ_ONLY, GROUP_ID_USER
from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import HomeAssistantError, Unauthorized
from homeassistant.helpers import device_registry as dr
from homeassistant.util import dt as dt_util
import pytest
from pytest_homeassistant_custom_component.common import (
    MockConfigEntry,
    async_capture_events,
    async_fire_time_changed,
)

from custom_components.windowed_conversation.agents.agent import SIGNAL_AGENT_CHANGED
from custom_components.windowed_conversation.const import (
    CONF_HISTORY_TOKENS,
    CONF_RECORD,
    CONF_SCOPE,
    CONF_STATES,
    DOMAIN,
)
from custom_components.windowed_conversation.turn.routing import Scope
from demo.model_server import ModelServer, call, words

from .actions import MEMORY_ACTIONS, TURN_ACTIONS, act
from .conftest import AGENT, SayFn, SetUpFn, flush_store, listed, start, stop
from .page import Refused, Visit, Visitor, visit
from .states import add_satellite
from .test_rights import CHANGING, READING

__all__ = ["visit"]

DETAILS: dict[str, dict[str, Any]] = {
    "get_conversation": {},
    "conversation": {},
    "exchange": {"number": 1},
    "delete_conversation": {},
    "tag_exchange": {"add": ["bird"]},
    "summarize_conversation": {},
}


async def refusal_of_action(home: HomeAssistant, action: str, visitor: Visitor, fields: dict[str, Any]) -> Any:
    """Return the code and the translation of the error with which an action refuses its caller, or None."""
    try:
        await act(home, action, visitor.context, **fields)
    except Unauthorized:
        return ("unauthorized", None)
    except HomeAssistantError as err:
        return ("home_assistant_error", err.translation_key)
    return None


async def refusal_of_command(action: str, visitor: Visitor, fields: dict[str, Any]) -> Any:
    """Return the code and the translation of the error with which a command refuses its caller, or None."""
    try:
        await visitor.call(action, **fields)
    except Refused as err:
        return (err.code, err.key)
    return None


ALL_ACTIONS = READING | CHANGING | MEMORY_ACTIONS | TURN_ACTIONS


@pytest.mark.parametrize("group", [None, GROUP_ID_READ_ONLY])
async def test_command_refuses_whom_its_action_refuses(
    *,
    home: HomeAssistant,
    entry: MockConfigEntry,
    visit: Visit,
    say: SayFn,
    subtests: pytest.Subtests,
    group: str | None,
) -> None:
    visitor = await visit("Grace", group)
    await say("the word is pelican")

    for action, fields in ALL_ACTIONS.items():
        with subtests.test(action):
            target = {} if action in MEMORY_ACTIONS | TURN_ACTIONS else {"entity_id": AGENT}

            by_action = await refusal_of_action(home, action, visitor, fields)

            assert await refusal_of_command(action, visitor, target | fields) == by_action


async def test_command_returns_the_response_of_its_action(
    home: HomeAssistant, entry: MockConfigEntry, visit: Visit, say: SayFn, subtests: pytest.Subtests
) -> None:
    ada = await visit()
    await say("the word is pelican", "mine", context=ada.context)
    await act(home, "remember", ada.context, text="The bins go out on Friday")
    await flush_store(home)

    for action in ("list_conversations", "list_turns", "recall"):
        with subtests.test(action):
            by_action = await act(home, action, ada.context, entity_id=None)
            result = await ada.call(action)

            assert [each for each in result if each != "conversations"] == [
                each for each in by_action if each != "conversations"
            ]
            assert len(str(result)) == pytest.approx(len(str(by_action)), abs=10)


@pytest.mark.parametrize("group", [GROUP_ID_USER, GROUP_ID_ADMIN])
async def test_command_finds_no_conversation_of_another_person(
    entry: MockConfigEntry, visit: Visit, say: SayFn, subtests: pytest.Subtests, group: str
) -> None:
    ada, grace = await visit("Ada"), await visit("Grace", group)
    await say("the word is herring", "adas", context=ada.context)

    for command, fields in DETAILS.items():
        with subtests.test(command), pytest.raises(Refused, match="unknown_conversation"):
            await grace.call(command, entity_id=AGENT, conversation_id="adas", **fields)


async def test_list_has_own_conversations_and_those_of_nobody(
    home: HomeAssistant, entry: MockConfigEntry, visit: Visit, say: SayFn
) -> None:
    ada, grace = await visit("Ada"), await visit("Grace")
    await say("the word is cat", "satellites")
    await say("the word is herring", "adas", context=ada.context)
    await say("the word is heron", "graces", context=grace.context)

    rows = (await ada.call("conversations"))["conversations"]

    assert [(each["conversation_id"], each["person"], each["source"]) for each in rows] == [
        ("adas", "Ada", "person"),
        ("satellites", None, "automation"),
    ]


async def test_conversation_is_named_by_its_first_words_and_its_automation(
    home: HomeAssistant, entry: MockConfigEntry, visit: Visit, say: SayFn
) -> None:
    ada, run = await visit(), Context()
    home.states.async_set("automation.morning", "on", {"friendly_name": "Good morning"}, context=run)
    await say(f"the word is herring, {'again ' * 30}", "adas", context=ada.context)
    await say("the word is heron", "adas", context=ada.context)
    await say("the word is cat", "morning", context=run)

    morning, adas = (await ada.call("conversations"))["conversations"]

    assert (morning["title"], morning["automation"]) == ("the word is cat", "Good morning")
    assert (adas["title"], adas["automation"]) == (f"the word is herring, {'again ' * 30}"[:80], None)


async def test_stored_conversation_is_named_by_its_first_words(
    home: HomeAssistant, entry: MockConfigEntry, visit: Visit, say: SayFn
) -> None:
    ada = await visit()
    await say("the word is herring", "adas", context=ada.context)
    await say("the word is heron", "adas", context=ada.context)
    await stop(home, entry)
    await start(home, entry)

    (row,) = (await ada.call("conversations"))["conversations"]

    assert (row["figures"]["newest_tokens"], row["title"]) == (None, "the word is herring")


async def test_command_puts_nothing_on_the_bus(home: HomeAssistant, entry: MockConfigEntry, visit: Visit) -> None:
    ada, calls = await visit(), async_capture_events(home, "call_service")

    await ada.call("remember", text="I like herring")

    assert calls == []


async def test_invalid_value_of_a_command_is_not_logged(
    entry: MockConfigEntry, visit: Visit, caplog: pytest.LogCaptureFixture
) -> None:
    ada = await visit()
    caplog.set_level(logging.INFO)

    with pytest.raises(Refused) as refused:
        await ada.call("remember", text="herring " * 100)

    assert refused.value.code == "invalid_format"
    assert "herring" not in caplog.text + refused.value.message


async def test_overview_names_a_closed_account(home: HomeAssistant, entry: MockConfigEntry, visit: Visit) -> None:
    admin = await visit("Ada", GROUP_ID_ADMIN)
    await home.config_entries.async_unload(entry.entry_id)

    overview = await admin.call("overview")

    assert (overview["closed_accounts"], overview["agents"]) == ([entry.title], [])


async def test_command_answers_when_no_account_is_loaded(
    home: HomeAssistant, entry: MockConfigEntry, visit: Visit, subtests: pytest.Subtests
) -> None:
    admin = await visit("Ada", GROUP_ID_ADMIN)
    await home.config_entries.async_unload(entry.entry_id)

    for command in ("overview", "conversations", "turns", "list_conversations", "list_turns"):
        with subtests.test(command):
            assert await admin.call(command)


async def test_conversation_has_the_parts_of_its_requests(entry: MockConfigEntry, visit: Visit, say: SayFn) -> None:
    ada = await visit()
    await say("the word is herring", "adas", context=ada.context)

    conversation = await ada.call("conversation", entity_id=AGENT, conversation_id="adas")

    assert conversation["weight"]["instructions"] > 0
    figures = conversation["figures"]
    assert figures["tokens"] == conversation["exchanges"][0]["tokens"] == figures["newest_tokens"]


async def test_conversation_is_read_on_from_an_exchange(entry: MockConfigEntry, visit: Visit, say: SayFn) -> None:
    ada = await visit()
    for text in ("one", "two", "three"):
        await say(text, "adas", context=ada.context)
    conversation = {"entity_id": AGENT, "conversation_id": "adas"}
    whole = await ada.call("conversation", **conversation)

    rest = await ada.call("conversation", after=whole["exchanges"][0]["number"], **conversation)

    assert rest == {**whole, "weight": None, "exchanges": whole["exchanges"][1:], "last_used": rest["last_used"]}


async def test_long_text_of_an_exchange_is_read_when_it_is_opened(
    entry: MockConfigEntry, visit: Visit, say: SayFn
) -> None:
    ada, text = await visit(), "<img src=x onerror=alert(1)>" * 100
    await say(text, "adas", context=ada.context)
    conversation = {"entity_id": AGENT, "conversation_id": "adas"}

    exchange = (await ada.call("conversation", **conversation))["exchanges"][0]
    messages = (await ada.call("exchange", number=exchange["number"], **conversation))["messages"]

    assert (exchange["is_cut"], exchange["said"]) == (True, text[:300])
    assert messages[0]["content"].endswith(text)


async def test_next_trim_evicts_the_exchanges_that_the_page_names(set_up: SetUpFn, visit: Visit, say: SayFn) -> None:
    await set_up(options={CONF_HISTORY_TOKENS: 300})
    ada = await visit()
    conversation = {"entity_id": AGENT, "conversation_id": "adas"}
    before: dict[str, Any] = {}
    after: dict[str, Any] = {"figures": {"trims": 0}}
    while not after["figures"]["trims"]:
        before = after
        await say("the word is herring", "adas", context=ada.context)
        after = await ada.call("conversation", **conversation)

    numbers = [{each["number"] for each in page["exchanges"]} for page in (before, after)]
    assert numbers[0] - numbers[1] == set(before["leaves_first"])


async def answer_with_a_tool(model_server: ModelServer, say: SayFn, ada: Visitor) -> None:
    """Say a sentence that the model answers after a tool call."""
    model_server.script(call("HassTurnOn", name="kitchen light"), words("It is on, pelican."))
    await say("the kitchen is rather dark, make it brighter", "adas", context=ada.context)


async def test_request_of_a_recent_turn_is_shown_to_the_speaker_though_no_record_is_kept(
    set_up: SetUpFn, visit: Visit, say: SayFn, model_server: ModelServer
) -> None:
    await set_up(**{CONF_RECORD: "off"})
    ada = await visit()
    await answer_with_a_tool(model_server, say, ada)

    row = (await ada.call("turns"))["turns"][0]
    turn = await ada.call("get_turn", turn_id=row["turn_id"], request=2)

    assert turn["sent"]["messages"][-1]["role"] == "tool"
    assert "rather dark" in turn["said"]
    assert row["said"] == turn["said"][:100]
    assert [each["planned_tokens"] > 0 for each in turn["attempts"]] == [True, True]


async def test_context_of_a_recent_turn_has_the_speaker_and_the_facts(
    set_up: SetUpFn, home: HomeAssistant, visit: Visit, say: SayFn
) -> None:
    await set_up(memory="on")
    ada = await visit()
    await ada.call("remember", text="I like herring")
    await say("what fish is nice", "adas", context=ada.context)

    turn = (await ada.call("turns"))["turns"][0]
    context = (await ada.call("get_turn", turn_id=turn["turn_id"]))["context"]

    assert (context["speaker"], "herring" in context["facts"]) == ("Ada", True)


@pytest.mark.parametrize("group", [GROUP_ID_USER, GROUP_ID_ADMIN])
async def test_recent_turn_of_another_person_is_unknown(set_up: SetUpFn, visit: Visit, say: SayFn, group: str) -> None:
    await set_up(**{CONF_RECORD: "off"})
    ada, grace = await visit("Ada"), await visit("Grace", group)
    await say("the word is herring", "adas", context=ada.context)
    turn = (await ada.call("turns"))["turns"][0]["turn_id"]

    assert (await grace.call("turns"))["turns"] == []
    with pytest.raises(Refused, match="unknown_turn"):
        await grace.call("get_turn", turn_id=turn)


async def subscribe(visitor: Visitor) -> None:
    """Subscribe a visitor's page to the figures."""
    await visitor.client.send_json_auto_id({"type": f"{DOMAIN}/subscribe"})
    assert (await visitor.client.receive_json())["success"]


async def test_turn_sends_its_figures_without_text(entry: MockConfigEntry, visit: Visit, say: SayFn) -> None:
    ada = await visit()
    await subscribe(ada)

    await say("the word is herring", "adas", context=ada.context)
    event = (await ada.client.receive_json())["event"]

    assert [each["conversation_id"] for each in event["conversations"]] == ["adas"]
    assert event["conversations"][0]["figures"]["exchanges"] == 1
    assert "herring" not in str(event)


async def test_page_of_another_person_gets_nothing(entry: MockConfigEntry, visit: Visit, say: SayFn) -> None:
    ada, grace = await visit("Ada"), await visit("Grace", GROUP_ID_ADMIN)
    await subscribe(grace)

    await say("the word is herring", "adas", context=ada.context)
    await say("the word is cat", "satellites")
    event = (await grace.client.receive_json())["event"]

    assert [each["conversation_id"] for each in event["conversations"]] == ["satellites"]


async def test_turns_within_a_second_send_one_event(
    home: HomeAssistant, entry: MockConfigEntry, visit: Visit, say: SayFn
) -> None:
    ada = await visit()
    await subscribe(ada)
    await say("the word is herring", "first", context=ada.context)
    await ada.client.receive_json()

    await say("the word is heron", "second", context=ada.context)
    await say("the word is cat", "third", context=ada.context)
    async_fire_time_changed(home, dt_util.utcnow() + timedelta(seconds=2))
    event = (await ada.client.receive_json())["event"]

    assert {each["conversation_id"] for each in event["conversations"]} == {"second", "third"}


async def test_subscription_goes_on_after_a_reload(
    home: HomeAssistant, entry: MockConfigEntry, visit: Visit, say: SayFn
) -> None:
    ada = await visit()
    await subscribe(ada)
    await home.config_entries.async_reload(entry.entry_id)
    await listed(home)

    await say("the word is herring", "adas", context=ada.context)
    event = (await ada.client.receive_json())["event"]

    assert [each["conversation_id"] for each in event["conversations"]] == ["adas"]


async def test_deleted_conversation_is_sent_as_gone(
    home: HomeAssistant, entry: MockConfigEntry, visit: Visit, say: SayFn
) -> None:
    ada = await visit()
    await say("the word is herring", "adas", context=ada.context)
    await listed(home)
    await subscribe(ada)

    await act(home, "delete_conversation", ada.context, conversation_id="adas")
    event = (await ada.client.receive_json())["event"]

    assert event["conversations"] == [{"entity_id": AGENT, "conversation_id": "adas", "figures": None}]


async def test_closed_page_leaves_no_listener(home: HomeAssistant, entry: MockConfigEntry, visit: Visit) -> None:
    ada = await visit()
    await subscribe(ada)

    await ada.client.close()
    await home.async_block_till_done()

    assert not home.data["dispatcher"].get(SIGNAL_AGENT_CHANGED)


async def test_device_of_an_agent_links_to_no_page_without_the_frontend(
    home: HomeAssistant, entry: MockConfigEntry
) -> None:
    devices = dr.async_entries_for_config_entry(dr.async_get(home), entry.entry_id)

    assert [each.configuration_url for each in devices] == [None] * len(devices)
    assert devices


async def test_conversations_of_one_name_have_nothing_of_each_other(
    *, set_up: SetUpFn, home: HomeAssistant, visit: Visit, say: SayFn
) -> None:
    await set_up(**{CONF_SCOPE: Scope.USER, CONF_STATES: True})
    ada, grace = await visit("Ada"), await visit("Grace")
    await say("the word is heron", context=grace.context)
    (before,) = (await grace.call("conversations"))["conversations"]
    await say("turn on the kitchen light", context=ada.context, device_id=add_satellite(home, "Ada's satellite"))
    (turn,) = (await ada.call("turns"))["turns"]

    (shown,) = (await grace.call("conversations"))["conversations"]
    await grace.call("delete_conversation", entity_id=AGENT, conversation_id="user")
    kept = await ada.call("get_turn", turn_id=turn["turn_id"])

    assert shown == {**before, "last_used": shown["last_used"]}
    assert before["figures"]["live_tokens"] > 0
    assert kept["context"] is not None


async def test_summary_that_a_person_requests_is_read_by_nobody_else(
    *, set_up: SetUpFn, home: HomeAssistant, visit: Visit, say: SayFn
) -> None:
    await set_up(**{CONF_RECORD: "full"})
    ada, grace = await visit("Ada"), await visit("Grace")
    for text in ("the word is heron", "say it again"):
        await say(text, "adas", context=ada.context)

    await ada.call("summarize_conversation", entity_id=AGENT, conversation_id="adas", keep=1)
    await flush_store(home)
    (summary,) = (await ada.call("list_turns", route="summary"))["turns"]
    opened = await ada.call("get_turn", turn_id=summary["turn_id"], request=1)

    assert "heron" in str(opened["sent"])
    assert (await grace.call("list_turns", route="summary"))["turns"] == []
    with pytest.raises(Refused, match="unknown_turn"):
        await grace.call("get_turn", turn_id=summary["turn_id"])
