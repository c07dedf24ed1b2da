"""Tests for the diagnostics of an account: their content, without API keys or conversation texts."""

from collections.abc import Callable, Coroutine
import json
from typing import Any

from homeassistant.const import CONF_API_KEY, CONF_MODEL, CONF_NAME, CONF_PROMPT, CONF_URL
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry
from pytest_homeassistant_custom_component.components.diagnostics import get_diagnostics_for_config_entry
from pytest_homeassistant_custom_component.typing import ClientSessionGenerator

from custom_components.windowed_conversation.const import (
    CONF_HISTORY_TOKENS,
    CONF_PROVIDER,
    CONF_ROUTING,
    DOMAIN,
    PROVIDER_OPENAI,
)
from demo.model_server import ModelServer

from .conftest import AGENT, SayFn, SetUpFn

type DownloadFn = Callable[[MockConfigEntry], Coroutine[Any, Any, dict[str, Any]]]


@pytest.fixture
def download(home: HomeAssistant, hass_client: ClientSessionGenerator) -> DownloadFn:
    """Return a function that downloads the diagnostics of an account."""

    async def download(entry: MockConfigEntry) -> dict[str, Any]:
        return await get_diagnostics_for_config_entry(home, hass_client, entry)

    return download


async def test_account_is_told_by_its_figures(
    set_up: SetUpFn, say: SayFn, download: DownloadFn, model_server: ModelServer
) -> None:
    model_server.change(models=("gpt-4o-mini",))
    account = {CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url}
    options = {CONF_HISTORY_TOKENS: 4000}
    entry = await set_up(account=account, options=options, **{CONF_MODEL: "gpt-4o-mini"})
    await say("my name is Ada")

    found = await download(entry)

    assert found["account"] == {
        "provider": "openai",
        "vendor": "openai",
        "format": None,
        "api_version": None,
        "url": model_server.url,
        "options": options,
        "state": "loaded",
        "models_listed": len(model_server.settings.list_model_ids()),
        "is_away": False,
    }
    (agent,) = found["agents"]
    assert agent.keys() == {
        "configuration",
        "model",
        "windows",
        "issues",
        "totals",
        "costs",
        "last_turn",
    }
    assert agent["configuration"]["policy"]["history_tokens"] == 4000
    assert agent["configuration"]["model"] == "gpt-4o-mini"
    assert agent["model"]["format"] == "openai_responses"
    assert agent["model"]["profile"]["caching"] == "key"
    assert agent["model"]["context_tokens"] == 128_000
    assert agent["windows"]["conversations"] == 1
    assert agent["windows"]["newest"][0]["messages"] == 2
    assert agent["issues"] == []
    assert agent["totals"]["input_tokens"] == model_server.requests[-1].usage["prompt"]
    assert float(agent["costs"]["turn"]) > 0
    assert agent["last_turn"]["answered_by"] == AGENT
    assert found["learned"]["models"]["gpt-4o-mini"].keys() == {"fixed", "prose", "tools"}
    assert found["learned"]["limits"]["gpt-4o-mini"].keys() >= {"named", "accepted", "refused"}


async def test_size_that_was_learned_is_told(
    set_up: SetUpFn, say: SayFn, download: DownloadFn, model_server: ModelServer
) -> None:
    entry = await set_up(**{CONF_ROUTING: "model_only"})
    await say("my name is Ada")
    model_server.fault("context_overflow_llama", 1)
    await say("what is my name?")

    found = await download(entry)

    assert found["learned"]["limits"]["scripted"]["named"] == 8192
    assert found["agents"][0]["model"]["context_tokens"] == 8192
    assert found["agents"][0]["configuration"]["context_tokens"] is None


async def test_account_without_a_model_has_diagnostics(
    entry_without_model: MockConfigEntry, download: DownloadFn
) -> None:
    found = await download(entry_without_model)

    assert found["account"]["provider"] == "none"
    assert found["agents"][0]["model"] is None


async def test_account_that_is_not_set_up_has_diagnostics(
    home: HomeAssistant, entry: MockConfigEntry, download: DownloadFn
) -> None:
    await home.config_entries.async_unload(entry.entry_id)

    found = await download(entry)

    assert found["account"]["state"] == "not_loaded"
    assert found["agents"] == []


async def test_conversations_are_told_up_to_a_number(entry: MockConfigEntry, say: SayFn, download: DownloadFn) -> None:
    for number in range(22):
        await say("turn on kitchen light", f"conversation {number}")

    windows = (await download(entry))["agents"][0]["windows"]

    assert (windows["conversations"], len(windows["newest"])) == (22, 20)


SECRETS = {
    "key": "sk-swordfish",
    "user": "ferdinand",
    "password": "hunter2",
    "name": "Nightingale",
    "prompt": "cucumber",
    "said": "pelican",
    "conversation": "birdwatching",
    "tag": "seabird",
    "person": "Lovelace",
}


@pytest.mark.rule("diagnostics")
async def test_no_secret_and_nothing_that_was_said_or_written_is_in_it(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, download: DownloadFn, model_server: ModelServer
) -> None:
    host = model_server.url.removeprefix("http://")
    account = {
        CONF_URL: f"http://{SECRETS['user']}:{SECRETS['password']}@{host}",
        CONF_API_KEY: SECRETS["key"],
    }
    agent = {CONF_PROMPT: f"Like {SECRETS['prompt']}s."}
    entry = await set_up(account=account, **agent)
    home.config_entries.async_update_entry(entry, title=SECRETS["name"])
    await home.async_block_till_done()
    await say(f"my name is {SECRETS['person']}", SECRETS["conversation"])
    await say(f"the word is {SECRETS['said']}", SECRETS["conversation"])
    of_the_window = {"entity_id": AGENT, "conversation_id": SECRETS["conversation"], "add": [SECRETS["tag"]]}
    await home.services.async_call(DOMAIN, "tag_exchange", of_the_window, blocking=True)

    found = await download(entry)

    assert found["agents"][0]["windows"]["newest"][0]["messages"] == 4
    shown = json.dumps(found).lower()
    assert [name for name, secret in SECRETS.items() if secret.lower() in shown] == []
    assert found["agents"][0]["configuration"][CONF_NAME] == "**REDACTED**"
    assert found["account"]["url"] == model_server.url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:1/v1?key=swordfish#x", "http://127.0.0.1:1/v1"),
        ("http://ferdinand:swordfish@127.0.0.1:1/v1", "http://127.0.0.1:1/v1"),
        ("http://swordfish@127.0.0.1:1", "http://127.0.0.1:1/"),
        ("http://[swordfish", None),
        ("swordfish", None),
        ("", None),
    ],
)
async def test_address_is_told_without_what_may_be_a_secret(
    set_up: SetUpFn, download: DownloadFn, url: str, shown: str | None
) -> None:
    found = await download(await set_up(account={CONF_URL: url}))

    assert found["account"]["url"] == shown
    assert "swordfish" not in str(found)
