"""Tests with a Home Assistant that is killed during a conversation: lost turns, counts, and states of sensors."""

import asyncio
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
import random
import re
import sqlite3

import pytest
import pytest_asyncio

from demo.home_assistant import HomeAssistantProcess, find_free_port
from demo.model_server import ModelServer
from tests.e2e.house import House, wait_for
from tests.e2e.test_restart import run_house, totals

# Seconds. The integration writes a change after a short delay, and the machine needs time to write it to disk.
_MOST_LOST = 2.0

_STORE = ".storage/windowed_conversation.db"
_SAID = "consider that number {} is blue"
_NUMBER = re.compile(r"\n\n.*number (\d+) is")


@dataclass(slots=True)
class Killed:
    """The turns of a run, the state shown before the kill, and the state that was restored at the next start."""

    # The time of each answer in seconds before the kill, in order.
    answer_ages: list[float] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    turns_before: int = 0
    kept: list[int] = field(default_factory=list)
    totals_after: dict[str, str] = field(default_factory=dict)
    # The answer to the question for the name, which the user stated before the first kill.
    name: str = ""
    # The numbers of the turns in memory.
    memory_numbers: list[int] = field(default_factory=list)
    # How each turn ended according to the record of turns.
    recorded: list[str] = field(default_factory=list)
    # The numbers of the conversation's exchanges in the file.
    stored: list[int] = field(default_factory=list)
    # The results of the integrity checks of SQLite and the search index.
    findings: list[str] = field(default_factory=list)


async def talk(house: House, conversation: str, killed: Killed, pause: float) -> None:
    """Send inputs with increasing numbers until the task is cancelled."""
    for number in count():
        said = {"text": _SAID.format(number), "conversation_id": conversation}
        await house.client.post("/api/conversation/process", said | {"agent_id": house.account.agent_id})
        killed.answer_ages.append(asyncio.get_running_loop().time())
        await asyncio.sleep(pause)


async def run(house: House, conversation: str, seconds: float, pause: float = 1.0) -> Killed:
    """Send inputs for this many seconds, kill Home Assistant, and return the observations from before the kill."""
    killed = Killed(turns_before=int(await house.sensor("turns_model")))
    talking = asyncio.create_task(talk(house, conversation, killed, pause))
    await asyncio.sleep(seconds)
    killed.shown = await totals(house)
    await house.home_assistant.kill()
    ended = asyncio.get_running_loop().time()
    talking.cancel()
    await asyncio.gather(talking, return_exceptions=True)
    killed.answer_ages = [ended - at for at in killed.answer_ages]
    return killed


def look_into_file(path: Path, conversation: str, killed: Killed) -> None:
    """Read the content of the file into `killed` before Home Assistant opens the file again."""
    opened = sqlite3.connect(path)
    said = opened.execute("SELECT said FROM turn WHERE conversation = ? ORDER BY id", (conversation,))
    killed.memory_numbers = [int(number) for (text,) in said for number in re.findall(r"number (\d+) is", text)]
    ended = opened.execute(
        "SELECT figures ->> 'outcome' FROM turn_record WHERE figures ->> 'conversation_id' = ?", (conversation,)
    )
    killed.recorded = [end for (end,) in ended]
    texts = opened.execute(
        "SELECT text FROM exchange JOIN conversation ON conversation.id = exchange.id >> 32 "
        "WHERE conversation.key LIKE ? || '%' ORDER BY exchange.id",
        (conversation,),
    )
    killed.stored = [int(re.findall(r"number (\d+) is", text)[0]) for (text,) in texts]
    killed.findings = [found for (found,) in opened.execute("PRAGMA integrity_check")]
    opened.execute("INSERT INTO turn_words(turn_words) VALUES ('integrity-check')")
    opened.execute("CREATE VIRTUAL TABLE temp.place USING fts5vocab(main, turn_words, instance)")
    without = opened.execute("SELECT count(*) FROM turn WHERE id NOT IN (SELECT doc FROM temp.place)").fetchone()[0]
    beyond = opened.execute("SELECT count(*) FROM temp.place WHERE doc NOT IN (SELECT id FROM turn)").fetchone()[0]
    killed.findings += [f"{without} turns are not indexed, {beyond} words are of no turn"]
    opened.close()


