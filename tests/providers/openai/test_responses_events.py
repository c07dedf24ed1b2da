"""Tests for the events of a Responses stream: the answer, its residue, and every way in which it ends."""

from collections.abc import AsyncIterator, Callable
import importlib
import pkgutil
from typing import Any, Literal, get_args, get_origin

from openai.types import responses as event_types
import pytest

from custom_components.windowed_conversation.providers.encoder import is_short_id
from custom_components.windowed_conversation.providers.errors import (
    AnswerRefused,
    BadRequest,
    BadStream,
    ContextOverflow,
    Incomplete,
    ProviderError,
    QuotaError,
    RateLimited,
    Unavailable,
)
from custom_components.windowed_conversation.providers.events import (
    AnswerDone,
    Event,
    FinishReason,
    Request,
    ToolSchema,
    Usage,
)
from custom_components.windowed_conversation.window import Message, ToolCall

from ..byte_server import ByteServer
from ..conftest import SECRET, Hear, over_either_client
from ..heard import Heard
from ..wires.parts import Call, Calls, End, Reasoning, Text
from ..wires.responses import (
    ResponsesWire,
    build_text_part,
    call_item,
    done,
    ended,
    event,
    failed,
    message_item,
    reasoning_item,
)

WIRE = ResponsesWire()
LIGHT = Call("call_1", "turn_on", ('{"na', 'me": "kit', 'chen"}'))
TIME_CALL = Call("call_2", "time", ())
COMPLETED = ended("completed")
SEALED = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA-c"}

type Ask = Callable[..., AsyncIterator[Event]]


@pytest.fixture
def ask(http_client: Any, byte_server: ByteServer) -> Ask:
    """Return a function that sends a question to the byte server; `earlier` are the messages before the question."""

    def ask(*earlier: Message, tools: tuple[ToolSchema, ...] = ()) -> AsyncIterator[Event]:
        provider = WIRE.connect(byte_server.address, http_client)
        return provider.stream(Request("gpt-5.5", (*earlier, Message.user("hello")), tools))

    return ask


def delta(text: str, at: int = 0) -> bytes:
    return event("response.output_text.delta", output_index=at, content_index=0, item_id="msg_1", delta=text)


@over_either_client
async def test_whole_answer_with_everything_in_it(hear: Hear) -> None:
    heard = await hear(
        *WIRE.answer(
            Reasoning(("They want ", "light.")),
            Text(("One ", "moment.")),
            Calls((LIGHT, TIME_CALL)),
            usage=Usage(100, 60, 20, 30, 12),
        )
    )

    assert heard.reasoning == "They want light."
    assert heard.texts == ["One ", "moment."]
    assert heard.calls == [ToolCall("call_1", "turn_on", {"name": "kitchen"}), ToolCall("call_2", "time", {})]
    assert heard.events[-2] == Usage(input=100, cached=60, output=20, cache_written=30, reasoning=12)
    assert heard.events[-1] == AnswerDone(
        FinishReason.TOOL_CALLS,
        "completed",
        [
            {
                "type": "reasoning",
                "id": "rs_0",
                "encrypted_content": "gAAAA-0",
                "summary": [{"type": "summary_text", "text": "They want light."}],
            },
            {"type": "message", "start": 0, "end": 11},
            {"type": "function_call", "call_id": "call_1"},
            {"type": "function_call", "call_id": "call_2"},
        ],
    )


async def test_calls_are_announced_when_they_are_whole_in_whatever_order(hear: Hear) -> None:
    heard = await hear(
        done(2, **call_item(TIME_CALL)),
        done(0, **reasoning_item("rs_0")),
        done(1, **call_item(LIGHT)),
        COMPLETED,
    )

    assert heard.ids == ["call_2", "call_1"]
    assert [item["type"] for item in heard.done_events[0].native_value] == [
        "reasoning",
        "function_call",
        "function_call",
    ]
    assert [item.get("call_id") for item in heard.done_events[0].native_value] == [None, "call_1", "call_2"]


