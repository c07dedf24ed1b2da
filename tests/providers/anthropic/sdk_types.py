"""Validation of a request with the SDK's parameter types."""

from typing import Any

from anthropic.types import (
    ContentBlockParam,
    MessageParam,
    ModelParam,
    OutputConfigParam,
    TextBlockParam,
    ThinkingConfigParam,
    ToolChoiceParam,
    ToolParam,
)
from pydantic import TypeAdapter

PARAMETERS: dict[str, TypeAdapter[Any]] = {
    "max_tokens": TypeAdapter(int),
    "messages": TypeAdapter(list[MessageParam]),
    "model": TypeAdapter(ModelParam),
    "output_config": TypeAdapter(OutputConfigParam),
    "system": TypeAdapter(list[TextBlockParam]),
    "thinking": TypeAdapter(ThinkingConfigParam),
    "tool_choice": TypeAdapter(ToolChoiceParam),
    "tools": TypeAdapter(list[ToolParam]),
}
CONTENT: TypeAdapter[Any] = TypeAdapter(list[ContentBlockParam])


def parse_with_sdk_types(body: dict[str, Any]) -> Any:
    """Return a body as the SDK's parameter types parse it, without the fields that they do not define.

    The contents of messages are parsed separately: the types declare them as iterables, which pydantic reads lazily.
    """
    read = {name: PARAMETERS[name].validate_python(value) for name, value in body.items()}
    for message, original in zip(read["messages"], body["messages"], strict=True):
        message["content"] = CONTENT.validate_python(original["content"])
    return read
