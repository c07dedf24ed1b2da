"""Tests for the health that the page shows: servers, models, windows and memory, without texts, keys and addresses."""

from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any

from homeassistant.const import CONF_API_KEY, CONF_MODEL, CONF_URL
from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import Unauthorized
from homeassistant.util import dt as dt_util
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser

from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_TOKENS,
    CONF_HISTORY_TOKENS,
    CONF_MEMORY,
    CONF_PROVIDER,
    CONF_ROUTING,
    PROVIDER_OPENAI,
)
from custom_components.windowed_conversation.page import health
from demo.model_server import ModelServer

from .actions import act
from .conftest import AGENT, SayFn, SetUpFn, until
from .page_reads import read_page
from .remembered import add_fact, memory_of
from .store_file import Disk
from .test_away import Away, away
from .test_memory_actions import People, people
from .test_memory_faults import lock_file
from .test_system_health import healed

__all__ = ["away", "people"]

type Read = Callable[..., Coroutine[Any, Any, dict[str, Any]]]


@pytest.fixture
def read(home: HomeAssistant) -> Read:
    """Return a function that reads the health as a caller."""

    async def read(context: Context | None = None) -> dict[str, Any]:
        return await read_page(home, health.COMMANDS, context)

    return read


async def test_server_that_answered_is_shown_with_the_time(
    entry: MockConfigEntry, say: SayFn, people: People, read: Read
) -> None:
    before = dt_util.now().replace(microsecond=0)
    await say("my name is Ada")

    (account,) = (await read(people.ada))["accounts"]

    assert (account["title"], account["state"]) == ("Server", "loaded")
    assert (account["server"]["reachable"], account["server"]["away_since"]) == (True, None)
    assert datetime.fromisoformat(account["server"]["answered_at"]) >= before


async def test_summary_is_an_answer_of_the_server(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, read: Read
) -> None:
    await say("my name is Ada")
    await say("what is my name?")
    (before,) = (await read())["accounts"]
    await act(home, "summarize_conversation", keep=1)

    (account,) = (await read())["accounts"]

    assert account["server"]["answered_at"] > before["server"]["answered_at"]


async def test_models_of_a_server_are_counted(entry: MockConfigEntry, model_server: ModelServer, read: Read) -> None:
    (account,) = (await read())["accounts"]

    assert account["server"]["models"] == len(model_server.settings.list_model_ids())
    assert account["server"]["reachable"]


async def test_server_that_is_away_is_shown_with_the_time_and_is_back_later(
    set_up: SetUpFn, say: SayFn, away: Away, read: Read
) -> None:
    await set_up(account={CONF_URL: away.server.url})
    before = dt_util.now()
    await away.refused()
    await say("my name is Grace")
    (gone,) = (await read())["accounts"]
    await away.server.start()
    await say("my name is Grace")
    (back,) = (await read())["accounts"]

    assert gone["server"]["reachable"] is False
    assert timedelta() <= datetime.fromisoformat(gone["server"]["away_since"]) - before < timedelta(minutes=5)
    assert (back["server"]["reachable"], back["server"]["away_since"]) == (True, None)


async def test_account_that_is_not_loaded_is_shown_without_its_server(
    home: HomeAssistant, entry: MockConfigEntry, people: People, read: Read
) -> None:
    await home.config_entries.async_unload(entry.entry_id)

    found = await read(people.ada)

    assert found["accounts"] == [{"title": "Server", "state": "not_loaded", "server": None}]
    assert found["agents"] == []


async def test_account_without_a_model_has_neither_server_nor_size(
    entry_without_model: MockConfigEntry, people: People, read: Read
) -> None:
    found = await read(people.ada)

    assert found["accounts"][0]["server"] is None
    (agent,) = found["agents"]
    assert [agent[name] for name in ("model", "context_tokens", "calibration")] == [None] * 3


@pytest.mark.parametrize("caller", ["ada", "guest", "admin", "automation"])
async def test_who_may_read_an_agent_sees_everything(
    entry: MockConfigEntry, people: People, read: Read, caller: str
) -> None:
    found = await read(getattr(people, caller))

    assert [len(found["accounts"]), [each["entity_id"] for each in found["agents"]]] == [1, [AGENT]]
    assert found["memory"]["reason"] is None


async def test_user_who_may_use_no_agent_is_refused(
    home: HomeAssistant, entry: MockConfigEntry, people: People, read: Read
) -> None:
    stranger = await home.auth.async_create_user("Stranger")

    with pytest.raises(Unauthorized):
        await read(Context(user_id=stranger.id))


async def test_user_sees_only_the_accounts_of_agents_that_they_may_read(
    home: HomeAssistant, set_up: SetUpFn, people: People, read: Read
) -> None:
    for _ in range(2):
        await set_up()
    reader = MockUser(name="Reader").add_to_hass(home)
    reader.mock_policy({"entities": {"entity_ids": {AGENT: {"read": True}}}})

    found = await read(Context(user_id=reader.id))

    assert (len(found["accounts"]), [each["entity_id"] for each in found["agents"]]) == (1, [AGENT])
    assert len((await read(people.admin))["accounts"]) == 2


