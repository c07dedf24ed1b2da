"""Tests for the number of functions, modules and module changes in one turn, compared with core's OpenAI agent.

Another sentence precedes each traced one, so that work on the first use of a module is not counted. The steps after the
answer are counted. The paths through the code that CONTRIBUTING.md describes are also traced.
"""

from collections.abc import Awaitable, Callable
import math
from typing import NamedTuple

from homeassistant.components import conversation, openai_conversation
from homeassistant.config_entries import ConfigSubentryData
from homeassistant.const import CONF_API_KEY, CONF_LLM_HASS_API
from homeassistant.core import Context, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser

from custom_components import windowed_conversation
from custom_components.windowed_conversation.const import CONF_HISTORY_TOKENS, CONF_ROUTING, CONF_STATES
from custom_components.windowed_conversation.store.queue import UpkeepSchedule
from demo.model_server import ModelServer, call, words

from ..test_contributing import WALKS, WalkStep
from .conftest import SayFn, SetUpFn, get_speech, listed
from .trace import CallTrace, traced

_LIGHTS = "switch on the kitchen light and the hall light"
_BINS = "the bins go out on Friday"
# Facts that resemble each other replace each other, or are compared, which is more work.
_NEW_FACTS = {"first": _BINS, "second": "Anna likes green tea", "third": "the router stands in the cellar"}
_OLD_FACTS = {"first": "locker 7 is blue", "second": "Ben plays the violin", "third": "the ladder leans on the shed"}


class Way(NamedTuple):
    """The number of functions, modules and module changes in a trace."""

    functions: int
    modules: int
    changes: int

    def fits(self, functions: int, modules: int, changes: int) -> bool:
        """Return whether no number exceeds its limit."""
        return self.functions <= functions and self.modules <= modules and self.changes <= changes


@pytest.fixture
def ada(home: HomeAssistant) -> Context:
    return Context(user_id=MockUser(name="Ada", is_owner=True).add_to_hass(home).id)


async def shortest_way(sentence: Callable[[str], Awaitable[object]]) -> Way:
    """Return the smallest figures of three traces of a sentence, each in a new conversation.

    The periodic work of the store does not belong to the sentence and is postponed meanwhile.
    """
    ways = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UpkeepSchedule, "due_at", math.inf)
        for name in ("first", "second", "third"):
            with traced(windowed_conversation) as trace:
                await sentence(name)
            ways.append(Way(trace.functions, trace.modules, trace.changes))
    return Way(*map(min, zip(*ways, strict=True)))


def script_two_calls(model_server: ModelServer) -> None:
    """Script two consecutive tool calls and the final answer."""
    lights = (call("HassTurnOn", name=f"{name} light") for name in ("kitchen", "hall"))
    model_server.script(*lights, words("Both are on."))


async def test_two_tool_calls_take_a_short_way(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer, ada: Context
) -> None:
    await set_up(**{CONF_ROUTING: "model_only", CONF_STATES: True})

    async def sentence(conversation: str) -> None:
        script_two_calls(model_server)
        await say(_LIGHTS, conversation, context=ada)

    await sentence("before")

    way = await shortest_way(sentence)
    assert way.fits(functions=480, modules=75, changes=1_300), way


@pytest.fixture
async def core(home: HomeAssistant, monkeypatch: pytest.MonkeyPatch, model_server: ModelServer) -> str:
    """Set up core's OpenAI agent, which reads the server's URL from the environment, and return its entity id."""
    monkeypatch.setenv("OPENAI_BASE_URL", model_server.url)
    # Core sends the tools in an order that a strict model server would refuse.
    model_server.change(models=("gpt-4o-mini",), strict=False)
    agent = ConfigSubentryData(
        data={CONF_LLM_HASS_API: ["assist"], "chat_model": "gpt-4o-mini"},
        subentry_type="conversation",
        title="Core",
        unique_id=None,
    )
    entry = MockConfigEntry(
        domain="openai_conversation",
        data={CONF_API_KEY: "key"},
        version=2,
        minor_version=6,
        subentries_data=[agent],
    )
    entry.add_to_hass(home)
    assert await home.config_entries.async_setup(entry.entry_id)
    await listed(home)
    return "conversation.core"


