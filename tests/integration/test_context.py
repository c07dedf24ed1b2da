"""Tests for the position of time, speaker, device and area in a request: the user message or the system prompt."""

from collections.abc import Callable

from freezegun.api import FrozenDateTimeFactory
from homeassistant.core import HomeAssistant
from homeassistant.helpers import area_registry as ar, device_registry as dr
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_PLACEMENT,
    CONF_CONTEXT_TOKENS,
    CONF_FALLBACK_AGENTS,
    CONF_HISTORY_TOKENS,
    CONF_MAX_ANSWER_TOKENS,
)
from custom_components.windowed_conversation.turn.context import TRIMMED_NOTE, ContextPlacement
from demo.model_server import ModelServer

from .conftest import SayFn, SetUpFn, get_speech, until
from .more_agents import change_agent
from .summarizing import SMALL, STORY, asked_for, count_summaries

IN_SYSTEM = {CONF_CONTEXT_PLACEMENT: ContextPlacement.SYSTEM, "routing": "model_only"}
MORNING = "2026-11-23 08:05:30+00:00"


@pytest.fixture(autouse=True)
async def _utc_time_zone(home: HomeAssistant) -> None:
    await home.config.async_set_time_zone("UTC")


@pytest.fixture
def device(home: HomeAssistant) -> Callable[[MockConfigEntry, str, str], str]:
    """Return a function that creates a device in a new area and returns the device's id."""

    def device(entry: MockConfigEntry, name: str, area: str) -> str:
        devices = dr.async_get(home)
        made = devices.async_get_or_create(config_entry_id=entry.entry_id, identifiers={("test", name)}, name=name)
        devices.async_update_device(made.id, area_id=ar.async_get(home).async_create(area).id)
        return made.id

    return device


def sent(model_server: ModelServer, request: int = -1) -> tuple[str, list[str]]:
    """Return the system prompt and the user messages of a request, by default the newest one."""
    first, *messages = model_server.requests[request].body["messages"]
    assert first["role"] == "system"
    return first["content"], [message["content"] for message in messages if message["role"] == "user"]


async def test_context_is_the_end_of_the_system_prompt_where_that_is_chosen(
    set_up: SetUpFn, say: SayFn, device, model_server: ModelServer, freezer: FrozenDateTimeFactory
) -> None:
    freezer.move_to(MORNING)
    entry = await set_up(prompt="Be brief.", **IN_SYSTEM)

    await say("who am I?", device_id=device(entry, "Voice\n## box", "# Attic"), extra_system_prompt="Be kind.")

    system, said = sent(model_server)
    told = "## Time\nMonday 2026-11-23 08:05\n\n## Device\nVoice ## box\n\n## Area\nAttic"
    assert system.startswith("Be brief.\n")
    assert system.endswith(f"\nBe kind.\n\n{told}")
    assert said == ["who am I?"]


@pytest.mark.parametrize("placement", ContextPlacement)
async def test_request_says_that_the_beginning_of_the_conversation_has_left_it(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer, placement: ContextPlacement
) -> None:
    await set_up(options={CONF_HISTORY_TOKENS: 300}, **{CONF_CONTEXT_PLACEMENT: placement, "routing": "model_only"})
    for number in range(12):
        await say(f"consider that locker number {number} is the {number} times seventh on the left")

    requests = [(*sent(model_server, number)[1], sent(model_server, number)[0]) for number in range(12)]
    is_whole = ["locker number 0 is" in " ".join(texts) for texts in requests]
    assert is_whole == [TRIMMED_NOTE not in " ".join(texts) for texts in requests]
    assert [sum(TRIMMED_NOTE in text for text in texts) for texts in requests] == [1 - whole for whole in is_whole]
    assert (is_whole[0], is_whole[-1]) == (True, False)


async def test_conversation_goes_on_when_the_place_changes(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, freezer: FrozenDateTimeFactory
) -> None:
    freezer.move_to(MORNING)
    entry = await set_up(routing="model_only")
    await say("my name is Ada")
    await change_agent(home, entry, **{CONF_CONTEXT_PLACEMENT: ContextPlacement.SYSTEM})
    await say("who am I?")
    await change_agent(home, entry, **{CONF_CONTEXT_PLACEMENT: ContextPlacement.MESSAGE})

    answer = get_speech(await say("what is my name?"))

    prefix = "[CONTEXT: time: Monday 2026-11-23 08:05]\n\n"
    assert answer == "Your name is Ada."
    assert sent(model_server, -2)[1] == [f"{prefix}my name is Ada", "who am I?"]
    assert sent(model_server) == (
        sent(model_server, 0)[0],
        [f"{prefix}my name is Ada", "who am I?", f"{prefix}what is my name?"],
    )


async def test_fallback_agent_is_asked_as_the_first_one_was(
    set_up: SetUpFn, say: SayFn, model_server: ModelServer, freezer: FrozenDateTimeFactory
) -> None:
    freezer.move_to(MORNING)
    await set_up(**{CONF_FALLBACK_AGENTS: ["conversation.ada_2"]}, **IN_SYSTEM)
    async with ModelServer(strict=True) as other:
        await set_up(account={"url": other.url}, routing="model_only")
        model_server.fault("500")

        await say("who am I?")

        assert sent(other) == sent(model_server)


async def test_summary_is_asked_for_with_what_the_system_prompts_begin_with(
    set_up: SetUpFn, say: SayFn, device, get_agent, model_server: ModelServer
) -> None:
    entry = await set_up(options=SMALL, **IN_SYSTEM)
    for number in range(5):
        await say(STORY, device_id=device(entry, f"Box {number}", f"Room {number}"))
    await until(lambda: count_summaries(get_agent(entry)) == 1)

    summary, *_ = asked_for(model_server)
    before = [request.body for request in model_server.requests if request.body != summary]
    assert len({sent["messages"][0]["content"] for sent in before}) == 5
    instructions = summary["messages"][0]["content"]
    assert any(sent["messages"][0]["content"].startswith(f"{instructions}\n\n## Time") for sent in before)


async def test_changing_minutes_let_nothing_go_from_a_model_that_is_full(
    set_up: SetUpFn, say: SayFn, get_agent, model_server: ModelServer, freezer: FrozenDateTimeFactory
) -> None:
    small = {CONF_CONTEXT_TOKENS: 600, CONF_MAX_ANSWER_TOKENS: 100}
    agent = get_agent(await set_up(prompt="Be brief.", llm_hass_api=[], **small, **IN_SYSTEM))
    trims = []
    for minute in range(40):
        freezer.move_to(f"2026-11-23 08:{minute:02}:00+00:00")
        await say(f"consider that {minute} is odd")
        (window,) = agent.windows.loaded_windows().values()
        trims.append(window.stats().trims)

    assert model_server.requests[-1].body["messages"][0]["content"].count("\n## Time\nMonday 2026-11-23 08:39\n") == 1
    assert 0 < trims[-1] < 20
