"""Tests for context editing: when it is requested, the provider's report, and that the window keeps its history."""

from itertools import chain
import json
from typing import Any

from anthropic.types.beta import BetaClearToolUses20250919EditParam
from pydantic import TypeAdapter
import pytest

from custom_components.windowed_conversation.providers.anthropic.clients import (
    MessagesProvider,
    create_anthropic_messages,
)
from custom_components.windowed_conversation.providers.anthropic.encoding import encode_count_request, encode_request
from custom_components.windowed_conversation.providers.events import (
    DEFAULT_SETTINGS,
    ModelSettings,
    Request,
    ToolSchema,
    Usage,
)
from custom_components.windowed_conversation.providers.models import (
    UNKNOWN_MODEL,
    Caching,
    Effort,
    ModelProfile,
    ReasoningStyle,
    Vendor,
    find_profile,
)
from custom_components.windowed_conversation.window import Message, ToolCall
from demo.model_server import ModelServer

from ..conftest import Hear
from ..heard import Heard
from ..wires.anthropic import (
    MESSAGE_STOP,
    event,
    message_delta,
    message_start,
    text_block,
)
from .conftest import MODEL

EDITS = ModelProfile(context_editing=True)
EDITING_SETTINGS = ModelSettings(compaction=True)
STATES = ToolSchema("homeassistant__GetLiveContext", "", {"type": "object", "properties": {}})
START = message_start(input_tokens=7, output_tokens=1)


def history(calls: int, *, size: int = 2000) -> tuple[Message, ...]:
    """Return turns that each contain a tool result of `size` characters before the answer."""
    turns = (
        (
            Message.user(f"which lights are on? ({number})"),
            Message.assistant(tool_calls=(ToolCall(f"toolu_{number}", STATES.name, {}),)),
            Message.tool(f"toolu_{number}", STATES.name, json.dumps({"result": f"{number} " + "light " * (size // 6)})),
            Message.assistant("None."),
        )
        for number in range(calls)
    )
    return tuple(chain.from_iterable(turns))


def asked(*earlier: Message, **fields: Any) -> Request:
    messages = (Message.system("You are a voice assistant."), *earlier, Message.user("hello"))
    return Request(MODEL, messages, (STATES,), **{"profile": EDITS, "settings": EDITING_SETTINGS, **fields})


def ended(context_management: Any) -> bytes:
    """Return the second to last event of a stream, with the applied edits."""
    written = message_delta("end_turn", output_tokens=2).partition(b"data: ")[2]
    return event({**json.loads(written), "context_management": context_management})


@pytest.mark.parametrize(
    "fields",
    [
        {"settings": DEFAULT_SETTINGS},
        {"profile": UNKNOWN_MODEL},
        {"settings": DEFAULT_SETTINGS, "profile": UNKNOWN_MODEL},
    ],
)
def test_nothing_is_asked_for_unless_wanted_and_known_to_be_there(fields: dict[str, Any]) -> None:
    assert not {"betas", "context_management"} & encode_request(asked(**fields)).keys()


def test_nothing_else_changes() -> None:
    plain, edited = encode_request(asked(*history(8), settings=DEFAULT_SETTINGS)), encode_request(asked(*history(8)))

    assert {name: edited[name] for name in edited.keys() - {"betas", "context_management"}} == plain


def test_edit_is_one_that_the_sdk_knows() -> None:
    (edit,) = encode_request(asked())["context_management"]["edits"]

    assert TypeAdapter(BetaClearToolUses20250919EditParam).validate_python(edit) == edit


def test_count_is_of_the_whole_request() -> None:
    assert encode_count_request(asked(*history(8))) == encode_count_request(
        asked(*history(8), settings=DEFAULT_SETTINGS)
    )


@pytest.mark.parametrize(
    ("model", "edits"),
    [
        ("claude-3-7-sonnet-latest", False),
        ("claude-3-5-haiku-latest", False),
        ("claude-opus-4-20250514", True),
        ("claude-haiku-4-5", True),
        ("claude-sonnet-6", True),
    ],
)
def test_context_editing_began_with_claude_4(model: str, *, edits: bool) -> None:
    assert find_profile(Vendor.ANTHROPIC, model).context_editing is edits


async def test_what_was_cleared_is_part_of_the_usage(hear: Hear) -> None:
    edits = [
        {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 4, "cleared_input_tokens": 2100},
        {"type": "clear_of_next_year", "cleared_input_tokens": 30},
    ]
    heard = await hear(
        START,
        *text_block(0, "hello"),
        ended({"applied_edits": edits}),
        MESSAGE_STOP,
        profile=EDITS,
        settings=EDITING_SETTINGS,
    )

    assert heard.usages == [Usage(7, 0, 2, cleared=2130)]


@pytest.mark.parametrize("said", [None, "none", {}, {"applied_edits": None}, {"applied_edits": [7, {"type": "x"}]}])
async def test_answer_is_whole_whatever_is_said_of_edits(said: Any, hear: Hear) -> None:
    heard = await hear(
        START, *text_block(0, "hello"), ended(said), MESSAGE_STOP, profile=EDITS, settings=EDITING_SETTINGS
    )

    assert heard.text == "hello"
    assert heard.usages == [Usage(7, 0, 2)]


@pytest.fixture
async def strict(model_server: ModelServer) -> ModelServer:
    """Return the scripted model server with this model. It refuses an edit without its beta header."""
    model_server.change(models=(MODEL,))
    return model_server


@pytest.fixture
def provider(strict: ModelServer, http_client: Any) -> MessagesProvider:
    return create_anthropic_messages(strict.address, "key", http_client)


@pytest.mark.parametrize(
    ("calls", "size", "clears"), [(6, 2000, False), (7, 2000, True), (9, 2000, True), (9, 60, False)]
)
async def test_server_clears_old_results_where_there_are_many_and_long_ones(
    calls: int, size: int, clears: bool, strict: ModelServer, provider: MessagesProvider
) -> None:
    heard = await Heard().read(provider.stream(asked(*history(calls, size=size))))

    assert strict.requests[-1].violations == []
    assert (heard.usages[0].cleared > 0) is clears


async def test_what_was_cleared_is_not_in_the_input(provider: MessagesProvider) -> None:
    plain = await Heard().read(provider.stream(asked(*history(9), settings=DEFAULT_SETTINGS)))
    edited = await Heard().read(provider.stream(asked(*history(9))))

    (before,), (after,) = plain.usages, edited.usages
    assert before.cleared == 0
    assert after.cleared > 2500
    assert after.input < before.input - 0.9 * after.cleared


@pytest.mark.parametrize("reasoning", [ReasoningStyle.ADAPTIVE, ReasoningStyle.BUDGET])
async def test_model_that_thinks_and_marks_its_prompt_is_asked_validly(
    reasoning: ReasoningStyle, strict: ModelServer, provider: MessagesProvider
) -> None:
    profile = ModelProfile(reasoning=reasoning, caching=Caching.BREAKPOINTS, context_editing=True)
    request = asked(
        *history(9), profile=profile, settings=ModelSettings(effort=Effort.HIGH, temperature=0.3, compaction=True)
    )

    await Heard().read(provider.stream(request))

    assert strict.requests[-1].violations == []
