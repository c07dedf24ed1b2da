"""Tests for the provider's web search, for each vendor: what is heard, shown, reported, kept, and sent again."""

from collections.abc import Callable, Coroutine
import json
import re
from typing import Any

from homeassistant.components import conversation
from homeassistant.components.conversation import AssistantContent, ToolResultContent
from homeassistant.const import CONF_API_KEY, CONF_MODEL, CONF_URL
from homeassistant.core import Event, HomeAssistant
from homeassistant.helpers.chat_session import async_get_chat_session
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_capture_events

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.bridge.account import can_search
from custom_components.windowed_conversation.bridge.turn_report import EVENT_TURN
from custom_components.windowed_conversation.const import (
    CONF_FAMILY,
    CONF_FORMAT,
    CONF_PROVIDER,
    CONF_RECORD,
    CONF_ROUTING,
    CONF_WEB_SEARCH,
    DOMAIN,
    PROVIDER_ANTHROPIC,
    PROVIDER_AZURE,
    PROVIDER_GEMINI,
    PROVIDER_OPENAI,
    PROVIDER_OPENAI_CHAT,
)
from custom_components.windowed_conversation.turn import asking, limits
from custom_components.windowed_conversation.window import estimate_request
from demo.model_server import ModelServer, call, searched, words

from .conftest import SayFn, SetUpFn, get_speech, until
from .dashboard import PipelineClient, ending, streamed
from .rows import Row, row
from .satellite import Ask, Heard, press
from .test_hand_over import PROMISE, Gate, answers, gate
from .test_turns import window_of

__all__ = ["answers", "gate", "row"]

# The provider, the account data that selects its format, the path of the server's URL, and the model.
_VENDORS: dict[str, tuple[str, dict[str, str], str, str]] = {
    "openai": (PROVIDER_OPENAI, {CONF_FORMAT: "responses"}, "/v1", "gpt-5.4"),
    "azure": (PROVIDER_AZURE, {CONF_FORMAT: "responses"}, "", "our-deployment"),
    "anthropic": (PROVIDER_ANTHROPIC, {}, "", "claude-sonnet-4-5"),
    "gemini": (PROVIDER_GEMINI, {}, "", "gemini-3.5-flash"),
}
_QUESTION = "search the web for tulips"
_ANSWER = "I will look that up. There is good news about tulips. Experts agree."
_PAGE = "https://news.example/tulips_(today)?id=1&lang=en"
_RECORD = {CONF_RECORD: "full"}

type SetUpSearch = Callable[..., Coroutine[Any, Any, MockConfigEntry]]


@pytest.fixture
def set_up_search(set_up: SetUpFn, model_server: ModelServer) -> SetUpSearch:
    """Return a function that sets up a vendor's account with a searching agent."""

    async def set_up_search(vendor: str, **agent: Any) -> MockConfigEntry:
        provider, account, path, model = _VENDORS[vendor]
        data = {CONF_MODEL: model, CONF_FAMILY: "gpt-5.4", CONF_ROUTING: "model_only", CONF_WEB_SEARCH: True, **agent}
        model_server.change(models=tuple({model: None, data[CONF_MODEL]: None, "gpt-5-mini": None}), strict=True)
        url = f"{model_server.address}{path}"
        return await set_up(account={CONF_PROVIDER: provider, CONF_URL: url, CONF_API_KEY: "key", **account}, **data)

    return set_up_search


@pytest.fixture(params=list(_VENDORS))
async def entry(request: pytest.FixtureRequest, set_up_search: SetUpSearch) -> MockConfigEntry:
    """Return an account of each vendor whose agent searches the web and records whole turns."""
    return await set_up_search(request.param, **_RECORD)


def list_violations(model_server: ModelServer) -> list[Any]:
    return [each for request in model_server.requests for each in request.violations]


async def test_text_to_speech_hears_the_answer_without_urls(ask: Ask, model_server: ModelServer) -> None:
    assert await ask(_QUESTION) == _ANSWER
    assert list_violations(model_server) == []


async def test_filler_is_heard_while_a_search_runs(heard: Heard, ask: Ask, model_server: ModelServer) -> None:
    model_server.change(search_delay=0.05, latency=0.3)

    assert await ask(_QUESTION) == f"Hm. One moment. {_ANSWER}"


