"""Tests that a model with a small context reads the newest version of a fact, even after evictions."""

import time

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.const import CONF_API_KEY, CONF_MODEL, CONF_URL
from homeassistant.core import Context, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, MockUser

from custom_components.windowed_conversation.const import (
    CONF_FORMAT,
    CONF_PROVIDER,
    CONF_ROUTING,
    CONF_STATES,
    PROVIDER_ANTHROPIC,
    PROVIDER_GEMINI,
    PROVIDER_OPENAI,
    PROVIDER_OPENAI_CHAT,
)
from custom_components.windowed_conversation.memory.core import PastTurn
from demo.model_server import ModelServer

from .conftest import SayFn, SetUpFn, get_speech, start, stop
from .remembered import memory_of

# The provider, the account data, the path of the server's URL, and the model.
_KINDS = {
    "responses": (PROVIDER_OPENAI, {CONF_FORMAT: "responses"}, "/v1", "gpt-4o-mini"),
    "chat": (PROVIDER_OPENAI, {CONF_FORMAT: "chat"}, "/v1", "gpt-4o-mini"),
    "gemini": (PROVIDER_GEMINI, {}, "", "gemini-2.5-flash"),
    "anthropic": (PROVIDER_ANTHROPIC, {}, "", "claude-haiku-4-5"),
    "server": (PROVIDER_OPENAI_CHAT, {}, "/v1", "scripted"),
}


@pytest.fixture
def ada(home: HomeAssistant) -> Context:
    return Context(user_id=MockUser(name="Ada").add_to_hass(home).id)


def _story(number: int, tokens: int) -> str:
    # One long word, because the answer repeats it and the model server sends each word as an event.
    return f"consider that locker {number} is {'far-far-away-and-' * (tokens // 4)}blue"


def evicted(entry: MockConfigEntry) -> int:
    """Return the number of exchanges that the windows of the account's agent have evicted."""
    (agent,) = entry.runtime_data.agents.values()
    return sum(window.stats().evicted_exchanges for window in agent.windows.loaded_windows().values())


@pytest.mark.parametrize("size", [3_600, 8_192])
@pytest.mark.parametrize("kind", _KINDS)
async def test_name_is_the_one_that_was_told_last(
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    model_server: ModelServer,
    *,
    ada: Context,
    kind: str,
    size: int,
) -> None:
    provider, more, path, model = _KINDS[kind]
    model_server.change(models=(model,), context_size=size)
    for number in range(12):
        home.states.async_set(f"switch.{number}", "on", {"friendly_name": f"Pump {number}"})
        async_expose_entity(home, "conversation", f"switch.{number}", should_expose=True)
    account = {CONF_PROVIDER: provider, CONF_URL: f"{model_server.address}{path}", CONF_API_KEY: "key", **more}
    entry = await set_up(account=account, **{CONF_MODEL: model, CONF_ROUTING: "model_only", CONF_STATES: True})

    async def ask(conversation: str) -> tuple[str, int]:
        """Ask for the name; return the answer, and how often the request contains "my name is Eve"."""
        await memory_of(home).async_change(lambda memory: None)
        answer = get_speech(await say("what is my name?", conversation, context=ada))
        return answer, str(model_server.requests[-1].body).count("my name is Eve")

    yesterday = time.time() - 86_400
    bob = PastTurn("yesterday", yesterday, "my name is Bob", "Nice to meet you, Bob.", person=ada.user_id)
    await memory_of(home).async_change(lambda memory: memory.add_turn(bob))
    await say("my name is Eve", "today", context=ada)
    for number in range(4):
        await say(_story(number, size // 8), "today", context=ada)
    answers = [await ask("today"), await ask("new")]
    assert "Pump 1=on" in str(model_server.requests[-1].body)
    await stop(home, entry)
    await start(home, entry)
    answers += [await ask("today"), await ask("newest")]

    assert answers == [("Your name is Eve.", 1)] * 4
    assert evicted(entry) > 0
