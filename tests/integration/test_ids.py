"""Tests for conversation ids from callers: their length is limited, and none gives access to another user's window."""

from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import ServiceValidationError
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser

from custom_components.windowed_conversation.const import CONF_SCOPE
from demo.model_server import ModelServer

from .actions import WITH_AN_ID, act
from .conftest import Say, SetUp, speech

LONG = "x" * 256
TOLD = "The ID of a conversation can have at most 255 characters."


@pytest.fixture
def ada(home: HomeAssistant) -> Context:
    """Return the context of actions by Ada."""
    return Context(user_id=MockUser(name="Ada").add_to_hass(home).id)


async def test_turn_with_an_id_that_is_too_long_is_told_so_and_leaves_nothing(
    entry: MockConfigEntry, say: Say, agent_of, model_server: ModelServer
) -> None:
    result = await say("my name is Ada", LONG)

    assert (speech(result), result.conversation_id) == (TOLD, None)
    assert model_server.requests == []
    assert len(agent_of(entry).windows) == 0


async def test_turn_of_a_device_whose_id_is_too_long_is_told_so(set_up: SetUp, say: Say, agent_of) -> None:
    entry = await set_up(**{CONF_SCOPE: "device"})

    assert speech(await say("my name is Ada", None, device_id=LONG)) == TOLD
    assert len(agent_of(entry).windows) == 0


async def test_id_of_255_characters_is_a_conversation(entry: MockConfigEntry, say: Say) -> None:
    await say("my name is Ada", LONG[1:])

    assert "Ada" in speech(await say("what is my name?", LONG[1:]))


@pytest.mark.parametrize("action", WITH_AN_ID)
async def test_action_on_an_id_that_is_too_long_is_refused(
    home: HomeAssistant, entry: MockConfigEntry, action: str
) -> None:
    with pytest.raises(ServiceValidationError, match=TOLD[:-1]):
        await act(home, action, conversation_id=LONG, **WITH_AN_ID[action])


async def test_fork_with_an_id_that_is_too_long_is_refused(
    home: HomeAssistant, entry: MockConfigEntry, say: Say
) -> None:
    await say("my name is Ada")

    with pytest.raises(ServiceValidationError, match=TOLD[:-1]):
        await act(home, "fork_conversation", new_conversation_id=LONG)


async def test_id_with_a_separator_is_not_somebody_elses_conversation(
    entry: MockConfigEntry, say: Say, ada: Context
) -> None:
    await say("my name is Ada", "diary", context=ada)

    assert "Ada" not in speech(await say("what is my name?", f"diary\x1f{ada.user_id}"))


async def test_conversation_whose_id_has_a_separator_is_found_by_it(
    home: HomeAssistant, entry: MockConfigEntry, say: Say, ada: Context
) -> None:
    await say("the word is pelican", "a\x1fb", context=ada)

    assert "pelican" in str(await act(home, "get_window", conversation_id="a\x1fb"))
