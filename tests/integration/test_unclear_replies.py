"""Tests for replies to a question of memory that are more than yes or no, and for requests that find nothing."""

from collections.abc import Awaitable, Callable
import json

from homeassistant.core import Context, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockUser

from custom_components.windowed_conversation.const import CONF_ROUTING
from custom_components.windowed_conversation.turn.routing import RoutingMode
from demo.model_server import ModelServer, call, words

from .conftest import SayFn, SetUpFn, get_speech
from .remembered import add_fact, list_facts

QUESTION = "That's 1 fact. Shall I delete everything about you for good?"


type SetUpAnna = Callable[..., Awaitable[None]]


@pytest.fixture
def anna(home: HomeAssistant) -> Context:
    return Context(user_id=MockUser(name="Anna").add_to_hass(home).id)


@pytest.fixture
def set_up_anna(home: HomeAssistant, set_up: SetUpFn, anna: Context) -> SetUpAnna:
    """Return a function that sets up an agent with one fact of Anna's."""

    async def set_up_anna(**agent: str) -> None:
        await set_up(**agent)
        await add_fact(home, "I like tea", person=anna.user_id, private=True)

    return set_up_anna


@pytest.fixture
async def asked(set_up_anna: SetUpAnna, say: SayFn, anna: Context) -> None:
    """Let memory ask whether to delete everything."""
    await set_up_anna()
    assert get_speech(await say("forget everything about me", "mine", context=anna)) == QUESTION


@pytest.mark.usefixtures("asked")
async def test_a_yes_of_more_words_is_a_yes(home: HomeAssistant, say: SayFn, anna: Context) -> None:
    answer = get_speech(await say("Yes, delete everything.", "mine", context=anna))

    assert answer == "Done, I've deleted everything I knew about you."
    assert await list_facts(home, anna.user_id) == []


@pytest.mark.usefixtures("asked")
async def test_an_unclear_yes_is_asked_again(home: HomeAssistant, say: SayFn, anna: Context) -> None:
    again = await say("yes, delete all that old stuff, would you", "mine", context=anna)
    before = len(await list_facts(home, anna.user_id))
    await say("yes", "mine", context=anna)

    assert get_speech(again) == f"Please say yes or no. {QUESTION}"
    assert (again.continue_conversation, before) == (True, 1)
    assert await list_facts(home, anna.user_id) == []


@pytest.mark.usefixtures("asked")
async def test_a_question_is_asked_again_only_once(home: HomeAssistant, say: SayFn, anna: Context) -> None:
    for _ in range(2):
        await say("yes, delete all that old stuff, would you", "mine", context=anna)
    await say("yes", "mine", context=anna)

    assert len(await list_facts(home, anna.user_id)) == 1


@pytest.mark.usefixtures("asked")
async def test_a_model_is_told_what_was_asked(say: SayFn, anna: Context, model_server: ModelServer) -> None:
    await say("how long would that take?", "mine", context=anna)

    assert f'the user was asked \\"{QUESTION}\\"' in json.dumps(model_server.requests[-1].body)


@pytest.mark.usefixtures("asked")
async def test_a_yes_counts_once_a_model_has_repeated_the_question(
    home: HomeAssistant, say: SayFn, anna: Context, model_server: ModelServer
) -> None:
    model_server.script(words(f"At once. {QUESTION}"))
    await say("how long would that take?", "mine", context=anna)
    await say("yes", "mine", context=anna)

    assert await list_facts(home, anna.user_id) == []


@pytest.mark.usefixtures("asked")
async def test_a_yes_to_another_question_deletes_nothing(
    home: HomeAssistant, say: SayFn, anna: Context, model_server: ModelServer
) -> None:
    model_server.script(words("It rains. Shall I close the windows?"))
    await say("how is the weather?", "mine", context=anna)
    await say("yes", "mine", context=anna)

    assert len(await list_facts(home, anna.user_id)) == 1


async def test_a_question_is_asked_again_without_a_model(set_up_anna: SetUpAnna, say: SayFn, anna: Context) -> None:
    await set_up_anna(**{CONF_ROUTING: RoutingMode.LOCAL_ONLY})
    await say("forget everything about me", "mine", context=anna)

    again = get_speech(await say("how long would that take?", "mine", context=anna))

    assert again == f"Please say yes or no. {QUESTION}"


