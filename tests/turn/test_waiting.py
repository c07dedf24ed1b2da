"""Tests for how long a turn waits for a model, with and without a fallback agent, for vendors and servers at home.

Each server sends its first token after 3, 14, 25, 45 and 100 seconds, on a clock that leaps over the wait.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from aiohttp import web
import httpx
import httpx2
import pytest

from custom_components.windowed_conversation.providers import DeadlineExceeded, Unavailable
from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect
from custom_components.windowed_conversation.turn.limits import IDLE_TIMEOUT, Budget
from custom_components.windowed_conversation.turn.model import Model, Question
from custom_components.windowed_conversation.turn.routing import Route, RouteDecision, RouteReason
from custom_components.windowed_conversation.turn.state import Turn
from custom_components.windowed_conversation.window import Window, WindowPolicy
from demo.model_server import ModelServer, call
from tests.providers.byte_server import ByteServer, Pause, Piece
from tests.providers.wires.anthropic import AnthropicWire
from tests.providers.wires.chat import ChatWire
from tests.providers.wires.gemini import GeminiWire
from tests.providers.wires.parts import Call, Calls, Reasoning, Text, Wire
from tests.providers.wires.responses import ResponsesWire

from .test_asking import Elsewhere
from .world import Ear, Home, take_turn

DELAYS = (3, 14, 25, 45, 100)
COMMENT = b": keep-alive\n\n"
ANSWER = "It is in."
OWN, OTHER, NO_AGENT = "own", "conversation.elsewhere", None

# The SDKs' default timeout of ten minutes, which is longer than any turn.
_SDK_TIMEOUT = 600.0


@dataclass(frozen=True)
class Server:
    """A model's server: its wire format, and whether it is at home."""

    wire: Wire
    is_at_home: bool = False

    def __str__(self) -> str:
        return f"{self.wire.name}{' at home' if self.is_at_home else ''}"


VENDORS = (
    Server(AnthropicWire()),
    Server(ChatWire(Dialect.OPENAI)),
    Server(GeminiWire()),
    Server(ResponsesWire()),
)
HOME_SERVER = Server(ChatWire(), is_at_home=True)
ALL_SERVERS = (*VENDORS, Server(ChatWire()), HOME_SERVER)


def nothing(delay: float, answer: list[bytes]) -> tuple[float, list[Piece]]:
    """Send nothing before the answer, not even headers."""
    return delay, [*answer]


def headers(delay: float, answer: list[bytes]) -> tuple[float, list[Piece]]:
    return 0, [Pause(delay), *answer]


def begun(delay: float, answer: list[bytes]) -> tuple[float, list[Piece]]:
    """Send the first event of the answer at once (such as "response.in_progress"), and the others after the delay."""
    return 0, [answer[0], Pause(delay), *answer[1:]]


def signs(every: float) -> Callable[[float, list[bytes]], tuple[float, list[Piece]]]:
    """Return a function that sends a comment at intervals, in seconds, until the answer."""

    def signs(delay: float, answer: list[bytes]) -> tuple[float, list[Piece]]:
        times = range(int(every), int(delay), int(every))
        waits = [later - earlier for earlier, later in pairwise((0, *times, delay))]
        pieces = [piece for wait in waits[:-1] for piece in (Pause(wait), COMMENT)]
        return 0, [*pieces, Pause(waits[-1]), *answer]

    return signs


EACH_SECOND, EACH_HALF_MINUTE = signs(1), signs(30)
ALL_OWN = [OWN] * 5

# The agent that answers after each of the delays, by the server's way of waiting.
ALONE = {"nothing": ALL_OWN, "headers": ALL_OWN, "each second": ALL_OWN, "each 30 s": ALL_OWN, "begun": ALL_OWN}
VENDOR_ALONE = {**ALONE, "begun": [OWN, OWN, OWN, OWN, NO_AGENT]}
QUICK = [OWN, OTHER, OTHER, OTHER, OTHER]
STANDBY = {
    "nothing": QUICK,
    "headers": QUICK,
    "each second": [OWN, OWN, OWN, OWN, OTHER],
    "each 30 s": QUICK,
    "begun": QUICK,
}
WAYS = {
    "nothing": nothing,
    "headers": headers,
    "each second": EACH_SECOND,
    "each 30 s": EACH_HALF_MINUTE,
    "begun": begun,
}


