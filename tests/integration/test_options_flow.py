"""Tests for the window options: they are validated and apply to open conversations without reloading the account."""

from math import nan
from typing import Any

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType, InvalidData
import pytest

from custom_components.windowed_conversation.const import (
    CONF_EXPIRY_HOURS,
    CONF_FILLER,
    CONF_FILLER_SENTENCE,
    CONF_HISTORY_TOKENS,
    CONF_MAX_TOOL_TURNS,
    CONF_MEMORY_DAYS,
    CONF_PERSISTENCE,
    CONF_SUMMARIZE,
    CONF_TOOL_RESULTS,
    CONF_TRIM_SHARE,
)
from custom_components.windowed_conversation.window import EstimatedCounter, Message, count_message_tokens
from demo.model_server import ModelServer

from .account_forms import open_options
from .agent_forms import suggested
from .conftest import SayFn, Submit, flush_store

TWO_MILLION = "2,000,000"

SMALL = {
    CONF_HISTORY_TOKENS: 1000,
    CONF_TOOL_RESULTS: "stub",
    CONF_EXPIRY_HOURS: 24,
    CONF_MEMORY_DAYS: 90,
    CONF_PERSISTENCE: "own",
    CONF_SUMMARIZE: False,
    CONF_FILLER: "on",
}


@pytest.fixture
async def options_form(home: HomeAssistant, entry) -> Submit:
    """Open the options form of the account, and return it."""
    return await open_options(home, entry)


def history_tokens(body: dict) -> int:
    """Return the estimated tokens of all messages after the system prompt."""
    counter = EstimatedCounter()
    return sum(count_message_tokens(Message.user(message["content"]), counter) for message in body["messages"][1:])


async def test_defaults_are_suggested(options_form: Submit) -> None:
    assert suggested(options_form) == SMALL | {CONF_HISTORY_TOKENS: 8000}


async def test_what_was_entered_is_kept_as_whole_numbers(home: HomeAssistant, options_form: Submit, entry) -> None:
    numbers = {
        CONF_HISTORY_TOKENS: 1000,
        CONF_TRIM_SHARE: 10,
        CONF_MAX_TOOL_TURNS: 3,
        CONF_EXPIRY_HOURS: 48,
        CONF_MEMORY_DAYS: 30,
    }
    decimals = {name: float(number) for name, number in numbers.items()}
    others = {
        CONF_PERSISTENCE: "all",
        CONF_TOOL_RESULTS: "keep",
        CONF_SUMMARIZE: True,
        CONF_FILLER: "on_with_esphome",
        CONF_FILLER_SENTENCE: "Just a second.",
    }
    result = await options_form(**decimals, **others)

    assert result["type"] is FlowResultType.CREATE_ENTRY
    assert entry.options == numbers | others
    assert {type(entry.options[name]) for name in numbers} == {int}
    assert suggested(await open_options(home, entry)) == entry.options


TOKENS = f"enter a number from 100 to {TWO_MILLION}."
WHOLE_RESULTS = "Keep results whole for the last … answers"
# A field, a number outside its limits, the section that shows the error, and the error.
IMPOSSIBLE_NUMBERS: list[tuple[str, Any, str, str]] = [
    (CONF_HISTORY_TOKENS, 99, "window", f"Window size: {TOKENS}"),
    (CONF_HISTORY_TOKENS, 2_000_001, "window", f"Window size: {TOKENS}"),
    (CONF_HISTORY_TOKENS, nan, "window", f"Window size: {TOKENS}"),
    (CONF_TRIM_SHARE, -1, "window", "How much to drop when full: enter a number from 0 to 90."),
    (CONF_TRIM_SHARE, 91, "window", "How much to drop when full: enter a number from 0 to 90."),
    (CONF_TRIM_SHARE, "nan", "window", "How much to drop when full: enter a number from 0 to 90."),
    (
        CONF_MAX_TOOL_TURNS,
        0,
        "tool_results",
        "Keep results whole for the last … answers: enter a number from 1 to 100.",
    ),
    (CONF_EXPIRY_HOURS, 0, "conversations", "Keep idle conversations for: enter a number from 1 to 8,760."),
    (CONF_MEMORY_DAYS, 3651, "memory", "Keep memory for: enter a number from 1 to 3,650."),
]


async def test_error_of_a_number_names_the_field_and_its_limits(
    home: HomeAssistant, entry, subtests: pytest.Subtests
) -> None:
    for field, number, section, error in IMPOSSIBLE_NUMBERS:
        home.config_entries.async_update_entry(entry, options={})
        with subtests.test(field, number=number):
            form = await open_options(home, entry)
            with pytest.raises(InvalidData) as refused:
                await form(**SMALL | {field: number})

            assert refused.value.schema_errors == {section: error}
            assert entry.options == {}


