"""Tests for permissions on conversations: actions require the caller's permissions for the agent's entity."""

from collections.abc import Callable, Coroutine
from typing import Any

from homeassistant.auth.const import GROUP_ID_ADMIN, GROUP_ID_READ_ONLY, GROUP_ID_USER
from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import ServiceValidationError, Unauthorized, UnknownUser
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from tests.window.turns import begin_turn

from .actions import MEMORY_ACTIONS, TURN_ACTIONS, act
from .conftest import AGENT, SayFn

type Visitor = Callable[[str], Coroutine[Any, Any, Context]]

READING: dict[str, dict[str, Any]] = {
    "list_conversations": {},
    "get_conversation": {"content": "token_count"},
}
CHANGING: dict[str, dict[str, Any]] = {
    "delete_conversation": {},
    "tag_exchange": {"add": ["bird"]},
    "summarize_conversation": {"keep": 1},
    "import_conversation": {"export": {}},
}
EVERY_ACTION = READING | CHANGING
# The import lacks a conversation.
POSSIBLE_ACTIONS = {action: data for action, data in EVERY_ACTION.items() if action != "import_conversation"}
ALL_ACTIONS = EVERY_ACTION | MEMORY_ACTIONS | TURN_ACTIONS


@pytest.fixture(autouse=True)
async def _owner(home: HomeAssistant) -> None:
    """Create the owner, because the first user becomes the owner."""
    await home.auth.async_create_user("Owner", group_ids=[GROUP_ID_ADMIN])


@pytest.fixture
async def counting(home: HomeAssistant, set_up, model_server, say: SayFn) -> MockConfigEntry:
    """Return an account whose provider counts tokens, with a conversation of two exchanges that has no user."""
    entry = await set_up(account={"provider": "openai", "url": model_server.url})
    await say_two_words(say)
    return entry


async def say_two_words(say: SayFn) -> None:
    """Add two exchanges to the conversation "test"."""
    for word in ("pelican", "heron"):
        await say(f"the word is {word}")


@pytest.fixture
def visitor(home: HomeAssistant) -> Visitor:
    """Return a function that creates a user in a group and returns the user's context."""

    async def visitor(group: str) -> Context:
        user = await home.auth.async_create_user("Ada", group_ids=[group])
        return Context(user_id=user.id)

    return visitor


async def test_who_may_only_read_changes_no_conversation(
    home: HomeAssistant, counting, get_agent, visitor: Visitor, subtests: pytest.Subtests
) -> None:
    windows = get_agent(counting).windows
    guest = await visitor(GROUP_ID_READ_ONLY)

    for action, data in CHANGING.items():
        with subtests.test(action):
            before = windows.snapshots()

            with pytest.raises(Unauthorized) as refused:
                await act(home, action, context=guest, **data)

            assert (refused.value.entity_id, refused.value.permission) == (AGENT, "control")
            assert windows.snapshots() == before


@pytest.mark.parametrize("action", READING)
async def test_who_may_only_read_reads_conversations_that_are_nobodys(
    home: HomeAssistant, counting, visitor: Visitor, action: str
) -> None:
    assert await act(home, action, context=await visitor(GROUP_ID_READ_ONLY), **READING[action])


async def test_who_may_only_read_reads_their_own_conversation_and_does_not_forget_it(
    home: HomeAssistant, counting, visitor: Visitor, say: SayFn
) -> None:
    ada = await visitor(GROUP_ID_READ_ONLY)
    await say("the word is herring", "mine", context=ada)

    with pytest.raises(Unauthorized):
        await act(home, "delete_conversation", conversation_id="mine", context=ada)

    assert "herring" in str(await act(home, "get_conversation", conversation_id="mine", context=ada))


async def test_newest_conversation_and_list_are_what_a_person_may_see(
    home: HomeAssistant, counting, visitor: Visitor, say: SayFn
) -> None:
    ada, grace = await visitor(GROUP_ID_USER), await visitor(GROUP_ID_USER)
    await say("the word is herring", "ada's", context=ada)
    await say("the word is cat", "grace's", context=grace)

    listed = (await act(home, "list_conversations", context=ada))["conversations"]
    window = await act(home, "get_conversation", conversation_id=None, context=ada)

    assert [each["conversation_id"] for each in listed] == ["ada's", "test"]
    assert window["conversation_id"] == "ada's"


async def test_script_that_an_unknown_speaker_has_started_sees_no_persons_conversation(
    home: HomeAssistant, counting, get_agent, visitor: Visitor, say: SayFn
) -> None:
    await say("the word is quokka", "diary", context=await visitor(GROUP_ID_USER))

    async with begin_turn(get_agent(counting).windows, "a satellite's"):
        listed = await act(home, "list_conversations")
        with pytest.raises(ServiceValidationError, match="diary"):
            await act(home, "get_conversation", conversation_id="diary")

    assert [each["conversation_id"] for each in listed["conversations"]] == ["test"]


async def test_list_of_all_agents_leaves_out_those_that_one_may_not_read(home: HomeAssistant, counting) -> None:
    guest = await home.auth.async_create_user("Grace")

    listed = await act(home, "list_conversations", entity_id=None, context=Context(user_id=guest.id))

    assert listed == {"conversations": []}


@pytest.mark.parametrize("group", [GROUP_ID_USER, GROUP_ID_ADMIN])
@pytest.mark.usefixtures("counting")
async def test_who_may_control_the_agent_does_everything(
    home: HomeAssistant, visitor: Visitor, say: SayFn, subtests: pytest.Subtests, group: str
) -> None:
    context = await visitor(group)

    for action, data in POSSIBLE_ACTIONS.items():
        # the action before may have deleted or shortened the conversation
        await say_two_words(say)
        with subtests.test(action):
            await act(home, action, context=context, **data)


async def test_who_has_no_rights_does_nothing(home: HomeAssistant, counting, subtests: pytest.Subtests) -> None:
    guest = await home.auth.async_create_user("Grace")

    for action, data in ALL_ACTIONS.items():
        with subtests.test(action), pytest.raises(Unauthorized):
            await act(home, action, Context(user_id=guest.id), **data)


async def test_who_is_gone_does_nothing(home: HomeAssistant, counting, subtests: pytest.Subtests) -> None:
    for action, data in ALL_ACTIONS.items():
        with subtests.test(action), pytest.raises(UnknownUser):
            await act(home, action, Context(user_id="gone"), **data)


async def test_who_has_no_rights_is_not_told_what_agents_there_are(home: HomeAssistant, counting) -> None:
    guest = await home.auth.async_create_user("Grace")

    with pytest.raises(Unauthorized):
        await act(home, "get_conversation", entity_id="conversation.none", context=Context(user_id=guest.id))
