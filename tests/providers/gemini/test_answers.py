"""Tests for Gemini's answers: complete calls in one part, signatures on any part, and many finish reasons."""

from base64 import b64encode, urlsafe_b64encode
import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.errors import AnswerRefused, BadStream, Incomplete, ProviderError
from custom_components.windowed_conversation.providers.events import (
    AnswerDone,
    FinishReason,
    Request,
    ToolSchema,
    Usage,
)
from custom_components.windowed_conversation.providers.gemini.clients import GeminiProvider
from custom_components.windowed_conversation.providers.gemini.encoding import Signatures, SignedText, read_signatures
from custom_components.windowed_conversation.window import Message, NativeData, ToolCall

from ..byte_server import ByteServer
from ..conftest import Ask, Hear, over_either_client
from ..heard import Heard
from ..wires.gemini import SIGNATURE, STOP, GeminiWire, call, chunk, event, signed, text, usage
from ..wires.parts import Call, Calls, Reasoning, Text

MODEL = "gemini-made-up"
TOOLS = (ToolSchema("act", "", {"type": "object"}), ToolSchema("wetter für heute", "", {"type": "object"}))


@pytest.fixture
def ask(provider: GeminiProvider) -> Ask:
    """Return a function that sends a question to the byte server; `earlier` are the messages before the question."""

    def ask(*earlier: Message) -> Any:
        return provider.stream(Request(MODEL, (*earlier, Message.user("hello")), TOOLS))

    return ask


def residue(heard: Heard) -> Signatures:
    """Return the residue as the next request will parse it."""
    value = json.loads(json.dumps(heard.done_events[0].native_value))
    return read_signatures(Message.assistant(native=NativeData("gemini", MODEL, value)), MODEL)


@over_either_client
async def test_parts_of_all_kinds_become_events(hear: Hear) -> None:
    parts = (
        Reasoning(("Hm", ".")),
        Text(("Hel", "lo")),
        Calls((Call("x1", "act", ('{"a": 1}',)), Call("", "act", ()))),
    )
    heard = await hear(*GeminiWire().answer(*parts, usage=Usage(9, 3, 7, 0, 4)))

    assert (heard.reasoning, heard.texts) == ("Hm.", ["Hel", "lo"])
    assert heard.called == [("act", {"a": 1}), ("act", {})]
    assert heard.usages == [Usage(9, 3, 7, 0, 4)]
    assert heard.done_events[0].reason is FinishReason.TOOL_CALLS
    assert heard.events[-1] is heard.done_events[0]


async def test_id_that_the_history_has_already_is_replaced_and_goes_back(ask: Ask, byte_server: ByteServer) -> None:
    byte_server.set_reply(chunk(call("act", {}, "x1")), STOP)
    earlier = (
        Message.user("before"),
        Message.assistant(tool_calls=(ToolCall("x1", "act", {}),)),
        Message.tool("x1", "act", "{}"),
        Message.assistant("done"),
    )

    heard = await Heard().read(ask(*earlier))

    assert heard.ids != ["x1"]
    assert residue(heard).gemini_id_by_call_id == {heard.ids[0]: "x1"}


async def test_name_that_gemini_refuses_is_the_tools_own_again(byte_server: ByteServer, hear: Hear) -> None:
    await hear(STOP)
    sent = byte_server.requests[-1]["tools"][0]["functionDeclarations"][1]["name"]
    heard = await hear(chunk(call(sent, {}), call("unheard_of", {})), STOP)

    assert [each.name for each in heard.calls] == ["wetter für heute", "unheard_of"]


async def test_halves_of_a_character_in_two_chunks_are_joined(hear: Hear) -> None:
    heard = await hear(text("hi \ud83d"), text("\ude00 there"), STOP)

    assert heard.text == "hi \N{GRINNING FACE} there"


@pytest.mark.parametrize(
    ("events", "kept"),
    [
        ([text("Hello"), chunk(signed({"text": ""}, SIGNATURE), finish="STOP")], ((0, 0),)),
        ([text("Hel"), text("lo", SIGNATURE), STOP], ((2, 0),)),
        ([text("Hel", SIGNATURE), text("lo", SIGNATURE), STOP], ((5, 2), (2, 0))),
        ([text("Hel", SIGNATURE), chunk(call("act", {})), STOP], ((3, 0),)),
    ],
)
async def test_signature_of_a_text_is_kept_with_its_place(events: list[bytes], kept: Any, hear: Hear) -> None:
    heard = await hear(*events)

    assert residue(heard).texts == tuple(SignedText(start, end, SIGNATURE) for start, end in kept)


async def test_signature_of_a_call_is_kept_with_the_call(hear: Hear) -> None:
    heard = await hear(chunk(call("act", {}, signature=SIGNATURE), call("act", {})), STOP)

    assert residue(heard) == Signatures(by_call={heard.ids[0]: SIGNATURE})


async def test_answer_goes_back_as_it_came(ask: Ask, byte_server: ByteServer, hear: Hear) -> None:
    parts = [{"text": "One moment."}, call("act", {"n": None}, "x1", SIGNATURE), call("act", {}, "x2")]
    heard = await hear(*(chunk(part) for part in parts), STOP)
    native = NativeData("gemini", MODEL, heard.done_events[0].native_value)
    answer = Message.assistant(heard.text, tool_calls=tuple(heard.calls), native=native)

    await Heard().read(ask(Message.user("x"), answer, *(Message.tool(each, "act", "{}") for each in heard.ids)))

    sent = json.dumps(byte_server.requests[-1]["contents"][1]["parts"]).replace("_", "/")
    assert json.loads(sent) == parts


