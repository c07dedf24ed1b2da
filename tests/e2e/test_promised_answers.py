"""Tests with a separate Home Assistant that is restarted, and killed, while a promised answer is not there yet."""

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
from demo.voice import ask_satellite
from tests.e2e.house import House, wait_for
from tests.e2e.test_restart import run_house
from tests.e2e.test_satellite import say_to_satellite

_PROMISE = "This takes longer. I will tell you the answer when I have it."
_STOPPED = "was stopped before the promised answer"


@dataclass(slots=True)
class Ended:
    """The result after a restart or a kill: the rows of the activity log, the next answer, and the newest exchanges."""

    rows: list[str]
    answer: str
    windows: list[Any]


async def _fetch_rows(house: House, since: datetime) -> list[str]:
    rows = await house.client.send_command(
        "logbook/get_events", start_time=since.isoformat(), entity_ids=[house.account.agent_id]
    )
    return [row.get("message", "") for row in rows]


async def _promise(house: House) -> None:
    """Let the satellite promise the answer of a model that stays silent."""
    house.model.change(latency=200)
    heard = await ask_satellite(
        house.client, "my name is Ada", is_done=lambda heard: len(heard) == 2, watch=lambda _: None
    )
    assert heard[-1]["text"].strip() == _PROMISE
    house.model.change(latency=0)


async def _look_after(house: House, since: datetime) -> Ended:
    rows = await wait_for(lambda: _fetch_rows(house, since), lambda found: _STOPPED in found)
    answer = await say_to_satellite(house, "my name is Grace")
    action = "/api/services/windowed_conversation/list_conversations?return_response"
    listed = await house.client.post(action, {"entity_id": house.account.agent_id})
    return Ended(rows, answer, listed["service_response"]["conversations"])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ended(tmp_path_factory) -> dict[str, Ended]:
    """Stop Home Assistant while an answer is promised, start it, promise another answer, and kill it."""
    home_assistant = HomeAssistantProcess(tmp_path_factory.mktemp("promised"), find_free_port())
    ended = {}
    async with ModelServer() as model:
        since = datetime.now(UTC)
        async with run_house(home_assistant, model, []) as house:
            await _promise(house)
        async with run_house(home_assistant, model, []) as house:
            ended["restart"] = await _look_after(house, since)
            since = datetime.now(UTC)
            await _promise(house)
            # the promise is written within a second
            await wait_for(lambda: _is_promise_stored(home_assistant), bool)
            await home_assistant.kill()
        async with run_house(home_assistant, model, []) as house:
            ended["kill"] = await _look_after(house, since)
    return ended


async def _is_promise_stored(home_assistant: HomeAssistantProcess) -> bool:
    path = home_assistant.config / ".storage" / "windowed_conversation.db"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        stored = connection.execute("SELECT value FROM value WHERE name = 'promises'").fetchall()
    return any(json.loads(value) for (value,) in stored)


@pytest.mark.parametrize("ending", ["restart", "kill"])
async def test_activity_says_that_the_promised_answer_will_not_come(ended, ending):
    assert ended[ending].rows.count(_STOPPED) == 1


@pytest.mark.parametrize("ending", ["restart", "kill"])
async def test_next_question_is_answered(ended, ending):
    assert ended[ending].answer == "Nice to meet you, Grace."