class House:
    """Takes turns against one server. `left_open` are the tasks that continue after their turn."""

    def __init__(self, byte_server: ByteServer, question: Question, window: Window, ear: Ear, clients: Any) -> None:
        self.server, self._question, self.window, self._ear = byte_server, question, window, ear
        self._clients = clients
        self.left_open: list[asyncio.Task[None]] = []

    def question(self, server: Server, *others: Any, address: str = "") -> Question:
        client = self._clients[server.wire.clients[0]]
        model = Model(
            OWN,
            server.wire.connect(address or self.server.address, client, timeout=_SDK_TIMEOUT),
            "scripted",
            Budget(WindowPolicy()),
            is_at_home=server.is_at_home,
        )
        return replace(self._question, model=model, fallback_agents=others)

    async def ask(self, question: Question, **limits: Any) -> Turn:
        return await take_turn(
            self.window,
            "is the pelican in?",
            question,
            self._ear,
            background=self._in_background,
            **limits,
        )

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        self.left_open.append(asyncio.create_task(work))


@pytest.fixture
async def session(byte_server: ByteServer, question: Question, window: Window, reply: Ear) -> AsyncIterator[House]:
    async with httpx.AsyncClient(verify=False) as old, httpx2.AsyncClient(verify=False) as new:
        house = House(byte_server, question, window, reply, {"httpx": old, "httpx2": new})
        yield house
        await asyncio.gather(*house.left_open)


async def answered(house: House, server: Server, way: str, *others: Any) -> list[Turn]:
    outcomes = []
    for delay in DELAYS:
        before, pieces = WAYS[way](delay, server.wire.answer(Reasoning(("hm",)), Text((ANSWER,))))
        house.server.set_reply(*pieces, before=before)
        outcomes.append(await house.ask(house.question(server, *others)))
    return outcomes


def who(outcomes: list[Turn]) -> list[str | None]:
    return [outcome.answered_by for outcome in outcomes]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("server", VENDORS, ids=str)
async def test_vendor_is_heard_unless_it_is_silent_after_it_has_begun(way: str, server: Server, session: House) -> None:
    assert who(await answered(session, server, way)) == VENDOR_ALONE[way]


@pytest.mark.parametrize("way", WAYS)
async def test_server_at_home_is_heard_whenever_it_speaks(way: str, session: House) -> None:
    assert who(await answered(session, HOME_SERVER, way)) == ALONE[way]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("server", ALL_SERVERS, ids=str)
async def test_fallback_agent_is_asked_after_ten_silent_seconds_or_a_minute_of_signs(
    way: str, server: Server, session: House
) -> None:
    outcomes = await answered(session, server, way, Elsewhere("Ask the harbour."))

    assert who(outcomes) == STANDBY[way]


@pytest.mark.parametrize("server", ALL_SERVERS, ids=str)
async def test_model_that_nobody_heard_is_heard_when_the_fallback_agent_fails(server: Server, session: House) -> None:
    session.server.set_reply(*server.wire.answer(Text((ANSWER,))), before=25)

    outcome = await session.ask(session.question(server, Elsewhere(DeadlineExceeded("gone"))))

    assert (outcome.sent_text, outcome.answered_by, len(outcome.attempts)) == (ANSWER, OWN, 1)
    assert outcome.decision == RouteDecision(Route.MODEL, RouteReason.MODEL_ONLY)
    assert outcome.duration_seconds < 120
    assert len(session.server.requests) == 1


