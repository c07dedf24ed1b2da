"""Code shared by all encoders: names, tool schemas, the system prompt, attachments, and residue."""

from base64 import b32encode
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
import re
from typing import Any

from ..window import Attachment, Message, Role

_VALID_NAME_PATTERN = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SHORT_ID_CHARS = 9
# Mistral accepts only call ids of this form: https://github.com/langchain-ai/langchain/issues/24668
_SHORT_ID_PATTERN = re.compile(rf"[a-zA-Z0-9]{{{_SHORT_ID_CHARS}}}")
_INVALID_CHAR_PATTERN = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME_CHARS = 64

# The names that Anthropic accepts for top-level properties of a tool's schema, according to its own error message:
# https://github.com/anthropics/claude-code/issues/79418
_VALID_PROPERTY_PATTERN = re.compile(r"[a-zA-Z0-9_.-]{1,64}")

_CHOICE_KEYWORDS = ("anyOf", "oneOf")

# The keywords that OpenAI and Anthropic refuse at the top level, according to their error messages:
# https://github.com/goruck/home-generative-agent/pull/545 and https://github.com/marianfoo/mcp-sap-docs/pull/51
_REFUSED_TOP_KEYWORDS = frozenset({*_CHOICE_KEYWORDS, "allOf", "const", "enum", "not"})

# The keywords that contain other schemas.
_MAP_KEYS = ("properties", "patternProperties", "$defs")

_SCHEMA_LIST_KEYWORDS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE_SCHEMA_KEYWORDS = ("items", "additionalProperties", "not")

# The note that replaces an image or a file that a model cannot see. Without it, a model answers as if nothing had been
# attached, or pretends to have seen it. An image is called a file, so that a model that can see images does not confuse
# it with another attachment. The window counts far more tokens for an attachment than this note needs.
UNSEEN_NOTE = "[The user has attached a file here that you cannot see.]"


def shorten(length: int, text: str) -> str:
    """Return the text, shortened to `length` characters if it is longer. Different texts stay different."""
    if len(text) <= length:
        return text
    mark = f"_{_digest(text)}"
    return text[: length - len(mark)] + mark


def derive_short_id(text: str) -> str:
    """Return a call id, derived from the text, that every server accepts. Different texts get different ids."""
    return b32encode(sha256(text.encode(errors="backslashreplace")).digest())[:_SHORT_ID_CHARS].decode()


def is_short_id(call_id: str) -> bool:
    """Return whether every server accepts this call id."""
    return _SHORT_ID_PATTERN.fullmatch(call_id) is not None


def encode_name(name: str) -> str:
    """Return the name under which a tool is sent: its own name if all formats accept it."""
    return name if _VALID_NAME_PATTERN.fullmatch(name) else _make_valid_name(name)


def make_name_map(properties: Collection[str]) -> dict[str, str]:
    """Return replacements for the property names that Anthropic refuses. Every replacement is unique."""
    taken = set(properties)
    sent: dict[str, str] = {}
    for own in properties:
        if _VALID_PROPERTY_PATTERN.fullmatch(own):
            continue
        name = own
        while name in taken:
            name = _make_valid_name(name)
        taken.add(name)
        sent[own] = name
    return sent


def _make_valid_name(name: str) -> str:
    return shorten(_MAX_NAME_CHARS, f"{_INVALID_CHAR_PATTERN.sub('_', name)}_{_digest(name)}")


def _digest(text: str) -> str:
    # UTF-8 cannot encode half of a surrogate pair.
    return sha256(text.encode(errors="backslashreplace")).hexdigest()[:8]


type Schema = dict[str, Any]