async def test_what_is_no_value_is_refused(home: HomeAssistant, entry, subtests: pytest.Subtests) -> None:
    for field, value in {CONF_HISTORY_TOKENS: "many", CONF_PERSISTENCE: "some", CONF_TOOL_RESULTS: "half"}.items():
        home.config_entries.async_update_entry(entry, options={})
        with subtests.test(field):
            form = await open_options(home, entry)
            with pytest.raises(InvalidData) as refused:
                await form(**SMALL | {field: value})

            assert len(refused.value.schema_errors) == 1
            assert entry.options == {}


@pytest.mark.parametrize(
    "least_and_most",
    [
        {
            CONF_HISTORY_TOKENS: 100,
            CONF_TRIM_SHARE: 0,
            CONF_TOOL_RESULTS: "stub",
            CONF_MAX_TOOL_TURNS: 1,
            CONF_EXPIRY_HOURS: 1,
        },
        {
            CONF_HISTORY_TOKENS: 2_000_000,
            CONF_TRIM_SHARE: 90,
            CONF_TOOL_RESULTS: "keep",
            CONF_MAX_TOOL_TURNS: 100,
            CONF_EXPIRY_HOURS: 8760,
        },
    ],
)
async def test_whole_range_reaches_the_agent(options_form: Submit, entry, get_agent, least_and_most: dict) -> None:
    await options_form(**SMALL | least_and_most)

    config = get_agent(entry).config
    assert config.policy.history_tokens == least_and_most[CONF_HISTORY_TOKENS]
    assert config.policy.trim_share == least_and_most[CONF_TRIM_SHARE] / 100
    assert config.policy.tool_results == least_and_most[CONF_TOOL_RESULTS]
    assert config.policy.max_tool_turns == least_and_most[CONF_MAX_TOOL_TURNS]
    assert config.expiry_seconds == least_and_most[CONF_EXPIRY_HOURS] * 3600


async def test_options_that_are_left_empty_follow_the_others(options_form: Submit, entry, get_agent) -> None:
    await options_form(**SMALL | {CONF_HISTORY_TOKENS: 32_000})

    policy = get_agent(entry).config.policy
    assert (policy.trim_share, policy.effective_trim_share) == (None, 0.15)
    assert (policy.max_tool_turns, policy.tool_results) == (None, "stub")


@pytest.fixture
def many_entities(home: HomeAssistant) -> None:
    """Expose 40 entities, so that a tool result about them is long."""
    for number in range(40):
        home.states.async_set(f"light.lamp_{number}", "on", {"friendly_name": f"lamp number {number} in the garden"})
        async_expose_entity(home, "conversation", f"light.lamp_{number}", should_expose=True)


def tool_results(body: dict) -> list[str]:
    """Return the tool results in a request."""
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


@pytest.mark.usefixtures("many_entities")
async def test_newest_tool_turns_keep_their_results_from_now_on(
    options_form: Submit, say: SayFn, model_server: ModelServer
) -> None:
    await say("which devices are on at home?")
    await options_form(**SMALL | {CONF_HISTORY_TOKENS: 20_000, CONF_MAX_TOOL_TURNS: 3})
    await say("which devices are on at home?")
    newest = tool_results(model_server.requests[-1].body)[-1]

    await say("how many messages do you see?")

    earlier, later = tool_results(model_server.requests[-1].body)
    assert earlier.startswith("[Shortened result of ")
    assert later == newest
    assert "lamp number 39" in later


async def test_nothing_is_set_up_again(
    options_form: Submit, entry, get_agent, model_server: ModelServer, say: SayFn
) -> None:
    await say("my name is Ada")
    data, agent, (window,) = entry.runtime_data, get_agent(entry), get_agent(entry).windows.loaded_windows().values()
    model_server.log.clear()

    await options_form(**SMALL)

    assert entry.runtime_data is data
    assert get_agent(entry) is agent
    assert [*agent.windows.loaded_windows().values()] == [window]
    assert len(model_server.log.records) == 0


async def test_open_conversation_is_trimmed_at_once_and_the_next_request_fits_a_smaller_window(
    *, home: HomeAssistant, options_form: Submit, entry, get_agent, model_server: ModelServer, say: SayFn, figure
) -> None:
    for _ in range(5):
        await say("tell me a story about the sea in 250 words")
    assert history_tokens(model_server.requests[-1].body) > 1000

    await options_form(**SMALL)
    await flush_store(home)
    (stats,) = get_agent(entry).window_stats.values()
    assert stats.max_tokens == 1000
    assert int(figure("window_tokens")) <= 750
    assert float(figure("window_utilization")) <= 75
    assert stats.evicted_messages == 10 - stats.message_count
    await say("how many messages do you see?")

    assert history_tokens(model_server.requests[-1].body) <= 1000
    (window,) = get_agent(entry).windows.loaded_windows().values()
    assert window.stats().max_tokens == 1000
    assert window.stats().current_tokens <= 1000


async def test_options_of_an_account_that_is_away_wait_for_it(
    home: HomeAssistant, options_form: Submit, entry, get_agent
) -> None:
    await home.config_entries.async_unload(entry.entry_id)

    await options_form(**SMALL)
    await home.config_entries.async_setup(entry.entry_id)
    await home.async_block_till_done()

    assert get_agent(entry).config.policy.history_tokens == 1000
