"""Tests for unexpected text in a server's response: it must appear neither in stored turn statistics nor in the log."""

from collections.abc import Awaitable, Callable
import json

from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.record import TurnRecord
from tests.providers.byte_server import CALLS, DONE, JSON, STOP, ByteServer, chunk, event, fragment, text

from .conftest import SayFn, SetUpFn, flush_store
from .remembered import recorded_turns

SECRET = "pelican"
LONG = f"the_code_of_the_safe_is_{SECRET}_and_not_heron"

type Record = Callable[[], Awaitable[TurnRecord]]


@pytest.fixture
async def hostile(home: HomeAssistant, set_up: SetUpFn, byte_server: ByteServer) -> ByteServer:
    """Set up an agent on a server whose responses the test defines, and return the server."""
    models = {"object": "list", "data": [{"id": "scripted", "object": "model", "created": 1, "owned_by": "us"}]}
    byte_server.set_reply(json.dumps(models).encode(), headers=JSON)
    await set_up(account={CONF_URL: byte_server.url}, routing="model_only")
    return byte_server


@pytest.fixture
def record(home: HomeAssistant, say: SayFn, caplog: pytest.LogCaptureFixture) -> Record:
    """Return a function that takes a turn and returns its record, and fails if the record or the log has the secret."""

    async def record() -> TurnRecord:
        await say("hello there")
        await flush_store(home)
        (turn,) = await recorded_turns(home)
        ours = [each.getMessage() for each in caplog.records if each.name.startswith("custom_components")]
        assert SECRET not in str(ours)
        assert SECRET not in str(turn)
        return turn

    return record


async def test_reason_to_end_that_no_server_is_known_to_have_is_another(hostile: ByteServer, record: Record) -> None:
    hostile.set_reply(text("Good."), chunk({}, f"because {SECRET}"), DONE)

    turn = await record()

    assert (turn["outcome"], [each["finish"] for each in turn["attempts"]]) == ("answered", ["other"])


async def test_tool_that_was_not_offered_has_no_name(hostile: ByteServer, record: Record) -> None:
    calls = [fragment("{}", name, index=at, id=name) for at, name in enumerate(("intent__HassTurnOn", LONG))]
    hostile.set_reply(*calls, CALLS, DONE)
    hostile.add_reply(text("Good."), STOP, DONE)

    turn = await record()

    assert turn["tools"] == turn["attempts"][0]["tools"] == ["intent__HassTurnOn", "unknown"]


@pytest.mark.parametrize("code", [LONG, "пеликан", f"{SECRET} "])
async def test_code_that_is_no_short_word_is_none(hostile: ByteServer, record: Record, code: str) -> None:
    hostile.set_reply(event({"error": {"code": code, "message": SECRET}}))

    turn = await record()

    assert turn["message"] == "error in the stream, code none"


async def test_address_of_a_redirect_is_not_in_the_message(hostile: ByteServer, record: Record) -> None:
    hostile.set_reply(b"", status=308, headers={"Location": f"https://{SECRET}.example/{SECRET}"})

    turn = await record()

    assert (turn["error"], turn["message"]) == ("redirected", "the server redirects")
