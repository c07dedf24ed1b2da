"""Tests for the head start while the user is still speaking: loading a local model or connecting to a vendor."""

from collections.abc import AsyncIterator, Callable
from importlib import import_module
from importlib.util import find_spec
from itertools import product
import json
import logging
from pathlib import Path
import time
from types import SimpleNamespace
from typing import Any

from homeassistant.components import assist_pipeline, conversation
from homeassistant.components.assist_pipeline.models import PipelineStage
from homeassistant.components.assist_pipeline.pipeline import async_get_pipeline, async_update_pipeline
from homeassistant.components.stt import (
    AudioBitRates,
    AudioChannels,
    AudioCodecs,
    AudioFormats,
    AudioSampleRates,
    SpeechMetadata,
)
from homeassistant.components.stt.const import DATA_COMPONENT as DATA_STT
from homeassistant.const import CONF_API_KEY, CONF_URL
from homeassistant.core import Context, HomeAssistant, State
from homeassistant.setup import async_setup_component
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.agent import Agent, async_loaded_agents
from custom_components.windowed_conversation.agents.local_intents import async_prepare_sentences
from custom_components.windowed_conversation.agents.server import HeadStart
from custom_components.windowed_conversation.const import (
    CONF_PROVIDER,
    CONF_ROUTING,
    CONF_TURN_TIMEOUT,
    PROVIDER_NONE,
)
from demo.model_server import ModelServer
from demo.model_server.request_log import RequestOutcome, RequestRecord
from demo.scripted_voice.stt import ScriptedSpeechToText
from tests.front import Front
from tests.waiting import until

from .account_kinds import COMPATIBLE, KINDS
from .conftest import AGENT, SayFn, SetUpFn, get_speech
from .rows import Row, row

__all__ = ["row"]

AT_HOME = {CONF_API_KEY: None}
ACCOUNTS: dict[str, dict[str, Any]] = {"with_key": {}, "at_home": AT_HOME}
TELL, ASK = "my name is Lovelace", "what is my name?"

# Home Assistant's and the SDK's version determine which of the two packages is used.
HTTP = [import_module(f"{name}._async.http11") for name in ("httpcore", "httpcore2") if find_spec(name)]

type PrepareFn = Callable[[], Any]
type Later = Callable[[float], None]


@pytest.fixture
async def proxy(model_server: ModelServer) -> AsyncIterator[Front]:
    """Yield a proxy that counts the connections to the model server."""
    async with Front(model_server.address) as front:
        yield front


@pytest.fixture
def prepare(home: HomeAssistant) -> PrepareFn:
    """Return a function that prepares the agent, as a pipeline does when it starts listening, and awaits its tasks."""

    async def prepare() -> None:
        await conversation.async_prepare_agent(home, AGENT, "en")
        await home.async_block_till_done(wait_background_tasks=True)

    return prepare


@pytest.fixture
async def at_home(set_up: SetUpFn) -> MockConfigEntry:
    """Return an account without a key."""
    return await set_up(account=AT_HOME)


@pytest.fixture
def later(home: HomeAssistant) -> Later:
    """Return a function that advances the clock of the agents' head starts by some seconds."""
    passed = 0.0

    def later(seconds: float) -> None:
        nonlocal passed
        passed += seconds
        for agent in async_loaded_agents(home):
            assert agent.head_start is not None
            agent.head_start._clock = lambda: passed

    later(0)
    return later


