"""The rules for the JSON schema of an answer in each format, as pure functions of a parsed body.

They are based on the vendors' documentation, not on any client:
https://platform.openai.com/docs/guides/structured-outputs,
https://platform.claude.com/docs/en/build-with-claude/structured-outputs,
https://ai.google.dev/gemini-api/docs/structured-output, and for other servers on the grammars of vLLM and llama.cpp.
A server refuses a request that violates them even if it is not strict, as the vendors do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
import re
from typing import Any

from .violations import TOOL_NAME_PATTERN, Violation

SCHEMA_RULE_PREFIX = "schema_"

_OPENAI_FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"})
_BASIC = frozenset(
    {
        "$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "format", "items",
        "properties", "required", "title", "type",
    }
)  # fmt: skip
_STRICT_KEYWORDS = _BASIC | {
    "exclusiveMaximum", "exclusiveMinimum", "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern",
}  # fmt: skip
_ANTHROPIC_KEYWORDS = _BASIC | {"allOf", "default", "definitions", "minItems", "pattern"}
_GEMINI_KEYWORDS = (_BASIC - {"const"}) | {
    "$anchor", "$id", "maxItems", "maximum", "minItems", "minimum", "oneOf", "prefixItems",
}  # fmt: skip
_MAX_DEPTH, _MAX_PROPERTIES, _MAX_ENUM_VALUES, _MAX_CHARS = 10, 5000, 1000, 120_000
_MAX_OPTIONAL, _MAX_UNIONS = 24, 16

_OLD_CLAUDE_PATTERN = re.compile(r"claude-(?:\d|instant|[a-z]+-4-(?:[0-4](?!\d)|\d{8})|[a-z]+-4\Z)")
_OLD_GEMINI_PATTERN = re.compile(r"gemini-[12]\b")


@dataclass(frozen=True, slots=True)
class _Part:
    """A schema inside of a schema. `depth` is 1 for the whole."""

    schema: Any
    where: str
    depth: int


def _iter_parts(schema: Any, where: str = "schema", depth: int = 1) -> Iterator[_Part]:
    yield _Part(schema, where, depth)
    if not isinstance(schema, dict):
        return
    for name in ("properties", "$defs"):
        for key, each in schema.get(name, {}).items():
            yield from _iter_parts(each, f"{where}.{name}.{key}", depth + 1)
    for name in ("anyOf", "allOf", "oneOf", "prefixItems"):
        for at, each in enumerate(schema.get(name, ())):
            yield from _iter_parts(each, f"{where}.{name}[{at}]", depth + 1)
    if "items" in schema:
        yield from _iter_parts(schema["items"], f"{where}.items", depth + 1)


def _list_types(schema: dict[str, Any]) -> list[Any]:
    types = schema.get("type", [])
    return types if isinstance(types, list) else [types]


def find_openai_schema_violations(described: Any, where: str) -> Iterator[Violation]:
    """Yield the violations of an object with the name, the schema and `strict`, as both formats of OpenAI have it."""
    name = described.get("name") if isinstance(described, dict) else None
    if not isinstance(name, str) or not TOOL_NAME_PATTERN.fullmatch(name):
        yield Violation("schema_name", where, "the name is not one of 1 to 64 letters, digits, _ and -")
        return
    parts = list(_iter_parts(described.get("schema"), f"{where}.schema"))
    yield from _check_root(parts[0])
    if described.get("strict") is not True:
        yield from (found for part in parts for found in _check_grammar(part))
        return
    yield from _check_keywords(parts, _STRICT_KEYWORDS)
    yield from (found for part in parts for found in _check_strict(part))
    yield from _check_strict_size(parts)


def find_anthropic_schema_violations(body: dict[str, Any]) -> Iterator[Violation]:
    """Yield the violations of `output_config.format`."""
    config = body.get("output_config")
    form = config.get("format") if isinstance(config, dict) else None
    if form is None:
        return
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        yield Violation("schema_type", "output_config.format", "the type is not json_schema")
        return
    if _OLD_CLAUDE_PATTERN.match(str(body.get("model"))):
        yield Violation("schema_model", "output_config.format", "this model does not support output format")
    parts = list(_iter_parts(form.get("schema"), "output_config.format.schema"))
    yield from _check_root(parts[0])
    yield from _check_keywords(parts, _ANTHROPIC_KEYWORDS)
    yield from (found for part in parts for found in _check_anthropic(part))
    schemas = [part.schema for part in parts if isinstance(part.schema, dict)]
    if sum(len(each.get("properties", {})) - len(each.get("required", ())) for each in schemas) > _MAX_OPTIONAL:
        yield Violation("schema_size", "output_config.format", f"more than {_MAX_OPTIONAL} optional parameters")
    if sum("anyOf" in each or isinstance(each.get("type"), list) for each in schemas) > _MAX_UNIONS:
        yield Violation("schema_size", "output_config.format", f"more than {_MAX_UNIONS} parameters with union types")


def find_gemini_schema_violations(body: dict[str, Any], model: str) -> Iterator[Violation]:
    """Yield the violations of `responseMimeType` and `responseJsonSchema`."""
    config = body.get("generationConfig")
    config = config if isinstance(config, dict) else {}
    where = "generationConfig.responseJsonSchema"
    has_json = config.get("responseMimeType") == "application/json"
    if has_json and "gemma" in model:
        yield Violation("schema_model", where, "JSON mode is not enabled for this model")
    if has_json and body.get("tools") and _OLD_GEMINI_PATTERN.match(model):
        text = "Function calling with a response mime type: 'application/json' is unsupported"
        yield Violation("schema_tools", where, text)
    if "responseJsonSchema" not in config:
        return
    if not has_json:
        yield Violation("schema_type", where, "needs a responseMimeType of application/json")
    parts = list(_iter_parts(config["responseJsonSchema"], where))
    yield from _check_root(parts[0])
    yield from _check_keywords(parts, _GEMINI_KEYWORDS)
    yield from (found for part in parts for found in _check_gemini(part))


def _check_root(part: _Part) -> Iterator[Violation]:
    if not isinstance(part.schema, dict) or part.schema.get("type") != "object":
        yield Violation("schema_root", part.where, "no JSON schema of type object")


def _check_keywords(parts: list[_Part], known: frozenset[str]) -> Iterator[Violation]:
    for part in parts:
        if not isinstance(part.schema, dict):
            yield Violation("schema_shape", part.where, "no schema object")
        elif unknown := part.schema.keys() - known:
            yield Violation("schema_keyword", part.where, f"not permitted: {', '.join(sorted(unknown))}")
        elif not part.schema.keys() & {"type", "anyOf", "enum", "const", "$ref"}:
            yield Violation("schema_untyped", part.where, "schema must have a 'type' key")


def _check_closed(part: _Part) -> Iterator[Violation]:
    if part.schema.get("additionalProperties") is not False:
        yield Violation("schema_open", part.where, "'additionalProperties' is required to be supplied and to be false")


def _check_format(part: _Part, formats: frozenset[str]) -> Iterator[Violation]:
    if part.schema.get("format", "date") not in formats:
        yield Violation("schema_format", part.where, "this format is not supported")


def _check_strict(part: _Part) -> Iterator[Violation]:
    if not isinstance(part.schema, dict):
        return
    types = _list_types(part.schema)
    yield from _check_format(part, _OPENAI_FORMATS)
    if "object" in types:
        yield from _check_closed(part)
        if set(part.schema.get("required", ())) != set(part.schema.get("properties", {})):
            text = "'required' is required to be an array including every key in properties"
            yield Violation("schema_required", part.where, text)
    if "array" in types and "items" not in part.schema:
        yield Violation("schema_items", part.where, "array schema missing items")
    if "null" in types and "enum" in part.schema and None not in part.schema["enum"]:
        yield Violation("schema_enum", part.where, "null is a type, but none of the values")


def _check_strict_size(parts: list[_Part]) -> Iterator[Violation]:
    schemas = [part.schema for part in parts if isinstance(part.schema, dict)]
    names = [name for each in schemas for name in each.get("properties", {})]
    values = [str(value) for each in schemas for value in each.get("enum", ())]
    if (
        max(part.depth for part in parts) > _MAX_DEPTH
        or len(names) > _MAX_PROPERTIES
        or len(values) > _MAX_ENUM_VALUES
        or sum(map(len, (*names, *values))) > _MAX_CHARS
    ):
        yield Violation("schema_size", parts[0].where, "nested too deep, or too many properties or values")


def _check_anthropic(part: _Part) -> Iterator[Violation]:
    if not isinstance(part.schema, dict):
        return
    yield from _check_format(part, _OPENAI_FORMATS | {"uri"})
    if "object" in _list_types(part.schema):
        yield from _check_closed(part)
    if part.schema.get("minItems", 0) not in (0, 1):
        yield Violation("schema_keyword", part.where, "'minItems' values other than 0 or 1 are not supported")
    if "null" in _list_types(part.schema):
        yield Violation("schema_nullable", part.where, "a union where an optional parameter would do")


def _check_gemini(part: _Part) -> Iterator[Violation]:
    if not isinstance(part.schema, dict):
        return
    yield from _check_format(part, frozenset({"date", "date-time", "time"}))
    if any(value is None or isinstance(value, bool) for value in part.schema.get("enum", ())):
        yield Violation("schema_enum", part.where, "only texts and numbers")
    if set(part.schema.get("required", ())) - set(part.schema.get("properties", {})):
        yield Violation("schema_required", part.where, "property is not defined")


def _check_grammar(part: _Part) -> Iterator[Violation]:
    """Yield the violations of a schema from which a server at home makes a grammar."""
    if not isinstance(part.schema, dict):
        return
    if unknown := part.schema.keys() & {"pattern", "patternProperties", "propertyNames", "uniqueItems"}:
        text = f"the grammar has no {', '.join(sorted(unknown))}"
        yield Violation("schema_keyword", part.where, text)
    yield from _check_format(part, _OPENAI_FORMATS)