@pytest.mark.parametrize("entry", ["openai"], indirect=True)
async def test_sentence_before_a_search_is_heard_while_it_runs(
    heard: Heard, ask: Ask, model_server: ModelServer
) -> None:
    model_server.change(search_delay=0.05)

    assert await ask(_QUESTION) == _ANSWER
    assert heard.pieces[0].strip() == "I will look that up."


async def test_dialog_shows_the_answer_once_and_the_sources_in_its_details(
    home: HomeAssistant, row: Row, set_up_search: SetUpSearch, hass_ws_client
) -> None:
    dashboard = PipelineClient(await hass_ws_client(home))
    for vendor in _VENDORS:
        async with row(vendor):
            await set_up_search(vendor, **_RECORD)
            pipeline = await dashboard.create(prefer_local_intents=False)

            events = await dashboard.run(pipeline, _QUESTION)

            spoken = ending(events)["intent_output"]["response"]["speech"]["plain"]["speech"]
            deltas = [event["data"].get("chat_log_delta", {}) for event in events if event["type"] == "intent-progress"]
            (shown,) = [delta for delta in deltas if delta.get("role") == "tool_result"]
            assert spoken == "".join(streamed(events)) == _ANSWER
            assert [delta["role"] for delta in deltas if "role" in delta] == ["assistant", "tool_result"]
            assert shown["tool_name"] == "web_search"
            assert _PAGE in [source["url"] for source in shown["result"]["data"]["sources"]]


@pytest.mark.parametrize(
    ("url", "can"),
    [
        ("https://openrouter.ai/api/v1", True),
        ("http://localhost:11434/v1", False),
        ("https://x.ai/openrouter.ai", False),
    ],
)
def test_of_other_servers_only_openrouter_searches(url: str, can: bool) -> None:
    assert can_search({CONF_PROVIDER: PROVIDER_OPENAI_CHAT, CONF_URL: url}) is can


async def test_sources_are_in_the_chat_log_and_in_no_window(
    home: HomeAssistant, row: Row, set_up_search: SetUpSearch, say: SayFn
) -> None:
    for vendor in _VENDORS:
        async with row(vendor):
            entry = await set_up_search(vendor, **_RECORD)
            result = await say(_QUESTION, None)
            with (
                async_get_chat_session(home, result.conversation_id) as session,
                conversation.async_get_chat_log(home, session) as chat_log,
            ):
                *_, answer, called, found = chat_log.content

            assert isinstance(answer, AssistantContent)
            assert answer.content == get_speech(result) == _ANSWER
            assert isinstance(called, AssistantContent)
            assert [each.external for each in called.tool_calls or ()] == [True]
            assert isinstance(found, ToolResultContent)
            assert ".example" not in str(window_of(entry).messages())


async def test_event_and_record_have_the_sources_and_the_number_of_searches(
    home: HomeAssistant, row: Row, set_up_search: SetUpSearch, say: SayFn
) -> None:
    for vendor in _VENDORS:
        async with row(vendor):
            await set_up_search(vendor, **_RECORD)
            events = async_capture_events(home, EVENT_TURN)
            answer = await say(_QUESTION, vendor)
            turn_id = events[0].data["turn_id"]
            turn: Any = await home.services.async_call(
                DOMAIN, "get_turn", {"turn_id": turn_id}, blocking=True, return_response=True
            )

            (searched_call,) = turn["tool_calls"]
            assert events[0].data["usage"]["searches"] == turn["usage"]["searches"] == 1
            assert _PAGE in [source["url"] for source in events[0].data["sources"]]
            assert json.loads(searched_call["result"])["sources"] == events[0].data["sources"]
            assert _PAGE in answer.response.card["simple"]["content"]


async def test_next_turn_is_valid_and_has_no_results_of_the_search(
    row: Row, set_up_search: SetUpSearch, say: SayFn, model_server: ModelServer
) -> None:
    for vendor in _VENDORS:
        async with row(vendor):
            await set_up_search(vendor, **_RECORD)
            await say(_QUESTION, vendor)
            await say("hello", vendor)

            sent = json.dumps(model_server.requests[-1].body)
            assert list_violations(model_server) == []
            assert "There is good news about tulips" in sent
            assert len(sent) < 1.3 * len(json.dumps(model_server.requests[0].body))
            assert not re.search(r"news\.example|web_search_tool_result|toolResponse", sent)


