"""Tests for wildcard captures of Home Assistant's sentences, which are compared with the names in the home."""

from homeassistant.components import conversation
from homeassistant.components.conversation.util import get_config_intents
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.components.intent import async_register_timer_handler
from homeassistant.core import HomeAssistant
from homeassistant.helpers import entity_registry as er
from homeassistant.setup import async_setup_component
import pytest

from custom_components.windowed_conversation.const import CONF_PROVIDER, PROVIDER_NONE
from custom_components.windowed_conversation.turn.routing import RouteReason
from demo.model_server import ModelServer

from .conftest import SayFn, SetUpFn, ShoppingList, get_speech


@pytest.fixture
def anna(home: HomeAssistant) -> None:
    """Add the person Anna, who is at home."""
    home.states.async_set("person.anna", "home", {"friendly_name": "Anna"})
    async_expose_entity(home, "conversation", "person.anna", should_expose=True)


@pytest.fixture
async def satellite(home: HomeAssistant) -> None:
    """Add a satellite that supports announcements."""
    assert await async_setup_component(home, "assist_satellite", {})
    entry = er.async_get(home).async_get_or_create("assist_satellite", "test", "box", supported_features=1)
    home.states.async_set(entry.entity_id, "idle")


@pytest.fixture
def reason(home: HomeAssistant, say: SayFn):
    """Return a function that sends text to the agent and returns the reason for the route of the turn."""

    async def reason(text: str, **more: str) -> str:
        events = list[str]()
        home.bus.async_listen("windowed_conversation_turn", lambda event: events.append(event.data["reason"]))
        await say(text, **more)
        return events[-1]

    return reason


DOUBTS = {
    "who is the president of France?": RouteReason.UNKNOWN_PLACE,
    "is anyone using the washing machine?": RouteReason.UNKNOWN_PLACE,
    "what will the weather be in 2 hours?": RouteReason.DELAYED_QUESTION,
    "is the kitchen light on in 5 minutes": RouteReason.DELAYED_QUESTION,
    "turn on who is at the door in 5 minutes": RouteReason.DELAYED_QUESTION,
    "add everything for a carbonara to the shopping list": RouteReason.LONG_ITEM,
    "remove everything from the shopping list": RouteReason.UNLISTED_ITEM,
    "announce who is at the door": RouteReason.INSTRUCTION,
    "kitchen light?": RouteReason.NAME_IN_QUESTION,
}


@pytest.mark.usefixtures("anna", "satellite", "entry")
async def test_a_capture_in_doubt_goes_to_the_model(shopping: ShoppingList, reason, subtests: pytest.Subtests) -> None:
    for text, doubt in DOUBTS.items():
        # the model does what it was asked for
        shopping.clear()
        with subtests.test(text):
            assert await reason(text, conversation_id=text) == doubt


async def test_nobody_who_is_known_is_a_doubt(entry, reason) -> None:
    assert await reason("is anyone home?") == RouteReason.NOBODY_KNOWN


async def test_an_announcement_that_no_satellite_makes_is_a_doubt(entry, home: HomeAssistant, reason) -> None:
    assert await async_setup_component(home, "assist_satellite", {})

    assert await reason("announce dinner is ready") == RouteReason.NOBODY_HEARS


async def test_an_intent_without_a_handler_is_no_match(entry, reason) -> None:
    assert await reason("announce dinner is ready") == RouteReason.NO_HANDLER


async def test_a_bare_name_after_the_models_answer_goes_to_the_model(entry, reason) -> None:
    await reason("tell me a story")

    assert await reason("kitchen light") == RouteReason.NAME_AFTER_MODEL


WHO_IS_HOME = {
    "is anyone home?": "en",
    "is Anna home?": "en",
    "who is at Home": "en",
    "ist jemand zu Hause?": "de",
    "ist Anna zuhause?": "de",
    "y a-t-il quelqu'un à la maison ?": "fr",
    "¿está Anna en casa?": "es",
    "c'è qualcuno in casa?": "it",
    "is er iemand thuis?": "nl",
    "czy jest ktoś w domu?": "pl",
    "está alguém em casa?": "pt",
    "je někdo doma?": "cs",
}