async def test_answer_without_signatures_and_ids_leaves_nothing(hear: Hear) -> None:
    heard = await hear(text("hello"), chunk(call("act", {})), STOP)

    assert heard.done_events == [AnswerDone(FinishReason.TOOL_CALLS, "STOP")]


@pytest.mark.parametrize(
    ("reported", "used"),
    [
        ([usage(7)], Usage(7)),
        ([usage(7, 2)], Usage(7, 0, 2)),
        ([usage(7, 1), usage(7, 5)], Usage(7, 0, 5)),
        ([usage(7, 2, thoughtsTokenCount=30)], Usage(7, 0, 32, 0, 30)),
        ([usage(7, 2, cachedContentTokenCount=5)], Usage(7, 5, 2)),
        ([usage(7, 2, toolUsePromptTokenCount=4)], Usage(11, 0, 2)),
        ([{}], Usage()),
    ],
)
async def test_last_usage_counts(reported: Any, used: Usage, hear: Hear) -> None:
    heard = await hear(*(chunk({"text": "a"}, usageMetadata=each) for each in reported), STOP)

    assert heard.usages == [used]


@over_either_client
@pytest.mark.parametrize(
    ("finish", "error"),
    [
        ("MAX_TOKENS", Incomplete),
        ("CONTINUATION", Incomplete),
        ("SAFETY", AnswerRefused),
        ("RECITATION", AnswerRefused),
        ("LANGUAGE", AnswerRefused),
        ("BLOCKLIST", AnswerRefused),
        ("PROHIBITED_CONTENT", AnswerRefused),
        ("SPII", AnswerRefused),
        ("OTHER", BadStream),
        ("MALFORMED_FUNCTION_CALL", BadStream),
        ("UNEXPECTED_TOOL_CALL", BadStream),
        ("TOO_MANY_TOOL_CALLS", BadStream),
        ("MISSING_THOUGHT_SIGNATURE", BadStream),
        ("FINISH_REASON_UNSPECIFIED", BadStream),
        ("A_REASON_OF_NEXT_YEAR", BadStream),
    ],
)
@pytest.mark.filterwarnings("ignore:.* is not a valid FinishReason:UserWarning")
async def test_reason_to_end_decides(finish: str, error: type[ProviderError], fail: Hear) -> None:
    heard = await fail(ProviderError, text("hel"), chunk(finish=finish, usageMetadata=usage(7, 2)))

    assert type(heard.error) is error
    assert heard.text == "hel"
    assert heard.usages == [Usage(7, 0, 2)]


async def test_refusal_has_geminis_reason(fail: Hear) -> None:
    heard = await fail(AnswerRefused, chunk(finish="SPII"))

    assert heard.error.reason == "SPII"


@pytest.mark.parametrize("reason", ["PROHIBITED_CONTENT", "A_REASON_OF_NEXT_YEAR"])
@pytest.mark.filterwarnings("ignore:.* is not a valid BlockedReason:UserWarning")
async def test_blocked_prompt_is_refused_with_its_reason(reason: str, fail: Hear) -> None:
    heard = await fail(AnswerRefused, event({"promptFeedback": {"blockReason": reason}, "usageMetadata": usage(7)}))

    assert heard.error.reason == reason
    assert heard.usages == [Usage(7)]


async def test_unknown_fields_and_parts_are_passed_over(hear: Hear) -> None:
    heard = await hear(
        GeminiWire().unknown_event(),
        event({}),
        event({"candidates": []}),
        event({"candidates": [{"index": 0}]}),
        event({"candidates": [{"content": {"role": "model"}}]}),
        event({"candidates": [{"content": {"parts": []}, "safetyRatings": [], "somethingNew": {"a": 1}}]}),
        chunk({"somethingNew": {"a": 1}}, {"text": "hello", "somethingNew": 5}, {"thought": True}),
        chunk({"executableCode": {"language": "PYTHON", "code": "1"}}, finish="STOP"),
    )

    assert heard.text == "hello"
    assert len(heard.events) == 2


@pytest.mark.parametrize(
    "bent",
    [
        event({"candidates": 5}),
        event({"candidates": [5]}),
        event({"candidates": [{"content": "a text"}]}),
        event({"candidates": [{"content": {"parts": "a text"}}]}),
        event({"candidates": [{"finishReason": 5}]}),
        chunk({"text": 5}),
        chunk({"functionCall": "a text"}),
        chunk({"functionCall": {}}),
        chunk({"functionCall": {"name": 5}}),
        chunk({"functionCall": {"name": "act", "args": [1]}}),
        chunk({"text": "a", "thoughtSignature": 5}),
    ],
)
async def test_event_of_another_form_is_an_error(bent: bytes, fail: Hear) -> None:
    heard = await fail(BadStream, text("hello"), bent, STOP)

    assert heard.text == "hello"


@pytest.mark.parametrize("reason", ["FUNCTION_CALL", "OTHER", "MAX_TOKENS", "MALFORMED_FUNCTION_CALL"])
async def test_calls_that_are_whole_are_good_whatever_the_reason_to_end(reason: str, hear: Hear) -> None:
    heard = await hear(chunk({"functionCall": {"name": "act", "args": {"x": 1}}}, finish=reason))

    assert heard.called == [("act", {"x": 1})]
    assert heard.done_events[0].reason is FinishReason.TOOL_CALLS


@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
async def test_signature_may_be_written_in_either_alphabet(encode: Any, hear: Hear) -> None:
    signature = b"\xfb\xff\xfe?>"
    part = {"functionCall": {"name": "act", "args": {}}, "thoughtSignature": encode(signature).decode()}
    heard = await hear(chunk(part, finish="STOP"))

    assert list(residue(heard).by_call.values()) == [signature]
