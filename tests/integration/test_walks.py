"""Tests for the number of functions, modules and module changes in one turn, compared with that of the last release.

Another sentence precedes each traced one, so that work on the first use of a module is not counted. The steps after the
answer are counted. The paths through the code that CONTRIBUTING.md describes are also traced, and core's OpenAI agent.
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
from scripts.measure_size import find_growth, read_baseline

from ..test_contributing import WALKS, WalkStep
from .conftest import SayFn, SetUpFn, get_speech, listed
from .trace import CallTrace, traced

BASELINE = read_baseline()

_LIGHTS = "switch on the kitchen light and the hall light"
_BINS = "the bins go out on Friday"
# Facts that resemble each other replace each other, or are compared, which is more work.
_NEW_FACTS = {"first": _BINS, "second": "Anna likes green tea", "third": "the router stands in the cellar"}
_OLD_FACTS = {"first": "locker 7 is blue", "second": "Ben plays the violin", "third": "the ladder leans on the shed"}

type RecordWayFn = Callable[[str, Way], list[str]]


class Way(NamedTuple):
    """The number of functions, modules and module changes in a trace."""

    functions: int
    modules: int
    changes: int


@pytest.fixture
def ada(home: HomeAssistant) -> Context:
    return Context(user_id=MockUser(name="Ada", is_owner=True).add_to_hass(home).id)


@pytest.fixture
def record_way(record_property: Callable[[str, object], None]) -> RecordWayFn:
    """Return a function that records the sizes of a walk for `scripts.measure_size`, and returns those that grew."""

    def record_way(walk: str, way: Way) -> list[str]:
        sizes = {f"{walk}, {name}": size for name, size in way._asdict().items()}
        for name, size in sizes.items():
            record_property(name, size)
        return find_growth(sizes, BASELINE)

    return record_way


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


async def test_way_of_two_tool_calls_has_not_grown(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer, ada: Context, record_way: RecordWayFn
) -> None:
    await set_up(**{CONF_ROUTING: "model_only", CONF_STATES: True})

    async def sentence(conversation: str) -> None:
        script_two_calls(model_server)
        await say(_LIGHTS, conversation, context=ada)

    await sentence("before")

    way = await shortest_way(sentence)
    assert record_way("two tool calls", way) == []


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


async def test_way_of_a_local_command_has_not_grown(
    set_up: SetUpFn, say: SayFn, ada: Context, record_way: RecordWayFn
) -> None:
    await set_up(**{CONF_STATES: True})
    await say("turn on kitchen light", "before", context=ada)

    way = await shortest_way(lambda conversation: say("turn on kitchen light", conversation, context=ada))
    assert record_way("local command", way) == []


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
async def test_way_of_a_fact_has_not_grown(say: SayFn, ada: Context, record_way: RecordWayFn) -> None:
    way = await shortest_way(lambda name: say(f"remember that {_NEW_FACTS[name]}", name, context=ada))

    assert record_way("remember", way) == []


@pytest.mark.usefixtures("facts")
async def test_way_of_a_question_about_a_fact_has_not_grown(
    say: SayFn, model_server: ModelServer, ada: Context, record_way: RecordWayFn
) -> None:
    await say(f"remember that {_BINS}", "before", context=ada)

    way = await shortest_way(lambda conversation: say("when do the bins go out?", conversation, context=ada))

    assert _BINS in str(model_server.requests[-1].body)
    assert record_way("recall", way) == []


@pytest.mark.usefixtures("facts")
async def test_way_of_forgetting_has_not_grown(say: SayFn, ada: Context, record_way: RecordWayFn) -> None:
    async def sentence(name: str) -> None:
        result = await say(f"forget that {_OLD_FACTS[name]}", f"forget {name}", context=ada)
        assert get_speech(result) == f"Done, I've deleted that: {_OLD_FACTS[name]}"

    way = await shortest_way(sentence)

    assert record_way("forget", way) == []


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
