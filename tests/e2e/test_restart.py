"""Tests with a separate Home Assistant that is restarted in the middle of a conversation, and then downgraded.

Forgotten text is in none of its files, including the recorder's database and the log.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
import json
from pathlib import Path
import re
from typing import Any

import pytest
import pytest_asyncio

from demo.client import Client, log_in_or_onboard
from demo.home import set_up_home
from demo.home_assistant import REPOSITORY, HomeAssistantProcess, find_free_port
from demo.model_server import ModelServer
from demo.setup_agent import Account, ModelAccess, find_account, find_sensor_ids, prefer_agent, replace_accounts
from tests.e2e.house import House, remove_live_context, tell_tales, wait_for

_BEFORE = (
    "my name is Ada",
    "I would like the kitchen light switched on",
    "turn off the kitchen light",
    "consider that locker 7 is the blue one",
)
_AFTER = ("what is my name?", "how many messages do you see?")

_SECRET = "swordfish"
_PASSWORD = f"the wifi password is {_SECRET}"
_TELL = (f"consider that {_PASSWORD}", f"remember that {_PASSWORD}", "tell me a story")
_FORGET = f"forget that {_PASSWORD}"

_OLDEST_PYTHON = str(REPOSITORY / ".venv" / "test" / "bin" / "python")

_TOTALS = ("turns_local", "turns_model", "input_tokens", "output_tokens")

# The number of turns in all conversations before the restart.
_TURNS = len((*_TELL, _FORGET, *_BEFORE, *_AFTER, *_BEFORE))

_TIME = re.compile(r"time: [^;\]]*")
# Matches the token count in the stub of a tool result, which varies because the token estimate learns in between.
_COUNTED = re.compile(r": \d+ tokens")
_CALL_ID = re.compile(r'"(?:id|tool_call_id)": "([^"]*)"')


@dataclass(frozen=True, slots=True)
class Told:
    """The results of two conversations, one of them interrupted by a restart; answers and bodies are in order."""

    uninterrupted: list[dict[str, Any]]
    last_before: dict[str, Any]
    last_answer: str
    totals_before: dict[str, str]
    totals_after: dict[str, str]
    answers: list[str]
    after: list[dict[str, Any]]


@dataclass(slots=True)
class Forgotten:
    """The request with the secret, the files that hold it, and the answer to its forgetting; then what is left."""

    request: str = ""
    told: frozenset[str] = frozenset()
    answer: str = ""
    files: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    request_after: str = ""


@dataclass(frozen=True, slots=True)
class Downgraded:
    """The account before and after a downgrade, and the answers of the older Home Assistant."""

    account: Account
    found: Account | None
    name: str
    facts: str


@asynccontextmanager
async def run_house(home_assistant: HomeAssistantProcess, model: ModelServer, said: list[str]) -> AsyncIterator[House]:
    """Start Home Assistant with the agent, log in, yield the House, stop, and check the log for forbidden texts."""
    async with home_assistant:
        tokens = await log_in_or_onboard(home_assistant.url, "demo", "demo")
        async with Client(home_assistant.url, tokens) as client:
            await client.wait_until_running()
            account = await find_account(client)
            if account is None:
                await set_up_home(client)
                account = await replace_accounts(client, ModelAccess(url=model.url, model="scripted"))
            pipeline = await prefer_agent(client, account.agent_id)
            yield House(home_assistant, model, client, account, pipeline, await find_sensor_ids(client), said)
    assert not tell_tales(home_assistant.output_file.read_text(), said)


async def totals(house: House) -> dict[str, str]:
    """Return the states of the sensors that count totals."""
    return {key: await house.sensor(key) for key in _TOTALS}


def count_turns(shown: dict[str, str]) -> int:
    """Return the number of turns according to the sensors."""
    return int(shown["turns_local"]) + int(shown["turns_model"])


def bodies(house: House) -> list[dict[str, Any]]:
    """Return the bodies of the requests to the model server since its log was cleared."""
    return [request.body for request in house.model.requests]


@dataclass(frozen=True, slots=True)
class Restarted:
    """All that is seen in the home: what was told before and after its restart, forgotten, and after a downgrade."""

    told: Told
    forgotten: Forgotten
    downgraded: Downgraded


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def restarted(tmp_path_factory) -> Restarted:
    """Have a secret forgotten, talk before and after a restart, and start the release of Home Assistant before."""
    folder = tmp_path_factory.mktemp("restarted")
    home_assistant = HomeAssistantProcess(folder, find_free_port())
    forgotten, said = Forgotten(), list[str]()
    async with ModelServer(strict=True) as model:
        async with run_house(home_assistant, model, said) as house:
            await _forget(house, folder, forgotten)
            model.log.clear()
            for text in _BEFORE:
                await house.say(text, "uninterrupted")
            model.log.clear()
            for text in _AFTER:
                await house.say(text, "uninterrupted")
            uninterrupted = bodies(house)
            turns = [await house.say(text, "interrupted") for text in _BEFORE]
            last_before = bodies(house)[-1]
            totals_before = await wait_for(lambda: totals(house), lambda now: count_turns(now) == _TURNS)
        forgotten.files, forgotten.left = list_files(folder), holding(folder)
        async with run_house(home_assistant, model, said) as house:
            totals_after = await wait_for(lambda: totals(house), lambda now: now["turns_model"] != "unavailable")
            model.log.clear()
            answers = [(await house.say(text, "interrupted")).speech for text in _AFTER]
            after = bodies(house)
            await house.say("what is the wifi password?", "mine")
            forgotten.request_after = str(bodies(house)[-1])
            await house.say("remember that the bins go out on Friday", "diary")
        downgraded = await _downgrade(folder, model, house.account)
    told = Told(uninterrupted, last_before, turns[-1].speech, totals_before, totals_after, answers, after)
    return Restarted(told, forgotten, downgraded)


async def _forget(house: House, folder: Path, forgotten: Forgotten) -> None:
    """Tell a secret in one conversation, and have it forgotten in another one."""
    for text in _TELL:
        await house.say(text, "mine")
    forgotten.request = str(house.model.requests[-1].body)
    forgotten.told = holding(folder)
    forgotten.answer = (await house.say(_FORGET, "other")).speech


async def _downgrade(folder: Path, model: ModelServer, account: Account) -> Downgraded:
    # the one file of Home Assistant itself that the older release refuses, and writes anew
    (folder / ".storage" / "http").unlink()
    async with run_house(HomeAssistantProcess(folder, find_free_port(), python=_OLDEST_PYTHON), model, []) as house:
        found = await find_account(house.client)
        name = await house.say("what is my name?", "interrupted")
        facts = await house.say("what do you remember?", "new")
    return Downgraded(account, found, name.speech, facts.speech)


def list_files(folder: Path) -> frozenset[str]:
    """Return the names of all files in the folder."""
    return frozenset(path.name for path in folder.rglob("*") if path.is_file())


def holding(folder: Path) -> frozenset[str]:
    """Return the names of the files that contain the secret."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return frozenset(path.name for path in files if _SECRET.encode() in path.read_bytes().lower())