async def look_at(house: House, conversation: str, killed: Killed) -> None:
    """Read the state at the start after the kill into `killed`."""
    killed.totals_after = await wait_for(lambda: totals(house), lambda now: now["turns_model"].isdigit())
    action = "/api/services/windowed_conversation/get_conversation?return_response"
    asked = {"entity_id": house.account.agent_id, "conversation_id": conversation, "content": "export"}
    exported = (await house.client.post(action, asked))["service_response"]["export"]
    questions = [exchange["messages"][0]["content"] for exchange in exported["exchanges"]]
    killed.kept = [int(number) for question in questions for number in _NUMBER.findall(question)]


async def is_stored(home_assistant: HomeAssistantProcess) -> bool:
    """Return whether the file has a turn and Home Assistant has saved the account, which takes slightly longer.

    The next start removes the data of an account that does not exist.
    """
    entries = home_assistant.config / ".storage" / "core.config_entries"
    try:
        with closing(sqlite3.connect(f"{(home_assistant.config / _STORE).as_uri()}?mode=ro", uri=True)) as store:
            (turns,) = store.execute("SELECT count(*) FROM turn").fetchone()
    except sqlite3.OperationalError:
        return False
    return turns > 0 and '"windowed_conversation"' in entries.read_text()


async def ask_name(house) -> list[str]:
    """Ask in new conversations until the name is known, and return the answers.

    A search of memory may be late on a busy machine right after a start, but not each time.
    """
    answers: list[str] = []
    while not answers or (len(answers) < 3 and "not know" in answers[-1]):
        answers.append((await house.say("what is my name?")).speech)
    return answers


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def kills(tmp_path_factory) -> list[Killed]:
    """Kill Home Assistant after a random time and after a longer one, and restart it after each kill."""
    home_assistant = HomeAssistantProcess(tmp_path_factory.mktemp("killed"), find_free_port())
    kills: list[Killed] = []
    conversation = ""
    async with ModelServer(strict=True) as model:
        for seconds in (random.uniform(3, 6), 12.0, None):
            async with run_house(home_assistant, model, []) as house:
                if kills:
                    await look_at(house, conversation, kills[-1])
                    answers = await ask_name(house)
                    kills[-1].name = answers[-1]
                    told = int(kills[-1].totals_after["turns_model"]) + len(answers)
                    await house.wait_for_sensor("turns_model", str(told).__eq__)
                else:
                    await house.say("my name is Ada")
                    await wait_for(lambda: is_stored(home_assistant), bool)
                if seconds is None:
                    break
                conversation = f"conversation {len(kills)}"
                kills.append(await run(house, conversation, seconds))
            look_into_file(home_assistant.config / _STORE, conversation, kills[-1])
    return kills


each = pytest.mark.parametrize("number", [0, 1])


@each
async def test_only_the_turns_of_the_last_seconds_are_gone_and_none_is_there_twice(kills: list[Killed], number: int):
    killed = kills[number]
    assert killed.kept == list(range(len(killed.kept)))
    assert [seconds for seconds in killed.answer_ages[len(killed.kept) :] if seconds > _MOST_LOST] == []


@each
async def test_conversation_comes_back_as_it_is_in_the_file_and_memory_has_the_same_turns(
    kills: list[Killed], number: int
):
    killed = kills[number]
    assert killed.kept == killed.stored == killed.memory_numbers


@each
async def test_no_total_falls_below_what_was_shown_before(kills: list[Killed], number: int):
    killed = kills[number]
    assert {key for key, shown in killed.shown.items() if int(killed.totals_after[key]) < int(shown)} == set()


@each
async def test_what_is_kept_is_counted_once(kills: list[Killed], number: int):
    killed = kills[number]
    assert int(killed.totals_after["turns_model"]) - killed.turns_before == len(killed.kept)


@each
async def test_what_was_remembered_before_a_kill_is_known_after_it(kills: list[Killed], number: int):
    assert kills[number].name == "Your name is Ada."


@each
async def test_memory_lacks_at_most_the_turn_in_progress_and_is_whole(kills: list[Killed], number: int):
    killed = kills[number]
    assert killed.memory_numbers == list(range(len(killed.memory_numbers)))
    # A turn is added to memory only after its answer, so the last one may not have been added yet.
    assert len(killed.memory_numbers) >= len(killed.answer_ages) - 1
    assert len(killed.recorded) >= len(killed.answer_ages) - 1
    assert set(killed.recorded) == {"answered"}
    assert killed.findings == ["ok", "0 turns are not indexed, 0 words are of no turn"]
