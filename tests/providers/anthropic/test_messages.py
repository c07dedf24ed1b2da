"""Tests for conversations in Anthropic's format and the names of arguments, accepted by the SDK's types."""

from base64 import b64encode
import json
import re
from typing import Any

import pytest

from custom_components.windowed_conversation.providers import UNSEEN_NOTE
from custom_components.windowed_conversation.providers.anthropic.encoding import encode_request
from custom_components.windowed_conversation.providers.events import Request, ToolSchema
from custom_components.windowed_conversation.providers.models import ModelProfile
from custom_components.windowed_conversation.window import Attachment, Message, NativeData, ToolCall

from ..conftest import Hear
from ..wires.anthropic import AnthropicWire
from ..wires.parts import Call, Calls
from .conftest import LIGHT, MODEL, native
from .sdk_types import parse_with_sdk_types

THOUGHT = {"type": "thinking", "thinking": "Two calls.", "signature": "EqQB"}
REDACTED = {"type": "redacted_thinking", "data": "EmwK"}
ANSWER = {"type": "text"}
CALL = {"type": "tool_use"}


def sent(*messages: Message, images: bool = True, **fields: Any) -> list[dict[str, Any]]:
    """Return the encoded messages of a request with these messages."""
    request = Request(MODEL, messages, **{"tools": (LIGHT,), "profile": ModelProfile(images=images), **fields})
    body = encode_request(request)
    assert parse_with_sdk_types(body) == body
    return body["messages"]


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def call(number: int, tool: str = "a", /, **arguments: Any) -> ToolCall:
    return ToolCall(f"toolu_{number}", tool, arguments)


