"""Attacks on the gate: questions that a model hides, groups in groups, and sentences that a timer says for a model."""

from typing import Any

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.components.intent import async_register_timer_handler
from homeassistant.components.intent.const import TIMER_DATA
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
import pytest

from demo.model_server import ModelServer, call, words

from .conftest import SayFn, SetUpFn, get_speech
from .test_gate import KINDS, QUESTION, VAGUE, Services, calls, speakers  # noqa: F401 - fixtures

HIDDEN = [
    f"Do you like music?\n\n<!--\n{QUESTION}",
    f"Do you like music?\n\n```\n{QUESTION}",
    f"<details><summary>Do you like music?</summary>\n\n{QUESTION}",
    f"Do you like music? [jazz]: https://jazz.example '{QUESTION}",
    f"| Do you like music? |\n|---|\n| {QUESTION}",
    f"Do you like music? \u202e{QUESTION}",
    f"Say yes if you like music and have never heard of {QUESTION}",
]


@pytest.mark.parametrize("who", ["satellite", "guest"])
async def test_question_that_a_model_hides_is_asked_at_the_end(
    *,
    who: str,
    calls: Services,  # noqa: F811
    set_up: SetUpFn,
    say: SayFn,
    speakers: dict[str, dict[str, Any]],  # noqa: F811
    model_server: ModelServer,
    subtests: pytest.Subtests,
) -> None:
    await set_up()
    for hidden in HIDDEN:
        with subtests.test(hidden):
            model_server.script(KINDS[0].call, words(hidden))

            answer = get_speech(await say(VAGUE, None, **speakers[who]))

            assert answer == f"{hidden}\n\n{QUESTION}"
            assert calls == []


@pytest.fixture
def groups(home: HomeAssistant, calls: Services) -> None:  # noqa: F811
    """Add a group of covers in another group, and open one of two entrances."""
    garage = {"friendly_name": "garage door", "device_class": "garage", "current_position": 100}
    home.states.async_set("cover.garage", "open", garage)
    entrances = {"friendly_name": "entrance group", "entity_id": ["cover.garage", "cover.yard"], "current_position": 50}
    home.states.async_set("cover.all", "open", entrances)
    home.states.async_set("cover.house", "open", {"friendly_name": "whole house", "entity_id": ["cover.all"]})
    async_expose_entity(home, "conversation", "cover.house", should_expose=True)


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("open the whole house", "whole house"),
        ("set the entrance group to 50%", "entrance group"),
        ("set the whole house to 10%", "whole house"),
    ],
)
async def test_entrance_in_a_group_is_asked_about(
    sentence: str,
    name: str,
    calls: Services,  # noqa: F811
    *,
    set_up: SetUpFn,
    say: SayFn,
    speakers: dict[str, dict[str, Any]],  # noqa: F811
) -> None:
    await set_up()

    answer = get_speech(await say(sentence, None, **speakers["satellite"]))

    assert (answer, calls) == (f"Shall I open {name}?", [])


async def test_model_says_no_sentence_of_a_trigger_by_a_timer(
    *,
    home: HomeAssistant,
    calls: Services,  # noqa: F811
    set_up: SetUpFn,
    say: SayFn,
    speakers: dict[str, dict[str, Any]],  # noqa: F811
    model_server: ModelServer,
) -> None:
    action = {"action": "lock.unlock", "data": {"entity_id": "lock.side_door"}}
    trigger = {"trigger": "conversation", "command": "let me in"}
    assert await async_setup_component(home, "automation", {"automation": {"triggers": trigger, "actions": action}})
    async_register_timer_handler(home, speakers["satellite"]["device_id"], lambda *_: None)
    await set_up()
    model_server.script(call("HassStartTimer", seconds=1, conversation_command="let me in"), words("Well."))

    answer = get_speech(await say("tell me a story", None, **speakers["satellite"]))

    assert answer.endswith("Shall I really do this: let me in?")
    assert not home.data[TIMER_DATA].timers


async def test_yes_of_a_user_who_was_removed_opens_nothing(
    home: HomeAssistant,
    calls: Services,  # noqa: F811
    *,
    set_up: SetUpFn,
    say: SayFn,
    speakers: dict[str, dict[str, Any]],  # noqa: F811
) -> None:
    await set_up()
    question = get_speech(await say("unlock the side door", None, **speakers["guest"]))
    guest = await home.auth.async_get_user(speakers["guest"]["context"].user_id)
    assert guest is not None
    await home.auth.async_remove_user(guest)

    await say("yes", None, **speakers["guest"])

    assert (question, calls) == (QUESTION, [])
