"""Tests for OpenAI's compaction of evicted exchanges: only the same model gets it, and all others get plain text."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_URL
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_capture_events

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.bridge.turn_report import EVENT_SUMMARIZED
from custom_components.windowed_conversation.const import (
    CONF_COMPACTION,
    CONF_FALLBACK_AGENTS,
    CONF_FORMAT,
    CONF_HISTORY_TOKENS,
    CONF_PROVIDER,
    DOMAIN,
    PROVIDER_ANTHROPIC,
    PROVIDER_AZURE,
    PROVIDER_OPENAI,
    PROVIDER_OPENAI_CHAT,
    OpenAIFormat,
)
from custom_components.windowed_conversation.window import NativeData
from custom_components.windowed_conversation.window.summary import is_summary
from demo.model_server import ModelServer

from .account_kinds import AZURE_RESPONSES, CLASSIC_RESPONSES
from .agent_forms import get_selectors, open_new
from .conftest import SayFn, SetUpFn, get_speech, until
from .more_agents import add_account, change_agent
from .summarizing import ASKED, STORY, the_window

type TalkFn = Callable[..., Coroutine[Any, Any, Agent]]


def natives(agent: Agent) -> list[NativeData | None]:
    """Return the provider-native data of each summary in the window, which only the same model can read."""
    return [each.messages[-1].native for each in the_window(agent).exchanges() if is_summary(each)]


def compactions(model_server: ModelServer) -> list[Any]:
    """Return the bodies of the requests for a compaction."""
    return [each.body for each in model_server.log.records if each.path.endswith("/v1/responses/compact")]


def texts(body: dict[str, Any]) -> list[str]:
    """Return the texts in a request, in either of OpenAI's wire formats."""
    items = body.get("input") or body["messages"]
    return [each["content"] for each in items if isinstance(each.get("content"), str)]


@pytest.fixture
def talk(
    set_up: SetUpFn, say: SayFn, get_agent: Callable[[MockConfigEntry], Agent], model_server: ModelServer
) -> TalkFn:
    """Return a function that sets up an agent, talks until evicted exchanges are summarized, and returns the agent."""

    async def talk(
        compaction: bool = True,
        *,
        tokens: int = 2000,
        account: Mapping[str, Any] | None = None,
        **agent_data: Any,
    ) -> Agent:
        model_server.change(models=("scripted", "another"))
        account = account or {CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url}
        options = {CONF_HISTORY_TOKENS: tokens}
        agent = get_agent(await set_up(account=account, options=options, **{CONF_COMPACTION: compaction}, **agent_data))
        await say("my name is Ada")
        while not the_window(agent).stats().trims:
            await say(STORY)
        await until(lambda: not agent.summarizing_windows)
        return agent

    return talk


async def test_provider_shortens_what_a_trim_drops(
    talk: TalkFn, say: SayFn, home: HomeAssistant, model_server: ModelServer
) -> None:
    told = async_capture_events(home, EVENT_SUMMARIZED)
    agent = await talk()

    (native,) = natives(agent)
    assert native is not None
    assert (native.provider, native.model) == ("openai_responses", "scripted")
    assert get_speech(await say("what is my name?")) == "Your name is Ada."
    sent = model_server.requests[-1].body["input"]
    assert any(item["type"] == "compaction" for item in sent)
    assert not [text for text in texts({"input": sent}) if text.startswith("[What was said before")]
    assert not any(text.startswith(ASKED) for request in model_server.requests for text in texts(request.body))
    assert len(compactions(model_server)) == len(told) == 1
    assert told[0].data["usage"]["input"] > 100
    (summary,) = filter(is_summary, the_window(agent).exchanges())
    assert "my name is Ada" in summary.messages[-1].content
    assert "You: Once upon a time" in summary.messages[-1].content


@pytest.mark.long
async def test_window_stays_in_its_budget_through_many_compactions(
    talk: TalkFn, say: SayFn, model_server: ModelServer
) -> None:
    agent = await talk()
    while the_window(agent).stats().trims < 4:
        await say(STORY)
        assert not the_window(agent).stats().over_budget
    await until(lambda: not agent.summarizing_windows)

    assert len(compactions(model_server)) >= 3
    assert get_speech(await say("what is my name?")) == "Your name is Ada."
    assert all(not record.violations for record in model_server.log.records)


