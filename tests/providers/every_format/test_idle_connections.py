"""Tests for connections that stay open after a request, and for servers that close them before the next one."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from custom_components.windowed_conversation.providers import preconnect, transport
from custom_components.windowed_conversation.providers.errors import DeadlineExceeded, Unavailable
from custom_components.windowed_conversation.providers.events import Provider, Request
from custom_components.windowed_conversation.window import Message
from tests.front import Front
from tests.providers.byte_server import JSON, ByteServer
from tests.providers.conftest import over_either_client
from tests.providers.heard import Heard
from tests.providers.wires.parts import Text, Wire

HELLO = Request("model", (Message.user("hello"),))


@pytest.fixture
async def front(byte_server: ByteServer) -> AsyncIterator[Front]:
    """Yield a proxy in front of the server that counts its connections."""
    async with Front(byte_server.address) as front:
        yield front


@pytest.fixture
async def provider(wire: Wire, http_client: Any, front: Front, byte_server: ByteServer) -> Provider:
    """Return a provider that has listed the models, so that it has an idle connection for its next request."""
    byte_server.set_reply(wire.model_list(["model"]), headers=JSON)
    byte_server.add_reply(*wire.answer(Text(("hello",))))
    provider = wire.connect(front.address, http_client)
    await provider.list_models()
    return provider


async def test_request_uses_the_idle_connection(provider: Provider, front: Front) -> None:
    heard = await Heard().read(provider.stream(HELLO))

    assert (heard.text, front.connections) == ("hello", 1)


async def test_connection_that_the_server_has_closed_costs_no_answer(provider: Provider, front: Front) -> None:
    front.reset()

    heard = await Heard().read(provider.stream(HELLO))

    assert (heard.text, front.connections) == ("hello", 1)


@over_either_client
async def test_connection_that_the_server_closes_as_the_request_comes_costs_no_answer(
    provider: Provider, front: Front
) -> None:
    front.hangs_up_at = 2

    heard = await Heard().read(provider.stream(HELLO))

    assert (heard.text, front.connections, len(front.heads)) == ("hello", 2, 3)


async def test_server_that_hangs_up_on_a_new_connection_is_asked_once(provider: Provider, front: Front) -> None:
    front.reset()
    front.hangs_up_at = 1

    await Heard().fail(provider.stream(HELLO), Unavailable)

    assert len(front.heads) == 1


async def test_connection_that_breaks_later_than_a_round_trip_is_the_servers_failure(
    provider: Provider, front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "_CLOSE_NOTICE_SECONDS", -1.0)
    front.hangs_up_at = 2

    await Heard().fail(provider.stream(HELLO), Unavailable)

    assert len(front.heads) == 2


@pytest.mark.parametrize("status", [301, 404])
async def test_opened_connection_is_the_one_that_the_next_request_uses(
    status: int, wire: Wire, http_client: Any, front: Front, byte_server: ByteServer
) -> None:
    byte_server.set_reply(status=status, headers={"Location": "http://127.0.0.1:1/"})
    byte_server.add_reply(*wire.answer(Text(("hello",))))

    await preconnect(http_client, front.address)
    heard = await Heard().read(wire.connect(front.address, http_client).stream(HELLO))

    assert (heard.text, front.connections) == ("hello", 1)


async def test_nothing_of_the_address_is_sent_but_the_server(
    http_client: Any, front: Front, byte_server: ByteServer
) -> None:
    address = front.address.replace("//", "//ada:secret@")

    await preconnect(http_client, f"{address}/v1/models?key=secret")

    assert front.asked == ["HEAD /"]
    assert front.sent_keys == [False]
    assert "secret" not in front.heads[0]


async def test_server_that_is_not_there_is_one_of_our_errors(http_client: Any, unused_port: int) -> None:
    with pytest.raises(Unavailable):
        await preconnect(http_client, f"http://127.0.0.1:{unused_port}/v1")


async def test_server_that_says_nothing_is_one_of_our_errors(http_client: Any, silent_port: int) -> None:
    with pytest.raises(DeadlineExceeded):
        await preconnect(http_client, f"http://127.0.0.1:{silent_port}/v1")