async def test_size_that_the_user_entered_is_not_learned(set_up: SetUpFn, read: Read) -> None:
    await set_up(**{CONF_CONTEXT_TOKENS: 5000})

    (agent,) = (await read())["agents"]

    assert (agent["model"], agent["context_tokens"], agent["has_learned_context"]) == ("scripted", 5000, False)


async def test_size_that_a_refusal_named_is_learned(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer, read: Read
) -> None:
    await set_up(**{CONF_ROUTING: "model_only"})
    await say("my name is Ada")
    model_server.fault("context_overflow_llama", 1)
    await say("what is my name?")

    (agent,) = (await read())["agents"]

    assert (agent["context_tokens"], agent["has_learned_context"]) == (8192, True)


async def test_size_of_a_known_model_is_from_the_table(set_up: SetUpFn, model_server: ModelServer, read: Read) -> None:
    model_server.change(models=("gpt-4o-mini",))
    await set_up(account={CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url}, **{CONF_MODEL: "gpt-4o-mini"})

    (agent,) = (await read())["agents"]

    assert (agent["context_tokens"], agent["has_learned_context"]) == (128_000, False)


async def test_size_of_an_unknown_model_is_unknown(entry: MockConfigEntry, read: Read) -> None:
    (agent,) = (await read())["agents"]

    assert (agent["context_tokens"], agent["has_learned_context"]) == (None, False)


async def test_factors_are_learned_from_a_bill(entry: MockConfigEntry, say: SayFn, read: Read) -> None:
    (before,) = (await read())["agents"]
    await say("my name is Ada")
    (after,) = (await read())["agents"]

    assert before["calibration"] == {
        "is_learned": False,
        "factors": {"fixed": 1.0, "prose": 1.0, "tools": 1.0},
    }
    assert after["calibration"]["is_learned"]


async def test_windows_of_everybody_are_summed_for_an_automation(
    set_up: SetUpFn, say: SayFn, people: People, read: Read
) -> None:
    await set_up(options={CONF_HISTORY_TOKENS: 300})
    for number in range(12):
        await say(f"consider that locker number {number} is the {number} times seventh on the left", context=people.ada)
    await say("hello there", "grace's", context=people.grace)

    (agent,) = (await read(people.automation))["agents"]

    window = agent["window"]
    assert window["exchanges"] + window["evicted"]["exchanges"] == 13
    assert min(window["trims"], window["evicted"]["tokens"], window["tokens"]) > 0


async def test_windows_of_other_people_are_not_counted(
    entry: MockConfigEntry, say: SayFn, people: People, read: Read
) -> None:
    await say("my name is Ada", conversation_id="hers", context=people.ada)
    await say("my name is Grace", conversation_id="another", context=people.grace)
    await say("is anybody there?", conversation_id="shared")

    counts = [
        agent["window"]["exchanges"]
        for caller in (people.ada, people.grace, people.guest, people.automation)
        for agent in (await read(caller))["agents"]
    ]

    assert counts == [2, 2, 1, 3]


async def test_key_and_address_are_not_shown(
    set_up: SetUpFn, model_server: ModelServer, people: People, read: Read
) -> None:
    host = model_server.url.removeprefix("http://")
    await set_up(account={CONF_URL: f"http://ferdinand:hunter2@{host}", CONF_API_KEY: "swordfish"})

    shown = str(await read(people.admin))

    assert not any(secret in shown for secret in ("swordfish", "hunter2", "ferdinand", host))


async def test_memory_is_shown_with_its_numbers(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, read: Read
) -> None:
    await add_fact(home, "The bins go out on Friday")
    await say("hello there")
    statistics = await memory_of(home).async_read(lambda memory: memory.statistics(), None)
    assert statistics is not None
    await until(lambda: memory_of(home).writer.state.statistics == statistics)

    memory = (await read())["memory"]

    assert memory == {
        "reason": None,
        "facts": 1,
        "turns": 1,
        "summaries": 0,
        "size": statistics.size,
        "unindexed": 0,
        "pending_writes": 0,
    }


async def test_memory_that_is_unavailable_is_shown_with_the_reason(
    *, home: HomeAssistant, entry: MockConfigEntry, say: SayFn, people: People, disk: Disk, read: Read
) -> None:
    await say("hello there")
    opened = memory_of(home).writer.open_store
    assert opened is not None
    with lock_file(disk, opened):
        await say("hello again")
        await until(lambda: memory_of(home).writer.state.reason == "locked")
        memory = (await read(people.ada))["memory"]
    await healed(home)

    assert (memory["reason"], memory["facts"], memory["size"]) == ("locked", None, None)
    assert memory["pending_writes"] > 0


async def test_memory_that_no_agent_uses_is_available_and_empty(set_up: SetUpFn, read: Read) -> None:
    await set_up(**{CONF_MEMORY: "off"})

    memory = (await read())["memory"]

    assert (memory["reason"], memory["facts"], memory["turns"]) == (None, 0, 0)