async def count_persons(say: SayFn) -> dict[str, int]:
    """Ask who is home in every language, and return the number of persons found for each question."""
    results = {text: await say(text, language=language) for text, language in WHO_IS_HOME.items()}
    return {text: len(result.response.matched_states) for text, result in results.items()}


@pytest.mark.long
@pytest.mark.parametrize("account", [{}, {CONF_PROVIDER: PROVIDER_NONE}], ids=["model", "no model"])
async def test_who_is_home_is_known_in_every_language(
    anna, set_up: SetUpFn, say: SayFn, model_server: ModelServer, account: dict[str, str]
) -> None:
    await set_up(account=account)

    assert await count_persons(say) == dict.fromkeys(WHO_IS_HOME, 1)
    assert model_server.requests == []


@pytest.mark.long
async def test_nobody_is_seen_at_home_who_is_away(anna, home: HomeAssistant, entry, say: SayFn) -> None:
    home.states.async_set("person.anna", "not_home", {"friendly_name": "Anna"})

    assert await count_persons(say) == dict.fromkeys(WHO_IS_HOME, 0)


async def test_a_person_is_found_in_a_zone_and_away(anna, home: HomeAssistant, entry, say: SayFn) -> None:
    home.states.async_set("zone.school", "1", {"friendly_name": "School"})
    home.states.async_set("person.anna", "School", {"friendly_name": "Anna"})

    result = await say("is anyone in the school?")

    assert [state.name for state in result.response.matched_states] == ["Anna"]


APOLOGIES = {"en": "Sorry, I couldn't understand that", "de": "Entschuldigung, das habe ich nicht verstanden"}
WITHOUT_AN_ANSWER = {
    "who is the president of France?": "en",
    "wer ist im Keller?": "de",
    "what will the weather be in 2 hours?": "en",
    "announce dinner is ready": "en",
}


@pytest.mark.usefixtures("anna", "entry_without_model")
async def test_what_would_be_answered_wrongly_is_not_understood_without_a_model(
    say: SayFn, subtests: pytest.Subtests
) -> None:
    for text, language in WITHOUT_AN_ANSWER.items():
        with subtests.test(text):
            assert get_speech(await say(text, text, language=language)) == APOLOGIES[language]


async def test_what_is_only_doubted_is_done_without_a_model(
    shopping: ShoppingList, entry_without_model, say: SayFn
) -> None:
    await say("add everything for a carbonara to the shopping list")

    assert shopping.item_names == ["Everything for a carbonara"]


async def test_a_delayed_command_stays_local(entry, home: HomeAssistant, say: SayFn, reason) -> None:
    async_register_timer_handler(home, "box", lambda *_: None)

    assert await reason("turn on the kitchen light in 5 minutes", device_id="box") == RouteReason.LOCAL_MATCH


async def test_an_item_on_the_list_is_taken_off_locally(shopping: ShoppingList, entry, say: SayFn, reason) -> None:
    await say("add milk to the shopping list")

    assert await reason("remove Milk from the shopping list") == RouteReason.LOCAL_MATCH


async def test_a_custom_sentence_is_never_doubted(home: HomeAssistant, entry, reason) -> None:
    config = {"conversation": {"intents": {"HassTurnOn": ["[lumos] {name}"]}}}
    conversation.agent_manager.get_agent_manager(home).update_config_intents(
        get_config_intents(config, "configuration")
    )

    assert await reason("kitchen light?") == RouteReason.LOCAL_MATCH


async def test_a_sentence_trigger_answers_after_the_models_question(home: HomeAssistant, entry, say: SayFn) -> None:
    trigger = {"platform": "conversation", "command": ["a large one"]}
    action = {"set_conversation_response": "The trigger answers"}
    assert await async_setup_component(home, "automation", {"automation": {"trigger": trigger, "action": action}})
    await say("order pizza")

    assert get_speech(await say("a large one")) == "The trigger answers"