async def test_arguments_are_those_of_the_item_that_is_done(hear: Hear) -> None:
    added = call_item(LIGHT, arguments="", status="in_progress")
    heard = await hear(
        event("response.output_item.added", output_index=0, item=added),
        event("response.function_call_arguments.delta", output_index=0, item_id="fc_call_1", delta='{"name": "cellar'),
        done(0, **call_item(LIGHT)),
        COMPLETED,
    )

    assert heard.called == [("turn_on", {"name": "kitchen"})]


@pytest.mark.parametrize("call_id", ["", "call_0"])
async def test_call_without_an_id_of_its_own_gets_one_of_ours(call_id: str, ask: Ask, byte_server: ByteServer) -> None:
    byte_server.set_reply(done(0, **reasoning_item("rs_0")), done(1, **call_item(LIGHT, call_id=call_id)), COMPLETED)
    earlier = Message.assistant(tool_calls=(ToolCall("call_0", "time", {}),))

    heard = await Heard().read(ask(earlier, Message.tool("call_0", "time", "{}")))

    assert is_short_id(heard.ids[0])
    assert heard.done_events[0].native_value[1]["call_id"] == heard.ids[0]


@pytest.mark.parametrize(
    ("events", "residue"),
    [
        (WIRE.answer(Text(("Hello.",)), Calls((TIME_CALL,))), None),
        ((done(0, **reasoning_item("rs_0", None, "hm")), delta("hello", 1), COMPLETED), None),
        ((done(0, **SEALED), delta("hello"), COMPLETED), [SEALED]),
    ],
)
async def test_residue_is_what_only_its_server_can_read(events: list[bytes], residue: Any, hear: Hear) -> None:
    heard = await hear(*events)

    assert heard.done_events[0].native_value == residue


@pytest.mark.parametrize(
    ("events", "text", "reason"),
    [
        (WIRE.answer(end=End.REFUSED), "", "refusal"),
        ((failed("bio_policy"),), "", "bio_policy"),
        (
            (delta("once"), ended("incomplete", incomplete_details={"reason": "content_filter"})),
            "once",
            "content_filter",
        ),
    ],
)
async def test_refusal_has_its_reason_and_is_not_spoken(
    events: list[bytes], text: str, reason: str, fail: Hear
) -> None:
    heard = await fail(AnswerRefused, *events)

    assert (heard.text, heard.error.reason) == (text, reason)


@pytest.mark.parametrize("details", [{"reason": "max_output_tokens"}, {"reason": "a_new_one"}, {}, None])
async def test_answer_that_was_cut_off_is_incomplete(details: Any, fail: Hear) -> None:
    await fail(Incomplete, delta("once"), ended("incomplete", incomplete_details=details))


CODES: dict[str, type[ProviderError]] = {
    "server_error": Unavailable,
    "rate_limit_exceeded": RateLimited,
    "insufficient_quota": QuotaError,
    "context_length_exceeded": ContextOverflow,
    "invalid_prompt": AnswerRefused,
    "bio_policy": AnswerRefused,
    "misalignment_policy_violation": AnswerRefused,
    "image_content_policy_violation": AnswerRefused,
    "data_residency_mismatch": BadRequest,
    "invalid_image": BadRequest,
    "vector_store_timeout": Unavailable,
    "a_code_of_next_year": Unavailable,
}


@pytest.mark.parametrize(("code", "error"), CODES.items())
@pytest.mark.parametrize(
    "say",
    [
        failed,
        lambda code: event("error", code=code, message="Made up.", param=None, sequence_number=3),
        lambda code: event("error", error={"code": code, "message": "Made up.", "type": "invalid_request_error"}),
        lambda code: event("error", error={"type": code, "message": "Made up."}),
    ],
    ids=["failed", "error", "error_object", "error_object_with_a_type"],
)
async def test_error_goes_by_its_code(
    say: Callable[[str], bytes], code: str, error: type[ProviderError], fail: Hear
) -> None:
    heard = await fail(ProviderError, delta("once"), say(code))

    assert type(heard.error) is error
    assert heard.text == "once"