async def test_search_before_an_own_tool_is_whole_in_the_turn_and_gone_after_it(
    home: HomeAssistant, row: Row, set_up_search: SetUpSearch, say: SayFn, model_server: ModelServer
) -> None:
    for vendor in _VENDORS:
        async with row(vendor):
            await set_up_search(vendor, **_RECORD)
            home.states.async_set("input_boolean.kitchen", "off")
            model_server.script(
                searched("tulips", "They bloom. ") + call("HassTurnOn", name="kitchen light"), words("Done.")
            )

            result = await say("look up tulips and turn on the kitchen light", vendor)
            await say("hello", vendor)

            assert home.states.is_state("input_boolean.kitchen", "on")
            assert get_speech(result) == "Done."
            assert list_violations(model_server) == []
            assert not re.search(r"web_search_tool_result|toolResponse", json.dumps(model_server.requests[-1].body))


@pytest.mark.parametrize(
    ("entry", "result"), [("anthropic", "web_search_tool_result"), ("gemini", "toolResponse")], indirect=["entry"]
)
async def test_results_of_a_search_go_back_in_the_request_after_a_tool(
    entry: MockConfigEntry, say: SayFn, model_server: ModelServer, result: str
) -> None:
    model_server.script(searched("tulips", "They bloom. ") + call("HassTurnOn", name="kitchen light"), words("Done."))

    await say("look up tulips and turn on the kitchen light")

    assert result in json.dumps(model_server.requests[1].body)


async def test_last_request_of_a_tool_loop_forbids_calls_and_is_valid(
    row: Row, set_up_search: SetUpSearch, say: SayFn, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "MAX_TOOL_ROUNDS", 1)
    for vendor in _VENDORS:
        async with row(vendor):
            await set_up_search(vendor)
            model_server.script(searched("tulips") + call("HassTurnOn", name="kitchen light"), words("Done."))

            assert get_speech(await say("look up tulips and turn on the kitchen light", vendor)) == "Done."
            assert list_violations(model_server) == []


