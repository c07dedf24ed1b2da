"""A check that the types of each SDK accept every field of a request."""

from collections.abc import Iterator
import json
from typing import Any

from anthropic.types.message_create_params import MessageCreateParamsStreaming
from google.genai import types as google
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import BaseModel, TypeAdapter

from demo.model_server.gemini_prompt import to_camel_case

_PARAMETERS = {
    "anthropic": TypeAdapter[Any](MessageCreateParamsStreaming),
    "chat": TypeAdapter[Any](CompletionCreateParamsStreaming),
    "responses": TypeAdapter[Any](ResponseCreateParamsStreaming),
}


class _GenerateContent(BaseModel, extra="forbid"):
    """The body of Gemini's "streamGenerateContent", for which the SDK has no type; its parts are types of the SDK."""

    contents: list[google.Content]
    systemInstruction: google.Content  # noqa: N815 - the name on the wire
    tools: list[google.Tool]
    generationConfig: google.GenerationConfig  # noqa: N815 - the name on the wire
    toolConfig: google.ToolConfig | None = None  # noqa: N815 - the name on the wire


def matches_sdk_types(name: str, body: Any) -> bool:
    """Return whether the types of a format's SDK define every field of a body. Raises `pydantic.ValidationError`."""
    if name == "gemini":
        read = _GenerateContent.model_validate_json(json.dumps(body))
        # The SDK writes some names in snake case and some in camel case, and the API accepts both.
        return read.model_dump(mode="json", by_alias=True, exclude_none=True) == to_camel_case(body)
    return bool(_whole(_PARAMETERS[name].validate_python(body)) == body)


def _whole(value: Any) -> Any:
    """Return a value with its iterables converted to lists, because pydantic reads iterables lazily."""
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    if isinstance(value, list | Iterator):
        return [_whole(each) for each in value]
    return value
