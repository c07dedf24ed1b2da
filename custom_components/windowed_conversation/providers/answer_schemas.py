"""The JSON schema of an answer in the subset of JSON Schema that each server accepts, or as text in the prompt.

A limit that a subset lacks becomes part of the description. A schema that a subset cannot express, for example one that
accepts any object, is sent as text only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
import json
from typing import Any

from ..window import Role
from .encoder import list_types
from .events import AnswerSchema, Request

_ELEMENTS = frozenset({"additionalProperties", "anyOf", "description", "items", "properties", "required", "type"})
_IGNORED = frozenset({"default", "examples", "title"})
_RANGES = frozenset({"enum", "maxItems", "maximum", "minItems", "minimum"})
_OPENAI_RANGES = _RANGES | {"exclusiveMaximum", "exclusiveMinimum", "multipleOf"}
_LIMITS = _OPENAI_RANGES | {"format", "maxLength", "minLength", "pattern", "uniqueItems"}
_FORMATS = frozenset({"date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})

# What Home Assistant means by these formats. In JSON Schema both have a time zone, and Home Assistant refuses a time of
# day that has one.
_FORMAT_DESCRIPTIONS = {"time": "HH:MM:SS", "date-time": "YYYY-MM-DD HH:MM:SS"}

# OpenAI's limits: https://platform.openai.com/docs/guides/structured-outputs. The first is used for every subset, and
# the last, which is for one long enum, for all names and values.
_MAX_DEPTH, _MAX_ENUM_VALUES, _MAX_CHARS = 10, 1000, 15_000

# Anthropic's limits: https://platform.claude.com/docs/en/build-with-claude/structured-outputs
_MAX_OPTIONAL, _MAX_UNIONS = 24, 16

type Schema = dict[str, Any]


class _InexpressibleError(Exception):
    """Raised if a schema cannot be expressed in a subset."""


def _fits_openai(parts: Sequence[Schema]) -> bool:
    names = [name for part in parts for name in part.get("properties", ())]
    values = [str(value) for part in parts for value in part.get("enum", ())]
    return len(values) <= _MAX_ENUM_VALUES and sum(map(len, (*names, *values))) <= _MAX_CHARS


def _fits_anthropic(parts: Sequence[Schema]) -> bool:
    optional = sum(len(part.get("properties", ())) - len(part.get("required", ())) for part in parts)
    unions = sum("anyOf" in part or isinstance(part.get("type"), list) for part in parts)
    return optional <= _MAX_OPTIONAL and unions <= _MAX_UNIONS


@dataclass(frozen=True, slots=True)
class Subset:
    """A subset of JSON Schema that a server accepts."""

    limits: frozenset[str]
    formats: frozenset[str] = _FORMATS
    # Whether the server refuses this value of a limit that it otherwise accepts.
    refuses: Callable[[str, Any], bool] = lambda _name, _value: False
    # Whether a schema is small enough.
    fits: Callable[[Sequence[Schema]], bool] = bool
    # Whether every schema needs a type, and no object may have properties beyond the named ones.
    is_closed: bool = True
    # Whether properties may be optional. Otherwise, optional properties become nullable.
    has_optional: bool = True
    # Whether to send the schema as text beside the parameter, whatever the model's profile says. A grammar does not
    # tell the model what the properties mean, and some servers ignore it.
    in_prompt_too: bool = False

    def accepts(self, name: str, value: Any) -> bool:
        """Return whether the server accepts a limit with this value."""
        return value in self.formats if name == "format" else name in self.limits and not self.refuses(name, value)


COMPATIBLE = Subset(_RANGES, is_closed=False, in_prompt_too=True)
OPENAI_STRICT = Subset(_OPENAI_RANGES, fits=_fits_openai, has_optional=False)
ANTHROPIC = Subset(
    frozenset({"enum", "minItems"}), refuses=lambda name, value: name == "minItems" and value > 1, fits=_fits_anthropic
)
# Gemini has enums of text and numbers only: https://ai.google.dev/gemini-api/docs/structured-output
GEMINI = Subset(
    _RANGES,
    frozenset({"date"}),
    lambda name, value: name == "enum" and any(each is None or isinstance(each, bool) for each in value),
)


def place_answer_schema(request: Request, subset: Subset | None) -> tuple[Request, AnswerSchema | None]:
    """Return the request to encode, and the schema in this subset to send as a parameter, or None.

    Without a parameter (always if `subset` is None), or with `Subset.in_prompt_too`, the schema is appended as text to
    the newest user message.
    """
    wanted = request.answer_schema
    if wanted is None:
        return request, None
    has_parameter = subset and not wanted.in_prompt and (subset.in_prompt_too or request.profile.answer_schemas)
    schema = express(wanted.schema, subset) if subset and has_parameter else None
    sent = None if schema is None else replace(wanted, schema=schema)
    if sent and subset and not subset.in_prompt_too:
        return request, sent
    messages = list(request.messages)
    newest = max(place for place, message in enumerate(messages) if message.role is Role.USER)
    content = "\n\n".join(filter(None, (messages[newest].content, format_schema(wanted.schema))))
    messages[newest] = replace(messages[newest], content=content)
    return replace(request, messages=tuple(messages)), sent


def format_schema(schema: Mapping[str, Any]) -> str:
    """Return the text that asks a model for an answer that matches the schema."""
    json_text = json.dumps(express(schema, COMPATIBLE) or schema, ensure_ascii=False, separators=(",", ":"))
    return f"Answer with one JSON object that matches this JSON schema, and nothing else: {json_text}"


def express(schema: Mapping[str, Any], subset: Subset) -> Schema | None:
    """Return the schema in the subset, or None if the subset cannot express it."""
    try:
        converted = _convert(schema, subset, 1)
    except _InexpressibleError:
        return None
    return converted if subset.fits(list(_iter_schemas(converted))) else None


def _convert(schema: Any, subset: Subset, depth: int) -> Schema:
    if depth > _MAX_DEPTH or not isinstance(schema, Mapping) or schema.keys() - _ELEMENTS - _LIMITS - _IGNORED:
        raise _InexpressibleError
    if subset.is_closed and "type" not in schema and "anyOf" not in schema:
        raise _InexpressibleError
    converted: Schema = {"type": schema["type"]} if "type" in schema else {}
    if "object" in list_types(schema):
        converted |= _convert_object(schema, subset, depth)
    if "anyOf" in schema:
        converted["anyOf"] = [_convert(each, subset, depth + 1) for each in schema["anyOf"]]
    if "items" in schema or (subset.is_closed and "array" in list_types(schema)):
        converted["items"] = _convert(schema.get("items"), subset, depth + 1)
    return converted | _convert_limits(schema, subset)


def _convert_object(schema: Mapping[str, Any], subset: Subset, depth: int) -> Schema:
    is_free = "properties" not in schema or schema.get("additionalProperties", False) is not False
    if is_free and subset.is_closed:
        raise _InexpressibleError
    properties = {name: _convert(each, subset, depth + 1) for name, each in schema.get("properties", {}).items()}
    required = [name for name in properties if name in schema.get("required", ())]
    if not subset.has_optional:
        properties |= {name: _make_nullable(each) for name, each in properties.items() if name not in required}
        required = list(properties)
    others = schema.get("additionalProperties", True) if is_free else False
    return {
        **({"properties": properties} if "properties" in schema else {}),
        **({"required": required} if required else {}),
        "additionalProperties": others,
    }


def _convert_limits(schema: Mapping[str, Any], subset: Subset) -> Schema:
    """Return the limits that the subset has, and a description with the other limits."""
    limits = {name: value for name, value in schema.items() if name in _LIMITS}
    accepted = {name: value for name, value in limits.items() if subset.accepts(name, value)}
    others = ", ".join(f"{name}: {_format_limit(limits[name])}" for name in limits if name not in accepted)
    description = " ".join(filter(None, (schema.get("description"), others and f"({others})")))
    return accepted | ({"description": description} if description else {})


def _format_limit(value: Any) -> str:
    return _FORMAT_DESCRIPTIONS.get(value, value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _make_nullable(schema: Schema) -> Schema:
    return {
        **schema,
        **({"type": list(dict.fromkeys([*list_types(schema), "null"]))} if "type" in schema else {}),
        **({"enum": [*schema["enum"], None]} if "enum" in schema else {}),
        **({"anyOf": [*schema["anyOf"], {"type": "null"}]} if "anyOf" in schema else {}),
    }


def _iter_schemas(schema: Schema) -> Iterator[Schema]:
    yield schema
    inner = (*schema.get("properties", {}).values(), *schema.get("anyOf", ()), schema.get("items"))
    for each in filter(None, inner):
        yield from _iter_schemas(each)