def used(number: int, tool: str = "a", /, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": arguments}


def result(number: int, content: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": content, **fields}


def test_same_request_is_the_same_bytes() -> None:
    messages = (
        Message.user("light"),
        Message.assistant(tool_calls=(ToolCall("odd id", "a", {"b": 1, "a": 2}),)),
        Message.tool("odd id", "a", "{}"),
    )

    first, second = (json.dumps(sent(*messages)) for _ in range(2))

    assert first == second


def test_question_after_results_comes_behind_them_in_one_message() -> None:
    messages = sent(
        Message.user("light"),
        Message.assistant(tool_calls=(call(1), call(2))),
        Message.tool("toolu_1", "a", "{}"),
        Message.tool("toolu_2", "a", "{}"),
        Message.user("and now?"),
    )

    assert messages[2:] == [{"role": "user", "content": [result(1, "{}"), result(2, "{}"), text("and now?")]}]


def test_messages_of_the_same_role_are_one() -> None:
    messages = sent(
        Message.user("one"),
        Message.user("two"),
        Message.assistant("three"),
        Message.assistant("four", tool_calls=(call(1),)),
        Message.tool("toolu_1", "a", "{}"),
    )

    assert messages[:2] == [
        {"role": "user", "content": [text("one"), text("two")]},
        {"role": "assistant", "content": [text("three"), text("four"), used(1)]},
    ]


@pytest.mark.parametrize("blank", ["", " ", "\n\t "])
def test_blank_text_is_never_sent(blank: str) -> None:
    messages = sent(
        Message.system(blank),
        Message.user(blank),
        Message.assistant(blank),
        Message.user("light"),
        Message.assistant(blank, tool_calls=(call(1),)),
        Message.tool("toolu_1", "a", blank),
    )

    assert messages == [
        {"role": "user", "content": [text("..."), text("light")]},
        {"role": "assistant", "content": [used(1)]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1"}]},
    ]


def test_blank_system_prompt_is_omitted() -> None:
    assert "system" not in encode_request(Request(MODEL, (Message.system(" "), Message.user("hello"))))


@pytest.mark.parametrize(
    ("content", "failed"),
    [
        ('{"error": "NoMatch"}', True),
        ('{"error": {"error_text": "no"}}', True),
        ('{"data": {"error": "inside"}}', False),
        ('["error"]', False),
        ('{"success": []}', False),
        ('no json, but "error"', False),
        pytest.param("[" * 200_000 + '"error"', False, id="deep"),
    ],
)
def test_failed_result_is_marked(content: str, failed: bool) -> None:
    messages = sent(
        Message.user("light"), Message.assistant(tool_calls=(call(1),)), Message.tool("toolu_1", "a", content)
    )

    assert messages[2]["content"][0].get("is_error", False) is failed


@pytest.mark.parametrize("odd", ["functions.a:0", "", "an id", "é", "x" * 3 + "\n"])
def test_id_that_the_api_refuses_is_replaced_in_call_and_result(odd: str) -> None:
    messages = sent(
        Message.user("light"),
        Message.assistant(tool_calls=(ToolCall(odd, "a", {}), call(1))),
        Message.tool(odd, "a", "{}"),
        Message.tool("toolu_1", "a", "{}"),
    )

    ids = [block["id"] for block in messages[1]["content"]]
    assert ids[0].startswith("toolu_")
    assert ids[0].isascii()
    assert ids == [block["tool_use_id"] for block in messages[2]["content"]]


def test_id_that_two_exchanges_have_is_sent_once() -> None:
    exchange = (Message.user("x"), Message.assistant(tool_calls=(call(1),)), Message.tool("toolu_1", "a", "{}"))
    messages = sent(*exchange, Message.assistant("done"), *exchange)

    calls = [messages[place]["content"][-1]["id"] for place in (1, 5)]
    results = [messages[place]["content"][0]["tool_use_id"] for place in (2, 6)]
    assert calls == results
    assert calls[0] == "toolu_1" != calls[1]


@pytest.mark.parametrize(
    ("residue", "content"),
    [
        ((THOUGHT, CALL, REDACTED, CALL), [THOUGHT, text("words"), used(1), REDACTED, used(2)]),
        ((THOUGHT, ANSWER, CALL), [THOUGHT, text("words"), used(1), used(2)]),
        ((REDACTED, THOUGHT, CALL), [REDACTED, THOUGHT, text("words"), used(1), used(2)]),
        ((ANSWER, THOUGHT, CALL), [text("words"), THOUGHT, used(1), used(2)]),
        ((THOUGHT, ANSWER, REDACTED, CALL), [THOUGHT, text("words"), REDACTED, used(1), used(2)]),
        ((THOUGHT,), [THOUGHT, text("words"), used(1), used(2)]),
        ((THOUGHT, ANSWER, ANSWER, CALL, CALL), [THOUGHT, text("words"), used(1), used(2)]),
        ((), [text("words"), used(1), used(2)]),
    ],
)
def test_thinking_is_replayed_where_it_was(residue: tuple[Any, ...], content: list[Any]) -> None:
    answer = Message.assistant("words", tool_calls=(call(1), call(2)), native=native(*residue))
    results = (Message.tool(f"toolu_{number}", "a", "{}") for number in (1, 2))
    messages = sent(Message.user("light"), answer, *results)

    assert messages[1]["content"] == content


@pytest.mark.parametrize(
    "other",
    [
        native(THOUGHT, model="claude-opus-5"),
        native(THOUGHT, provider="gemini"),
        NativeData("anthropic", MODEL, {"not": "ours"}),
        NativeData("anthropic", MODEL, None),
        NativeData("anthropic", MODEL, ["not", "blocks"]),
        native({"type": "a_type_of_next_year"}, {"not": "a block"}, {"type": None}),
        None,
    ],
)
def test_residue_of_another_is_dropped(other: NativeData | None) -> None:
    messages = sent(Message.user("hello"), Message.assistant("Hello!", native=other), Message.user("bye"))

    assert messages[1]["content"] == [text("Hello!")]


def test_answer_does_not_end_in_thinking() -> None:
    answer = Message.assistant("Hello!", native=native(REDACTED, ANSWER, THOUGHT, REDACTED))

    assert sent(Message.user("hello"), answer, Message.user("bye"))[1]["content"] == [REDACTED, text("Hello!")]


def test_answer_of_thinking_alone_is_omitted() -> None:
    messages = sent(Message.user("hello"), Message.assistant("", native=native(THOUGHT)), Message.user("bye"))

    assert messages == [{"role": "user", "content": [text("hello"), text("bye")]}]


def test_attachments_come_before_the_words() -> None:
    picture = Attachment("image/jpg", b"\xff\xd8", "door.jpg")
    paper = Attachment("application/pdf", b"%PDF", "bill.pdf")
    messages = sent(Message.user("what is this?", attachments=(picture, paper)))

    assert messages[0]["content"] == [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/jpeg", "data": b64encode(b"\xff\xd8").decode()},
        },
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": b64encode(b"%PDF").decode()},
        },
        text("what is this?"),
    ]


@pytest.mark.parametrize("mime_type", ["image/png", "image/gif", "image/webp", "image/jpeg"])
def test_image_keeps_its_type(mime_type: str) -> None:
    messages = sent(Message.user("", attachments=(Attachment(mime_type, b"1"),)))

    assert [block["source"]["media_type"] for block in messages[0]["content"]] == [mime_type]


def test_model_is_told_of_an_attachment_that_the_api_does_not_read() -> None:
    messages = sent(Message.user("listen", attachments=(Attachment("audio/wav", b"RIFF"),)))

    assert messages[0]["content"] == [text(UNSEEN_NOTE), text("listen")]


# The rule for names that the API states in its error message.
TAKEN = re.compile(r"[a-zA-Z0-9_.-]{1,64}")

NAMES = ("größe", "gr__e", "with space", "with_space", "$filter", "filter[id]", "", "x" * 65, "x" * 66, "ok.a-b_9")


def tool(*names: str, **fields: Any) -> ToolSchema:
    return ToolSchema("act", "", {"properties": {name: {"title": name} for name in names}, **fields})


def sent_schema(offered: ToolSchema) -> dict[str, Any]:
    schema: dict[str, Any] = encode_request(Request(MODEL, (Message.user("hello"),), (offered,)))["tools"][0]
    return dict(schema["input_schema"])


def test_names_are_sent_as_the_api_takes_them_and_none_becomes_another() -> None:
    properties = sent_schema(tool(*NAMES))["properties"]

    assert [schema["title"] for schema in properties.values()] == list(NAMES)
    assert [name for name in properties if not TAKEN.fullmatch(name)] == []


def test_name_that_is_taken_already_is_not_taken_again() -> None:
    (made,) = sent_schema(tool("größe"))["properties"]

    assert [each["title"] for each in sent_schema(tool("größe", made))["properties"].values()] == ["größe", made]


def test_required_names_are_those_that_are_sent() -> None:
    schema = sent_schema(tool("größe", "ok", required=["ok", "größe"]))

    assert sorted(schema["required"]) == sorted(schema["properties"])


def test_schema_that_the_api_takes_stays() -> None:
    offered = tool("ok", "a.b-c_9", required=["ok"])

    assert sent_schema(offered) == offered.parameters


def test_names_in_a_choice_are_replaced_too() -> None:
    branches = [{"type": "object", "properties": {name: {}}, "required": [name]} for name in ("größe", "$filter")]

    assert [name for name in sent_schema(tool(anyOf=branches))["properties"] if not TAKEN.fullmatch(name)] == []


def test_calls_of_the_history_have_the_names_of_the_schema() -> None:
    offered = tool("größe", "ok")
    call = ToolCall("toolu_1", "act", {"größe": 9, "ok": {"größe": 1}})
    messages = (
        Message.user("hello"),
        Message.assistant(tool_calls=(call,)),
        Message.tool("toolu_1", "act", "{}"),
    )

    sent = encode_request(Request(MODEL, messages, (offered,)))["messages"][1]["content"][0]["input"]

    assert sent == dict(zip(sent_schema(offered)["properties"], (9, {"größe": 1}), strict=True))


@pytest.mark.parametrize("fragment", [None, 3])
async def test_what_comes_back_has_its_own_names(fragment: int | None, hear: Hear) -> None:
    offered = tool(*NAMES)
    pairs = [f'"{name}": {at}' for at, name in enumerate(sent_schema(offered)["properties"])]
    written = f"{{{', '.join(pairs)}}}"
    pieces = (written,) if fragment is None else (written[:fragment], written[fragment:])
    heard = await hear(*AnthropicWire().answer(Calls((Call("toolu_1", "act", pieces),))), tools=(offered,))

    assert heard.called == [("act", {name: at for at, name in enumerate(NAMES)})]
