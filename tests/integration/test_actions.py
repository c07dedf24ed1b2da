"""Tests for the actions on conversations, and for the events that turns fire."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

from homeassistant.core import HomeAssistant
from homeassistant.exceptions import ServiceValidationError
from homeassistant.helpers import entity_registry as er
import probatio
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_capture_events

from custom_components.windowed_conversation.agents import conversation_store
from custom_components.windowed_conversation.const import CONF_HISTORY_TOKENS, DOMAIN
from demo.model_server import ModelServer

from .actions import EVERY_ACTION, MEMORY_ACTIONS, ON_A_CONVERSATION, TURN_ACTIONS, act, export
from .conftest import AGENT, SayFn, SetUpFn, get_speech


async def test_window_is_returned_as_it_is_sent(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    await say("I would like the kitchen light switched on")

    response = await act(home, "get_conversation")

    assert [message["role"] for message in response["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert response["messages"][2]["tool_calls"][0]["arguments"] == {"name": "kitchen light"}
    assert response["messages"][3]["tool_call_id"] == response["messages"][2]["tool_calls"][0]["id"]
    assert "tool_call" in response["messages"][2]["tags"]


async def test_figures_are_returned_without_text(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    await say("my name is Ada")

    response = await act(home, "get_conversation", content="statistics")

    assert response["statistics"]["messages"] == 2
    assert response["statistics"]["tags"]["route:model"] == 1
    assert "Ada" not in str(response)


@pytest.fixture
async def tagged_conversation(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    """Create a conversation of four exchanges, of which the first three have tags."""
    for word, tags in (("pelican", ["bird", "sea"]), ("heron", ["bird"]), ("herring", ["sea"])):
        await say(f"the word is {word}")
        await act(home, "tag_exchange", add=tags)
    await say("the word is cat")


@pytest.mark.usefixtures("tagged_conversation")
async def test_window_is_returned_by_the_tags_that_are_asked_for(
    home: HomeAssistant, subtests: pytest.Subtests
) -> None:
    table: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["pelican", "heron", "herring", "cat"]),
        ({"tags": "bird"}, ["pelican", "heron"]),
        ({"tags": ["bird", "sea"]}, ["pelican", "heron", "herring"]),
        ({"exclude_tags": ["sea"]}, ["heron", "cat"]),
        ({"exclude_tags": ["route:model"]}, []),
        ({"tags": ["bird"], "exclude_tags": ["sea"]}, ["heron"]),
        ({"tags": ["nothing has this"]}, []),
    ]
    for fields, words in table:
        with subtests.test(fields=fields):
            response = await act(home, "get_conversation", **fields)

            questions = [message["content"] for message in response["messages"] if message["role"] == "user"]
            assert [question.split()[-1] for question in questions] == words
            assert response["messages"][0]["role"] == "system"


async def test_times_are_in_iso_8601_with_their_zone(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    await home.config.async_set_time_zone("Asia/Tokyo")
    await say("my name is Ada")

    texts = [(await act(home, "get_conversation"))["messages"][1]["created"]]
    texts.append((await act(home, "list_conversations"))["conversations"][0]["last_used"])

    times = [datetime.fromisoformat(text) for text in texts]
    assert [time.utcoffset() for time in times] == [timedelta(hours=9)] * 2
    assert all(abs(datetime.now(UTC) - time) < timedelta(minutes=5) for time in times)


async def test_time_that_no_calendar_has_is_none(home: HomeAssistant, entry: MockConfigEntry) -> None:
    await act(home, "import_conversation", export=make_export(created=10**12))

    assert (await act(home, "get_conversation"))["messages"][0]["created"] is None


async def test_newest_conversation_is_taken_when_none_is_given(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, get_agent
) -> None:
    await say("the word is pelican", "older")
    await say("the word is heron", "newer")

    assert "heron" in str(await act(home, "get_conversation", conversation_id=None))
    await act(home, "delete_conversation", conversation_id=None)

    assert [window.conversation_id for window in get_agent(entry).windows.loaded_windows().values()] == ["older"]


async def test_action_without_an_id_is_refused_where_there_is_no_conversation(
    home: HomeAssistant, entry: MockConfigEntry, subtests: pytest.Subtests
) -> None:
    for action, fields in ON_A_CONVERSATION.items():
        with subtests.test(action):
            with pytest.raises(ServiceValidationError) as error:
                await act(home, action, conversation_id=None, **fields)

            assert error.value.translation_key == "no_conversation"


async def test_imported_conversation_keeps_its_id_when_no_other_is_given(
    home: HomeAssistant, entry: MockConfigEntry, get_agent
) -> None:
    await act(home, "import_conversation", conversation_id=None, export=make_export(conversation_id="diary"))

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
    assert [each["messages"] for each in listed] == [2, 2, 2]


async def test_list_has_at_most_a_hundred_conversations(
    home: HomeAssistant, set_up: SetUpFn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_store, "_MAX_WINDOWS", 200)
    await set_up()
    for number in range(101):
        exported = make_export(conversation_id=f"conversation {number}")
        await act(home, "import_conversation", conversation_id=None, export=exported)

    listed = (await act(home, "list_conversations"))["conversations"]

    assert [each["conversation_id"] for each in listed] == [f"conversation {number}" for number in range(100, 0, -1)]


async def test_conversation_is_forgotten(home: HomeAssistant, entry: MockConfigEntry, say: SayFn, figure) -> None:
    await say("my name is Ada")

    await act(home, "delete_conversation")

    assert figure("active_conversations") == "0"
    assert "Ada" not in get_speech(await say("what is my name?"))


@pytest.mark.rule("action-exceptions")
async def test_mistake_is_told(home: HomeAssistant, entry: MockConfigEntry, subtests: pytest.Subtests) -> None:
    mistakes = (
        ("conversation_id", "never begun", "no conversation never begun"),
        ("entity_id", "conversation.home_assistant", "not a conversation agent of this integration"),
        ("entity_id", "conversation.nobody", "not a conversation agent of this integration"),
    )
    for (action, fields), (field, value, text) in product(ON_A_CONVERSATION.items(), mistakes):
        with subtests.test(action, value=value), pytest.raises(ServiceValidationError, match=text):
            await act(home, action, **fields | {field: value})


async def test_agent_of_an_account_that_is_not_set_up_is_told(
    home: HomeAssistant, entry: MockConfigEntry, subtests: pytest.Subtests
) -> None:
    await home.config_entries.async_unload(entry.entry_id)

    for action, fields in EVERY_ACTION.items():
        with subtests.test(action), pytest.raises(ServiceValidationError, match="is not loaded"):
            await act(home, action, **fields)


async def test_no_action_is_omitted_of_these_tests(home: HomeAssistant, entry: MockConfigEntry) -> None:
    tested = EVERY_ACTION.keys() | MEMORY_ACTIONS.keys() | TURN_ACTIONS.keys()
    assert home.services.async_services_for_domain(DOMAIN).keys() == tested


async def test_resets_that_come_together_forget_once_and_then_find_nothing(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn
) -> None:
    await say("my name is Ada")

    resets = await asyncio.gather(*(act(home, "delete_conversation") for _ in range(5)), return_exceptions=True)

    assert [getattr(reset, "translation_key", None) for reset in resets] == [None, *["unknown_conversation"] * 4]


@asynccontextmanager
async def keep_answering(say: SayFn, model_server: ModelServer, conversation_id: str) -> AsyncIterator[None]:
    """Keep the model answering in a conversation until the end of the context."""
    hold = model_server.hold(after_words=1)
    turn = asyncio.create_task(say("the word is pelican", conversation_id))
    await hold.reached.wait()
    try:
        yield
    finally:
        hold.release()
        await turn


async def test_conversation_that_is_being_answered_is_left_alone(
    *, home: HomeAssistant, entry, say: SayFn, get_agent, model_server: ModelServer, subtests: pytest.Subtests
) -> None:
    await say("my name is Ada")
    exported = await export(home)
    for action, fields, text in (
        ("delete_conversation", {}, "being answered"),
        ("tag_exchange", {"add": ["bird"]}, "being answered"),
        ("summarize_conversation", {}, "being answered"),
        ("import_conversation", {"export": exported}, "already has a conversation named import_conversation"),
    ):
        with subtests.test(action):
            await say("my name is Ada", action)

            async with keep_answering(say, model_server, action):
                with pytest.raises(ServiceValidationError, match=text):
                    await act(home, action, conversation_id=action, **fields)

            window = next(iter(get_agent(entry).windows.loaded_windows().values()))
            assert window.conversation_id == action
            assert [message.role for message in window.messages()] == ["system", *["user", "assistant"] * 2]
            assert "bird" not in window.stats().tag_distribution


@pytest.mark.parametrize(
    ("action", "data"), [("summarize_conversation", {}), ("get_conversation", {"content": "token_count"})]
)
async def test_agent_without_a_model_has_nothing_to_send(
    home: HomeAssistant, entry_without_model: MockConfigEntry, say: SayFn, action: str, data: dict[str, Any]
) -> None:
    await say("turn on kitchen light")

    with pytest.raises(ServiceValidationError, match="does not use a model"):
        await act(home, action, **data)


async def test_trim_is_told_on_the_bus(home: HomeAssistant, set_up: SetUpFn, say: SayFn, get_agent) -> None:
    entry = await set_up(options={CONF_HISTORY_TOKENS: 200})
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
    exported = await export(home)

    imported = await act(home, "import_conversation", conversation_id="elsewhere", export=exported)

    assert (imported["entity_id"], imported["conversation_id"]) == (AGENT, "elsewhere")
    assert (imported["messages"], imported["exchanges"]) == (2, 1)

    assert "Ada" in get_speech(await say("what is my name?", "elsewhere"))


async def test_copy_of_a_conversation_goes_on_by_itself(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn
) -> None:
    await say("my name is Ada")

    await act(home, "import_conversation", conversation_id="fork", export=await export(home))
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


async def test_import_that_is_none_is_refused(
    home: HomeAssistant, entry: MockConfigEntry, get_agent, subtests: pytest.Subtests
) -> None:
    incomplete = "not a complete exported conversation"
    table: dict[str, tuple[dict[str, Any], str]] = {
        "nothing": ({}, incomplete),
        "not ours": ({"format": "something else"}, incomplete),
        "newer": ({"format": "windowed_conversation", "version": 99}, "a newer version exported it"),
        "without exchanges": ({"format": "windowed_conversation", "version": 1}, incomplete),
        "100 MB": (make_export(content="x" * 100_000_000), "it is too large"),
        "tag of 10,000 characters": (make_export(tags=["t" * 10_000]), incomplete),
        "empty exchange": (make_export() | {"exchanges": [{"tags": [], "messages": []}]}, incomplete),
        "tokens of 400 digits": (make_export(tokens=10**400), incomplete),
        "time of 400 digits": (make_export(created=10**400), incomplete),
    }
    for name, (conversation, text) in table.items():
        with subtests.test(name):
            with pytest.raises(ServiceValidationError, match=text):
                await act(home, "import_conversation", conversation_id=name, export=conversation)

            windows = get_agent(entry).windows.loaded_windows().values()
            assert name not in [window.conversation_id for window in windows]


async def test_imported_messages_are_counted_anew(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, get_agent
) -> None:
    await act(home, "import_conversation", export=make_export(content="the sea " * 100_000))

    (window,) = get_agent(entry).windows.loaded_windows().values()
    assert window.stats().current_tokens > 100_000
    assert window.stats().over_budget


@pytest.mark.parametrize(
    ("size", "stated", "counted"), [(20, 10**9, 22), (10_000_000, 0, 625_000)], ids=["too many", "none"]
)
async def test_imported_residue_is_believed_only_what_it_can_cost(
    *, home: HomeAssistant, entry: MockConfigEntry, get_agent, size: int, stated: int, counted: int
) -> None:
    conversation = make_export()
    native = {"provider": "openai_chat", "model": "scripted", "value": f'"{"a" * size}"', "tokens": stated}
    conversation["exchanges"][0]["messages"].append(
        {"role": "assistant", "content": "hi", "tokens": 5, "native": native}
    )

    await act(home, "import_conversation", export=conversation)

    (window,) = get_agent(entry).windows.loaded_windows().values()
    assert window.exchanges()[0].messages[1].native.tokens == counted


async def test_import_holds_no_numbers_that_json_has_not(home: HomeAssistant, entry: MockConfigEntry) -> None:
    conversation = make_export()
    call = {"id": "call", "name": "dim", "arguments": '{"level": 1e999, "other": NaN}'}
    conversation["exchanges"][0]["messages"] += [
        {"role": "assistant", "tool_calls": [call], "content": "", "tokens": 5},
        {"role": "tool", "tool_call_id": "call", "name": "dim", "content": "done", "tokens": 5},
    ]

    await act(home, "import_conversation", export=conversation)

    (_, calling, _) = (await act(home, "get_conversation"))["messages"]
    assert calling["tool_calls"][0]["arguments"] == {"level": None, "other": None}


AUTOMATIC = ("input", "output", "tool_call", "incomplete", "summary", "route:model")
NO_FIGURES = (True, -1, 1.5, 10**9 + 1, 10**400, "-1", "9" * 5000, float("nan"))


@pytest.mark.usefixtures("entry")
async def test_impossible_field_is_refused(home: HomeAssistant, subtests: pytest.Subtests) -> None:
    impossible: list[tuple[str, str, Any]] = [
        ("get_conversation", "content", "all"),
        *(("tag_exchange", "exchange", figure) for figure in NO_FIGURES),
        *(("summarize_conversation", "keep", figure) for figure in NO_FIGURES),
    ]
    for action, field, value in impossible:
        with subtests.test(action, value=value), pytest.raises(probatio.Invalid):
            await act(home, action, **{field: value})


@pytest.mark.parametrize("figure", [1, 1.0, "1"], ids=repr)
async def test_figure_of_a_form_or_a_template_is_taken(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, figure: object
) -> None:
    await say("my name is Ada")

    await act(home, "tag_exchange", exchange=figure, add=["bird"])

    assert "bird" in (await act(home, "get_conversation", content="statistics"))["statistics"]["tags"]


async def test_conversation_that_exists_is_not_replaced(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn
) -> None:
    await say("my name is Ada")
    exported = await export(home)

    with pytest.raises(ServiceValidationError, match="already has a conversation named test"):
        await act(home, "import_conversation", export=exported)


async def test_tag_that_cannot_be_is_not_looked_for(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, subtests: pytest.Subtests
) -> None:
    await say("my name is Ada")

    refused: list[dict[str, Any]] = [{"tags": ["t" * 10_000]}, {"exclude_tags": ["t" * 10_000]}, {"tags": [" "]}]
    for fields in refused:
        with subtests.test(fields=fields), pytest.raises(ServiceValidationError, match="Tags must be short text"):
            await act(home, "get_conversation", **fields)


async def test_tag_that_cannot_be_is_refused(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, get_agent, subtests: pytest.Subtests
) -> None:
    await say("my name is Ada")
    table: list[tuple[dict[str, Any], str]] = [
        ({"add": ["bird"], "exchange": 2}, "does not have this exchange"),
        ({"add": ["bird"], "exchange": 0}, "does not have this exchange"),
        ({"add": ["t" * 10_000]}, "Tags must be short text"),
        ({"add": [" "]}, "Tags must be short text"),
        ({}, "at least one tag"),
        ({"add": [], "remove": []}, "at least one tag"),
        *(({"remove": [tag]}, "Automatic tags cannot be") for tag in AUTOMATIC),
        *(({"add": ["bird", tag]}, "Automatic tags cannot be") for tag in AUTOMATIC),
    ]
    for fields, text in table:
        with subtests.test(fields=fields):
            before = get_agent(entry).windows.snapshots()

            with pytest.raises(ServiceValidationError, match=text):
                await act(home, "tag_exchange", **fields)

            assert get_agent(entry).windows.snapshots() == before


async def test_topic_of_an_exchange_is_changed_and_looked_for(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn
) -> None:
    await say("turn on kitchen light")
    await act(home, "tag_exchange", add=["context:weather"], remove=["context:input_boolean"])
    await say("my name is Ada")

    found = await act(home, "get_conversation", tags=["context:weather"])

    assert [each["content"] for each in found["messages"] if each["role"] == "user"] == ["turn on kitchen light"]
    assert (await act(home, "get_conversation", tags=["context:input_boolean"]))["messages"][1:] == []


async def test_response_names_what_was_changed(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    for text in ("my name is Ada", "order pizza"):
        await say(text)

    tagged = await act(home, "tag_exchange", conversation_id=None, exchange=2, add=["bird"])
    imported = await act(home, "import_conversation", conversation_id="fork", export=await export(home))
    deleted = await act(home, "delete_conversation", conversation_id="fork")

    assert tagged["tags"] == ["bird", "input", "output", "route:model"]
    assert tagged | {"tags": []} == {"entity_id": AGENT, "conversation_id": "test", "exchange": 2, "tags": []}
    assert imported == deleted
    assert (deleted["entity_id"], deleted["conversation_id"], deleted["exchanges"]) == (AGENT, "fork", 2)


@pytest.fixture
async def two_agents(set_up: SetUpFn, say: SayFn) -> None:
    """Set up two agents that both have a conversation "test"; that of the second one is newer."""
    await set_up()
    await set_up()
    await say("the word is pelican")
    await say("the word is heron", agent_id=f"{AGENT}_2")


@pytest.mark.usefixtures("two_agents")
async def test_newest_conversation_of_all_agents_is_taken_when_no_agent_is_given(home: HomeAssistant) -> None:
    newest = await act(home, "get_conversation", entity_id=None, conversation_id=None)

    assert (newest["entity_id"], newest["conversation_id"]) == (f"{AGENT}_2", "test")


@pytest.mark.usefixtures("two_agents")
@pytest.mark.parametrize("entity_id", [None, [AGENT, f"{AGENT}_2"]], ids=["all", "both"])
async def test_conversation_of_several_agents_needs_an_agent(home: HomeAssistant, entity_id: list[str] | None) -> None:
    with pytest.raises(ServiceValidationError) as error:
        await act(home, "delete_conversation", entity_id=entity_id)

    assert error.value.translation_key == "agent_needed"
    assert len((await act(home, "list_conversations", entity_id=None))["conversations"]) == 2


@pytest.mark.usefixtures("two_agents")
async def test_import_needs_an_agent_if_there_are_several(home: HomeAssistant) -> None:
    exported = make_export(conversation_id="diary")

    with pytest.raises(ServiceValidationError) as error:
        await act(home, "import_conversation", entity_id=None, export=exported)

    assert error.value.translation_key == "agent_needed"


@pytest.mark.usefixtures("two_agents")
async def test_agent_is_found_by_its_device(home: HomeAssistant) -> None:
    agent = er.async_get(home).async_get(AGENT)
    device_id = agent and agent.device_id

    listed = (await act(home, "list_conversations", entity_id=None, device_id=device_id))["conversations"]

    assert [each["entity_id"] for each in listed] == [AGENT]


@pytest.mark.usefixtures("two_agents")
@pytest.mark.parametrize("target", [{"entity_id": []}, {"entity_id": "none"}, {"area_id": ["nowhere"]}], ids=str)
async def test_target_without_an_agent_is_refused(home: HomeAssistant, target: dict[str, Any]) -> None:
    with pytest.raises(ServiceValidationError) as error:
        await act(home, "delete_conversation", **{"entity_id": None, **target})

    assert error.value.translation_key == "unknown_agent"


async def test_exchange_can_lose_a_tag_that_was_added(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    await say("my name is Ada")
    await act(home, "tag_exchange", add=["bird", "sea"])

    assert (await act(home, "tag_exchange", remove=["bird"]))["tags"] == ["input", "output", "route:model", "sea"]