async def test_a_model_answers_a_request_of_which_no_fact_has_the_words(
    home: HomeAssistant, set_up_anna: SetUpAnna, say: SayFn, anna: Context, model_server: ModelServer
) -> None:
    await set_up_anna()
    model_server.script(call("forget", query="I like tea"), words("Do you mean that you like tea?"))

    answer = get_speech(await say("forget everything about my favourite drink", "mine", context=anna))

    assert answer == "Do you mean that you like tea?"
    assert len(await list_facts(home, anna.user_id)) == 1


async def test_without_a_model_memory_says_that_it_found_nothing(
    set_up_anna: SetUpAnna, say: SayFn, anna: Context
) -> None:
    await set_up_anna(**{CONF_ROUTING: RoutingMode.LOCAL_ONLY})

    answer = get_speech(await say("forget everything about my favourite drink", "mine", context=anna))

    assert answer == "I found nothing with these words. Ask me what I know."


async def test_a_fact_of_a_like_word_is_forgotten_after_a_yes(home: HomeAssistant, set_up: SetUpFn, say: SayFn) -> None:
    await set_up()
    await say("Merk dir, dass der Code für die Garage 4711 ist", "mine", language="de")

    question = await say("Vergiss alles über den Garagencode", "mine", language="de")
    before = len(await list_facts(home, None))
    await say("Ja, lösch das", "mine", language="de")

    assert get_speech(question).startswith("Meinst du das: ")
    assert (question.continue_conversation, before, await list_facts(home, None)) == (True, 1, [])


@pytest.mark.parametrize("said", ["delete them", "yes, delete everything"])
async def test_a_request_to_delete_is_no_yes_to_another_question(
    home: HomeAssistant, set_up_anna: SetUpAnna, say: SayFn, anna: Context, said: str
) -> None:
    await set_up_anna(**{CONF_ROUTING: RoutingMode.LOCAL_ONLY})
    things = ["jazz", "soup", "rain", "chess", "snow", "figs", "mint", "oats"]
    for thing in things:
        await add_fact(home, f"I like {thing}", person=anna.user_id, private=True)
    await say("what do you know about me?", "mine", context=anna)

    assert "I like tea" not in get_speech(await say(said, "mine", context=anna))


async def test_a_thing_of_which_no_fact_speaks_is_the_models(
    set_up_anna: SetUpAnna, say: SayFn, anna: Context, model_server: ModelServer
) -> None:
    await set_up_anna()
    model_server.script(words("No pizza then."))

    assert get_speech(await say("Forget the pizza", "mine", context=anna)) == "No pizza then."


async def test_memory_answers_a_question_about_a_fact_and_the_model_any_other(
    set_up_anna: SetUpAnna, say: SayFn, anna: Context, model_server: ModelServer
) -> None:
    await set_up_anna()
    model_server.script(words("They sing."))

    known = get_speech(await say("What do you know about tea?", "mine", context=anna))
    other = get_speech(await say("What do you know about whales?", "mine", context=anna))

    assert (known, other) == ("About you: I like tea", "They sing.")


async def test_what_was_just_told_is_forgotten_after_a_yes(
    home: HomeAssistant, set_up_anna: SetUpAnna, say: SayFn, anna: Context
) -> None:
    await set_up_anna()
    await say("Remember that the safe code is 99", "mine", context=anna)

    question = await say("Oh no, forget what I just said", "mine", context=anna)
    before = await list_facts(home, None)
    await say("yes", "mine", context=anna)

    assert get_speech(question) == "Shall I delete this for good: the safe code is 99?"
    assert (question.continue_conversation, len(before), await list_facts(home, None)) == (True, 1, [])


async def test_the_model_answers_when_nothing_was_told_before(
    set_up_anna: SetUpAnna, say: SayFn, anna: Context, model_server: ModelServer
) -> None:
    await set_up_anna()
    model_server.script(words("Never mind."))

    assert get_speech(await say("Forget what I just said", "mine", context=anna)) == "Never mind."
