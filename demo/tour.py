"""`scripts/demo --tour`: ten things, each done in the running home, with what to look at in the browser meanwhile.

In a terminal it waits for Enter before the next one.
"""

import asyncio
from dataclasses import dataclass
import re
import sys

from demo import dashboard
from demo.people import OWNER_USERNAME, PASSWORD, PersonClients
from demo.say import StepRunner
from demo.setup_agent import PIPELINE_NAME_BY_LANGUAGE, ensure_pipeline
from demo.steps import DemoAction, Input, Step
from demo.window import WindowPrinter


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A stop of the tour."""

    title: str
    steps: tuple[Step, ...]
    # A pattern for the last answer, without which the tour fails.
    answer: str
    # The page to look at, and the things on it.
    path: str
    look: str
    # Actions on entities of the home.
    before: tuple[tuple[str, str], ...] = ()
    language: str = "en"
    is_spoken: bool = False


_PAGE = f"/{dashboard.PAGE_PATH}"
_TURNS = f"{_PAGE}/turns"
STOPS: tuple[Stop, ...] = (
    Stop(
        title="A command stays in the house: no model is asked",
        steps=(Input("turn on the kitchen light"), Input("what did I just do?")),
        answer=r"kitchen light",
        path=_TURNS,
        look="who answered each of the two, and for how much",
    ),
    Stop(
        title="A question about the home takes one request, because the states go along",
        before=(("input_boolean.turn_on", "input_boolean.bedroom_window_open"),),
        steps=(Input("did anyone leave something open?"),),
        answer=r"Bedroom window is open",
        path=_TURNS,
        look="open the turn: the window is among the states that were sent",
    ),
    Stop(
        title='"It" is what was spoken of last',
        steps=(Input("make it a bit brighter in the living room"), Input("turn it off again")),
        answer=r"[Ll]iving room light is off",
        path="/lovelace",
        look="the light in the living room went on and off",
    ),
    Stop(
        title="Where everybody is",
        before=(("input_select.select_first", "input_select.place_of_ben"),),
        steps=(Input("is anyone home?"), Input("where is Ben")),
        answer=r"Work",
        path="/config/helpers",
        look='"Where Ben is" moves him',
    ),
    Stop(
        title="It remembers, also in another conversation",
        steps=(
            Input("remember that the bins go out on Friday"),
            DemoAction.NEW_CONVERSATION,
            Input("when do the bins go out?"),
        ),
        answer=r"bins go out on Friday",
        path=f"{_PAGE}/memory",
        look="what it knows, which can be corrected and forgotten there",
    ),
    Stop(
        title="A correction replaces what it knew",
        steps=(
            Input("that's wrong, the bins go out on Thursday"),
            DemoAction.NEW_CONVERSATION,
            Input("when do the bins go out?"),
        ),
        answer=r"bins go out on Thursday",
        path=f"{_PAGE}/memory",
        look="Thursday has replaced Friday",
    ),
    Stop(
        title="Nothing that opens the house is done without a yes",
        before=(("lock.lock", "lock.side_door"),),
        steps=(Input("unlock the side door"), Input("yes")),
        answer=r"(?i)unlock",
        path=_TURNS,
        look="the question and the yes",
    ),
    Stop(
        title="A reminder, without a model",
        steps=(Input("remind me in ten minutes to take the bread out"), Input("what reminders do I have")),
        answer=r"take the bread out",
        path="/todo",
        look="the reminder in the list of reminders",
    ),
    Stop(
        title="Auf Deutsch",
        before=(("switch.turn_off", "switch.coffee_machine"),),
        steps=(Input("Mach bitte die Kaffeemaschine an"), Input("Brauche ich einen Regenschirm?")),
        answer=r"^Ja\.",
        language="de",
        path="/lovelace",
        look=f'choose the assistant "{PIPELINE_NAME_BY_LANGUAGE["de"]}" in the dialog of Assist',
    ),
    Stop(
        title="A satellite does not know whose voice it hears, and asks before it opens the garage",
        before=(("cover.close_cover", "cover.garage_door"),),
        steps=(Input("open the garage door"),),
        answer=r"\?$",
        is_spoken=True,
        path="/lovelace",
        look="the garage door is still closed",
    ),
)


async def take_tour(people: PersonClients, window: WindowPrinter, agent_id: str) -> bool:
    """Make all stops and return whether each of them was answered as it should be."""
    url = people.owner.url
    print(f"\nOpen {url} beside this: {OWNER_USERNAME}, password {PASSWORD}")
    wrong = [
        stop
        for number, stop in enumerate(STOPS, start=1)
        if not await _make_stop(number, stop, people, window, agent_id)
    ]
    for stop in wrong:
        print(f'\nNot as it should be: "{stop.title}"')
    print(f"\n{len(STOPS) - len(wrong)} of {len(STOPS)} things were as they should be.", flush=True)
    return not wrong


async def _make_stop(number: int, stop: Stop, people: PersonClients, window: WindowPrinter, agent_id: str) -> bool:
    client = people.owner
    print(f"\n=== {number} of {len(STOPS)}: {stop.title}", flush=True)
    for action, entity_id in stop.before:
        await client.call_action(action, entity_id)
    pipeline = await ensure_pipeline(client, agent_id, PIPELINE_NAME_BY_LANGUAGE[stop.language], stop.language)
    talk = StepRunner(people, window, latency=0.0 if stop.is_spoken else None, pipeline=pipeline)
    turns = await talk.take_steps(stop.steps)
    print(f"Look     {client.url}{stop.path}: {stop.look}", flush=True)
    if sys.stdin.isatty():
        await asyncio.to_thread(input, "         Enter goes on ")
    return re.search(stop.answer, turns[-1].speech) is not None