async def test_provider_that_takes_over_is_sent_plain_words(
    talk: TalkFn, say: SayFn, home: HomeAssistant, model_server: ModelServer
) -> None:
    server = {CONF_PROVIDER: PROVIDER_OPENAI_CHAT, CONF_URL: model_server.url}
    await add_account(home, "Bob", server, **{CONF_LLM_HASS_API: ["assist"]})
    await talk(**{CONF_FALLBACK_AGENTS: ["conversation.bob"]})
    model_server.fault("503", times=1)

    await say("what is my name?")

    request = model_server.requests[-1]
    assert (request.format, request.violations) == ("openai_chat", [])
    assert any("my name is Ada" in text for text in texts(request.body))
    assert "encrypted_content" not in request.raw.decode()


async def test_another_model_is_sent_plain_words(
    talk: TalkFn, say: SayFn, home: HomeAssistant, model_server: ModelServer
) -> None:
    await talk()
    (entry,) = home.config_entries.async_entries(DOMAIN)
    await change_agent(home, entry, **{CONF_MODEL: "another"})

    await say("what is my name?")

    request = model_server.requests[-1]
    assert (request.body["model"], request.violations) == ("another", [])
    assert any("my name is Ada" in text for text in texts(request.body))
    assert "encrypted_content" not in request.raw.decode()


async def test_model_is_asked_where_the_provider_s_way_is_too_long(talk: TalkFn, model_server: ModelServer) -> None:
    agent = await talk(tokens=500)

    assert natives(agent) == [None]
    assert len(compactions(model_server)) == 1
    assert texts(model_server.requests[-1].body)[-1].startswith(ASKED)


async def test_azure_shortens_what_a_trim_drops(talk: TalkFn, say: SayFn, model_server: ModelServer) -> None:
    agent = await talk(account=AZURE_RESPONSES.account(model_server))

    (native,) = natives(agent)
    assert native is not None
    assert native.provider == "openai_responses 127.0.0.1"
    assert len(compactions(model_server)) == 1
    assert get_speech(await say("what is my name?")) == "Your name is Ada."
    assert all(not record.violations for record in model_server.log.records)


async def test_model_is_asked_for_a_summary_where_azure_has_no_way_to_shorten(
    talk: TalkFn, say: SayFn, model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    agent = await talk(account=CLASSIC_RESPONSES.account(model_server))

    assert natives(agent) == [None]
    assert any(text.startswith(ASKED) for request in model_server.requests for text in texts(request.body))
    assert get_speech(await say("what is my name?")) == "Your name is Ada."
    assert "No summary" not in caplog.text


async def test_nothing_is_shortened_unless_the_agent_says_so(talk: TalkFn, model_server: ModelServer) -> None:
    agent = await talk(compaction=False)

    assert natives(agent) == []
    assert compactions(model_server) == []


@pytest.mark.parametrize(
    ("account", "offers"),
    [
        ({CONF_PROVIDER: PROVIDER_OPENAI}, True),
        ({CONF_PROVIDER: PROVIDER_OPENAI, CONF_FORMAT: OpenAIFormat.CHAT}, False),
        ({CONF_PROVIDER: PROVIDER_AZURE}, True),
        ({CONF_PROVIDER: PROVIDER_AZURE, CONF_FORMAT: OpenAIFormat.CHAT}, False),
        ({CONF_PROVIDER: PROVIDER_ANTHROPIC}, True),
        ({CONF_PROVIDER: PROVIDER_OPENAI_CHAT}, False),
    ],
)
async def test_form_has_the_option_where_the_provider_has_the_means(
    account: dict[str, Any], offers: bool, set_up: SetUpFn, home: HomeAssistant, model_server: ModelServer
) -> None:
    urls = {PROVIDER_AZURE: model_server.azure_url, PROVIDER_ANTHROPIC: model_server.anthropic_url}
    url = urls.get(account[CONF_PROVIDER], model_server.url)

    form = await open_new(home, await set_up(account={CONF_URL: url, **account}))

    assert (CONF_COMPACTION in get_selectors(form)) is offers