async def test_model_that_nobody_heard_does_not_answer_after_a_tool_of_another_has_run(
    session: House, question: Question, home: Home, reply: Ear, model_server: ModelServer
) -> None:
    async def turn_on(name: str) -> None:
        await home.tools["intent__HassTurnOn"](name)
        model_server.fault("500")

    reply.tools = {**home.tools, "intent__HassTurnOn": turn_on}
    model_server.script(call("intent__HassTurnOn", name="kitchen light"))
    session.server.set_reply(*HOME_SERVER.wire.answer(Text((ANSWER,))), before=25)

    outcome = await session.ask(session.question(HOME_SERVER, replace(question.model, agent_id="other")))

    assert isinstance(outcome.error, Unavailable)
    assert home.ran == ["on kitchen light"]


async def test_nobody_is_heard_when_all_fail(session: House) -> None:
    session.server.set_reply(*HOME_SERVER.wire.answer(Text((ANSWER,))), before=500)

    outcome = await session.ask(session.question(HOME_SERVER, Elsewhere(DeadlineExceeded("gone"))))

    assert isinstance(outcome.error, DeadlineExceeded)
    assert session.window.exchanges() == ()


@pytest.mark.parametrize("server", ALL_SERVERS, ids=str)
async def test_thoughts_are_signs_of_life(server: Server, session: House) -> None:
    begin, *rest = server.wire.answer(Reasoning(("hm", "well")), Text((ANSWER,)))
    session.server.set_reply(begin, *(piece for event in rest for piece in (Pause(4), event)))

    outcome = await session.ask(session.question(server, Elsewhere("Ask the harbour.")))

    assert (outcome.answered_by, outcome.sent_text) == (OWN, ANSWER)


@pytest.mark.parametrize("server", ALL_SERVERS, ids=str)
async def test_nobody_waits_beyond_the_turn_for_a_server_that_pings_for_ever(server: Server, session: House) -> None:
    session.server.set_reply(*(piece for _ in range(200) for piece in (COMMENT, Pause(1))))
    loop = asyncio.get_running_loop()
    began = loop.time()

    outcome = await session.ask(session.question(server))

    assert isinstance(outcome.error, DeadlineExceeded)
    assert loop.time() - began == pytest.approx(120, abs=0.5)


@pytest.mark.parametrize("server", ALL_SERVERS, ids=str)
async def test_minute_of_pings_is_enough_where_a_fallback_agent_stands_by(server: Server, session: House) -> None:
    session.server.set_reply(*(piece for _ in range(200) for piece in (COMMENT, Pause(1))))
    loop = asyncio.get_running_loop()
    began = loop.time()

    outcome = await session.ask(session.question(server, Elsewhere("Ask the harbour.")))

    assert outcome.answered_by == OTHER
    assert loop.time() - began == pytest.approx(60, abs=0.5)


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("server", ALL_SERVERS, ids=str)
async def test_answer_after_a_tool_is_waited_for_although_a_fallback_agent_stands_by(
    delay: float, server: Server, session: House
) -> None:
    call = Call("call_1", "homeassistant__GetLiveContext", ("{}",))
    session.server.set_reply(*server.wire.answer(Calls((call,))), before=3)
    session.server.add_reply(Pause(delay), *server.wire.answer(Text((ANSWER,))))

    outcome = await session.ask(session.question(server, Elsewhere("Ask the harbour.")))

    assert (outcome.sent_text, outcome.answered_by, outcome.tool_calls) == (ANSWER, OWN, 1)


@pytest.mark.parametrize("server", VENDORS, ids=str)
async def test_silence_in_the_middle_of_a_vendors_answer_ends_it(server: Server, session: House) -> None:
    *begin, _ = server.wire.answer(Text(("It is", " in.")))
    session.server.set_reply(*begin[:3], Pause(100), *begin[3:])
    loop = asyncio.get_running_loop()
    began = loop.time()

    outcome = await session.ask(session.question(server))

    assert isinstance(outcome.error, DeadlineExceeded)
    assert loop.time() - began == pytest.approx(IDLE_TIMEOUT, abs=0.5)


