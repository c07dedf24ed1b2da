"""The diagnostics of an account: what is in them, and that no key and nothing that people wrote or said is."""

from collections.abc import Callable, Coroutine
import json
from typing import Any

from homeassistant.const import CONF_API_KEY, CONF_MODEL, CONF_NAME, CONF_PROMPT, CONF_URL
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry
from pytest_homeassistant_custom_component.components.diagnostics import get_diagnostics_for_config_entry
from pytest_homeassistant_custom_component.typing import ClientSessionGenerator

from custom_components.windowed_conversation import diagnostics
from custom_components.windowed_conversation.const import (
    CONF_EXCLUDED_TAGS,
    CONF_HISTORY_TOKENS,
    CONF_PROVIDER,
    CONF_ROUTING,
    DOMAIN,
    PROVIDER_ANTHROPIC,
    PROVIDER_GEMINI,
    PROVIDER_OPENAI,
)
from demo.model_server import ModelServer

from .conftest import AGENT, Say, SetUp

type Diagnostics = Callable[[MockConfigEntry], Coroutine[Any, Any, dict[str, Any]]]


@pytest.fixture
def told(home: HomeAssistant, hass_client: ClientSessionGenerator) -> Diagnostics:
    """Return a function that downloads the diagnostics of an account."""

    async def told(entry: MockConfigEntry) -> dict[str, Any]:
        return await get_diagnostics_for_config_entry(home, hass_client, entry)

    return told


def address(model_server: ModelServer, provider: str) -> str:
    """Return the server's address for a provider."""
    return model_server.url if provider == PROVIDER_OPENAI else model_server.address


async def test_account_is_told_by_its_figures(
    set_up: SetUp, say: Say, told: Diagnostics, model_server: ModelServer
) -> None:
    model_server.change(models=("gpt-4o-mini",))
    account = {CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url}
    options = {CONF_HISTORY_TOKENS: 4000}
    entry = await set_up(account=account, options=options, **{CONF_MODEL: "gpt-4o-mini"})
    await say("my name is Ada")

    found = await told(entry)

    assert found["account"] == {
        "provider": "openai",
        "vendor": "openai",
        "format": None,
        "api_version": None,
        "url": model_server.url,
        "options": options,
        "state": "loaded",
        "models_listed": len(model_server.settings.listed_models()),
        "is_away": False,
    }
    (agent,) = found["agents"]
    assert agent.keys() == {
        "configuration",
        "model",
        "token_count",
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
    assert agent["windows"]["newest"][0]["message_count"] == 2
    assert agent["issues"] == []
    assert agent["totals"]["input_tokens"] == model_server.requests[-1].usage["prompt"]
    assert float(agent["costs"]["turn"]) > 0
    assert agent["last_turn"]["answered_by"] == AGENT
    assert found["learned"]["models"]["gpt-4o-mini"].keys() == {"fixed", "prose", "tools"}
    assert found["learned"]["limits"]["gpt-4o-mini"].keys() >= {"named", "served", "refused"}


async def test_size_that_was_learned_is_told(
    set_up: SetUp, say: Say, told: Diagnostics, model_server: ModelServer
) -> None:
    entry = await set_up(**{CONF_ROUTING: "llm_only"})
    await say("my name is Ada")
    model_server.fault("context_overflow_llama", 1)
    await say("what is my name?")

    found = await told(entry)

    assert found["learned"]["limits"]["scripted"]["named"] == 8192
    assert found["agents"][0]["model"]["context_tokens"] == 8192
    assert found["agents"][0]["configuration"]["context_tokens"] is None


@pytest.mark.parametrize("provider", [PROVIDER_OPENAI, PROVIDER_ANTHROPIC, PROVIDER_GEMINI])
async def test_provider_counts_a_sample_beside_us(
    set_up: SetUp, told: Diagnostics, model_server: ModelServer, provider: str
) -> None:
    entry = await set_up(account={CONF_PROVIDER: provider, CONF_URL: address(model_server, provider)})

    (agent,) = (await told(entry))["agents"]

    (request,) = model_server.log.records
    assert (request.for_answer, request.violations, request.status) == (False, [], 200)
    count = agent["token_count"]
    assert count["estimated"] == pytest.approx(count["counted"], rel=0.5)
    assert count["difference"] == round(100 * (count["estimated"] - count["counted"]) / count["counted"], 1)


@pytest.mark.parametrize(("fault", "error"), [("401", "AuthError"), ("500", "Unavailable")])
async def test_count_that_fails_is_told_by_its_kind(
    set_up: SetUp, told: Diagnostics, model_server: ModelServer, fault: str, error: str
) -> None:
    entry = await set_up(account={CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url})
    model_server.fault(fault)

    assert (await told(entry))["agents"][0]["token_count"] == {"error": error}


async def test_count_is_not_waited_for_without_end(
    set_up: SetUp, told: Diagnostics, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics, "_COUNT_DEADLINE", 0.2)
    entry = await set_up(account={CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url})
    model_server.fault("no_answer")

    assert (await told(entry))["agents"][0]["token_count"] == {"error": "DeadlineExceeded"}


async def test_server_that_cannot_count_is_told(entry: MockConfigEntry, told: Diagnostics) -> None:
    assert (await told(entry))["agents"][0]["token_count"] == {"error": "NoTokenCount"}


async def test_account_without_a_model_has_diagnostics(entry_without_model: MockConfigEntry, told: Diagnostics) -> None:
    found = await told(entry_without_model)

    assert found["account"]["provider"] == "none"
    assert found["agents"][0]["model"] is found["agents"][0]["token_count"] is None


async def test_account_that_is_not_set_up_has_diagnostics(
    home: HomeAssistant, entry: MockConfigEntry, told: Diagnostics
) -> None:
    await home.config_entries.async_unload(entry.entry_id)

    found = await told(entry)

    assert found["account"]["state"] == "not_loaded"
    assert found["agents"] == []


async def test_conversations_are_told_up_to_a_number(entry: MockConfigEntry, say: Say, told: Diagnostics) -> None:
    for number in range(22):
        await say("turn on kitchen light", f"conversation {number}")

    windows = (await told(entry))["agents"][0]["windows"]

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


async def test_no_secret_and_nothing_that_was_said_or_written_is_in_it(
    home: HomeAssistant, set_up: SetUp, say: Say, told: Diagnostics, model_server: ModelServer
) -> None:
    host = model_server.url.removeprefix("http://")
    account = {
        CONF_URL: f"http://{SECRETS['user']}:{SECRETS['password']}@{host}",
        CONF_API_KEY: SECRETS["key"],
    }
    agent = {CONF_PROMPT: f"Like {SECRETS['prompt']}s.", CONF_EXCLUDED_TAGS: [SECRETS["tag"]]}
    entry = await set_up(account=account, **agent)
    home.config_entries.async_update_entry(entry, title=SECRETS["name"])
    await home.async_block_till_done()
    await say(f"my name is {SECRETS['person']}", SECRETS["conversation"])
    await say(f"the word is {SECRETS['said']}", SECRETS["conversation"])
    of_the_window = {"entity_id": AGENT, "conversation_id": SECRETS["conversation"], "add": [SECRETS["tag"]]}
    await home.services.async_call(DOMAIN, "tag_exchange", of_the_window, blocking=True)

    found = await told(entry)

    assert found["agents"][0]["windows"]["newest"][0]["message_count"] == 4
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
    set_up: SetUp, told: Diagnostics, url: str, shown: str | None
) -> None:
    found = await told(await set_up(account={CONF_URL: url}))

    assert found["account"]["url"] == shown
    assert "swordfish" not in str(found)
