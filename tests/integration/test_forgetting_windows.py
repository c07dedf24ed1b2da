"""Tests that forgetting removes the right exchanges, and summaries of them, from the right conversations."""

import time

from homeassistant.core import Context, Event, HomeAssistant, callback
import pytest
from pytest_homeassistant_custom_component.common import async_capture_events

from custom_components.windowed_conversation.agents.account import async_agent_states
from custom_components.windowed_conversation.agents.forgetting import async_forget_everywhere
from custom_components.windowed_conversation.bridge.turn_report import EVENT_FORGOTTEN, EVENT_TRIMMED
from custom_components.windowed_conversation.turn.context import extract_user_text
from custom_components.windowed_conversation.turn.routing import WindowKey
from custom_components.windowed_conversation.window import Window
from demo.model_server import ModelServer, words
from demo.model_server.delivery import AnswerHold

from .actions import act
from .conftest import AGENT, SayFn, SetUpFn, flush_store, get_speech, until
from .remembered import add_fact
from .store_file import Disk
from .summarizing import SMALL, STORY, asked_for
from .test_past_summaries import TalkFn, summaries, talk
from .test_recall import ada, asked, grace

__all__ = ["ada", "grace", "talk"]

FOOD = "the cat food is in the cellar"
REPEATED = f"consider that {FOOD}"
WIFI, PIZZA, WARM = (f"consider that {what}" for what in ("the wifi is slow", "the pizza is cold", "the hall is warm"))
DAY = 86_400.0


async def left(home: HomeAssistant) -> dict[str, list[str]]:
    """Return the user's remaining texts in each conversation, by conversation id."""
    kept = async_agent_states(home).values()
    windows = [(key, await each.windows.load(key)) for each in kept for key in each.windows.stats()]
    return {
        WindowKey.parse(key).conversation: [extract_user_text(each.messages[0].content) for each in window.exchanges()]
        for key, window in windows
        if window is not None
    }


def agent_windows(home: HomeAssistant) -> list[Window]:
    """Return the windows that are loaded in memory."""
    return [window for each in async_agent_states(home).values() for window in each.windows.loaded_windows().values()]


def is_on_disk(disk: Disk, text: str) -> bool:
    """Return whether any file of the store contains a text."""
    return disk(lambda path: any(text.encode() in each.read_bytes().lower() for each in path.parent.iterdir()))


@pytest.mark.parametrize("is_known", [True, False], ids=["in his dialog", "at a satellite"])
async def test_fact_of_the_home_takes_what_repeats_it_and_leaves_the_conversations_of_others(
    *,
    home: HomeAssistant,
    entry,
    say: SayFn,
    ada: Context,
    grace: Context,
    disk: Disk,
    model_server: ModelServer,
    is_known: bool,
) -> None:
    await say(f"remember that {FOOD}", "told", context=grace)
    for text in (WIFI, REPEATED, PIZZA, "hello there"):
        await say(text, "hers", context=ada)
    await say(WARM, "house diary")
    assert FOOD in str(asked(model_server))

    who = {"context": grace} if is_known else {"device_id": "kitchen"}
    answer = get_speech(await say(f"forget that {FOOD}", "forgetting", **who))

    assert answer.startswith("Done, I've deleted")
    assert await left(home) == {"hers": [WIFI, PIZZA, "hello there"], "house diary": [WARM]}
    assert not is_on_disk(disk, "cellar")
    await say("hello again", "hers", context=ada)
    assert "cellar" not in str(model_server.requests[-1].body)


async def test_fact_of_long_ago_leaves_what_others_and_automations_have_said_since(
    home: HomeAssistant, entry, say: SayFn, *, ada: Context, grace: Context
) -> None:
    await add_fact(home, FOOD, at=time.time() - 60 * DAY, teller=grace.user_id, conversation="long ago")
    await say(WIFI, "hers", context=ada)
    await say(WARM, "house diary")
    await say(PIZZA, "his", context=grace)

    await say(f"forget that {FOOD}", "hers", context=ada)

    assert await left(home) == {"hers": [WIFI], "house diary": [WARM]}


async def test_each_of_two_tellers_loses_what_came_after_they_told_it(
    home: HomeAssistant, entry, say: SayFn, *, ada: Context, grace: Context
) -> None:
    await add_fact(home, FOOD, at=time.time() - DAY, teller=ada.user_id)
    await say(WIFI, "hers", context=ada)
    await say(PIZZA, "his", context=grace)
    fact = await add_fact(home, FOOD, teller=grace.user_id)
    await say(WARM, "his", context=grace)

    await async_forget_everywhere(home, ids=[("fact", fact)])

    assert await left(home) == {"his": [PIZZA]}


