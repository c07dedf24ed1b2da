"""A broken rule of a format, and the checks that the formats share: tools, arguments, media, known keys.

Written from the formats' documentation, not from any client: this is the independent check of a client's requests.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
import json
import re
from typing import Any

from .media import MEDIA_TYPES, Attachment

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule. `where` is a path into the body; `text` never quotes people's words."""

    rule: str
    where: str
    text: str


def unknown_keys(body: dict[str, Any], known: frozenset[str]) -> Iterator[Violation]:
    """Yield the keys that the endpoint does not know."""
    for key in body.keys() - known:
        yield Violation("unknown_key", key, "not every server of this format knows this")


def tool_violations(
    functions: list[object], *, schema: str = "parameters", name_form: re.Pattern[str] = TOOL_NAME
) -> Iterator[Violation]:
    """Yield the violations in the declarations of functions, whose JSON schema is under the key `schema`."""
    for at, function in enumerate(functions):
        yield from _tool(function, f"tools[{at}]", schema, name_form)
    names = [str(function.get("name")) for function in functions if isinstance(function, dict)]
    if len(set(names)) != len(names):
        yield Violation("tools_unique", "tools", "two tools have one name")
    if names != sorted(names):
        yield Violation("tools_sorted", "tools", "an order of their own for each request misses the cache")


def _tool(function: object, where: str, schema: str, name_form: re.Pattern[str]) -> Iterator[Violation]:
    if not isinstance(function, dict):
        yield Violation("tool_shape", where, "no function object")
        return
    name, parameters = function.get("name"), function.get(schema)
    if not isinstance(name, str) or not name_form.fullmatch(name):
        yield Violation("tool_name", where, f"does not match ^{name_form.pattern}$")
    if not isinstance(parameters, dict) or str(parameters.get("type")).lower() != "object":
        yield Violation("tool_parameters", where, "no JSON schema of type object")


def is_object_text(written: object) -> bool:
    """Return whether this is the text of a JSON object, as the arguments of a call are."""
    try:
        return isinstance(json.loads(written), dict) if isinstance(written, str) else False
    except ValueError:
        return False


def has_words(text: object) -> bool:
    """Return whether this is a text with more than white space in it."""
    return isinstance(text, str) and bool(text.strip())


def media_violations(
    attachment: Attachment | None, where: str, types: Iterable[str] = MEDIA_TYPES
) -> Iterator[Violation]:
    """Yield the violations of an image or a document; None is one that cannot be read at all."""
    if attachment is None or not attachment.size:
        yield Violation("media_data", where, "no base64 data")
    elif attachment.media_type not in types:
        yield Violation("media_type", where, f"none of {', '.join(types)}")
