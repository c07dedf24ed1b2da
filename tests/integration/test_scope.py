"""Tests for the scope of a conversation, and that nobody can see another user's conversation."""

from homeassistant.auth.const import GROUP_ID_USER
from homeassistant.core import Context, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockUser

from custom_components.windowed_conversation.const import CONF_SCOPE

from .actions import act
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
