"""Tests with a separate Home Assistant that is restarted, and killed, after a filler or while an answer is promised.

Meanwhile, a command is given at the same satellite.
"""

import asyncio
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
import json
import sqlite3
from typing import Any

import pytest
import pytest_asyncio

from demo.home_assistant import HomeAssistantProcess, find_free_port
from demo.model_server import ModelServer
from demo.voice import BUTTON_ENTITY_ID, SATELLITE_ENTITY_ID, SENTENCE_ENTITY_ID, ask_satellite
from tests.e2e.house import House, wait_for
from tests.e2e.test_restart import run_house
from tests.e2e.test_satellite import say_to_satellite

_PROMISE = "This is taking a while. I'll let you know here."
_STOPPED = "was stopped before the promised answer"
_COMMAND = "turn on the kitchen light"
_LIGHT = "light.kitchen_light"
# The ID of a conversation that outlives a restart.
_OWN_ID = "kitchen table"
# The tasks of questions that get no answer, because Home Assistant ends before.
_waiting_questions = set[asyncio.Task[None]]()


@dataclass(slots=True)
class Ended:
    """The result after a restart or a kill: the rows of the activity log, the next answer, and the newest exchanges."""

    rows: list[str]
    answer: str
    windows: list[Any]
    # The questions in a conversation that outlives a restart.
    questions: list[str]


async def _fetch_rows(house: House, since: datetime) -> list[str]:
    rows = await house.client.send_command(
        "logbook/get_events", start_time=since.isoformat(), entity_ids=[house.account.agent_id]
    )
    return [row.get("message", "") for row in rows]


async def _promise(house: House, latency: float = 200) -> None:
    """Let the satellite promise the answer of a model that stays silent."""
    house.model.change(latency=latency)
    heard = await ask_satellite(
        house.client, "my name is Ada", is_done=lambda heard: len(heard) == 4, watch=lambda _: None
    )
    assert heard[-1]["text"].strip() == _PROMISE
    house.model.change(latency=0)


async def _command(house: House) -> str:
    """Give a command at the satellite whose answer is promised, and return the state of the light.

    The command is also given in a conversation in which an action waits for the answer to a question.
    """
    house.model.change(latency=200)
    await house.client.call_action("light.turn_off", _LIGHT)
    await say_to_satellite(house, _COMMAND)
    waiting = asyncio.create_task(_process(house, "my name is Bea"))
    await asyncio.sleep(1)
    await _process(house, _COMMAND)
    assert not waiting.done()
    house.model.change(latency=0)
    waiting.add_done_callback(asyncio.Task.exception)
    _waiting_questions.add(waiting)
    return str((await house.client.get(f"/api/states/{_LIGHT}"))["state"])


async def _process(house: House, text: str) -> None:
    data = {"text": text, "conversation_id": _OWN_ID, "agent_id": house.account.agent_id}
    await house.client.post("/api/conversation/process", data)


async def _list_questions(house: House) -> list[str]:
    """Return the user's messages in the conversation with its own ID."""
    action = "/api/services/windowed_conversation/get_conversation?return_response"
    asked = {"entity_id": house.account.agent_id, "conversation_id": _OWN_ID, "content": "export"}
    exported = (await house.client.post(action, asked))["service_response"]["export"]
    return [exchange["messages"][0]["content"].rpartition("\n\n")[2] for exchange in exported["exchanges"]]


async def _ask_in_vain(house: House, sentence: str, filler: str) -> None:
    """Ask the satellite while the model stays silent, and return after the first filler."""
    house.model.change(latency=200)
    await house.client.call_action("input_text.set_value", SENTENCE_ENTITY_ID, value=sentence)
    await house.client.call_action("input_button.press", BUTTON_ENTITY_ID)
    await wait_for(lambda: _fetch_heard(house), lambda heard: [each["text"].strip() for each in heard] == [filler])
    house.model.change(latency=0)


async def _fetch_heard(house: House) -> list[Any]:
    state = await house.client.get(f"/api/states/{SATELLITE_ENTITY_ID}")
    heard: list[Any] = state["attributes"].get("heard", [])
    return heard