async def test_server_at_home_may_write_a_tool_call_without_a_sign(session: House) -> None:
    *begin, last = HOME_SERVER.wire.answer(Text(("It is", " in.")))
    session.server.set_reply(*begin, Pause(100), last)

    assert (await session.ask(session.question(HOME_SERVER))).sent_text == ANSWER


async def test_server_at_home_goes_on_loading_while_another_agent_answers(session: House) -> None:
    session.server.set_reply(*HOME_SERVER.wire.answer(Text((ANSWER,))), before=14)

    outcome = await session.ask(session.question(HOME_SERVER, Elsewhere("Ask the harbour.")))
    (load,) = session.left_open
    await load

    assert (outcome.answered_by, outcome.sent_text) == (OTHER, "Ask the harbour.")
    assert session.server.left == 0


class LoadingServer:
    """A server that loads its model for 14 seconds on the first request, and starts over if the client disconnects."""

    def __init__(self) -> None:
        self.is_loaded = False
        self.loads = 0
        self._load_lock = asyncio.Lock()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        async with self._load_lock:
            if not self.is_loaded:
                self.loads += 1
                await asyncio.sleep(14)
                self.is_loaded = True
        return web.Response(body=b"".join(HOME_SERVER.wire.answer(Text((ANSWER,)))), content_type="text/event-stream")


@pytest.fixture
async def loading(socket_enabled: None) -> AsyncIterator[tuple[LoadingServer, str]]:
    server, app = LoadingServer(), web.Application()
    app.router.add_post("/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield server, f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.parametrize(
    ("others", "expected"), [((), [OWN] * 4), ((Elsewhere("Ask the harbour."),), [OTHER, OWN, OWN, OWN])]
)
async def test_model_that_a_server_loads_again_when_a_client_leaves_answers(
    others: tuple[Elsewhere, ...],
    expected: list[str],
    session: House,
    loading: tuple[LoadingServer, str],
) -> None:
    server, address = loading
    question = session.question(HOME_SERVER, *others, address=address)

    assert who([await session.ask(question) for _ in range(4)]) == expected
    assert server.loads == 1


async def test_load_is_given_up_with_the_time_of_its_turn(session: House) -> None:
    session.server.set_reply(*HOME_SERVER.wire.answer(Text((ANSWER,))), before=500)
    loop = asyncio.get_running_loop()
    began = loop.time()

    await session.ask(session.question(HOME_SERVER, Elsewhere("Ask the harbour.")))
    await asyncio.gather(*session.left_open)

    assert loop.time() - began <= 121


async def test_only_one_request_at_a_time_stays_open_beyond_its_turn(session: House) -> None:
    question = session.question(HOME_SERVER, Elsewhere("Ask the harbour."))
    session.server.set_reply(*HOME_SERVER.wire.answer(Text((ANSWER,))), before=100)

    for _ in range(3):
        await session.ask(question)

    assert len(session.left_open) == 1


@pytest.mark.parametrize("server", VENDORS, ids=str)
async def test_vendor_that_nobody_hears_is_left_at_once(server: Server, session: House) -> None:
    session.server.set_reply(*server.wire.answer(Text((ANSWER,))), before=30)

    outcome = await session.ask(session.question(server, Elsewhere("Ask the harbour.")))
    await asyncio.sleep(1)

    assert session.left_open == []
    assert session.server.left == 1
    assert [(attempt.error_name, attempt.is_cost_unknown) for attempt in outcome.attempts] == [
        ("DeadlineExceeded", True)
    ]


async def test_cancelled_turn_leaves_the_model_that_nobody_heard(session: House) -> None:
    class Slow(Elsewhere):
        async def answer(self) -> str:
            await asyncio.sleep(50)
            return "Ask the harbour."

    session.server.set_reply(*HOME_SERVER.wire.answer(Text((ANSWER,))), before=100)
    turn = asyncio.create_task(session.ask(session.question(HOME_SERVER, Slow(""))))
    await asyncio.sleep(20)

    turn.cancel()
    await asyncio.wait({turn})
    await asyncio.sleep(1)

    assert turn.cancelled()
    assert (session.left_open, session.server.left) == ([], 1)
