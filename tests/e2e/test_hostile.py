"""Tests with hostile servers in front of a real Home Assistant: the resources that they use, and the answers."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
import re
from typing import Any

import pytest
import pytest_asyncio

from demo.client import Client, log_in_or_onboard
from demo.errors import DemoError
from demo.home_assistant import HomeAssistantProcess, find_free_port
from demo.setup_agent import Account, ModelAccess, add_account, ensure_pipeline
from demo.turns import Turn, take_turn
from tests.e2e import hostile_answers as answers
from tests.e2e.hostile_answers import ALL_FORMATS, Format
from tests.e2e.hostile_server import HostileServer, Reply
from tests.e2e.house import tell_tales, wait_for

_PROBE = Path(__file__).with_name("event_loop_probe")
_FORMS = {"chat": "server", "responses": "openai", "anthropic": "anthropic", "gemini": "gemini"}

_MOST_MEGABYTES = 64.0
_MOST_BLOCKED = 0.1
# A busy machine can make any one measurement bad, but not each of several.
_ATTEMPTS = 3

UNREADABLE = "The model's answer could not be read. Please try again."
UNREACHABLE = "The model's server cannot be reached right now."
LATE = "The model did not answer in time. Please try again."
# said after 25 seconds, which a busy machine needs for the longest answers
PROMISE = "This is taking a while. You'll get a notification."
EMPTY = "The model gave no answer. Please try again."

_QUESTION = "what would the sea say to a lighthouse?"


@dataclass(slots=True)
class Strain:
    """The load on Home Assistant: additional memory, the longest block of the event loop, and remaining tasks."""

    megabytes: float = 0.0
    blocked: float = 0.0
    left: dict[str, int] = field(default_factory=dict)
    worst: dict[str, float] = field(default_factory=dict)

    @property
    def is_within_limits(self) -> bool:
        """Whether memory and block are within their limits."""
        return self.megabytes <= _MOST_MEGABYTES and self.blocked <= _MOST_BLOCKED

    def assert_within_limits(self) -> None:
        """Assert that no tasks remain, and that memory and block are within their limits."""
        assert self.left == {}
        assert self.megabytes <= _MOST_MEGABYTES
        assert self.blocked <= _MOST_BLOCKED, self.worst


@dataclass(frozen=True, slots=True)
class Home:
    """A Home Assistant with the event loop probe."""

    client: Client
    pid: int

    async def act(self, action: str, query: str = "") -> Any:
        """Call an action of the probe."""
        return await self.client.post(f"/api/services/event_loop_probe/{action}{query}")

    async def report(self) -> Any:
        """Return the probe's report."""
        return (await self.act("report", "?return_response"))["service_response"]

    async def tasks(self) -> Counter[str]:
        """Return the number of tasks by the names of their coroutines."""
        return Counter((await self.report())["tasks"])

    async def measure[T](self, act: Callable[[], Awaitable[T]]) -> tuple[T, Strain]:
        """Return the result of `act` and its load. Acts again if the load was over a limit."""
        for _ in range(_ATTEMPTS):
            async with self._strained() as strain:
                result = await act()
            if strain.is_within_limits:
                break
        return result, strain

    @asynccontextmanager
    async def _strained(self) -> AsyncIterator[Strain]:
        """Yield a Strain that measures the load caused within the context."""
        strain, before = Strain(), await self.tasks()
        _forget_peak(self.pid)
        began = _megabytes(self.pid, "VmRSS")
        await self.act("begin")
        yield strain
        strain.worst = await self.report()
        strain.worst.pop("tasks")
        strain.blocked = strain.worst["blocked"]
        strain.megabytes = _megabytes(self.pid, "VmHWM") - began
        strain.left = await wait_for(lambda: self._left(before), lambda left: left == {})

    async def _left(self, before: Counter[str]) -> dict[str, int]:
        return dict(await self.tasks() - before)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent whose model server is hostile."""

    home: Home
    server: HostileServer
    format: Format
    account: Account
    pipeline: str

    async def ask(self, answer: Callable[[Format], Reply]) -> tuple[Turn, Strain]:
        """Send a question to which the server responds with `answer`, and return the turn and the load."""

        async def act() -> Turn:
            self.server.answer = answer(self.format)
            return await take_turn(self.home.client, _QUESTION, pipeline=self.pipeline)

        return await self.home.measure(act)


def _megabytes(pid: int, name: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    (kilobytes,) = re.findall(rf"{name}:\s+(\d+) kB", status)
    return int(kilobytes) / 1024


def _forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


async def _answer_of(home: Home, stack: AsyncExitStack, format_: Format) -> Agent:
    server = await stack.enter_async_context(HostileServer(answers.well(format_), answers.well_listed(format_)))
    account = await add_account(home.client, _model(server, format_), f"By {format_.name}")
    pipeline = await ensure_pipeline(home.client, account.agent_id, account.agent_id)
    agent = Agent(home, server, format_, account, pipeline)
    turn, _ = await agent.ask(answers.well)
    assert turn.speech == "ok"
    return agent


def _model(server: HostileServer, format_: Format) -> ModelAccess:
    key = None if format_.name == "chat" else "scripted-key"
    wire = "responses" if format_.name == "responses" else None
    return ModelAccess(
        url=f"{server.address}{format_.url_path}",
        model="scripted",
        api_key=key,
        form_name=_FORMS[format_.name],
        wire_format=wire,
    )


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def agents(tmp_path_factory) -> AsyncIterator[dict[str, Agent]]:
    """Yield an agent of each format, which has answered once; at the end the log must contain no forbidden text."""
    config = tmp_path_factory.mktemp("hostile")
    (config / "custom_components").mkdir()
    (config / "custom_components" / _PROBE.name).symlink_to(_PROBE, target_is_directory=True)
    home_assistant = HomeAssistantProcess(config, find_free_port())
    async with home_assistant, AsyncExitStack() as stack:
        tokens = await log_in_or_onboard(home_assistant.url, "demo", "demo")
        client = await stack.enter_async_context(Client(home_assistant.url, tokens))
        await client.wait_until_running()
        await client.post("/api/config/config_entries/flow", {"handler": _PROBE.name})
        assert home_assistant._process
        home = Home(client, home_assistant._process.pid)
        yield {each.name: await _answer_of(home, stack, each) for each in ALL_FORMATS}
    assert tell_tales(home_assistant.output_file.read_text(), [_QUESTION]) == []


@pytest.fixture(params=[each.name for each in ALL_FORMATS])
def agent(request, agents) -> Agent:
    found: Agent = agents[request.param]
    return found


@pytest.fixture
def chat(agents) -> Agent:
    """Return the agent whose format is the most lenient."""
    found: Agent = agents["chat"]
    return found


def named(*functions: Callable[[Format], Reply]) -> Any:
    """Return the functions as parameters of a test, with their names as ids."""
    return [pytest.param(function, id=function.__name__) for function in functions]


UNREADABLE_ANSWERS = named(
    answers.endless_line,
    answers.endless_white_space,
    answers.make_line_bomb,
    answers.make_many_calls_event,
    answers.make_many_call_events,
    answers.long_arguments,
    answers.make_fragmented_arguments,
    answers.endless_comments,
)
ERRORS = named(answers.endless_error, answers.make_endless_object_error, answers.make_error_bomb)
SILENT_ANSWERS = named(answers.think_marks, answers.make_think_mark_pairs)
LISTS = named(answers.endless_models, answers.models_of_objects, answers.bomb_of_models)


@pytest.mark.parametrize("answer", UNREADABLE_ANSWERS)
async def test_an_answer_over_a_limit_is_told_and_costs_next_to_nothing(agent, answer):
    turn, strain = await agent.ask(answer)
    assert turn.speech == UNREADABLE
    strain.assert_within_limits()


@pytest.mark.parametrize("answer", ERRORS)
async def test_an_error_without_end_is_told_and_costs_next_to_nothing(agent, answer):
    turn, strain = await agent.ask(answer)
    assert turn.speech == UNREACHABLE
    strain.assert_within_limits()


@pytest.mark.parametrize("answer", SILENT_ANSWERS)
async def test_an_answer_of_marks_is_no_answer_and_costs_next_to_nothing(agent, answer):
    turn, strain = await agent.ask(answer)
    assert turn.speech == EMPTY
    strain.assert_within_limits()


async def test_an_event_of_a_million_objects_is_told_and_costs_next_to_nothing(agent):
    turn, strain = await agent.ask(answers.make_many_objects_event)
    assert turn.speech in (UNREADABLE, UNREACHABLE)
    strain.assert_within_limits()


async def test_a_bomb_of_empty_events_is_told_and_costs_next_to_nothing(chat):
    turn, strain = await chat.ask(answers.make_event_bomb)
    assert turn.speech in (UNREADABLE, LATE, PROMISE)
    strain.assert_within_limits()


async def test_a_bomb_of_single_letters_is_told_after_them_and_costs_next_to_nothing(chat):
    turn, strain = await chat.ask(answers.make_text_bomb)
    assert turn.speech.endswith(UNREADABLE)
    strain.assert_within_limits()


@pytest.mark.parametrize("models", LISTS)
async def test_a_list_over_a_limit_is_no_account_and_costs_next_to_nothing(agent, models):
    async def add() -> None:
        agent.server.models = models(agent.format)
        with pytest.raises(DemoError, match="not_compatible"):
            await add_account(agent.home.client, _model(agent.server, agent.format), "never made")

    _, strain = await agent.home.measure(add)
    agent.server.models = answers.well_listed(agent.format)
    strain.assert_within_limits()