def pass_by(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Advance the clock of the HTTP clients by this number of seconds."""
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + seconds)
    for module in HTTP:
        monkeypatch.setattr(module, "time", later)


def beginning(request: RequestRecord) -> tuple[str, str]:
    """Return the system prompt and the tools of a request as JSON."""
    return json.dumps(request.body["messages"][0]), json.dumps(request.body["tools"])


# Tests for opening the connection.


async def until_connected(proxy: Front) -> None:
    """Wait until the request that opens a connection has arrived at the proxy."""
    await until(lambda: proxy.asked == ["HEAD /"])


async def test_server_that_wants_a_key_gets_a_connection_without_it_and_no_request(
    row: Row, set_up: SetUpFn, model_server: ModelServer, prepare: PrepareFn, say: SayFn
) -> None:
    for kind in (*KINDS, COMPATIBLE):
        async with row(kind.name), Front(model_server.address) as proxy:
            await set_up(account={**kind.account(model_server), CONF_URL: f"{proxy.address}{kind.url_path}"})
            proxy.reset()

            await prepare()
            await until_connected(proxy)

            assert (proxy.sent_keys, list(model_server.log.records)) == ([False], [])

            await say(TELL)

            assert proxy.asked[1:] == [f"POST {model_server.requests[0].path}" + _query(model_server.requests[0])]
            assert proxy.connections == 1


def _query(request: RequestRecord) -> str:
    return "".join(f"?{name}={value}" for name, value in request.query.items())


async def test_connection_is_kept_for_two_minutes(
    row: Row, set_up: SetUpFn, model_server: ModelServer, say: SayFn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in KINDS:
        async with row(kind.name), Front(model_server.address) as proxy:
            await set_up(account={**kind.account(model_server), CONF_URL: f"{proxy.address}{kind.url_path}"})
            proxy.reset()

            await say(TELL)
            with monkeypatch.context() as patch:
                pass_by(115, patch)
                await say(ASK)

                assert proxy.connections == 1

                pass_by(240, patch)
                await say(ASK)

                assert proxy.connections == 2


async def test_connection_is_opened_while_the_person_speaks(home: HomeAssistant, set_up: SetUpFn, proxy: Front) -> None:
    await set_up(account={CONF_URL: f"{proxy.address}/v1"})
    assert await async_setup_component(home, "stt", {})
    ears = ScriptedSpeechToText()
    await home.data[DATA_STT].async_add_entities([ears])
    proxy.reset()

    async def stream_until_connected() -> AsyncIterator[bytes]:
        yield bytes(320)
        await until_connected(proxy)

    metadata = SpeechMetadata(
        language="en",
        format=AudioFormats.WAV,
        codec=AudioCodecs.PCM,
        bit_rate=AudioBitRates.BITRATE_16,
        sample_rate=AudioSampleRates.SAMPLERATE_16000,
        channel=AudioChannels.CHANNEL_MONO,
    )
    pipeline = async_get_pipeline(home)
    await async_update_pipeline(
        home,
        pipeline,
        conversation_engine=AGENT,
        conversation_language="*",
        stt_engine=ears.entity_id,
        stt_language="en",
    )
    await assist_pipeline.async_pipeline_from_audio_stream(
        home,
        context=Context(),
        event_callback=lambda _event: None,
        stt_metadata=metadata,
        stt_stream=stream_until_connected(),
        end_stage=PipelineStage.INTENT,
    )

    assert proxy.asked == ["HEAD /"]


# Tests for loading a local model.


async def test_model_at_home_reads_the_beginning_of_the_last_request(
    at_home: MockConfigEntry, later: Later, model_server: ModelServer, prepare: PrepareFn, say: SayFn
) -> None:
    await say(TELL)
    later(300)

    await prepare()
    await say(ASK, None)

    asked, head_start, turn = model_server.requests
    assert beginning(asked) == beginning(head_start) == beginning(turn)
    assert [message["role"] for message in head_start.body["messages"]] == ["system", "user"]
    assert "Lovelace" not in head_start.raw.decode()
    assert (head_start.body["max_tokens"], head_start.violations) == (1, [])


async def test_model_at_home_is_loaded_before_the_first_question(
    at_home: MockConfigEntry, model_server: ModelServer, prepare: PrepareFn
) -> None:
    await prepare()

    (head_start,) = model_server.requests
    assert (head_start.body["model"], head_start.body["max_tokens"]) == ("scripted", 1)
    assert len(head_start.body["messages"]) == 1
    assert "tools" not in head_start.body


async def test_model_that_was_asked_lately_is_not_asked(
    at_home: MockConfigEntry, later: Later, model_server: ModelServer, prepare: PrepareFn, say: SayFn
) -> None:
    await say(TELL)
    later(230)

    await prepare()

    assert len(model_server.requests) == 1


async def test_no_head_start_follows_another_within_a_minute(
    at_home: MockConfigEntry, later: Later, model_server: ModelServer, prepare: PrepareFn
) -> None:
    await prepare()
    later(59)
    await prepare()

    assert len(model_server.requests) == 1

    later(1)
    await prepare()

    assert len(model_server.requests) == 2


async def test_model_at_home_is_loaded_where_the_last_conversation_is_gone(
    at_home: MockConfigEntry,
    later: Later,
    home: HomeAssistant,
    *,
    model_server: ModelServer,
    prepare: PrepareFn,
    say: SayFn,
) -> None:
    await say(TELL)
    for agent in async_loaded_agents(home):
        for key in [*agent.windows.stats()]:
            agent.windows.drop(key)
    later(300)

    await prepare()

    assert [message["role"] for message in model_server.requests[1].body["messages"]] == ["user"]


async def test_what_was_forgotten_is_not_sent_again(
    at_home: MockConfigEntry, later: Later, model_server: ModelServer, prepare: PrepareFn, say: SayFn
) -> None:
    await say("remember that the bins go out on Friday")
    await say(TELL, "another")
    assert "bins" in model_server.requests[-1].raw.decode()
    assert get_speech(await say("forget that the bins go out on Friday", "a third")).startswith("Done, I've deleted")
    model_server.log.clear()
    later(300)

    await prepare()

    (head_start,) = model_server.requests
    assert "bins" not in head_start.raw.decode()


def list_states(home: HomeAssistant) -> dict[str, State]:
    """Return all states except the size of the memory file, which another thread updates."""
    return {each.entity_id: each for each in home.states.async_all() if "memory_size" not in each.entity_id}


async def test_head_start_leaves_no_trace(
    home: HomeAssistant,
    at_home: MockConfigEntry,
    later: Later,
    get_agent: Callable[[MockConfigEntry], Agent],
    *,
    model_server: ModelServer,
    prepare: PrepareFn,
    say: SayFn,
    store_path: Path,
) -> None:
    await say(TELL)
    agent = get_agent(at_home)
    later(300)
    states = list_states(home)
    learned, window = agent.counter.count(TELL), next(iter(agent.windows.loaded_windows().values())).messages()
    written, totals = await home.async_add_executor_job(store_path.read_bytes), agent.statistics.as_dict()

    await prepare()

    assert len(model_server.requests) == 2
    assert list_states(home) == states
    assert (agent.counter.count(TELL), next(iter(agent.windows.loaded_windows().values())).messages()) == (
        learned,
        window,
    )
    assert await home.async_add_executor_job(store_path.read_bytes) == written
    assert agent.statistics.as_dict() == totals


# Tests for situations without a head start.


async def test_agent_that_asks_no_model_has_none(
    row: Row, set_up: SetUpFn, model_server: ModelServer, prepare: PrepareFn
) -> None:
    for name, account in ACCOUNTS.items():
        async with row(name), Front(model_server.address) as proxy:
            await set_up(account={**account, CONF_URL: f"{proxy.address}/v1"}, **{CONF_ROUTING: "local_only"})
            proxy.reset()

            await prepare()

            assert (proxy.asked, proxy.connections) == ([], 0)


async def test_account_without_a_model_has_none(set_up: SetUpFn, model_server: ModelServer, prepare: PrepareFn) -> None:
    await set_up(account={CONF_PROVIDER: PROVIDER_NONE})

    await prepare()

    assert list(model_server.log.records) == []


# Tests for servers that fail.


async def test_server_that_fails_costs_nothing(
    *,
    home: HomeAssistant,
    row: Row,
    set_up: SetUpFn,
    model_server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(f"{HeadStart.__module__}._CONNECT_TIMEOUT", 0.3)
    faults = ("no_answer", "500", "cut_before_headers", "json_200")
    for (name, account), fault in product(ACCOUNTS.items(), faults):
        async with row(f"{name} {fault}"):
            await set_up(account=account, **{CONF_TURN_TIMEOUT: 0.3})
            # Sentences are loaded in a thread, during which timers of the set-up may fire on a busy machine.
            await async_prepare_sentences(home, "en")
            caplog.clear()
            model_server.fault(fault)
            began = home.loop.time()

            await conversation.async_prepare_agent(home, AGENT, "en")
            assert home.loop.time() == began

            await home.async_block_till_done(wait_background_tasks=True)
            log_records = [record for record in caplog.records if record.name.startswith("custom_components")]
            assert [record for record in log_records if record.levelno > logging.DEBUG] == []


# Tests for the end of a head start.


@pytest.fixture
async def loading(
    home: HomeAssistant, at_home: MockConfigEntry, later: Later, model_server: ModelServer, say: SayFn
) -> RequestRecord:
    """Take a turn, trigger a head start whose request the server does not answer, and return that request."""
    await say(TELL)
    later(300)
    model_server.fault("no_answer", times=1)
    await conversation.async_prepare_agent(home, AGENT, "en")
    await until(lambda: len(model_server.requests) == 2)
    return model_server.requests[1]


async def test_head_start_goes_on_while_the_turn_asks_for_the_same(
    loading: RequestRecord, model_server: ModelServer, say_at_once: Callable[[str], Any]
) -> None:
    await say_at_once(ASK)

    assert (model_server.requests[2].outcome, loading.outcome) == (RequestOutcome.ANSWERED, RequestOutcome.OPEN)


async def test_head_start_goes_on_while_the_turn_is_answered_locally(
    loading: RequestRecord, model_server: ModelServer, say_at_once: Callable[[str], Any]
) -> None:
    await say_at_once("turn on kitchen light")

    assert (len(model_server.requests), loading.outcome) == (2, RequestOutcome.OPEN)


async def test_head_start_ends_when_the_turn_asks_for_something_else(
    home: HomeAssistant, loading: RequestRecord
) -> None:
    await conversation.async_converse(home, ASK, None, Context(), "en", AGENT, extra_system_prompt="Be brief.")

    await until(lambda: loading.outcome is RequestOutcome.CLIENT_LEFT)


async def test_head_start_ends_with_the_turn_timeout(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, prepare: PrepareFn
) -> None:
    await set_up(account=AT_HOME, **{CONF_TURN_TIMEOUT: 0.3})
    model_server.fault("no_answer")
    began = home.loop.time()

    await prepare()

    await until(lambda: [request.outcome for request in model_server.requests] == [RequestOutcome.CLIENT_LEFT])
    assert home.loop.time() - began == pytest.approx(0.3, abs=0.1)


async def test_head_start_ends_when_the_account_is_unloaded(
    home: HomeAssistant, at_home: MockConfigEntry, loading: RequestRecord
) -> None:
    await home.config_entries.async_unload(at_home.entry_id)

    await until(lambda: loading.outcome is RequestOutcome.CLIENT_LEFT)