def flatten_choices(schema: Mapping[str, Any]) -> Schema:
    """Return an object's schema without a choice, such as `anyOf`, at its top level.

    The schema accepts everything that the choice accepts. It has the properties of all branches, and requires only the
    properties that every branch requires. A branch that accepts additional properties does not loosen the types that
    other branches define for theirs.
    """
    if schema.keys().isdisjoint(_REFUSED_TOP_KEYWORDS):
        return dict(schema)
    own = {name: value for name, value in schema.items() if name not in _REFUSED_TOP_KEYWORDS}
    parts = [own, *map(_normalize_branch, schema.get("allOf", ()))]
    parts += (_merge_branches(schema[name]) for name in _CHOICE_KEYWORDS if name in schema)
    properties: Schema = {}
    for part in parts:
        properties = {**part.get("properties", {}), **properties}
    names = dict.fromkeys(name for part in parts for name in part.get("properties", ()))
    required = dict.fromkeys(name for part in parts for name in part.get("required", ()))
    return {
        **own,
        "properties": {name: properties[name] for name in names},
        **({"required": list(required)} if required else {}),
        **({"additionalProperties": False} if any(map(_forbids_extra_keys, parts)) else {}),
    }


def add_items(schema: Any) -> Any:
    """Return the schema with `items`, which accept anything, added to every array that has none."""
    if not isinstance(schema, dict):
        return schema
    inner: Schema = {
        **{name: {key: add_items(each) for key, each in schema[name].items()} for name in _MAP_KEYS if name in schema},
        **{name: [add_items(each) for each in schema[name]] for name in _SCHEMA_LIST_KEYWORDS if name in schema},
        **{name: add_items(schema[name]) for name in _SINGLE_SCHEMA_KEYWORDS if name in schema},
    }
    says_nothing = "array" in list_types(schema) and "items" not in schema
    return {**schema, **inner, **({"items": {}} if says_nothing else {})}


def _merge_branches(branches: Iterable[Any]) -> Schema:
    """Return one schema that accepts every object that at least one branch accepts."""
    objects = [branch for branch in map(_normalize_branch, branches) if "object" in list_types(branch)]
    names = dict.fromkeys(name for each in objects for name in each["properties"])
    required = [each.get("required", ()) for each in objects]
    return {
        "properties": {name: _build_any_of(each["properties"].get(name) for each in objects) for name in names},
        "required": [name for name in (required or [()])[0] if all(name in each for each in required)],
        "additionalProperties": not (objects and all(map(_forbids_extra_keys, objects))),
    }


def _normalize_branch(schema: Any) -> Schema:
    """Return a branch as an object schema without a choice. A boolean branch becomes a schema of any object."""
    return {"type": "object", "properties": {}, **(flatten_choices(schema) if isinstance(schema, dict) else {})}


def _build_any_of(schemas: Iterable[Any]) -> Any:
    different: list[Any] = []
    for each in schemas:
        if each is not None and each not in different:
            different.append(each)
    return different[0] if len(different) == 1 else {"anyOf": different}


def _forbids_extra_keys(schema: Schema) -> bool:
    return schema.get("additionalProperties") is False and "patternProperties" not in schema


def list_types(schema: Mapping[str, Any]) -> Collection[str]:
    """Return the types that a schema names, none if any type is allowed."""
    types = schema.get("type", ())
    return (types,) if isinstance(types, str) else types


def add_notes(content: str, unseen: int) -> str:
    """Return a user's text, followed by a note for each of the `unseen` attachments that were removed."""
    return "\n\n".join(filter(None, (content, *(UNSEEN_NOTE for _ in range(unseen)))))


def get_mime_type(attachment: Attachment) -> str:
    """Return the registered name of an attachment's MIME type."""
    return "image/jpeg" if attachment.mime_type == "image/jpg" else attachment.mime_type


def join_system_prompt(messages: Iterable[Message]) -> str:
    """Return the system messages joined into one text; empty if there are none."""
    return "\n\n".join(each.content for each in messages if each.role is Role.SYSTEM and each.content.strip())


def drop_none(**fields: Any) -> dict[str, Any]:
    """Return the fields whose value is not None."""
    return {name: value for name, value in fields.items() if value is not None}


def native_value(message: Message | None, provider: str, model: str) -> Any:
    """Return the residue on a message if this provider and model produced it, else None.

    Residue is data such as signatures that no other model can use, see `AnswerDone`.
    """
    native = message.native if message else None
    return native.value if native and (native.provider, native.model) == (provider, model) else None
