"""Tests for the pictures of tool results in each format: they follow all results of their round."""

from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.anthropic.encoding import encode_request as encode_anthropic
from custom_components.windowed_conversation.providers.events import Request, ToolSchema
from custom_components.windowed_conversation.providers.gemini.encoding import encode_body as encode_gemini
from custom_components.windowed_conversation.providers.models import UNKNOWN_MODEL, Caching, ReasoningStyle
from custom_components.windowed_conversation.providers.openai.chat_encoding import (
    Dialect,
    EchoMode,
    encode_request as encode_chat,
)
from custom_components.windowed_conversation.providers.openai.responses_encoding import encode_prompt
from custom_components.windowed_conversation.window import Attachment, Message, NativeData, ToolCall

DOOR, GARDEN = (Attachment("image/jpeg", name.encode(), name) for name in ("door", "garden"))
NOTE = "Pictures: door, garden"
CALLS = tuple(ToolCall(f"call_{name}", "look", {"camera": name}) for name in ("door", "garden"))
THINKING = [{"type": "thinking", "thinking": "I look.", "signature": "s"}, {"type": "tool_use"}, {"type": "tool_use"}]
REQUEST = Request(
    "model",
    (
        Message.user("hello"),
        Message.assistant("Hi."),
        Message.user("who is there?"),
        Message.assistant(tool_calls=CALLS, native=NativeData("anthropic", "model", THINKING)),
        Message.tool("call_door", "look", "1", attachments=(DOOR,)),
        Message.tool("call_garden", "look", "2", attachments=(GARDEN,)),
    ),
    (ToolSchema("look", "", {}),),
    profile=replace(UNKNOWN_MODEL, images=True),
)
BLIND = replace(REQUEST, profile=UNKNOWN_MODEL)


def encode(attachment: Attachment) -> str:
    return b64encode(attachment.data).decode()


def chat(request: Request, dialect: Dialect) -> list[dict[str, Any]]:
    """Return the messages of a request to Chat Completions, from the results on."""
    return encode_chat(request, dialect, "", EchoMode.VERBATIM, {})["messages"][4:]


def test_responses_have_a_message_after_the_outputs() -> None:
    *outputs, message = encode_prompt(REQUEST, "openai")["input"][5:]

    assert [each["type"] for each in outputs] == ["function_call_output"] * 2
    urls = [f"data:image/jpeg;base64,{encode(each)}" for each in (DOOR, GARDEN)]
    images = [{"type": "input_image", "image_url": url, "detail": "auto"} for url in urls]
    assert message == {"type": "message", "role": "user", "content": [{"type": "input_text", "text": NOTE}, *images]}


@pytest.mark.parametrize("dialect", Dialect)
def test_chat_has_a_message_after_those_of_the_tools(dialect: Dialect) -> None:
    *results, message = chat(REQUEST, dialect)

    assert [(each["role"], each["content"]) for each in results] == [("tool", "1"), ("tool", "2")]
    urls = [f"data:image/jpeg;base64,{encode(each)}" for each in (DOOR, GARDEN)]
    images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    assert message == {"role": "user", "content": [{"type": "text", "text": NOTE}, *images]}


def test_anthropic_has_the_images_in_the_message_of_the_results() -> None:
    blocks = encode_anthropic(REQUEST)["messages"][-1]["content"]

    assert [block["type"] for block in blocks] == ["tool_result", "tool_result", "image", "image", "text"]
    assert [block["source"]["data"] for block in blocks[2:4]] == [encode(DOOR), encode(GARDEN)]


def test_pictures_are_no_new_question_for_anthropic_s_cache_marks_and_thinking() -> None:
    profile = replace(REQUEST.profile, caching=Caching.BREAKPOINTS, reasoning=ReasoningStyle.BUDGET)

    body = encode_anthropic(replace(REQUEST, profile=profile, max_answer_tokens=8000))

    marked = [
        (at, len(each["content"])) for at, each in enumerate(body["messages"]) if "cache_control" in each["content"][-1]
    ]
    assert marked == [(1, 1), (4, 5)]


def test_gemini_has_a_content_after_that_of_the_responses() -> None:
    *_, responses, pictures = encode_gemini(REQUEST)["contents"]

    assert [[*part] for part in responses["parts"]] == [["functionResponse"]] * 2
    data = [{"inlineData": {"data": encode(each), "mimeType": "image/jpeg"}} for each in (DOOR, GARDEN)]
    assert pictures == {"role": "user", "parts": [*data, {"text": NOTE}]}


def test_pictures_are_no_new_question_for_gemini_s_signatures() -> None:
    again = ToolCall("call_again", "look", {})
    more = (Message.assistant(tool_calls=(again,)), Message.tool("call_again", "look", "3"))
    profile = replace(REQUEST.profile, reasoning=ReasoningStyle.LEVEL)

    contents = encode_gemini(replace(REQUEST, messages=(*REQUEST.messages, *more), profile=profile))["contents"]

    calls = [part for content in contents for part in content["parts"] if "functionCall" in part]
    assert ["thoughtSignature" in part for part in calls] == [True, False, True]


def test_model_that_cannot_see_gets_a_note_for_each_picture() -> None:
    texts = [str(encode_prompt(BLIND, "openai")), str(encode_anthropic(BLIND)), str(encode_gemini(BLIND))]
    texts += [str(chat(BLIND, dialect)) for dialect in Dialect]

    assert [text.count("that you cannot see") for text in texts] == [2] * 5
    assert [text for text in texts if encode(DOOR) in text] == []
