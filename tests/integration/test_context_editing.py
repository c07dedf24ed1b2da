"""Tests for the agent option that lets a provider shorten old turns itself, and for requests to other providers."""

from collections.abc import Callable
from typing import Any

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_URL
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_capture_events

from custom_components.windowed_conversation.bridge.turn_report import EVENT_TURN
from custom_components.windowed_conversation.const import (
    CONF_COMPACTION,
    CONF_FALLBACK_AGENTS,
    CONF_PROVIDER,
    CONF_ROUTING,
    CONF_TOOL_RESULTS,
    PROVIDER_ANTHROPIC,
    PROVIDER_OPENAI_CHAT,
)
from demo.model_server import ModelServer

from .conftest import SayFn, SetUpFn, get_speech
from .more_agents import add_account

CLAUDE = "claude-haiku-4-5"
LOOK = "which devices are on?"
# A number of tool results that exceeds the number kept by the provider.
MANY = 8


@pytest.fixture
async def house(home: HomeAssistant) -> HomeAssistant:
    """Return a home with 30 more devices, so that a tool returns a long result."""
    for number in range(30):
        home.states.async_set(f"light.corridor_{number}", "on", {"friendly_name": f"corridor light {number}"})
        async_expose_entity(home, "conversation", f"light.corridor_{number}", should_expose=True)
    return home


@pytest.fixture
def claude(house: HomeAssistant, set_up: SetUpFn, model_server: ModelServer) -> Callable[..., Any]:
    """Return a function that sets up an agent that sends all text to Anthropic and keeps tool results in the window."""

    async def claude(compaction: bool | None = True, **agent: Any) -> MockConfigEntry:
        model_server.change(models=(CLAUDE, "scripted"))
        return await set_up(
            account={CONF_PROVIDER: PROVIDER_ANTHROPIC, CONF_URL: model_server.anthropic_url},
            options={CONF_TOOL_RESULTS: "keep"},
            **({CONF_COMPACTION: compaction} if compaction is not None else {}),
            **{CONF_MODEL: CLAUDE, CONF_ROUTING: "model_only", **agent},
        )

    return claude


def results_sent(body: dict[str, Any]) -> list[str]:
    """Return the tool results in a request, in either wire format."""
    blocks = [block for m in body["messages"] if isinstance(m["content"], list) for block in m["content"]]
    return [
        *(block["content"] for block in blocks if block.get("type") == "tool_result"),
        *(message["content"] for message in body["messages"] if message["role"] == "tool"),
    ]


async def test_provider_clears_old_results_that_are_sent_whole_and_the_turn_tells_how_much(
    claude: Callable[..., Any], home: HomeAssistant, say: SayFn, model_server: ModelServer
) -> None:
    await claude()
    told = async_capture_events(home, EVENT_TURN)

    answers = [get_speech(await say(LOOK)) for _ in range(MANY)]

    assert len(set(answers)) == 1
    assert "corridor light 29" in answers[0]
    cleared = [event.data["usage"]["cleared"] for event in told]
    assert cleared[0] == 0
    assert cleared[-1] > 1000
    sent = results_sent(model_server.requests[-1].body)
    assert len(sent) == MANY
    assert all("corridor light 29" in result for result in sent)
    assert all(not request.violations for request in model_server.requests)


@pytest.mark.parametrize("compaction", [None, False])
async def test_nothing_is_cleared_unless_the_agent_says_so(
    compaction: bool | None,
    claude: Callable[..., Any],
    home: HomeAssistant,
    say: SayFn,
    model_server: ModelServer,
) -> None:
    await claude(compaction)
    told = async_capture_events(home, EVENT_TURN)
    for _ in range(MANY):
        await say(LOOK)

    assert {event.data["usage"]["cleared"] for event in told} == {0}
    assert not any("context_management" in request.body for request in model_server.requests)


async def test_provider_that_takes_over_is_sent_the_plain_history(
    claude: Callable[..., Any], home: HomeAssistant, say: SayFn, model_server: ModelServer
) -> None:
    server = {CONF_PROVIDER: PROVIDER_OPENAI_CHAT, CONF_URL: model_server.url}
    await add_account(home, "Bob", server, **{CONF_LLM_HASS_API: ["assist"]})
    await claude(**{CONF_FALLBACK_AGENTS: ["conversation.bob"]})
    for _ in range(MANY):
        await say(LOOK)
    model_server.fault("503", times=1)

    answer = get_speech(await say("what was the last thing I asked you about?"))

    request = model_server.requests[-1]
    assert answer
    assert (request.format, request.violations) == ("openai_chat", [])
    assert len(results_sent(request.body)) == MANY
    assert all("corridor light 29" in result for result in results_sent(request.body))
