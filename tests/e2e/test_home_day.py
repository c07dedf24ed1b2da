"""Tests that the demo answers what a family says across a day, in English and German, and each sentence of README.

Each row of a day is a sentence, a pattern for its answer, and the entity that has changed afterwards, if any.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
import re
from typing import NamedTuple

import pytest
import pytest_asyncio

from demo.client import Client, log_in_or_onboard
from demo.home import set_up_home
from demo.home_assistant import REPOSITORY, HomeAssistantProcess, find_free_port
from demo.model_server import ModelServer
from demo.providers import build_scripted_model, get_model_name
from demo.setup_agent import ensure_pipeline, find_sensor_ids, prefer_agent, replace_accounts
from demo.turns import Turn, take_turn
from tests.e2e.house import House, wait_for
from tests.e2e.test_satellite import say_to_satellite

_APOLOGY = "I am a scripted model and know only"
_MAX_APOLOGIES = 4

_ENGLISH = """
good morning | Hello
what time is it | \\d\\d?:\\d\\d
is the coffee machine on | No, off
turn the coffee machine on please | Turned on | switch.coffee_machine
how warm is it in the bedroom | 17.5 °C
is the bedroom window still open | closed
it's cold in here | 21 °C | climate.living_room_thermostat
set the heating to 22 degrees | 22 °C | climate.living_room_thermostat
what's the weather like today | rainy, 9 °C
do I need an umbrella | Yes
what day is it today | Today is \\w+day, \\w+ \\d
remind me in ten minutes to take the bread out | take the bread out
remember that Emma has swimming on Tuesday | Emma has swimming on Tuesday
when does Emma have swimming | Emma has swimming on Tuesday
did I leave the garage open | No, the Garage door is closed
close the garage | is closed
is everything locked | No: the Side door is unlocked
lock the side door | Locking | lock.side_door
who is home | Demo and Emma
where is Ben | Work
did we leave any lights on | No
turn off all the lights | Turned off
add milk to the shopping list | milk | todo.shopping_list
what's on the shopping list | [Mm]ilk
set a timer for eight minutes | no timer here
how long is left on the timer | No timers
it's too dark in here | In which room
make it a bit brighter in the living room | 60 % | light.living_room_light
dim the living room light to 30 percent | 30 % | light.living_room_light
turn it off again | is off | light.living_room_light
what do you know about me | Emma has swimming on Tuesday
is it warmer in the kitchen than in the bedroom | Yes: kitchen 21.5 °C and bedroom 17.5 °C
unlock the side door | Shall I
yes | Unlocking | lock.side_door
thank you | welcome
tell me a joke | light bulb
play some jazz | nothing in this home that plays
what reminders do I have | take the bread out
did anyone leave something open | No
good night, turn everything off | Coffee machine is off | switch.coffee_machine
"""
_GERMAN = """
Guten Morgen | Hallo
Wie spät ist es? | \\d\\d?:\\d\\d
Ist die Kaffeemaschine an? | Nein, aus
Mach bitte die Kaffeemaschine an | eingeschaltet | switch.coffee_machine
Wie warm ist es im Schlafzimmer? | 17.5 °C
Ist das Schlafzimmerfenster noch offen? | Nein
Mir ist kalt | 21 °C | climate.living_room_thermostat
Stell die Heizung auf 22 Grad | 22 °C | climate.living_room_thermostat
Wie wird das Wetter heute? | regnerisch, 9 °C
Brauche ich einen Regenschirm? | Ja
Welcher Tag ist heute? | \\w+tag
Erinnere mich in zehn Minuten an die Nudeln | die Nudeln
Merk dir, dass Emma am Dienstag Schwimmen hat | Emma am Dienstag Schwimmen hat
Wann hat Emma Schwimmen? | Dienstag
Hab ich die Garage offen gelassen? | Nein, Garagentor ist geschlossen
Mach das Garagentor zu | geschlossen
Ist alles abgeschlossen? | Nein: Seitentür ist nicht abgeschlossen
Schließ die Seitentür ab | abgeschlossen | lock.side_door
Wer ist zu Hause? | Demo und Emma
Wo ist Ben? | Work
Ist noch irgendwo Licht an? | Nein
Mach überall das Licht aus | ausgeschaltet
Setz Milch auf die Einkaufsliste | Milch | todo.shopping_list
Was steht auf der Einkaufsliste? | Milch
Stell einen Timer auf acht Minuten | keinen Timer
Wie lange läuft der Timer noch? | keine Timer
Hier ist es zu dunkel | In welchem Raum
Mach es im Wohnzimmer etwas heller | 60 % | light.living_room_light
Dimm das Wohnzimmerlicht auf 30 Prozent | 30 % | light.living_room_light
Mach es wieder aus | ist jetzt aus | light.living_room_light
Was weißt du über mich? | Emma am Dienstag Schwimmen hat
Ist es in der Küche wärmer als im Schlafzimmer? | Ja: Küche 21.5 °C und Schlafzimmer 17.5 °C
Schließ die Seitentür auf | Soll ich
Ja | entsperrt | lock.side_door
Danke | Gern geschehen
Erzähl mir einen Witz | Glühbirne
Spiel etwas Musik | nichts, das etwas abspielt
Welche Erinnerungen habe ich? | die Nudeln
Hat jemand etwas offen gelassen? | Nein
Gute Nacht, mach alles aus | Kaffeemaschine ist jetzt aus | switch.coffee_machine
"""
# A row of README's table: when and where something is said, the sentence, the answer, who gives it, and its cost.
_STORY = re.compile(r'^\| (.+?): "(.+?)" <br> "(.+?)" \| (.+) \*\*(.+)\.\*\* \|$', re.MULTILINE)


class Story(NamedTuple):
    """A sentence of README, with what README says of it."""

    scene: str
    sentence: str
    answer: str
    who: str
    cost: str


_STORIES = [Story(*row) for row in _STORY.findall((REPOSITORY / "README.md").read_text("utf-8"))]


@asynccontextmanager
async def run_home(folder: Path) -> AsyncIterator[House]:
    """Yield a new demo home, which asks before it opens anything, with the provider and model of `scripts/demo`."""
    name = get_model_name("responses")
    home_assistant = HomeAssistantProcess(folder, find_free_port())
    async with ModelServer(strict=True, models=(name,)) as model, home_assistant:
        tokens = await log_in_or_onboard(home_assistant.url, "demo", "demo")
        async with Client(home_assistant.url, tokens) as client:
            await client.wait_until_running()
            await set_up_home(client)
            access = build_scripted_model(model, "responses", name, window=2000)
            account = await replace_accounts(client, replace(access, asks_before_opening="always"))
            pipeline = await prefer_agent(client, account.agent_id)
            sensors = await find_sensor_ids(client)
            yield House(home_assistant, model, client, account, pipeline, sensors, [])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def home(tmp_path_factory) -> AsyncIterator[House]:
    async with run_home(tmp_path_factory.mktemp("home")) as home:
        yield home


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stories(tmp_path_factory) -> list[tuple[str, int, str]]:
    """Return the answer, the requests, and the cost of each sentence of README, said in a new home.

    Raises TimeoutError if a cost does not become the one in README.
    """
    conversation_id, happened = None, []
    async with run_home(tmp_path_factory.mktemp("stories")) as home:
        for story in _STORIES:
            asked = len(home.model.requests)
            if "satellite" in story.scene:
                happened.append(
                    (await say_to_satellite(home, story.sentence), len(home.model.requests) - asked, "Nothing")
                )
                continue
            turn = await home.say(story.sentence, None if "new conversation" in story.scene else conversation_id)
            conversation_id = turn.conversation_id
            cost = await wait_for(partial(read_cost, home), story.cost.__eq__)
            happened.append((turn.speech, len(home.model.requests) - asked, cost))
    return happened


async def read_cost(home: House) -> str:
    """Return the cost of the last turn in the words of README. It is known a little later than the turn."""
    cents = 100 * float(await home.sensor("turn_cost"))
    return f"{cents:.2f} cents" if cents else "Nothing"


def parse_day(table: str) -> list[tuple[str, str, str]]:
    """Return the sentence, the pattern of the answer and the entity of each row."""
    rows = (line.split(" | ") for line in table.strip().splitlines())
    return [(sentence, answer, next(iter(changed), "")) for sentence, answer, *changed in rows]


async def live_day(home: House, table: str, language: str) -> list[tuple[str, Turn, set[str]]]:
    """Say the sentences of a day in one conversation; return each with its turn and what changed."""
    pipeline = await ensure_pipeline(home.client, home.account.agent_id, f"Day in {language}", language)
    await home.client.call_action("climate.set_temperature", "climate.living_room_thermostat", temperature=20)
    await home.client.call_action("lock.unlock", "lock.side_door")
    conversation_id, lived = None, []
    for sentence, _, _ in parse_day(table):
        before = await home.client.fetch_states()
        turn = await take_turn(home.client, sentence, conversation_id=conversation_id, pipeline=pipeline)
        after = await home.client.fetch_states()
        lived.append((sentence, turn, {each for each in before if is_changed(before[each], after[each])}))
        conversation_id = turn.conversation_id
    return lived


def is_changed(before, after) -> bool:
    return (before["state"], before["attributes"]) != (after["state"], after["attributes"])


@pytest.mark.parametrize(("language", "table"), [("en", _ENGLISH), ("de", _GERMAN)], ids=["english", "german"])
async def test_a_family_is_answered_across_a_day(home, subtests, language, table):
    lived = await live_day(home, table, language)
    for (sentence, answer, entity_id), (_, turn, changed) in zip(parse_day(table), lived, strict=True):
        with subtests.test(sentence=sentence):
            assert re.search(answer, turn.speech)
            assert not entity_id or entity_id in changed
    assert sum(_APOLOGY in turn.speech for _, turn, _ in lived) <= _MAX_APOLOGIES / 2


async def test_each_sentence_of_the_readme_is_answered_as_it_says(stories, subtests):
    assert len(_STORIES) == 6
    for story, (answer, _, _) in zip(_STORIES, stories, strict=True):
        with subtests.test(sentence=story.sentence):
            assert re.fullmatch(re.escape(story.answer).replace(r"\.\.\.", ".+"), answer)


async def test_each_sentence_of_the_readme_is_answered_by_whom_it_says_and_for_its_cost(stories, subtests):
    for story, (_, requests, cost) in zip(_STORIES, stories, strict=True):
        with subtests.test(sentence=story.sentence):
            assert requests == story.who.startswith("The model,")
            assert story.cost == cost