@pytest.mark.parametrize(
    ("figures", "reported"),
    [
        (None, []),
        ({}, [Usage()]),
        ({"input_tokens": 7, "output_tokens": 2, "input_tokens_details": None}, [Usage(7, 0, 2)]),
        ({"input_tokens": 7, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 5}}, [Usage(7, 5, 2)]),
        ({"input_tokens": "7", "output_tokens": [], "output_tokens_details": "none"}, [Usage()]),
        ("a text", [Usage()]),
    ],
)
async def test_usage_never_costs_the_answer(figures: Any, reported: list[Usage], hear: Hear) -> None:
    heard = await hear(delta("hello"), ended("completed", usage=figures))

    assert heard.usages == reported
    assert len(heard.done_events) == 1


async def test_raw_thoughts_are_reasoning_too(hear: Hear) -> None:
    heard = await hear(event("response.reasoning_text.delta", output_index=0, content_index=0, delta="hm"), COMPLETED)

    assert (heard.reasoning, heard.text) == ("hm", "")


async def test_final_answer_after_a_commentary_is_a_paragraph_of_its_own(hear: Hear) -> None:
    commentary = message_item(build_text_part("I look."), phase="commentary")
    answer = message_item(build_text_part("It is on."), phase="final_answer")
    heard = await hear(
        event("response.output_item.added", output_index=0, item=message_item(phase="commentary")),
        delta("I look.", 0),
        done(0, **commentary),
        event("response.output_item.added", output_index=1, item=message_item(phase="final_answer")),
        delta("It is", 1),
        delta(" on.", 1),
        done(1, **answer),
        COMPLETED,
    )

    assert heard.text == "I look.\n\nIt is on."
    assert heard.done_events[0].native_value == [
        {"type": "message", "start": 0, "end": 7, "phase": "commentary"},
        {"type": "message", "start": 9, "end": 18, "phase": "final_answer"},
    ]


async def test_place_that_the_server_does_not_say_is_the_next(hear: Hear) -> None:
    heard = await hear(
        event("response.output_item.done", item=reasoning_item("rs_0")),
        event("response.output_text.delta", delta="hello"),
        event("response.output_item.done", item=message_item(build_text_part("hello"))),
        COMPLETED,
    )

    assert [item["type"] for item in heard.done_events[0].native_value] == ["reasoning", "message"]
    assert heard.done_events[0].native_value[1] == {"type": "message", "start": 0, "end": 5}


@pytest.mark.parametrize("halves", ["hi \ud83d|\ude00!", "hi \ud83d|!", "hi |\ude00!"])
async def test_half_of_a_character_is_never_passed_on(halves: str, hear: Hear) -> None:
    item = reasoning_item("rs_0", "gAAAA", "a \ud83d half")
    heard = await hear(*(delta(half) for half in halves.split("|")), done(1, **item), COMPLETED)

    assert heard.text.startswith("hi ")
    assert f"{heard.text}{heard.done_events[0].native_value}".encode()


def sdk_event_types() -> list[str]:
    """Return the types of all events that the installed SDK knows."""
    names = [module.name for module in pkgutil.iter_modules(event_types.__path__) if module.name.endswith("_event")]
    found = list[Any]()
    for name in names:
        module = importlib.import_module(f"{event_types.__name__}.{name}")
        fields = [getattr(cls, "model_fields", {}).get("type") for cls in vars(module).values()]
        found.extend(
            str(get_args(field.annotation)[0]) for field in fields if field and get_origin(field.annotation) is Literal
        )
    return sorted({name for name in found if name.startswith("response.")})


