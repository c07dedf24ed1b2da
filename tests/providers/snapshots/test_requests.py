"""Snapshot tests of one long conversation in each format: the request is unchanged and valid.

To write the snapshots again after an intended change, and to show the differences:

    WRITE_SNAPSHOTS=1 .venv/test/bin/python -m pytest tests/providers/snapshots && git diff tests/providers/snapshots
"""

from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from importlib import import_module
import json
import os
from pathlib import Path
from typing import Any

import pytest

from custom_components.windowed_conversation.providers import UNSEEN_NOTE
from custom_components.windowed_conversation.providers.events import ModelSettings, Request
from custom_components.windowed_conversation.providers.models import (
    UNKNOWN_MODEL,
    Effort,
    ModelProfile,
    Vendor,
    find_profile,
)
from custom_components.windowed_conversation.providers.openai.chat_encoding import Dialect
from demo.model_server import ModelServer
from tests.providers.heard import Heard
from tests.providers.wires.anthropic import AnthropicWire
from tests.providers.wires.chat import ChatWire
from tests.providers.wires.gemini import GeminiWire
from tests.providers.wires.parts import Wire
from tests.providers.wires.responses import ResponsesWire

from .conversation import ABORTED, CLAUDE, GEMINI, GPT, LLAMA, MODELS, PIXEL_PNG, SUMMARY, TOOLS, TRIMMED, conversation
from .sdk_types import matches_sdk_types


@dataclass(frozen=True)
class Format:
    """A wire format with a model, and the name of its snapshot."""

    name: str
    wire: Wire
    model: str
    profile: ModelProfile


FORMATS = (
    Format("anthropic", AnthropicWire(), CLAUDE, find_profile(Vendor.ANTHROPIC, CLAUDE)),
    Format("chat_compatible", ChatWire(), LLAMA, replace(UNKNOWN_MODEL, images=True)),
    Format("chat_openai", ChatWire(Dialect.OPENAI), GPT, find_profile(Vendor.OPENAI, GPT)),
    Format("gemini", GeminiWire(), GEMINI, find_profile(Vendor.GOOGLE, GEMINI)),
    Format("responses", ResponsesWire(), GPT, find_profile(Vendor.OPENAI, GPT)),
)


@pytest.fixture(params=FORMATS, ids=lambda each: each.name)
def snapshot_case(request: pytest.FixtureRequest) -> Format:
    found: Format = request.param
    return found


@pytest.fixture
async def http_client(snapshot_case: Format) -> AsyncIterator[Any]:
    async with import_module(snapshot_case.wire.clients[0]).AsyncClient(verify=False) as client:
        yield client


@pytest.fixture
def send(snapshot_case: Format, http_client: Any, model_server: ModelServer) -> Callable[..., Awaitable[Any]]:
    """Return a function that sends the conversation's newest request to a model and returns the server's record."""
    model_server.change(models=MODELS)

    async def send(profile: ModelProfile, **fields: Any) -> Any:
        request = Request(
            snapshot_case.model,
            conversation(snapshot_case.wire.name).messages(),
            TOOLS,
            profile=profile,
            cache_key="agent",
            max_answer_tokens=4096,
            settings=ModelSettings(effort=Effort.LOW, temperature=0.5),
            **fields,
        )
        await Heard().read(snapshot_case.wire.connect(model_server.address, http_client).stream(request))
        return model_server.requests[-1]

    return send


@pytest.fixture
async def sent(snapshot_case: Format, send: Callable[..., Awaitable[Any]]) -> Any:
    """Return the server's record of the request for the conversation's newest turn."""
    return await send(snapshot_case.profile)


@pytest.fixture
async def sent_to_the_blind(snapshot_case: Format, send: Callable[..., Awaitable[Any]]) -> Any:
    """Return the server's record of the same request to a model that does not accept images."""
    return await send(replace(snapshot_case.profile, images=False))


def snapshot(name: str, written: str) -> str:
    """Return the snapshot of this name. If `WRITE_SNAPSHOTS` is set in the environment, it is overwritten first."""
    path = Path(__file__).with_name(f"{name}.json")
    if os.environ.get("WRITE_SNAPSHOTS"):
        path.write_text(written, encoding="utf-8")
    return path.read_text(encoding="utf-8")


async def test_request_is_the_same_as_ever(sent: Any, snapshot_case: Format) -> None:
    # The SDKs order the parameters differently, so sort them; the order inside a parameter is the encoder's.
    body = {name: sent.body[name] for name in sorted(sent.body)}
    written = json.dumps({"path": sent.path, "body": body}, ensure_ascii=False, indent=2) + "\n"

    assert written == snapshot(snapshot_case.name, written)


async def test_request_breaks_no_rule_of_its_format(sent: Any) -> None:
    assert sent.violations == []


async def test_request_is_what_the_sdk_takes(sent: Any, snapshot_case: Format) -> None:
    assert matches_sdk_types(snapshot_case.wire.name, sent.body)


async def test_request_that_must_be_answered_with_a_call_breaks_no_rule_of_its_format(
    snapshot_case: Format, send: Callable[..., Awaitable[Any]]
) -> None:
    # Anthropic's newest SDK has no type for the temperature, which older models still take if they do not think.
    sent = await send(replace(snapshot_case.profile, sampling=False), requires_call=True)

    assert sent.violations == []
    assert matches_sdk_types(snapshot_case.wire.name, sent.body)


async def test_what_is_not_in_the_window_is_not_sent(sent: Any) -> None:
    text = sent.raw.decode()

    assert ABORTED not in text
    assert f"The {TRIMMED} is nice" not in text


@pytest.mark.parametrize("said", [SUMMARY, "Eingeschaltet", "Nobody, and the door is open.", "no such light"])
async def test_what_is_in_the_window_is_sent(said: str, sent: Any) -> None:
    assert said in sent.raw.decode()


async def test_picture_is_sent_as_it_is(sent: Any) -> None:
    # The picture may be in the URL-safe or in the standard base64 alphabet.
    written = {encode(PIXEL_PNG) in sent.raw for encode in (b64encode, urlsafe_b64encode)}

    assert True in written


async def test_model_that_cannot_see_is_told_of_the_picture_and_the_paper(sent_to_the_blind: Any) -> None:
    assert sent_to_the_blind.raw.decode().count(UNSEEN_NOTE) == 2


async def test_request_to_a_model_that_cannot_see_breaks_no_rule_of_its_format(
    sent_to_the_blind: Any, snapshot_case: Format
) -> None:
    assert sent_to_the_blind.violations == []
    assert matches_sdk_types(snapshot_case.wire.name, sent_to_the_blind.body)
