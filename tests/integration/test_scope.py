"""Tests for the scope and the ids of conversations, and that nobody can see another user's conversation."""

from homeassistant.auth.const import GROUP_ID_USER
from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import ServiceValidationError
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser

from custom_components.windowed_conversation.agents import conversation_store
from custom_components.windowed_conversation.const import CONF_MEMORY, CONF_SCOPE
from demo.model_server import ModelServer

from .actions import WITH_AN_ID, act
from .conftest import SayFn, SetUpFn, get_speech

# The id of a session that has ended: Home Assistant replaces an id of its own that it no longer knows.
EXPIRED = "01JCVK2Z4H6M8N0P2R4T6V8X0Z"


async def test_person_goes_on_on_any_device(home: HomeAssistant, set_up: SetUpFn, say: SayFn) -> None:
    await set_up(**{CONF_SCOPE: "user"})
    ada, grace = (Context(user_id=MockUser(name=name).add_to_hass(home).id) for name in ("Ada", "Grace"))
    await say("my name is Ada", None, device_id="kitchen", context=ada)

    assert "Ada" in get_speech(await say("what is my name?", None, device_id="hall", context=ada))
    assert "Ada" not in get_speech(await say("what is my name?", None, device_id="hall", context=grace))


@pytest.mark.parametrize("conversation_id", [None, EXPIRED])
async def test_device_goes_on_with_its_conversation_in_a_new_session(
    set_up: SetUpFn, say: SayFn, conversation_id: str | None
) -> None:
    await set_up(**{CONF_SCOPE: "device"})
    begun = await say("my name is Ada", None, device_id="kitchen")

    asked = await say("what is my name?", conversation_id, device_id="kitchen")

    assert asked.conversation_id not in {begun.conversation_id, conversation_id}
    assert "Ada" in get_speech(asked)
    assert "Ada" not in get_speech(await say("what is my name?", conversation_id, device_id="hall"))


async def test_new_session_of_a_device_is_a_new_conversation_unless_the_agent_has_one_for_each_device(
    entry, say: SayFn
) -> None:
    await say("my name is Ada", None, device_id="kitchen")

    assert "Ada" not in get_speech(await say("what is my name?", None, device_id="kitchen"))


async def test_all_share_the_conversation_of_an_agent_that_has_only_one(set_up: SetUpFn, say: SayFn) -> None:
    await set_up(**{CONF_SCOPE: "agent"})
    await say("my name is Ada", None, device_id="kitchen")

    assert "Ada" in get_speech(await say("what is my name?", None, device_id="hall"))


async def test_action_returns_ones_own_conversation(home: HomeAssistant, entry, say: SayFn) -> None:
    users = [await home.auth.async_create_user(name, group_ids=[GROUP_ID_USER]) for name in ("Ada", "Grace")]
    ada, grace = (Context(user_id=user.id) for user in users)
    await say("the word is pelican", "diary", context=ada)
    await say("the word is heron", "diary", context=grace)

    window = await act(home, "get_conversation", ada, conversation_id="diary")

    assert "pelican" in str(window)
    assert "heron" not in str(window)


LONG_ID = "x" * 256
TOLD = "The ID of a conversation can have at most 255 characters."


@pytest.fixture
def ada(home: HomeAssistant) -> Context:
    """Return the context of actions by Ada."""
    return Context(user_id=MockUser(name="Ada").add_to_hass(home).id)


async def test_turn_with_an_id_that_is_too_long_is_told_so_and_leaves_nothing(
    entry: MockConfigEntry, say: SayFn, get_agent, model_server: ModelServer
) -> None:
    result = await say("my name is Ada", LONG_ID)

    assert (get_speech(result), result.conversation_id) == (TOLD, None)
    assert model_server.requests == []
    assert len(get_agent(entry).windows) == 0


async def test_turn_of_a_device_whose_id_is_too_long_is_told_so(set_up: SetUpFn, say: SayFn, get_agent) -> None:
    entry = await set_up(**{CONF_SCOPE: "device"})

    assert get_speech(await say("my name is Ada", None, device_id=LONG_ID)) == TOLD
    assert len(get_agent(entry).windows) == 0


async def test_id_of_255_characters_is_a_conversation(entry: MockConfigEntry, say: SayFn) -> None:
    await say("my name is Ada", LONG_ID[1:])

    assert "Ada" in get_speech(await say("what is my name?", LONG_ID[1:]))


@pytest.mark.parametrize("action", WITH_AN_ID)
async def test_action_on_an_id_that_is_too_long_is_refused(
    home: HomeAssistant, entry: MockConfigEntry, action: str
) -> None:
    with pytest.raises(ServiceValidationError, match=TOLD[:-1]):
        await act(home, action, conversation_id=LONG_ID, **WITH_AN_ID[action])


async def test_id_with_a_separator_is_not_somebody_elses_conversation(
    entry: MockConfigEntry, say: SayFn, ada: Context
) -> None:
    await say("my name is Ada", "diary", context=ada)

    assert "Ada" not in get_speech(await say("what is my name?", f"diary\x1f{ada.user_id}"))


async def test_conversation_whose_id_has_a_separator_is_found_by_it(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, ada: Context
) -> None:
    await say("the word is pelican", "a\x1fb", context=ada)

    assert "pelican" in str(await act(home, "get_conversation", conversation_id="a\x1fb"))


async def test_conversations_that_nobody_can_continue_go_before_one_with_an_id_of_its_own(
    set_up: SetUpFn, say: SayFn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_store, "_REOPEN_SECONDS", 0.0)
    monkeypatch.setattr(conversation_store, "_MAX_WINDOWS", 3)
    await set_up(**{CONF_MEMORY: "off"})
    await say("my name is Ada", "good night")

    for _ in range(5):
        await say("tell me a story", None)

    assert get_speech(await say("what is my name?", "good night")) == "Your name is Ada."
