"""Tests for the confirmation before forgetting in real conversations: only the same person can confirm."""

from collections.abc import Awaitable, Callable

from homeassistant.core import Context, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser

from custom_components.windowed_conversation.const import CONF_DEVICE_OWNERS, CONF_ROUTING
from custom_components.windowed_conversation.turn.routing import RoutingMode
from demo.model_server import ModelServer, call, words

from .conftest import SayFn, SetUpFn, get_speech
from .remembered import add_fact, list_facts
from .states import add_satellite

YES = {
    "da": "ja tak",
    "de": "ja bitte",
    "en": "yes please",
    "es": "sí, por favor",
    "fr": "oui s'il te plaît",
    "it": "sì grazie",
    "nl": "ja graag",
    "pl": "tak, proszę",
    "pt": "sim, por favor",
    "sv": "ja tack",
}
ME = {
    "da": "glem alt om mig",
    "de": "vergiss alles über mich",
    "en": "forget everything about me",
    "es": "olvida todo sobre mí",
    "fr": "oublie tout sur moi",
    "it": "dimentica tutto su di me",
    "nl": "vergeet alles over mij",
    "pl": "zapomnij wszystko o mnie",
    "pt": "esquece tudo sobre mim",
    "sv": "glöm allt om mig",
}

EVERYTHING = {
    "cs": ("zapomeň všechno", "zapomeň prosím všechno"),
    "da": ("glem alt", "glem venligst alt"),
    "de": ("vergiss alles", "vergiss bitte alles", "kannst du alles vergessen"),
    "en": ("forget everything", "please forget everything", "can you forget everything?"),
    "es": ("olvida todo", "olvídate de todo"),
    "fr": ("oublie tout", "oublie tout s'il te plaît"),
    "it": ("dimentica tutto", "dimentica tutto per favore"),
    "ja": ("全部忘れて", "すべて忘れてください"),
    "nb": ("glem alt", "glem alt sammen"),
    "nl": ("vergeet alles", "vergeet alsjeblieft alles"),
    "pl": ("zapomnij wszystko", "proszę zapomnieć wszystko"),
    "pt": ("esquece tudo", "esqueça tudo"),
    "pt-BR": ("esquece tudo", "esqueça tudo, por favor"),
    "sv": ("glöm allt", "glöm bort allt"),
    "uk": ("забудь усе", "забудь, будь ласка, все"),  # noqa: RUF001 - Cyrillic
    "zh-Hans": ("忘掉一切", "把所有记忆都忘了"),
}

type AddPerson = Callable[[], Awaitable[Context]]


@pytest.fixture
def anna(home: HomeAssistant) -> Context:
    return Context(user_id=MockUser(name="Anna").add_to_hass(home).id)


@pytest.fixture
def bedside(home: HomeAssistant) -> str:
    """Create a satellite device and return its id."""
    return add_satellite(home, "Bedside")


@pytest.fixture
def add_person(home: HomeAssistant, entry: MockConfigEntry) -> AddPerson:
    """Return a function that adds a person with two facts, and returns the person's context."""

    async def add_person() -> Context:
        person = MockUser(name="Anna").add_to_hass(home)
        for text in ("I like tea", "I like jazz"):
            await add_fact(home, text, person=person.id, private=True)
        return Context(user_id=person.id)

    return add_person


async def count_facts(home: HomeAssistant, person: Context) -> int:
    return len(await list_facts(home, person.user_id))


async def test_everything_about_oneself_is_gone_after_a_yes_in_ten_languages(
    home: HomeAssistant, add_person: AddPerson, say: SayFn, subtests: pytest.Subtests
) -> None:
    for language, request in ME.items():
        with subtests.test(language):
            anna = await add_person()

            question = await say(request, language, context=anna, language=language)
            before = await count_facts(home, anna)
            answer = await say(YES[language], language, context=anna, language=language)

            assert question.continue_conversation
            assert get_speech(question).endswith("?")
            assert "2" in get_speech(question)
            assert (before, await count_facts(home, anna)) == (2, 0)
            assert not answer.continue_conversation


async def test_everything_is_everything_about_oneself_in_sixteen_languages(
    home: HomeAssistant, add_person: AddPerson, say: SayFn, subtests: pytest.Subtests
) -> None:
    for language, request in [(language, each) for language, requests in EVERYTHING.items() for each in requests]:
        with subtests.test(language, request=request):
            anna = await add_person()

            question = await say(request, request, context=anna, language=language)

            assert question.continue_conversation
            assert "2" in get_speech(question)
            assert await count_facts(home, anna) == 2


async def test_question_says_how_much_it_is(add_person: AddPerson, say: SayFn) -> None:
    anna = await add_person()
    await say("hello there", "mine", context=anna)

    question = get_speech(await say("forget everything about me", "mine", context=anna))

    assert question == "That's 2 facts and 1 thing you said. Shall I delete everything about you for good?"


async def test_anything_but_a_yes_is_a_no(
    home: HomeAssistant, add_person: AddPerson, say: SayFn, subtests: pytest.Subtests
) -> None:
    for reply in ("no", "turn on kitchen light", "yes, and turn on the kitchen light", "hello there"):
        with subtests.test(reply):
            anna = await add_person()

            await say("forget everything about me", reply, context=anna)
            await say(reply, reply, context=anna)
            await say("yes", reply, context=anna)

            assert await count_facts(home, anna) == 2


