"""Tests that the limit of an answer is sent in every format and never exceeds the model's maximum output."""

from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import Provider, Request
from custom_components.windowed_conversation.providers.models import ModelProfile
from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect
from custom_components.windowed_conversation.window import Message
from tests.providers.byte_server import ByteServer
from tests.providers.heard import Heard
from tests.providers.wires import ALL_WIRES
from tests.providers.wires.chat import ChatWire
from tests.providers.wires.parts import Text, Wire

NAMES = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
EVERY = pytest.mark.parametrize(
    "wire", [*ALL_WIRES, ChatWire(Dialect.OPENAI)], ids=lambda w: f"{w.name}{len(w.no_calls)}"
)


def limits(body: dict[str, Any]) -> list[int]:
    """Return the limits of the answer in a request body, whatever their names."""
    fields = {**body, **body.get("generationConfig", {})}
    return [fields[name] for name in NAMES if name in fields]


@EVERY
@pytest.mark.parametrize(("written", "sent"), [(None, 9000), (64_000, 9000), (8192, 8192)])
async def test_limit_is_sent_and_no_more_than_the_model_writes(
    written: int | None, sent: int, wire: Wire, provider: Provider, byte_server: ByteServer
) -> None:
    byte_server.set_reply(*wire.answer(Text(("ok",))))
    profile = ModelProfile(output_tokens=written)

    await Heard().read(
        provider.stream(Request("model", (Message.user("hello"),), profile=profile, max_answer_tokens=9000))
    )

    assert limits(byte_server.requests[-1]) == [sent]
