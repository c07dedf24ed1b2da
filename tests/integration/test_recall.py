"""Tests for the memories added to a turn: who receives them, their position in the request, and the time they take."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
import json
import re
from typing import Any

from homeassistant.components.conversation import ConversationResult
from homeassistant.components.conversation.trace import async_get_traces
from homeassistant.core import Context, HomeAssistant
from homeassistant.util import dt as dt_util
import pytest
from pytest_homeassistant_custom_component.common import MockUser

from custom_components.windowed_conversation.agents import live_context
from custom_components.windowed_conversation.const import (
    CONF_HISTORY_TOKENS,
    CONF_MEMORY,
    CONF_ROUTING,
)
from custom_components.windowed_conversation.memory.core import Fact, PastTurn
from custom_components.windowed_conversation.memory.turn.recall import HEADING, PromptFacts, build_prompt_facts
from custom_components.windowed_conversation.turn.routing import RoutingMode
from demo.model_server import ModelServer, call, words
from tests.clock import IdleClock

from .account_kinds import VENDORS, Kind
from .conftest import AGENT, SayAtOnce, SayFn, SetUpFn, get_speech, start, stop, until
from .remembered import add_fact, memory_of, recorded_turns
from .store_file import Disk
from .test_turns import window_of

SMALL = {CONF_HISTORY_TOKENS: 600}

# The property that marks a part for caching in Anthropic's wire format.
_MARK = re.compile(r', "cache_control": \{[^}]*\}')


@pytest.fixture
def ada(home: HomeAssistant) -> Context:
    return Context(user_id=MockUser(name="Ada", is_owner=True).add_to_hass(home).id)


@pytest.fixture
def grace(home: HomeAssistant) -> Context:
    return Context(user_id=MockUser(name="Grace").add_to_hass(home).id)


def asked(model_server: ModelServer) -> tuple[str, str]:
    """Return the system prompt and the last user message of the newest request."""
    messages = model_server.requests[-1].body["messages"]
    assert messages[0]["role"] == "system"
    return messages[0]["content"], [each["content"] for each in messages if each["role"] == "user"][-1]


def sent(model_server: ModelServer) -> str:
    """Return all requests as one JSON text."""
    return json.dumps([request.body for request in model_server.requests], ensure_ascii=False)


async def fill(say: SayFn, turns: int = 12, **more: Any) -> ConversationResult:
    """Take enough turns to evict earlier exchanges, and return the last result."""
    for number in range(turns):
        result = await say(
            f"consider that the locker number {number} is the {number} times seventh on the left", **more
        )
    return result


async def tell(home: HomeAssistant, *facts: tuple[str, Context | None, bool]) -> None:
    """Store facts, each given as its text, its owner, and whether it is private."""
    for text, whose, private in facts:
        await add_fact(home, text, person=whose.user_id if whose else None, private=private)


async def test_facts_stand_at_the_end_of_the_next_conversations_prompt(
    home: HomeAssistant, entry, say: SayFn, ada: Context, model_server: ModelServer
) -> None:
    await tell(home, ("The bins go out on Friday", None, False), ("Likes [tea]", ada, False))
    await say("hello there", "new", context=ada)

    system, _ = asked(model_server)
    head, found, profile = system.partition(f"\n\n{HEADING}")
    assert (bool(head), bool(found)) == (True, True)
    assert profile == "\n\nKnown of Ada:\nLikes tea\n\nKnown of the home:\nThe bins go out on Friday" + find_date(
        profile
    )


def find_date(profile: str) -> str:
    """Return the date at the end of a profile, or an empty text if there is none."""
    found = re.search(r" \(told \w{3} \d{4}-\d\d-\d\d\)$", profile)
    return found[0] if found else ""


async def test_turn_that_left_the_window_is_recalled(
    set_up: SetUpFn, say: SayFn, ada: Context, model_server: ModelServer
) -> None:
    entry = await set_up(options=SMALL)
    await say("my name is Ada Lovelace", context=ada)
    await fill(say, context=ada)
    assert "Lovelace" not in str(window_of(entry).messages())

    await say("what is my name?", context=ada)

    prefix, _, question = asked(model_server)[1].partition("]\n\n")
    assert 'Ada: "my name is Ada Lovelace"' in prefix
    assert question == "what is my name?"
    assert "CONTEXT" not in get_speech(await say("what is my name?", context=ada))


async def add_turns(home: HomeAssistant, whose: Context, *turns: tuple[datetime, str]) -> None:
    """Store past turns, each in its own conversation."""
    past = [PastTurn(said, at.timestamp(), said, "Noted.", person=whose.user_id) for at, said in turns]
    await memory_of(home).async_change(lambda memory: memory.add(past))


async def test_turn_that_told_a_corrected_fact_is_not_recalled(
    home: HomeAssistant, entry, say: SayFn, *, ada: Context, model_server: ModelServer
) -> None:
    old, new = "our recycling gets picked up on Tuesdays", "recycling gets picked up on Thursdays from now on"
    now = dt_util.now()
    await add_turns(home, ada, (now - timedelta(days=3), old), (now - timedelta(days=2), new))
    row = await add_fact(home, old)
    await add_fact(home, new, replaces=row)

    await say("on which day does the recycling get picked up?", context=ada)

    assert "Tuesdays" not in sent(model_server)
    assert "Thursdays" in sent(model_server)


async def test_command_recalls_nothing(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, *, ada: Context, model_server: ModelServer
) -> None:
    await set_up(**{CONF_ROUTING: RoutingMode.MODEL_ONLY})
    await add_turns(home, ada, (dt_util.now() - timedelta(days=3), "the light in the kitchen is nice in autumn"))

    await say("please turn on the kitchen light", context=ada)

    assert "autumn" not in sent(model_server)


async def test_question_about_last_week_recalls_what_was_said_then(
    home: HomeAssistant, entry, say: SayFn, *, ada: Context, model_server: ModelServer
) -> None:
    now = dt_util.now()
    times = [now - timedelta(days=40), now - timedelta(days=now.weekday() + 4), now - timedelta(seconds=1)]
    await add_turns(home, ada, *zip(times, ("red wine stains", "coffee stains", "chalk stains"), strict=True))

    model_server.script(words("Coffee."))

    await say("what did I ask you last week about stains?", context=ada)

    assert [each for each in ("wine", "coffee", "chalk") if each in sent(model_server)] == ["coffee"]


async def test_model_recalls_what_was_said_between_two_days(
    home: HomeAssistant, entry, say: SayFn, *, ada: Context, model_server: ModelServer
) -> None:
    times = [dt_util.now() - timedelta(days=days) for days in (20, 16, 12)]
    await add_turns(home, ada, *zip(times, ("red wine stains", "coffee stains", "chalk stains"), strict=True))
    days = {"since": f"{times[0] + timedelta(days=1):%Y-%m-%d}", "until": f"{times[1]:%Y-%m-%d}"}
    model_server.script(call("recall", query="stains", **days), words("Coffee."))

    await say("do you know?", context=ada)

    result = json.loads(model_server.requests[-1].body["messages"][-1]["content"])
    assert result["recalled"] == [f'{days["until"]}, Ada: "coffee stains / Noted."']


@pytest.mark.parametrize("day", ["last week", "2026-02-30"])
async def test_date_that_is_none_is_an_error_for_the_model(
    entry, say: SayFn, *, ada: Context, model_server: ModelServer, day: str
) -> None:
    model_server.script(call("recall", query="stains", since=day), words("I do not know."))

    await say("do you know?", context=ada)

    result = json.loads(model_server.requests[-1].body["messages"][-1]["content"])
    assert (result["error"], result["error_text"]) == ("invalid_date", "A date is YYYY-MM-DD.")


@pytest.mark.parametrize("kind", [None, *VENDORS], ids=lambda each: getattr(each, "name", "chat"))
async def test_between_trims_each_request_begins_with_the_one_before_up_to_its_question(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer, *, ada: Context, kind: Kind | None
) -> None:
    entry = await set_up(account=kind.account(model_server) if kind else None, options=SMALL)
    await fill(say, 8, conversation_id="other", context=ada)
    model_server.log.clear()
    trims = [0]
    for number in range(14):
        await say(f"where is the locker number {number}?", context=ada)
        trims.append(window_of(entry).stats().trims)

    requests = [parts(request.body) for request in model_server.requests]
    is_grown = [after[: len(before) - 1] == before[:-1] for before, after in pairwise(requests)]
    # A trim may occur after the earlier request's answer or before the later request's question.
    trimmed = [before < after for before, after in zip(trims, trims[2:], strict=False)]
    assert "memory, quoted" in sent(model_server)
    assert [pair for pair in zip(is_grown, trimmed, strict=True) if pair == (False, False)] == []
    assert any(is_grown)


def parts(body: dict[str, Any]) -> list[str]:
    """Return the tools, the system prompt and each message of a request as JSON, without cache markers."""
    (messages,) = (body[key] for key in ("messages", "input", "contents") if key in body)
    head = [body.get(key) for key in ("tools", "system", "instructions", "systemInstruction")]
    return [_MARK.sub("", json.dumps(part)) for part in (*head, *messages)]


async def test_profile_is_made_anew_only_for_facts_that_have_changed(
    home: HomeAssistant, entry, say: SayFn, monkeypatch: pytest.MonkeyPatch, *, ada: Context, grace: Context
) -> None:
    made = []

    def make(facts: list[Fact], *args: Any) -> PromptFacts:
        made.append([fact.text for fact in facts])
        return build_prompt_facts(facts, *args)

    monkeypatch.setattr(live_context, "build_prompt_facts", make)
    # Take turns until the model's tokens are calibrated.
    await fill(say, 3)
    made.clear()
    await tell(home, ("The bins go out on Friday", None, False), ("Likes tea", ada, True))
    for conversation in ("one", "one", "two"):
        await say("hello there", conversation, context=ada)
        await say("hello there", conversation, context=grace)
    await tell(home, ("Hates tea", grace, True))
    await say("hello there", "two", context=grace)

    bins = "The bins go out on Friday"
    assert made == [[bins, "Likes tea"], [bins], [bins, "Hates tea"]]


async def test_agent_without_memory_is_told_nothing(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    await set_up()
    await tell(home, ("The bins go out on Friday", None, False))
    await set_up(**{CONF_MEMORY: "off"})
    await say("when do the bins go out?", agent_id=f"{AGENT}_2")

    assert "out on Friday" not in sent(model_server)


async def test_late_search_leaves_the_turn_its_facts(
    *,
    home: HomeAssistant,
    entry,
    say: SayFn,
    say_at_once: SayAtOnce,
    model_server: ModelServer,
    idle_clock: IdleClock,
) -> None:
    await say("consider that the bins are emptied by a man called Hansen", "other")
    await tell(home, ("The bins go out on Friday", None, False))
    await say("who empties the bins?", "one")
    system, question = asked(model_server)
    assert ("Friday" in system, "Hansen" in question) == (True, True)

    memory = memory_of(home).writer.open_store
    assert memory is not None
    with idle_clock.paused(), memory.database._read_lock:
        assert get_speech(await say_at_once("by whom are the bins emptied?"))

    system, question = asked(model_server)
    assert ("Friday" in system, "Hansen" in question) == (True, False)
    await say("thank you very much for that")
    assert [turn["memory_late"] for turn in await recorded_turns(home)] == [False, False, True, False]
    assert memory_of(home).late_searches == 1


async def test_first_turn_after_a_start_has_the_facts_though_the_file_is_busy(
    home: HomeAssistant, entry, say_at_once: SayAtOnce, model_server: ModelServer, idle_clock: IdleClock
) -> None:
    await tell(home, ("The bins go out on Friday", None, False))
    await stop(home, entry)
    await start(home, entry)

    memory = memory_of(home).writer.open_store
    assert memory is not None
    with idle_clock.paused(), memory.database._read_lock:
        await say_at_once("hello there")

    assert "Friday" in asked(model_server)[0]


@pytest.mark.long
async def test_locked_memory_leaves_the_prompt_as_it_is(
    home: HomeAssistant, entry, say: SayFn, model_server: ModelServer, disk: Disk
) -> None:
    await tell(home, ("The bins go out on Friday", None, False))
    await say("hello there")
    before, _ = asked(model_server)
    lock = disk.lock()
    answer = get_speech(await say("hello again"))
    disk(lambda path: lock.close())
    await until(lambda: memory_of(home).writer.state.reason is None)

    assert answer
    assert asked(model_server) == (before, asked(model_server)[1])


async def test_trace_has_figures_of_what_was_recalled(entry, say: SayFn, ada: Context, home: HomeAssistant) -> None:
    await say("my name is Ada Lovelace", "other", context=ada)
    await say("what is my name?", context=ada)

    ((recalled, took),) = [tuple(each[name] for name in ("recalled_tokens", "recall_ms")) for each in details()]
    assert 0 < recalled <= 150
    assert took >= 0


def details() -> Iterator[dict[str, Any]]:
    """Yield the agent's data in the trace of the last turn."""
    return (event.data for event in async_get_traces()[-1]._events if event.data and "route" in event.data)
