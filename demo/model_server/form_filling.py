"""Data that fits a JSON schema, taken from the instructions where they have a value, and always the same otherwise.

Instructions give a value as `name: value` or as a number, an entity id, a date, or one of the allowed values. A field
`seen` is filled with the number of attachments, and `seen_types` with their types.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
import re
from typing import Any

from .conversation import Conversation
from .media import Attachment
from .suggestions import Suggestion, read_suggestion

_ENTITY_PATTERN = re.compile(r"(?<![\w.])[a-z_]+\.[a-z0-9_]+(?![\w.]*\()\b")
_NUMBER_PATTERN = re.compile(r"(?<![\w.:-])-?\d+(?:\.\d+)?(?![\w:-])")
_DATE_PATTERN = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_WORD_COUNT_PATTERN = re.compile(r"\bin (?P<count>\d{1,5}) words\b", re.IGNORECASE)
_HINT_PATTERN = re.compile(r"\b(?P<name>m\w+|format|pattern): (?P<value>[^,()]+)")

_PLACES = {"latitude": 52.5, "longitude": 13.4}
# The value for each format, as JSON schemas and descriptions name it.
_VALUE_BY_FORMAT = {
    "time": "08:00:00",
    "HH:MM:SS": "08:00:00",
    "date": "2026-11-23",
    "date-time": "2026-11-23 08:00:00",
    "YYYY-MM-DD HH:MM:SS": "2026-11-23 08:00:00",
    "jinja2": "{{ now() }}",
    "RFC 5646": "en",
    "ISO 3166-1 alpha-2": "DE",
}
_ANY_ENTITY = "light.kitchen"
_NO_VALUES = ("no", "off", "false")

type Schema = Mapping[str, Any]


def fill_form(schema: Schema, conversation: Conversation) -> Any:
    """Return a JSON value that fits the schema."""
    said = next((turn.text for turn in conversation.turns if turn.role == "user"), "")
    attachments = tuple(each for turn in conversation.turns for each in turn.attachments)
    return _FormFiller(said, attachments, read_suggestion(said)).fill("answer", schema)


@dataclass(frozen=True, slots=True)
class _FormFiller:
    """Fills the fields of a form. `said` are the instructions."""

    said: str
    attachments: tuple[Attachment, ...]
    suggestion: Suggestion | None

    def fill(self, name: str, schema: Schema) -> Any:
        """Return a value for the field of this name."""
        if "anyOf" in schema:
            return self.fill(name, schema["anyOf"][0])
        kind = "choice" if schema.get("enum") else next((each for each in _list_types(schema) if each != "null"), "any")
        fillers: dict[str, Callable[[str, Schema], Any]] = {
            "choice": self._choose,
            "object": self._fill_object,
            "array": self._fill_array,
            "string": self._fill_text,
            "number": self._fill_number,
            "integer": self._fill_number,
            "boolean": self._fill_boolean,
        }
        return fillers[kind](name, schema) if kind in fillers else None

    def _fill_boolean(self, name: str, _schema: Schema) -> bool:
        return (self._find_value(name) or "").lower() not in _NO_VALUES

    def _fill_object(self, _name: str, schema: Schema) -> dict[str, Any]:
        filled: dict[str, Any] = {}
        properties = schema.get("properties", {})
        for name, each in properties.items():
            is_nullable = "null" in _list_types(each) or {"type": "null"} in each.get("anyOf", ())
            is_optional = is_nullable or name not in schema.get("required", ())
            if not is_optional or self._knows(name, each):
                filled[name] = self.fill(name, each)
            elif name in schema.get("required", ()):
                filled[name] = None
        if not any(value is not None for value in filled.values()) and properties:
            # No object of Home Assistant may be empty: a duration has at least one unit.
            name = next(iter(properties))
            filled[name] = self.fill(name, properties[name])
        return filled

    def _knows(self, name: str, schema: Schema) -> bool:
        """Return whether the instructions have something for an optional field."""
        if self.suggestion:
            return bool(self._get_suggested(name)) or bool(self._list_allowed(schema))
        words = name.replace("_", " ")
        is_named = re.search(rf"\b{re.escape(words)}\b", self.said.replace("_", " "), re.IGNORECASE) is not None
        return is_named or name.startswith(("entity_id", "seen")) or bool(self._list_allowed(schema))

    def _list_allowed(self, schema: Schema) -> list[Any]:
        """Return the allowed values that the instructions name."""
        allowed = [*schema.get("enum", ()), *schema.get("items", {}).get("enum", ())]
        named = [each for each in allowed if isinstance(each, str)]
        return [each for each in named if re.search(rf"(?<!\w){re.escape(each)}(?!\w)", self.said, re.IGNORECASE)]

    def _choose(self, name: str, schema: Schema) -> Any:
        allowed = schema["enum"]
        named = [self._find_value(name) or "", *self._list_allowed(schema)]
        return next((each for each in named if each in allowed), allowed[0])

    def _fill_array(self, name: str, schema: Schema) -> list[Any]:
        items = schema.get("items") or {}
        if suggested := self._get_suggested(name):
            return list(suggested)
        if "enum" in items:
            return self._list_allowed(schema) or items["enum"][:1]
        if "string" in _list_types(items) and (given := self._find_value(name)):
            return [each.strip() for each in given.split(",")]
        if _is_entity(name, items):
            return _ENTITY_PATTERN.findall(self.said) or [_ANY_ENTITY]
        return [self.fill(name, items)] * int(_read_hint(schema, "minItems") or bool(items))

    def _fill_text(self, name: str, schema: Schema) -> str:
        given = self._find_value(name)
        if name in ("seen", "seen_types"):
            return _describe_attachments(self.attachments, types=name == "seen_types")
        if _is_entity(name, schema):
            return next(iter(_ENTITY_PATTERN.findall(given or self.said)), _ANY_ENTITY)
        return str(self._get_suggested(name) or given or self._make_text(name, schema))

    def _make_text(self, name: str, schema: Schema) -> str:
        form = str(_read_hint(schema, "format"))
        if form == "date" and (dates := _DATE_PATTERN.findall(self.said)):
            return str(dates[0])
        if form in _VALUE_BY_FORMAT:
            return _VALUE_BY_FORMAT[form]
        if count := _WORD_COUNT_PATTERN.search(self.said):
            return " ".join(f"word{number}" for number in range(int(count["count"])))
        return "text" if _read_hint(schema, "pattern") else f"A short {name.replace('_', ' ')}"

    def _fill_number(self, name: str, schema: Schema) -> int | float:
        low, high = (_read_hint(schema, limit) for limit in ("minimum", "maximum"))
        least, most = (None if limit is None else float(limit) for limit in (low, high))
        given = _NUMBER_PATTERN.findall(self._find_value(name) or "")
        found = [float(number) for number in (*given, *([] if name in _PLACES else _NUMBER_PATTERN.findall(self.said)))]
        fitting = (each for each in found if (least is None or each >= least) and (most is None or each <= most))
        value = next(fitting, _PLACES.get(name, 1.0 if least is None else least))
        return int(value) if value == int(value) else value

    def _get_suggested(self, name: str) -> str | tuple[str, ...]:
        return self.suggestion.get_value(name) if self.suggestion else ""

    def _find_value(self, name: str) -> str | None:
        """Return the value that the instructions give for a field as `name: value`, or None."""
        words = re.escape(name).replace("_", "[_ ]")
        found = re.search(rf"(?m)(?:^|[\s;,(]){words}: *(?P<value>[^;\n]+)", self.said, re.IGNORECASE)
        return found["value"].strip().rstrip(".") if found and found["value"].strip() else None


def _is_entity(name: str, schema: Schema) -> bool:
    return "entity" in name or _read_hint(schema, "format") == "entity_id"


def _read_hint(schema: Schema, name: str) -> Any:
    """Return a limit from the schema, or as its description says it in parentheses; None if there is no such limit."""
    described = {found["name"]: found["value"] for found in _HINT_PATTERN.finditer(str(schema.get("description", "")))}
    return schema.get(name, described.get(name))


def _list_types(schema: Schema) -> list[str]:
    types = schema.get("type", ())
    return [types] if isinstance(types, str) else list(types)


def _describe_attachments(attachments: tuple[Attachment, ...], *, types: bool) -> str:
    if types:
        return ", ".join(each.media_type for each in attachments) or "none"
    images = sum(each.media_type.startswith("image/") for each in attachments)
    counts = (("image", images), ("document", len(attachments) - images))
    return ", ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in counts if count) or "nothing"
