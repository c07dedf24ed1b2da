"""The JSON schema of an answer that a request contains as a parameter or as text, and the variants in obeying it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
import json
import re
from typing import Any

from .conversation import Answer, Conversation
from .extraction import extract
from .form_filling import fill_form
from .refusal import Refusal, RefusedError
from .wire import Prompt

_MARK = "JSON schema"
_SCHEMA_PATTERN = re.compile(r"[^\n{]*(\{.*\})\s*", re.DOTALL)

# The shapes of servers that treat a schema differently; see `shapes.py`.
_REFUSING, _IGNORING_PARAMETER, _IGNORING = "refuses_schema", "ignores_schema_parameter", "ignores_schema"
_FENCING, _BREAKING, _MISTYPING = "fenced_json", "broken_json", "wrong_type"

# The parameter of each format, in the order of its members.
_PARAMETER_PATHS = (
    ("response_format", "json_schema", "schema"),
    ("text", "format", "schema"),
    ("output_config", "format", "schema"),
    ("generationConfig", "responseJsonSchema"),
)


def find_schema_parameter(body: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return the name of the body's member with a schema of the answer, and the schema; None if there is none."""
    found = ((path[0], _find_member(body, path)) for path in _PARAMETER_PATHS)
    return next(((name, schema) for name, schema in found if isinstance(schema, dict)), None)


def _find_member(value: Any, path: Iterable[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def split_schema_text(text: str) -> tuple[str, dict[str, Any] | None]:
    """Return a text without the JSON schema at its end, and that schema, or None if it has none."""
    begin, mark, rest = text.partition(_MARK)
    found = _SCHEMA_PATTERN.fullmatch(rest) if mark else None
    try:
        schema = json.loads(found[1]) if found else None
    except ValueError:
        schema = None
    # the sentence that has the schema fills its line
    return (begin.rpartition("\n")[0].rstrip(), schema) if isinstance(schema, dict) else (text, None)


def separate_schema(prompt: Prompt) -> Prompt:
    """Return the request with the schema of its answer as a value, and without the schema's text in user messages."""
    turns = prompt.conversation.turns
    parts = [split_schema_text(turn.text) if turn.role == "user" else (turn.text, None) for turn in turns]
    turns = tuple(replace(turn, text=text) for turn, (text, _) in zip(turns, parts, strict=True))
    parameter = find_schema_parameter(prompt.body)
    text_schema = next((schema for _, schema in reversed(parts) if schema is not None), None)
    conversation = replace(prompt.conversation, turns=turns)
    return replace(
        prompt, conversation=conversation, schema_parameter=parameter and parameter[1], schema_text=text_schema
    )


def check_schema_parameter(body: Mapping[str, Any], shapes: tuple[str, ...]) -> None:
    """Raise RefusedError if the request has a parameter that the server does not know."""
    parameter = find_schema_parameter(body)
    if parameter and _REFUSING in shapes:
        message = f"Unrecognized request argument supplied: {parameter[0]}"
        raise RefusedError(Refusal(400, "invalid_request_error", None, message, extra={"param": parameter[0]}))


def match_schema(answer: Answer, prompt: Prompt, shapes: tuple[str, ...]) -> Answer:
    """Return the answer with text that matches the requested schema, unless it calls tools or there is no schema."""
    parameter = None if _IGNORING_PARAMETER in shapes else prompt.schema_parameter
    schema = prompt.schema_text if parameter is None else parameter
    if schema is None or answer.calls or _IGNORING in shapes:
        return answer
    extracted = extract(prompt.conversation)
    data = fill_form(schema, prompt.conversation) if extracted is None else extracted
    if _MISTYPING in shapes and data:
        data = _spoil_type(data, prompt.conversation)
    text = json.dumps(data, ensure_ascii=False)
    text = text[: len(text) // 2] if _BREAKING in shapes else text
    return replace(answer, text=f"```json\n{text}\n```" if _FENCING in shapes else text)


def _spoil_type(data: dict[str, Any], conversation: Conversation) -> dict[str, Any]:
    """Return the data with a value of a wrong type, or unchanged if the user has named the wrong field."""
    numbers = [name for name, value in data.items() if isinstance(value, int | float) and not isinstance(value, bool)]
    name = next(iter([*numbers, *data]))
    is_repair = len([turn for turn in conversation.turns if turn.role == "user"]) > 1
    if is_repair and re.search(rf"\b{re.escape(name)}\b", conversation.newest_user_turn.plain_text):
        return data
    return {**data, name: "two" if numbers else {"wrong": []}}