@pytest.mark.parametrize("entry", ["anthropic"], indirect=True)
async def test_paused_answer_goes_on_as_one_answer(
    home: HomeAssistant, entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    events = async_capture_events(home, EVENT_TURN)

    result = await say("search the web at length for tulips")

    assert get_speech(result) == _ANSWER
    assert len(model_server.requests) == 2
    assert list_violations(model_server) == []
    assert window_of(entry).messages()[-1].content == _ANSWER
    assert (events[0].data["requests"], events[0].data["usage"]["searches"]) == (1, 1)


@pytest.mark.parametrize("entry", ["anthropic"], indirect=True)
async def test_answer_that_is_paused_again_and_again_is_an_error(
    entry: MockConfigEntry, say: SayFn, model_server: ModelServer
) -> None:
    model_server.change(strict=False)
    model_server.script(*[searched("tulips", paused=True)] * 20)

    await say(_QUESTION)

    assert len(model_server.requests) == 6
    model_server.script()


async def test_ten_turns_with_searches_teach_no_wrong_sizes(
    row: Row, set_up_search: SetUpSearch, say: SayFn, get_agent: Callable[[MockConfigEntry], Agent]
) -> None:
    for vendor in _VENDORS:
        async with row(vendor):
            entry = await set_up_search(vendor, **_RECORD)
            for number in range(3):
                await say(f"hello number {number}", vendor)
            before = get_agent(entry).counter.count("There is good news about tulips. Experts agree. " * 20)
            for number in range(10):
                await say(f"search the web for tulip number {number}", vendor)
            after = get_agent(entry).counter.count("There is good news about tulips. Experts agree. " * 20)

            stats, model = window_of(entry).stats(), get_agent(entry).model
            assert model is not None
            assert after == pytest.approx(before, rel=0.03)
            assert stats.current_tokens < 1500
            assert model.size.readable_tokens is None


async def test_search_longer_than_the_idle_timeout_is_not_cut(
    row: Row, set_up_search: SetUpSearch, say: SayFn, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "IDLE_TIMEOUT", 0.1)
    for vendor in _VENDORS:
        async with row(vendor):
            await set_up_search(vendor)
            model_server.change(search_delay=0.06)

            assert get_speech(await say(_QUESTION, vendor)) == _ANSWER


async def test_location_is_country_and_time_zone_but_never_coordinates(
    *, home: HomeAssistant, row: Row, set_up_search: SetUpSearch, say: SayFn, model_server: ModelServer
) -> None:
    await home.config.async_update(country="CH", latitude=46.94809, longitude=7.44744, time_zone="Europe/Zurich")
    for vendor in _VENDORS:
        async with row(vendor):
            await set_up_search(vendor)
            await say(_QUESTION, vendor)

            sent = json.dumps(model_server.requests[0].body)
            location = {"type": "approximate", "country": "CH", "timezone": "Europe/Zurich"}
            assert (json.dumps(location) in sent) == (vendor != "gemini")
            assert "46.9" not in sent


async def test_agent_without_the_option_offers_no_search(
    row: Row, set_up_search: SetUpSearch, say: SayFn, model_server: ModelServer
) -> None:
    for vendor in _VENDORS:
        async with row(vendor):
            await set_up_search(vendor, **{CONF_WEB_SEARCH: False})

            assert get_speech(await say(_QUESTION, vendor)) == "I cannot search the web."
            assert not re.search('"web_search|googleSearch', json.dumps(model_server.requests[0].body))


async def test_gemini_2_5_searches_only_without_own_tools(
    set_up_search: SetUpSearch, say: SayFn, model_server: ModelServer
) -> None:
    await set_up_search("gemini", **{CONF_MODEL: "gemini-2.5-flash"})

    assert get_speech(await say(_QUESTION)) == "I cannot search the web."
    assert list_violations(model_server) == []


async def test_agent_without_tools_searches(
    row: Row, set_up_search: SetUpSearch, say: SayFn, model_server: ModelServer
) -> None:
    for vendor in _VENDORS:
        async with row(vendor):
            await set_up_search(vendor, llm_hass_api=[])

            assert get_speech(await say(_QUESTION, vendor)).endswith("There is good news about tulips. Experts agree.")
            assert list_violations(model_server) == []


async def test_search_with_effort_none_is_sent_with_an_effort_that_allows_it(
    set_up_search: SetUpSearch, say: SayFn, model_server: ModelServer
) -> None:
    await set_up_search("openai", **{CONF_MODEL: "gpt-5-mini", "effort": "none"})

    assert get_speech(await say(_QUESTION)) == _ANSWER
    assert list_violations(model_server) == []


async def test_pipeline_answer_after_a_turn_with_sources_enters_the_window_once(
    home: HomeAssistant, row: Row, set_up_search: SetUpSearch, hass_ws_client, model_server: ModelServer
) -> None:
    dashboard = PipelineClient(await hass_ws_client(home))
    for vendor in _VENDORS:
        async with row(vendor):
            entry = await set_up_search(vendor, **_RECORD)
            pipeline = await dashboard.create(prefer_local_intents=True)
            first = await dashboard.run(pipeline, _QUESTION)
            conversation_id = ending(first)["intent_output"]["conversation_id"]
            await dashboard.run(pipeline, "turn on kitchen light", conversation_id)
            await dashboard.run(pipeline, "tell me a story", conversation_id)
            await dashboard.run(pipeline, "tell me a story", conversation_id)

            sentences = [message.content for message in window_of(entry).messages() if message.role == "user"]
            assert sum("turn on kitchen light" in text for text in sentences) == 1
            assert list_violations(model_server) == []
            assert estimate_request(window_of(entry).messages(), ()).text_tokens < 1500


async def test_model_that_cannot_search_is_offered_no_search(
    set_up_search: SetUpSearch, say: SayFn, model_server: ModelServer
) -> None:
    await set_up_search("openai", **{CONF_MODEL: "gpt-4.1-nano"})

    assert get_speech(await say(_QUESTION)) == "I cannot search the web."


async def test_late_answer_with_a_search_is_announced_without_urls(
    *,
    home: HomeAssistant,
    heard: Heard,
    gate: Gate,
    answers: list[Event],
    model_server: ModelServer,
) -> None:
    model_server.change(latency=0.5)

    await press(home, _QUESTION)
    await until(lambda: bool(answers))

    assert " ".join(heard.utterances) == f'{PROMISE} About "{_QUESTION}": {_ANSWER}'