async def test_private_fact_takes_all_since_it_was_told_from_its_owner_only(
    home: HomeAssistant, entry, say: SayFn, *, ada: Context, grace: Context
) -> None:
    await say(WIFI, "hers", context=ada)
    await say("remember that my cat eats in the cellar", "hers", context=ada)
    await say(PIZZA, "hers", context=ada)
    await say(WARM, "his", context=grace)
    await say("hello there", "kitchen", device_id="kitchen")

    await say("forget that my cat eats in the cellar", "hers", context=ada)

    assert await left(home) == {"hers": [WIFI], "his": [WARM], "kitchen": ["hello there"]}


async def test_turn_of_an_unknown_speaker_takes_its_exchange_and_what_repeats_it(
    home: HomeAssistant, entry, say: SayFn, disk: Disk, *, ada: Context
) -> None:
    for text in (WARM, REPEATED, PIZZA):
        await say(text, "kitchen", device_id="kitchen")
    for text in (WIFI, REPEATED, "hello there"):
        await say(text, "hers", context=ada)
    ((turn,),) = disk.execute("SELECT id FROM turn WHERE said = ? AND person IS NULL", REPEATED)

    await async_forget_everywhere(home, ids=[("turn", turn)])

    assert await left(home) == {"kitchen": [WARM, PIZZA], "hers": [WIFI, "hello there"]}


async def test_exchange_for_which_it_was_recalled_goes_if_the_answer_has_it_from_there(
    home: HomeAssistant, entry, say: SayFn, disk: Disk, *, ada: Context, model_server: ModelServer
) -> None:
    await say("consider that the vault opens with pelican", "kitchen", device_id="kitchen")
    model_server.script(words("With pelican."))
    await say("what opens the vault?", "hers", context=ada)
    model_server.script(words("I would ask Ben."))
    await say("who knows what opens it, the vault?", "also hers", context=ada)
    ((turn,),) = disk.execute("SELECT id FROM turn WHERE person IS NULL")
    sources = [f"turn:{turn}" in text for (text,) in disk.execute("SELECT text FROM exchange ORDER BY id")]

    await async_forget_everywhere(home, ids=[("turn", turn)])

    assert sources == [False, True, True]
    assert await left(home) == {"also hers": ["who knows what opens it, the vault?"]}


async def test_summary_that_covers_the_telling_goes_with_the_fact_in_whatever_words(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, talk: TalkFn, *, disk: Disk, ada: Context, grace: Context
) -> None:
    await set_up(options=SMALL)
    await talk("consider that the paper bin is behind the shed", context=grace, conversation_id="his")
    # This sentence is answered without a model, before memory has stored anything of the conversation.
    await say("what time is it?", "first", context=ada)
    fact = await add_fact(home, "The vault opens with 4711", teller=ada.user_id, conversation="first")
    await talk("consider that the paper bin is behind the quokka", context=ada)
    assert len(summaries(disk)) == 2

    await async_forget_everywhere(home, ids=[("fact", fact)])

    assert [whose for _, whose in summaries(disk)] == [grace.user_id]
    assert list(await left(home)) == ["his"]


async def test_summary_on_its_way_is_cancelled_if_only_evicted_exchanges_are_forgotten(
    *, home: HomeAssistant, set_up: SetUpFn, say: SayFn, disk: Disk, model_server: ModelServer
) -> None:
    await set_up(options=SMALL)
    await say(REPEATED)
    holds = list[AnswerHold]()

    @callback
    def hold(_event: Event) -> None:
        """Make the server hold its answers from now on. The next request is the one for the summary."""
        holds.append(model_server.hold(after_words=0))

    home.bus.async_listen_once(EVENT_TRIMMED, hold)
    while not holds:
        await say(STORY)
    await until(lambda: len(asked_for(model_server)) == 1)
    assert REPEATED not in (await left(home))["test"]

    await async_forget_everywhere(home, query=FOOD)
    holds[0].release()
    await home.async_block_till_done(wait_background_tasks=True)
    await flush_store(home)

    assert not is_on_disk(disk, "cellar")
    assert "cellar" not in str([window.messages() for window in agent_windows(home)])


async def test_activity_has_a_row_for_each_conversation_that_lost_something(
    home: HomeAssistant, entry, say: SayFn, *, ada: Context, grace: Context
) -> None:
    events = async_capture_events(home, EVENT_FORGOTTEN)
    await say(f"remember that {FOOD}", "his", context=grace)
    for text in (WIFI, REPEATED, REPEATED):
        await say(text, "hers", context=ada)
    await say(WARM, "house diary")

    await act(home, "forget", query=FOOD, dry_run=True)
    await say(f"forget that {FOOD}", "kitchen", device_id="kitchen")

    rows = [(event.data["entity_id"], event.data["conversation_id"], event.data["exchanges"]) for event in events]
    assert sorted(rows) == [(AGENT, "hers", 2), (AGENT, "his", 1)]
    assert events[0].data.keys() == {"entity_id", "conversation_id", "exchanges"}
