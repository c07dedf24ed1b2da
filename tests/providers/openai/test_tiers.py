"""Tests for the flexible tier of background requests, its refusals and its price, and for short spoken answers."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import BadRequest, QuotaError
from custom_components.windowed_conversation.providers.events import Request, Usage
from custom_components.windowed_conversation.providers.models import Vendor, find_profile
from custom_components.windowed_conversation.providers.openai import clients
from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect
from custom_components.windowed_conversation.providers.prices import calculate_cost
from custom_components.windowed_conversation.window import Message

from ..byte_server import JSON, ByteServer
from ..heard import Heard
from ..wires.chat import ChatWire
from ..wires.parts import Text
from ..wires.responses import ResponsesWire

WIRES = (ResponsesWire(), ChatWire(Dialect.OPENAI))
MODEL = "gpt-6-luna"
BACKGROUND = Request(
    MODEL, (Message.user("Write a summary."),), profile=find_profile(Vendor.OPENAI, MODEL), is_background=True
)

type Read = Callable[[Request], Any]


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def read(wire: Any, http_client: Any, byte_server: ByteServer) -> Read:
    """Return a function that sends a request, and returns its answer as far as it was heard."""

    async def read(request: Request) -> Heard:
        return await Heard().read(wire.connect(byte_server.address, http_client).stream(request))

    return read


def tiers(byte_server: ByteServer) -> list[Any]:
    return [request.get("service_tier") for request in byte_server.requests]


async def test_only_a_background_request_to_a_model_with_the_tier_asks_for_it(
    wire: Any, read: Read, byte_server: ByteServer
) -> None:
    others = replace(BACKGROUND, is_background=False), replace(BACKGROUND, profile=find_profile(Vendor.AZURE, MODEL))
    for request in (BACKGROUND, *others):
        byte_server.set_reply(*wire.answer(Text(("hello",))))
        await read(request)

    assert tiers(byte_server) == ["flex", None, None]


@pytest.mark.parametrize(
    ("status", "error"),
    [(429, {"code": "resource_unavailable"}), (408, {}), (400, {"param": "service_tier", "code": "invalid_value"})],
)
async def test_refused_tier_is_replaced_by_the_default_one(
    status: int, error: dict[str, str], wire: Any, read: Read, byte_server: ByteServer
) -> None:
    byte_server.set_reply(json.dumps({"error": {"message": "no", **error}}).encode(), status=status, headers=JSON)
    byte_server.add_reply(*wire.answer(Text(("hello",))))

    heard = await read(BACKGROUND)

    assert (heard.text, tiers(byte_server)) == ("hello", ["flex", None])


@pytest.mark.parametrize(
    ("status", "code", "error"), [(429, "insufficient_quota", QuotaError), (400, "invalid_value", BadRequest)]
)
async def test_other_refusals_are_not_tried_again(
    status: int, code: str, error: type[Exception], read: Read, byte_server: ByteServer
) -> None:
    byte_server.set_reply(json.dumps({"error": {"message": "no", "code": code}}).encode(), status=status, headers=JSON)

    with pytest.raises(error):
        await read(BACKGROUND)

    assert tiers(byte_server) == ["flex"]


async def test_tier_that_does_not_begin_is_replaced_by_the_default_one(
    wire: Any, read: Read, byte_server: ByteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_FLEXIBLE_TIER_SECONDS", 0.05)
    byte_server.set_reply(asyncio.Event(), before=100)
    byte_server.add_reply(*wire.answer(Text(("hello",))))

    heard = await read(BACKGROUND)

    assert (heard.text, tiers(byte_server)) == ("hello", ["flex", None])


async def test_verbosity_is_low_only_for_spoken_answers(wire: Any, read: Read, byte_server: ByteServer) -> None:
    spoken = replace(BACKGROUND, is_background=False, is_spoken=True)
    old = replace(spoken, model="gpt-4.1", profile=find_profile(Vendor.OPENAI, "gpt-4.1"))
    for request in (spoken, BACKGROUND, old):
        byte_server.set_reply(*wire.answer(Text(("hello",))))
        await read(request)

    assert [(each.get("text") or each).get("verbosity") for each in byte_server.requests] == ["low", None, None]


def test_models_that_know_the_tier_and_the_verbosity() -> None:
    names = ("gpt-6-luna", "gpt-5-mini", "gpt-5-chat-latest", "gpt-5.3", "gpt-5-pro", "o3", "o3-mini", "gpt-4.1")
    profiles = [find_profile(Vendor.OPENAI, name) for name in names]

    assert [each.flexible_tier for each in profiles] == [True, True, False, False, False, True, False, False]
    assert [each.verbosity for each in profiles] == [True, True, False, True, True, False, False, False]


def test_answer_at_the_flexible_tier_costs_half() -> None:
    whole = calculate_cost(Vendor.OPENAI, MODEL, Usage(input=1000, output=100))
    flexible = calculate_cost(Vendor.OPENAI, MODEL, Usage(input=1000, output=100), is_flexible=True)

    assert whole is not None
    assert flexible == whole / Decimal(2)


@pytest.mark.parametrize("tier", ["flex", "default"])
async def test_answer_says_whether_it_was_given_at_the_flexible_tier(
    tier: str, wire: Any, read: Read, byte_server: ByteServer
) -> None:
    answer = wire.answer(Text(("hello",)), usage=Usage(input=1, output=1))
    served = f'"service_tier":"{tier}"'.encode()
    byte_server.set_reply(*[each.replace(b'"service_tier":"default"', served) for each in answer])

    heard = await read(BACKGROUND)

    assert heard.events[-1].is_flexible is (tier == "flex")