@pytest.fixture
def told(restarted: Restarted) -> Told:
    return restarted.told


@pytest.fixture
def forgotten(restarted: Restarted) -> Forgotten:
    return restarted.forgotten


def written(messages: list[Any]) -> list[str]:
    """Return each message as JSON text without its live context."""
    return [remove_live_context(json.dumps(message)) for message in messages]


def normalize_body(body: dict[str, Any]) -> str:
    """Return the body as JSON text without live context, and with times, token counts and call ids normalized."""
    text = _COUNTED.sub(": tokens", _TIME.sub("time", remove_live_context(json.dumps(body))))
    numbers = count()
    for call_id in dict.fromkeys(_CALL_ID.findall(text)):
        text = text.replace(call_id, f"call {next(numbers)}")
    return text


async def test_what_was_said_before_the_restart_is_known_after_it(told):
    assert told.answers[0] == "Your name is Ada."


async def test_next_request_begins_with_the_bytes_of_the_last_one_and_its_answer(told):
    answer = {"role": "assistant", "content": told.last_answer}
    assert written(told.after[0]["messages"][:-1]) == written([*told.last_before["messages"], answer])
    assert told.after[0] | {"messages": None} == told.last_before | {"messages": None}


async def test_requests_are_those_of_a_conversation_that_was_not_interrupted(told):
    assert [normalize_body(body) for body in told.after] == [normalize_body(body) for body in told.uninterrupted]


async def test_totals_go_on_where_they_were(told):
    assert told.totals_after == told.totals_before
    assert int(told.totals_before["turns_model"]) > 0


async def test_what_is_forgotten_is_in_no_file_and_in_no_request_after_a_restart(forgotten: Forgotten):
    assert _SECRET in forgotten.request
    assert _SECRET in forgotten.answer
    assert any(name.startswith("windowed_conversation.db") for name in forgotten.told)
    assert {"home-assistant_v2.db", "hass.out"} <= forgotten.files
    assert forgotten.left == frozenset()
    assert _SECRET not in forgotten.request_after


async def test_downgrade_of_home_assistant_loses_nothing(restarted: Restarted):
    downgraded = restarted.downgraded
    assert downgraded.found == downgraded.account
    assert "Ada" in downgraded.name
    assert "the bins go out on Friday" in downgraded.facts
