"""Tests that no change of an option, and no reload, loses a conversation, a fact, or a total."""

from collections.abc import Awaitable, Callable
from typing import Any

from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType
from homeassistant.helpers.selector import BooleanSelector, SelectSelector
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_TOKENS,
    CONF_DEVICE_OWNERS,
    CONF_FILLER_SENTENCE,
    CONF_OPENING_CODE,
    CONF_PROVIDER,
    CONF_SCOPE,
    PROVIDER_OPENAI,
)
from custom_components.windowed_conversation.flows.agent import (
    build_advanced_fields,
    build_memory_field,
    build_permission_fields,
)
from custom_components.windowed_conversation.flows.fields import NumberFieldSelector
from custom_components.windowed_conversation.flows.options import build_option_sections
from demo.model_server import ModelServer

from .account_forms import open_options
from .account_kinds import KINDS
from .agent_forms import get_selectors, open_agent_form, suggested
from .conftest import SayFn, SetUpFn, Submit, get_speech
from .remembered import list_facts
from .rows import Row, row

__all__ = ["row"]

OPTIONS = [str(field) for fields in build_option_sections({}).values() for field in fields]
_OPENAI = {CONF_PROVIDER: PROVIDER_OPENAI}
_COMMON = build_permission_fields(_OPENAI) | build_memory_field(_OPENAI) | build_advanced_fields(_OPENAI, {})
AGENT_FIELDS = [
    "name",
    "model",
    "prompt",
    "llm_hass_api",
    "routing",
    "effort",
    "fallback_agents",
    *map(str, _COMMON),
]
# Values for fields whose selector does not say which there are.
_TEXTS: dict[str, Any] = {
    "name": "Grace",
    "model": "another",
    "prompt": "Be brief.",
    "llm_hass_api": [],
    "fallback_agents": ["conversation.home_assistant"],
    CONF_DEVICE_OWNERS: [],
    CONF_FILLER_SENTENCE: "Just a second.",
    CONF_CONTEXT_TOKENS: 50_000,
    CONF_OPENING_CODE: "246813",
}


def choose_other(field: str, selector: Any, now: Any) -> Any:
    """Return another valid value for a field."""
    if field in _TEXTS:
        return _TEXTS[field]
    match selector:
        case BooleanSelector():
            return not now
        case SelectSelector():
            return next(each for each in selector.config["options"] if each != now)
        case NumberFieldSelector():
            return selector.config["max"] if now is None else (now + selector.config["max"]) // 2
    raise AssertionError(field)


async def change(form: Submit, field: str) -> dict[str, Any]:
    """Submit a form with another value of one field."""
    values = suggested(form)
    values[field] = choose_other(field, get_selectors(form)[field], values.get(field))
    result: dict[str, Any] = await form(**values)
    return result


type SetUpVendor = Callable[[], Awaitable[MockConfigEntry]]


@pytest.fixture
def set_up_vendor(set_up: SetUpFn, model_server: ModelServer) -> SetUpVendor:
    """Return a function that sets up an account of a vendor, whose agent has all options."""
    return lambda: set_up(account=KINDS[0].account(model_server))


async def tell(say: SayFn, conversation_id: str = "test") -> None:
    """Say something to the conversation, and let a fact be remembered."""
    await say("my name is Ada", conversation_id)
    await say("remember that the bins go out on Friday", conversation_id)


async def test_change_of_an_account_s_option_loses_nothing(
    home: HomeAssistant, row: Row, set_up_vendor: SetUpVendor, say: SayFn
) -> None:
    for field in OPTIONS:
        async with row(field):
            entry = await set_up_vendor()
            await tell(say, field)

            done = await change(await open_options(home, entry), field)

            assert done["type"] is FlowResultType.CREATE_ENTRY
            assert "Ada" in get_speech(await say("what is my name?", field))
            assert [fact.text for fact in await list_facts(home)] == ["the bins go out on Friday"]


async def test_change_of_an_agent_s_option_loses_nothing(
    home: HomeAssistant, row: Row, set_up_vendor: SetUpVendor, say: SayFn
) -> None:
    for field in (field for field in AGENT_FIELDS if field != CONF_SCOPE):
        async with row(field):
            entry = await set_up_vendor()
            await tell(say, field)

            done = await change(await open_agent_form(home, entry), field)

            assert done["reason"] == "reconfigure_successful"
            (agent,) = entry.runtime_data.agents.values()
            windows = agent.windows.loaded_windows().values()
            assert "my name is Ada" in str([message.content for window in windows for message in window.messages()])
            assert [fact.text for fact in await list_facts(home)] == ["the bins go out on Friday"]


async def test_reload_loses_nothing(home: HomeAssistant, set_up_vendor: SetUpVendor, say: SayFn) -> None:
    entry = await set_up_vendor()
    await tell(say)

    await home.config_entries.async_reload(entry.entry_id)

    assert "Ada" in get_speech(await say("what is my name?"))
    assert [fact.text for fact in await list_facts(home)] == ["the bins go out on Friday"]


async def test_conversation_is_back_when_its_scope_is_changed_back(
    home: HomeAssistant, set_up_vendor: SetUpVendor, say: SayFn
) -> None:
    entry = await set_up_vendor()
    await tell(say)
    for scope in ("agent", "conversation"):
        form = await open_agent_form(home, entry)
        await form(**suggested(form) | {CONF_SCOPE: scope})

    assert "Ada" in get_speech(await say("what is my name?"))