MEANINGFUL = {
    "response.completed",
    "response.failed",
    "response.function_call_arguments.delta",
    "response.incomplete",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.refusal.delta",
    "response.refusal.done",
}


def test_sdk_knows_the_events_that_mean_something() -> None:
    assert set(sdk_event_types()) > MEANINGFUL
    assert len(sdk_event_types()) > 50


@pytest.mark.parametrize("name", sorted({*sdk_event_types(), "response.of_next_year"} - MEANINGFUL))
async def test_every_other_event_is_passed_over(name: str, hear: Hear) -> None:
    fields = {"output_index": 0, "delta": "not said", "item": {"type": "message"}, "text": "", "arguments": "{"}
    heard = await hear(event(name, **fields), delta("hello"), event(name, response=None), COMPLETED)

    assert heard.text == "hello"
    assert len(heard.events) == 2


@pytest.mark.parametrize("kind", ["web_search_call", "image_generation_call", "program", "of_next_year"])
async def test_every_other_item_is_passed_over(kind: str, hear: Hear) -> None:
    item = {"type": kind, "id": "x_1", "status": "completed", "arguments": 5, "summary": 5}
    heard = await hear(
        event("response.output_item.added", output_index=0, item=item), done(0, **item), delta("hello", 1), COMPLETED
    )

    assert heard.text == "hello"
    assert heard.done_events == [AnswerDone(FinishReason.STOP, "completed")]


@pytest.mark.parametrize(
    "bent",
    [
        event("response.output_text.delta", output_index=0, delta=5),
        event("response.output_text.delta", output_index=0, delta=["a", "list"]),
        event("response.reasoning_text.delta", output_index=0, delta=5),
        b'data: {"type": ["a list"]}\n\n',
        event("response.output_item.added", output_index=0, item=None),
        event("response.output_item.added", output_index=0, item=["a", "list"]),
        event("response.output_item.done", output_index=0),
        done(0, **{**message_item(build_text_part("hello")), "type": 5}),
        done(0, **{**message_item(build_text_part("hello")), "phase": 5}),
        done(0, **{**reasoning_item("rs_0"), "summary": ["a text"]}),
        done(0, **{**reasoning_item("rs_0"), "summary": [{"text": 5}]}),
        event("response.failed"),
        event("response.failed", response=["a", "list"]),
        event("response.incomplete", response={"incomplete_details": {"reason": 5}}),
        event("response.output_item.done", output_index=0, item="a text"),
        done(0, **call_item(LIGHT, name=5)),
        done(0, **call_item(LIGHT, call_id={})),
        done(0, **call_item(LIGHT, arguments=["a", "list"])),
        done(0, **{**reasoning_item("rs_0"), "summary": 5}),
        done(0, **{**reasoning_item("rs_0"), "encrypted_content": 5}),
        event("response.completed", response=None) + event("response.incomplete", response=None),
    ],
)
async def test_event_of_another_form_is_an_error(bent: bytes, fail: Hear) -> None:
    heard = await fail(ProviderError, delta("hello"), bent)

    assert type(heard.error) is BadStream
    assert heard.text == "hello"


@pytest.mark.parametrize(
    "piece",
    [
        failed(SECRET),
        event("error", code=SECRET, message=SECRET, param=SECRET),
        event("error", error={"code": SECRET, "message": SECRET, "type": SECRET}),
        ended("incomplete", incomplete_details={"reason": SECRET}),
        done(0, **call_item(LIGHT, name=SECRET, arguments=SECRET)) + COMPLETED,
        event("response.refusal.delta", delta=SECRET) + COMPLETED,
        event("response.output_item.done", output_index=0, item=SECRET),
    ],
)
async def test_broken_stream_is_told_without_text(piece: bytes, fail: Hear) -> None:
    heard = await fail(ProviderError, piece)

    assert "pelican" not in repr(heard.error)
