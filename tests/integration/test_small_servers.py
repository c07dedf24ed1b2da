"""Tests for a local server that silently drops messages beyond 4,096 tokens: query, limit, and repair issue."""

from typing import Any

from homeassistant.const import CONF_API_KEY
from homeassistant.core import HomeAssistant
from homeassistant.helpers import issue_registry as ir
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import CONF_HISTORY_TOKENS, CONF_ROUTING
from demo.model_server import ContextTruncation, ModelServer

from .conftest import SayFn, SetUpFn, listed, until


@pytest.fixture
async def entry(set_up: SetUpFn, model_server: ModelServer) -> MockConfigEntry:
    """Return an account without a key, whose server drops messages as Ollama does and reports its context size."""
    model_server.truncation = ContextTruncation(4096)
    return await set_up(account={CONF_API_KEY: None}, **{CONF_ROUTING: "model_only"})


def issues(home: HomeAssistant) -> dict[str | None, Any]:
    """Return the placeholders of all repair issues by translation key."""
    return {each.translation_key: each.translation_placeholders for each in ir.async_get(home).issues.values()}


async def asked(entry: MockConfigEntry, say: SayFn, reads: int) -> None:
    """Send text, and wait until the server has reported that it reads `reads` tokens."""
    await say("my name is Ada")
    (agent,) = entry.runtime_data.agents.values()
    await until(lambda: agent.model.size.readable_tokens == reads)


async def test_ollama_is_asked_after_its_first_answer_and_nothing_larger_is_planned(
    entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    await asked(entry, say, 4096)
    (agent,) = entry.runtime_data.agents.values()
    paths = [record.path for record in model_server.log.records if not record.for_answer]

    assert paths == ["/api/ps"]
    assert agent.model.planned_budget.context_tokens <= 4096


async def test_issue_names_what_to_set_in_ollama_and_clears_once_it_is_set(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    await asked(entry, say, 4096)
    await say("hello")
    raised = issues(home)
    model_server.truncation = ContextTruncation(32_768)
    (agent,) = entry.runtime_data.agents.values()
    agent.model.size.may_have_changed = True
    await asked(entry, say, 32_768)
    await say("hello")

    assert [*raised] == ["server_reads_little"]
    assert raised["server_reads_little"]["context"] == "4,096"
    assert raised["server_reads_little"]["suggested"] == "16384"
    assert issues(home) == {}


async def test_issue_clears_with_a_smaller_window(home: HomeAssistant, entry: MockConfigEntry, say: SayFn) -> None:
    await asked(entry, say, 4096)
    await say("hello")
    home.config_entries.async_update_entry(entry, options={CONF_HISTORY_TOKENS: 1000})
    await home.async_block_till_done()
    await say("hello")

    assert issues(home) == {}


async def test_issue_clears_when_the_account_has_another_server(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn
) -> None:
    await asked(entry, say, 4096)
    await say("hello")
    home.config_entries.async_update_entry(entry, data={**entry.data, CONF_API_KEY: "key"})
    await home.async_block_till_done()

    assert issues(home) == {}


async def test_server_with_a_key_is_not_asked(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    model_server.truncation = ContextTruncation(4096)
    await set_up(**{CONF_ROUTING: "model_only"})
    await say("my name is Ada")
    await listed(home)

    assert [record.path for record in model_server.log.records if not record.for_answer] == []
