"""Tests for the actions that read and reset a window, and for the events that turns fire."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from homeassistant.core import HomeAssistant
from homeassistant.exceptions import ServiceValidationError
import probatio
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_capture_events

from custom_components.windowed_conversation.const import CONF_HISTORY_TOKENS, DOMAIN
from demo.model_server import ModelServer

from .actions import EVERY_ACTION, MEMORY_ACTIONS, ON_A_CONVERSATION, TURN_ACTIONS, act
from .conftest import AGENT, SayFn, SetUpFn, get_speech, until


async def test_window_is_returned_as_it_is_sent(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    await say("I would like the kitchen light switched on")

    response = await act(home, "get_window")

    assert [message["role"] for message in response["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert response["messages"][2]["tool_calls"][0]["arguments"] == {"name": "kitchen light"}
    assert response["messages"][3]["tool_call_id"] == response["messages"][2]["tool_calls"][0]["id"]
    assert "tool_call" in response["messages"][2]["tags"]


async def test_figures_are_returned_without_text(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    await say("my name is Ada")

    response = await act(home, "get_window", content="statistics")

    assert response["message_count"] == 2
    assert response["tag_distribution"]["route:model"] == 1
    assert "Ada" not in str(response)


@pytest.fixture
async def tagged(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    """Create a conversation of four exchanges, of which the first three have tags."""
    for word, tags in (("pelican", ["bird", "sea"]), ("heron", ["bird"]), ("herring", ["sea"]), ("cat", [])):
        await say(f"the word is {word}")
        await act(home, "tag_exchange", add=tags)


@pytest.mark.usefixtures("tagged")
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, ["pelican", "heron", "herring", "cat"]),
        ({"tags": "bird"}, ["pelican", "heron", "cat"]),
        ({"tags": ["bird", "sea"]}, ["pelican", "heron", "herring", "cat"]),
        ({"tags": ["bird", "sea"], "match": "any"}, ["pelican", "heron", "herring", "cat"]),
        ({"tags": ["bird", "sea"], "match": "all"}, ["pelican", "cat"]),
        ({"exclude": ["sea"]}, ["heron", "cat"]),
        ({"tags": ["bird"], "exclude": ["sea"]}, ["heron", "cat"]),
        ({"tags": ["nothing has this"]}, ["cat"]),
    ],
)
async def test_window_is_returned_by_the_tags_that_are_asked_for(
    home: HomeAssistant, asked: dict[str, Any], words: list[str]
) -> None:
    response = await act(home, "get_window", **asked)

    said = [message["content"].split()[-1] for message in response["messages"] if message["role"] == "user"]
    assert said == words
    assert response["messages"][0]["role"] == "system"


async def test_times_are_in_iso_8601_with_their_zone(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    await home.config.async_set_time_zone("Asia/Tokyo")
    await say("my name is Ada")

    told = [(await act(home, "get_window"))["messages"][1]["created"]]
    told.append((await act(home, "list_conversations"))["conversations"][0]["last_used"])

    times = [datetime.fromisoformat(each) for each in told]
    assert [time.utcoffset() for time in times] == [timedelta(hours=9)] * 2
    assert all(abs(datetime.now(UTC) - time) < timedelta(minutes=5) for time in times)


async def test_time_that_no_calendar_has_is_none(home: HomeAssistant, entry: MockConfigEntry) -> None:
    await act(home, "import_conversation", conversation=make_export(created=10**12))

    assert (await act(home, "get_window"))["messages"][0]["created"] is None


async def test_newest_conversation_is_taken_when_none_is_given(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, get_agent
) -> None:
    await say("the word is pelican", "older")
    await say("the word is heron", "newer")

    assert "heron" in str(await act(home, "get_window", conversation_id=None))
    await act(home, "reset_window", conversation_id=None)

    assert [window.conversation_id for window in get_agent(entry).windows.loaded_windows().values()] == ["older"]


@pytest.mark.parametrize("action", ON_A_CONVERSATION)
async def test_action_without_an_id_is_refused_where_there_is_no_conversation(
    home: HomeAssistant, entry: MockConfigEntry, action: str
) -> None:
    with pytest.raises(ServiceValidationError) as refused:
        await act(home, action, conversation_id=None, **ON_A_CONVERSATION[action])

    assert refused.value.translation_key == "no_conversation"


async def test_imported_conversation_keeps_its_id_when_no_other_is_given(
    home: HomeAssistant, entry: MockConfigEntry, get_agent
) -> None:
    await act(home, "import_conversation", conversation_id=None, conversation=make_export(conversation_id="diary"))

    assert [window.conversation_id for window in get_agent(entry).windows.loaded_windows().values()] == ["diary"]


async def test_conversations_are_listed_newest_first_over_all_agents_and_without_text(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn
) -> None:
    await set_up()
    await set_up()
    await say("the word is pelican", "first")
    await say("the word is heron", "second", agent_id=f"{AGENT}_2")
    await say("the word is herring", "third")

    listed = (await act(home, "list_conversations", entity_id=None))["conversations"]

    shown = [(each["entity_id"], each["conversation_id"], each["exchanges"]) for each in listed]
    assert shown == [(AGENT, "third", 1), (f"{AGENT}_2", "second", 1), (AGENT, "first", 1)]
    assert all(each["tokens"] > 0 and each["utilization"] > 0 for each in listed)
    assert listed[0].keys() == {"entity_id", "conversation_id", "last_used", "exchanges", "tokens", "utilization"}


async def test_list_has_no_more_than_were_asked_for(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    for number in range(3):
        await say("turn on kitchen light", f"conversation {number}")

    listed = (await act(home, "list_conversations", limit=2))["conversations"]

    assert [each["conversation_id"] for each in listed] == ["conversation 2", "conversation 1"]


async def test_conversation_is_forgotten(home: HomeAssistant, entry: MockConfigEntry, say: SayFn, figure) -> None:
    await say("my name is Ada")

    await act(home, "reset_window")

    assert figure("active_conversations") == "0"
    assert "Ada" not in get_speech(await say("what is my name?"))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"conversation_id": "never begun"}, "no conversation never begun"),
        ({"entity_id": "conversation.home_assistant"}, "not a conversation agent of this integration"),
        ({"entity_id": "conversation.nobody"}, "not a conversation agent of this integration"),
    ],
)
@pytest.mark.parametrize("action", ON_A_CONVERSATION)
async def test_mistake_is_told(
    home: HomeAssistant, entry: MockConfigEntry, action: str, data: dict[str, str], told: str
) -> None:
    with pytest.raises(ServiceValidationError, match=told):
        await act(home, action, **ON_A_CONVERSATION[action] | data)


@pytest.mark.parametrize("action", EVERY_ACTION)
async def test_agent_of_an_account_that_is_not_set_up_is_told(
    home: HomeAssistant, entry: MockConfigEntry, action: str
) -> None:
    await home.config_entries.async_unload(entry.entry_id)

    with pytest.raises(ServiceValidationError, match="is not loaded"):
        await act(home, action, **EVERY_ACTION[action])


async def test_no_action_is_omitted_of_these_tests(home: HomeAssistant, entry: MockConfigEntry) -> None:
    tested = EVERY_ACTION.keys() | MEMORY_ACTIONS.keys() | TURN_ACTIONS.keys()
    assert home.services.async_services_for_domain(DOMAIN).keys() == tested


async def test_resets_that_come_together_forget_once_and_then_find_nothing(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn
) -> None:
    await say("my name is Ada")

    resets = await asyncio.gather(*(act(home, "reset_window") for _ in range(5)), return_exceptions=True)

    assert [getattr(reset, "translation_key", None) for reset in resets] == [None, *["unknown_conversation"] * 4]


@pytest.mark.parametrize(
    ("action", "told"),
    [
        ("reset_window", "being answered"),
        ("tag_exchange", "being answered"),
        ("summarize_window", "being answered"),
        ("count_tokens", "being answered"),
        ("import_conversation", "already has a conversation test"),
    ],
)
async def test_conversation_that_is_being_answered_is_left_alone(
    *, home: HomeAssistant, entry, say: SayFn, get_agent, model_server: ModelServer, action: str, told: str
) -> None:
    await say("my name is Ada")
    exported = await act(home, "export_conversation")
    model_server.change(delay=0.01)
    turn = asyncio.create_task(say("the word is pelican"))
    await until(lambda: model_server.open_streams > 0)

    more = {"tag_exchange": {"add": ["bird"]}, "import_conversation": exported}
    with pytest.raises(ServiceValidationError, match=told):
        await act(home, action, **more.get(action, {}))

    await turn
    (window,) = get_agent(entry).windows.loaded_windows().values()
    assert [message.role for message in window.messages()] == ["system", *["user", "assistant"] * 2]
    assert "bird" not in window.stats().tag_distribution


@pytest.mark.parametrize("action", ["summarize_window", "count_tokens"])
async def test_agent_without_a_model_has_nothing_to_send(
    home: HomeAssistant, entry_without_model: MockConfigEntry, say: SayFn, action: str
) -> None:
    await say("turn on kitchen light")

    with pytest.raises(ServiceValidationError, match="does not use a model"):
        await act(home, action)


async def test_trim_is_told_on_the_bus(home: HomeAssistant, set_up: SetUpFn, say: SayFn, get_agent) -> None:
    entry = await set_up(**{CONF_HISTORY_TOKENS: 200})
    events = async_capture_events(home, f"{DOMAIN}_trimmed")

    for number in range(10):
        await say(f"consider that the locker number {number} is the {number} times seventh on the left")

    stats = next(iter(get_agent(entry).windows.loaded_windows().values())).stats()
    assert len(events) == stats.trims > 0
    assert sum(event.data["evicted"]["messages"] for event in events) == stats.evicted_messages


async def test_exported_conversation_goes_on_where_it_is_imported(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn
) -> None:
    await say("my name is Ada")
    exported = await act(home, "export_conversation")

    await act(home, "import_conversation", conversation_id="elsewhere", **exported)

    assert "Ada" in get_speech(await say("what is my name?", "elsewhere"))


async def test_forked_conversations_go_on_by_themselves(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn
) -> None:
    await say("my name is Ada")

    await act(home, "fork_conversation", new_conversation_id="fork")
    known = get_speech(await say("what is my name?", "fork"))
    await say("my name is Bea", "fork")

    assert "Ada" in known
    assert "Ada" in get_speech(await say("what is my name?"))


def make_export(*, conversation_id: str = "test", tags: Iterable[str] = (), **question: Any) -> dict[str, Any]:
    """Return an exported conversation with one user message; `question` changes fields of that message."""
    messages = [{"role": "user", "content": "hello", "tags": [], "created": 0.0, "tokens": 5, **question}]
    return {
        "format": DOMAIN,
        "version": 1,
        "conversation_id": conversation_id,
        "exchanges": [{"tags": list(tags), "messages": messages}],
        "evicted": dict.fromkeys(("exchanges", "messages", "tokens", "trims"), 0),
    }


@pytest.mark.parametrize(
    ("conversation", "told"),
    [
        ({}, "is not an exported conversation"),
        ({"format": "something else"}, "is not an exported conversation"),
        ({"format": "windowed_conversation", "version": 99}, "by a newer version"),
        ({"format": "windowed_conversation", "version": 1}, "is damaged"),
        (make_export(content="x" * 100_000_000), "is too large"),
        (make_export(tags=["t" * 10_000]), "is damaged"),
        (make_export() | {"exchanges": [{"tags": [], "messages": []}]}, "is damaged"),
        (make_export(tokens=10**400), "is damaged"),
        (make_export(created=10**400), "is damaged"),
    ],
    ids=[
        *("nothing", "not ours", "newer", "without exchanges", "100 MB", "tag of 10,000 characters"),
        *("empty exchange", "tokens of 400 digits", "time of 400 digits"),
    ],
)
async def test_import_that_is_none_is_refused(
    home: HomeAssistant, entry: MockConfigEntry, get_agent, conversation: dict, told: str
) -> None:
    with pytest.raises(ServiceValidationError, match=told):
        await act(home, "import_conversation", conversation=conversation)

    assert len(get_agent(entry).windows) == 0


async def test_imported_messages_are_counted_anew(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, get_agent
) -> None:
    await act(home, "import_conversation", conversation=make_export(content="the sea " * 100_000))

    (window,) = get_agent(entry).windows.loaded_windows().values()
    assert window.stats().current_tokens > 100_000
    assert window.stats().over_budget


@pytest.mark.parametrize(("said", "counted"), [(10**9, 22), (0, 625_000)], ids=["too many", "none"])
async def test_imported_residue_is_believed_only_what_it_can_cost(
    home: HomeAssistant, entry: MockConfigEntry, get_agent, said: int, counted: int
) -> None:
    value = {10**9: '"aaaaaaaaaaaaaaaaaaaa"', 0: f'"{"a" * 10_000_000}"'}[said]
    conversation = make_export()
    native = {"provider": "openai_chat", "model": "scripted", "value": value, "tokens": said}
    conversation["exchanges"][0]["messages"].append(
        {"role": "assistant", "content": "hi", "tokens": 5, "native": native}
    )

    await act(home, "import_conversation", conversation=conversation)

    (window,) = get_agent(entry).windows.loaded_windows().values()
    assert window.exchanges()[0].messages[1].native.tokens == counted


async def test_import_holds_no_numbers_that_json_has_not(home: HomeAssistant, entry: MockConfigEntry) -> None:
    conversation = make_export()
    call = {"id": "call", "name": "dim", "arguments": '{"level": 1e999, "other": NaN}'}
    conversation["exchanges"][0]["messages"] += [
        {"role": "assistant", "tool_calls": [call], "content": "", "tokens": 5},
        {"role": "tool", "tool_call_id": "call", "name": "dim", "content": "done", "tokens": 5},
    ]

    await act(home, "import_conversation", conversation=conversation)

    (_, calling, _) = (await act(home, "get_window"))["messages"]
    assert calling["tool_calls"][0]["arguments"] == {"level": None, "other": None}


NO_FIGURES = (True, -1, 1.5, 10**9 + 1, 10**400, "-1", "9" * 5000, float("nan"))


@pytest.mark.parametrize(
    ("action", "field", "value"),
    [
        ("get_window", "match", "some"),
        ("get_window", "content", "all"),
        ("list_conversations", "limit", 0),
        ("list_conversations", "limit", 101),
        ("count_tokens", "text", ""),
        *(("tag_exchange", "exchange", figure) for figure in NO_FIGURES),
        *(("summarize_window", "keep", figure) for figure in NO_FIGURES),
    ],
)
@pytest.mark.usefixtures("entry")
async def test_impossible_field_is_refused(home: HomeAssistant, action: str, field: str, value: Any) -> None:
    with pytest.raises(probatio.Invalid):
        await act(home, action, **{field: value})


@pytest.mark.parametrize("figure", [1, 1.0, "1"], ids=repr)
async def test_figure_of_a_form_or_a_template_is_taken(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, figure: object
) -> None:
    await say("my name is Ada")

    await act(home, "tag_exchange", exchange=figure, add=["bird"])

    assert "bird" in (await act(home, "get_window", content="statistics"))["tag_distribution"]


@pytest.mark.parametrize("action", ["import", "fork"])
async def test_conversation_that_exists_is_not_replaced(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, action: str
) -> None:
    await say("my name is Ada")
    exported = await act(home, "export_conversation")
    more = {"import": exported, "fork": {"new_conversation_id": "test"}}

    with pytest.raises(ServiceValidationError, match="already has a conversation test"):
        await act(home, f"{action}_conversation", **more[action])


@pytest.mark.parametrize("asked", [{"tags": ["t" * 10_000]}, {"exclude": ["t" * 10_000]}, {"tags": [" "]}])
async def test_tag_that_cannot_be_is_not_looked_for(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, asked: dict[str, Any]
) -> None:
    await say("my name is Ada")

    with pytest.raises(ServiceValidationError, match="A tag is a short text"):
        await act(home, "get_window", **asked)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"exchange": 2}, "does not have this exchange"),
        ({"exchange": 0}, "does not have this exchange"),
        ({"add": ["t" * 10_000]}, "A tag is a short text"),
        ({"add": [" "]}, "A tag is a short text"),
        ({"remove": ["input"]}, "automatic tags cannot be removed"),
    ],
)
async def test_tag_that_cannot_be_is_refused(
    *, home: HomeAssistant, entry: MockConfigEntry, say: SayFn, get_agent, wrong: dict, told: str
) -> None:
    await say("my name is Ada")
    before = next(iter(get_agent(entry).windows.loaded_windows().values())).snapshot()

    with pytest.raises(ServiceValidationError, match=told):
        await act(home, "tag_exchange", **wrong)

    assert next(iter(get_agent(entry).windows.loaded_windows().values())).snapshot() == before