async def test_core_takes_a_shorter_way(home: HomeAssistant, core: str, model_server: ModelServer) -> None:
    script_two_calls(model_server)

    with traced(openai_conversation) as trace:
        result = await conversation.async_converse(home, _LIGHTS, "test", Context(), "en", core)

    assert get_speech(result) == "Both are on."
    assert (trace.functions, trace.modules) < (20, 7)


async def test_local_command_takes_a_short_way(set_up: SetUpFn, say: SayFn, ada: Context) -> None:
    await set_up(**{CONF_STATES: True})
    await say("turn on kitchen light", "before", context=ada)

    way = await shortest_way(lambda conversation: say("turn on kitchen light", conversation, context=ada))
    assert way.fits(functions=220, modules=45, changes=300), way


@pytest.fixture
async def facts(set_up: SetUpFn, say: SayFn, ada: Context) -> None:
    """Set up an agent, have it remember facts and forget one, and let its model answer once."""
    await set_up(**{CONF_STATES: True})
    for text in _OLD_FACTS.values():
        await say(f"remember that {text}", "before", context=ada)
    await say("remember that the cat is called Tom", "before", context=ada)
    await say("forget that the cat is called Tom", "before", context=ada)
    await say("who are you?", "before", context=ada)


@pytest.mark.usefixtures("facts")
async def test_fact_takes_a_short_way(say: SayFn, ada: Context) -> None:
    way = await shortest_way(lambda name: say(f"remember that {_NEW_FACTS[name]}", name, context=ada))

    assert way.fits(functions=230, modules=45, changes=300), way


@pytest.mark.usefixtures("facts")
async def test_question_about_a_fact_takes_a_short_way(say: SayFn, model_server: ModelServer, ada: Context) -> None:
    await say(f"remember that {_BINS}", "before", context=ada)

    way = await shortest_way(lambda conversation: say("when do the bins go out?", conversation, context=ada))

    assert _BINS in str(model_server.requests[-1].body)
    assert way.fits(functions=460, modules=78, changes=750), way


@pytest.mark.usefixtures("facts")
async def test_forgetting_takes_a_short_way(say: SayFn, ada: Context) -> None:
    async def sentence(name: str) -> None:
        result = await say(f"forget that {_OLD_FACTS[name]}", f"forget {name}", context=ada)
        assert get_speech(result) == f'I have forgotten this: "{_OLD_FACTS[name]}"'

    way = await shortest_way(sentence)

    assert way.fits(functions=270, modules=50, changes=350), way


def missing_steps(walk: list[WalkStep], trace: CallTrace) -> list[str]:
    """Return the steps of a documented path that are missing from a trace or out of order.

    A call of an inner function counts as a call of its outer function.
    """
    calls = ((module, name.partition(".<locals>")[0]) for module, name in trace.calls)
    return [str(step) for step in walk if (step.module, step.name) not in calls]


@pytest.mark.parametrize("number", [0, 1])
async def test_documented_way_of_a_sentence_is_its_way(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer, number: int
) -> None:
    await set_up()

    with traced(windowed_conversation) as trace:
        await say("tell me a story")

    assert missing_steps(WALKS[number], trace) == []


async def test_documented_way_of_an_option_is_its_way(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    await say("tell me a story")

    with traced(windowed_conversation) as trace:
        home.config_entries.async_update_entry(entry, options={CONF_HISTORY_TOKENS: 4_000})
        await home.async_block_till_done()

    assert missing_steps(WALKS[2], trace) == []


async def test_documented_way_of_a_failure_is_its_way(set_up: SetUpFn, say: SayFn, model_server: ModelServer) -> None:
    await set_up()
    model_server.change(key="another")

    with traced(windowed_conversation) as trace:
        await say("tell me a story")

    assert missing_steps(WALKS[3], trace) == []