async def _look_after(house: House, since: datetime, *, is_promised: bool = True) -> Ended:
    rows = await wait_for(lambda: _fetch_rows(house, since), lambda found: _STOPPED in found or not is_promised)
    answer = await say_to_satellite(house, "my name is Grace")
    return Ended(rows, answer, await _list_conversations(house), await _list_questions(house))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ended(tmp_path_factory) -> dict[str, Ended]:
    """Stop Home Assistant while an answer is promised, start it, promise another answer, and kill it."""
    home_assistant = HomeAssistantProcess(tmp_path_factory.mktemp("promised"), find_free_port())
    ended = {}
    async with ModelServer() as model:
        since = datetime.now(UTC)
        async with run_house(home_assistant, model, []) as house:
            await _promise(house)
            assert await _command(house) == "on"
        async with run_house(home_assistant, model, []) as house:
            ended["restart"] = await _look_after(house, since)
            since = datetime.now(UTC)
            await _promise(house)
            assert await _command(house) == "on"
            # the promise is written within a second, and the exchange of the command as well
            await wait_for(lambda: _is_promise_stored(home_assistant), bool)
            await wait_for(lambda: _count_stored_commands(home_assistant), lambda count: count > 1)
            await home_assistant.kill()
        async with run_house(home_assistant, model, []) as house:
            ended["kill"] = await _look_after(house, since)
            since = datetime.now(UTC)
            before = await _count_exchanges(house)
            await _promise(house, latency=28)
            # the answer cannot be announced during another turn
            await _ask_in_vain(house, "my name is Bob", "I'm still on the other question.")
            await wait_for(lambda: _count_exchanges(house), lambda count: count > before)
            await home_assistant.kill()
        async with run_house(home_assistant, model, []) as house:
            ended["kill before the announcement"] = await _look_after(house, since)
            since = datetime.now(UTC)
            await _ask_in_vain(house, "my name is Eve", "Hm.")
            await home_assistant.kill()
        async with run_house(home_assistant, model, []) as house:
            ended["kill after a filler"] = await _look_after(house, since, is_promised=False)
    return ended


async def _count_exchanges(house: House) -> int:
    return sum([int(each["exchanges"]) for each in await _list_conversations(house)])


async def _list_conversations(house: House) -> list[Any]:
    action = "/api/services/windowed_conversation/list_conversations?return_response"
    listed = await house.client.post(action, {"entity_id": house.account.agent_id})
    conversations: list[Any] = listed["service_response"]["conversations"]
    return conversations


async def _is_promise_stored(home_assistant: HomeAssistantProcess) -> bool:
    path = home_assistant.config / ".storage" / "windowed_conversation.db"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        stored = connection.execute("SELECT value FROM value WHERE name = 'promises'").fetchall()
    return any(json.loads(value) for (value,) in stored)


async def _count_stored_commands(home_assistant: HomeAssistantProcess) -> int:
    path = home_assistant.config / ".storage" / "windowed_conversation.db"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return len(connection.execute("SELECT 1 FROM exchange WHERE text LIKE ?", (f"%{_COMMAND}%",)).fetchall())


@pytest.mark.parametrize(("ending", "count"), [("restart", 1), ("kill", 2)])
async def test_command_that_is_given_meanwhile_is_kept(ended, ending, count):
    assert ended[ending].questions.count(_COMMAND) == count


@pytest.mark.parametrize("ending", ["restart", "kill", "kill before the announcement"])
async def test_activity_says_that_the_promised_answer_will_not_come(ended, ending):
    assert ended[ending].rows.count(_STOPPED) == 1


async def test_kill_after_a_filler_leaves_no_trace_of_it(ended):
    assert ended["kill after a filler"].rows.count(_STOPPED) == 0
    assert "Eve" not in str(ended["kill after a filler"].windows)


@pytest.mark.parametrize("ending", ["restart", "kill", "kill before the announcement", "kill after a filler"])
async def test_next_question_is_answered(ended, ending):
    assert ended[ending].answer == "Nice to meet you, Grace."