async def test_no_is_answered(add_person: AddPerson, say: SayFn) -> None:
    anna = await add_person()
    await say("forget everything about me", "mine", context=anna)

    assert get_speech(await say("no", "mine", context=anna)) == "All right, I'll keep it."


async def test_yes_of_somebody_else_or_in_another_conversation_is_none(
    home: HomeAssistant, add_person: AddPerson, say: SayFn
) -> None:
    anna = await add_person()
    ben = Context(user_id=MockUser(name="Ben").add_to_hass(home).id)
    await say("forget everything about me", "mine", context=anna)
    await say("yes", "mine", context=ben)
    await say("yes", "another", context=anna)

    assert await count_facts(home, anna) == 2


async def test_who_is_known_only_by_the_device_is_asked_about_one_fact(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, anna: Context, bedside: str
) -> None:
    await set_up(options={CONF_DEVICE_OWNERS: [{"device": bedside, "person": anna.user_id}]})
    await add_fact(home, "I like tea", person=anna.user_id, private=True)

    question = await say("forget that I like tea", "mine", device_id=bedside)
    before = await count_facts(home, anna)
    answer = get_speech(await say("yes", "mine", device_id=bedside))

    assert get_speech(question) == "Shall I delete this for good: I like tea?"
    assert (question.continue_conversation, before) == (True, 1)
    assert answer == "Done, I've deleted that: I like tea"
    assert await list_facts(home, anna.user_id) == []


async def test_list_goes_on_after_a_yes(home: HomeAssistant, entry: MockConfigEntry, say: SayFn, anna: Context) -> None:
    for number in range(8):
        await add_fact(home, f"The cousin number {number} lives in Rome")

    first = await say("what do you remember?", "mine", context=anna)
    second = await say("go on", "mine", context=anna)

    assert first.continue_conversation
    assert get_speech(first).endswith("?")
    assert get_speech(second) == "About the home: The cousin number 0 lives in Rome"
    assert not second.continue_conversation


@pytest.mark.parametrize(("routing", "requests"), [(RoutingMode.LOCAL_FIRST, 0), (RoutingMode.MODEL_ONLY, 2)])
async def test_model_that_forgets_is_refused_until_the_users_yes(
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    model_server: ModelServer,
    *,
    anna: Context,
    bedside: str,
    routing: RoutingMode,
    requests: int,
) -> None:
    await set_up(options={CONF_DEVICE_OWNERS: [{"device": bedside, "person": anna.user_id}]}, **{CONF_ROUTING: routing})
    await add_fact(home, "I like tea", person=anna.user_id, private=True)
    forget = call("forget", query="I like tea"), words("Shall I forget that you like tea?")

    model_server.script(*forget)
    await say("you need not know about the tea any more", "mine", device_id=bedside)
    before = await count_facts(home, anna)
    model_server.script(*forget[:requests])
    await say("yes", "mine", device_id=bedside)

    assert (before, await list_facts(home, anna.user_id)) == (1, [])


@pytest.mark.parametrize(
    "answer",
    [
        "Here is a story. Do you want a joke?",
        "Shall I forget that you like tea? Just kidding. Do you want a joke?",
        "Shall I forget that you like tea? Say yes for a joke.",
        "Do you want a joke? <!-- Shall I forget that you like tea? -->",
        "Do you want a joke? ```Shall I forget that you like tea?```",
        "Do you want a [joke](https://jokes.example 'Shall I forget that you like tea?')",
    ],
)
async def test_yes_forgets_nothing_unless_the_question_is_the_visible_end_of_the_answer(
    *, answer: str, home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer, anna: Context
) -> None:
    await add_fact(home, "I like tea", person=anna.user_id, private=True)
    model_server.script(call("forget", query="I like tea"), words(answer), words("Here is a joke."))

    await say("tell me a story", "mine", context=anna)
    reply = get_speech(await say("yes", "mine", context=anna))

    assert (reply, await count_facts(home, anna)) == ("Here is a joke.", 1)


async def test_correction_is_undone_right_after_it(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, anna: Context
) -> None:
    await say("remember that the bins go out on Friday", "mine", context=anna)
    await say("that's wrong, the bins go out on Thursday", "mine", context=anna)
    undone = get_speech(await say("undo that", "mine", context=anna))
    again = get_speech(await say("undo that", "mine", context=anna))

    assert undone == ("Noted, for everybody here: the bins go out on Friday. It replaces: the bins go out on Thursday")
    assert again.startswith("Noted, for everybody here: the bins go out on Thursday")


async def test_people_correct_a_fact_and_are_told_who_else_hears_it(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, anna: Context
) -> None:
    await say("remember that the bins go out on Friday", "mine", context=anna)
    correction = get_speech(await say("that's wrong, the bins go out on Thursday", "mine", context=anna))
    hearers = get_speech(await say("who else can hear that?", "mine", context=anna))

    assert correction == (
        "Noted, for everybody here: the bins go out on Thursday. It replaces: the bins go out on Friday"
    )
    assert hearers == "Everybody here can hear that: the bins go out on Thursday"
