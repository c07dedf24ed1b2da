"""Violations of a format's rules, and the checks that formats share: tools, arguments, media, known keys.

They are based on the formats' documentation and not on any client, as an independent check of a client's requests.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
import json
import re
from typing import Any

from .media import MEDIA_TYPES, Attachment

TOOL_NAME_PATTERN = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule. `where` is a path into the body; `text` never quotes what users wrote."""

    rule: str
    where: str
    text: str


def find_unknown_keys(body: dict[str, Any], known: frozenset[str]) -> Iterator[Violation]:
    """Yield a violation for each key that the endpoint does not know."""
    for key in body.keys() - known:
        yield Violation("unknown_key", key, "not every server of this format knows this")


def find_tool_violations(
    functions: list[object], *, schema: str = "parameters", name_form: re.Pattern[str] = TOOL_NAME_PATTERN
) -> Iterator[Violation]:
    """Yield the violations in function declarations whose JSON schema is under the key `schema`."""
    for at, function in enumerate(functions):
        yield from _check_tool(function, f"tools[{at}]", schema, name_form)
    names = [str(function.get("name")) for function in functions if isinstance(function, dict)]
    if len(set(names)) != len(names):
        yield Violation("tools_unique", "tools", "two tools have one name")
    if names != sorted(names):
        yield Violation("tools_sorted", "tools", "an order of their own for each request misses the cache")


def _check_tool(function: object, where: str, schema: str, name_form: re.Pattern[str]) -> Iterator[Violation]:
    if not isinstance(function, dict):
        yield Violation("tool_shape", where, "no function object")
        return
    name, parameters = function.get("name"), function.get(schema)
    if not isinstance(name, str) or not name_form.fullmatch(name):
        yield Violation("tool_name", where, f"does not match ^{name_form.pattern}$")
    if not isinstance(parameters, dict) or str(parameters.get("type")).lower() != "object":
        yield Violation("tool_parameters", where, "no JSON schema of type object")


def is_json_object(text: object) -> bool:
    """Return whether the value is the text of a JSON object, as the arguments of a call must be."""
    try:
        return isinstance(json.loads(text), dict) if isinstance(text, str) else False
    except ValueError:
        return False


def is_nonblank_text(text: object) -> bool:
    """Return whether the value is a text that does not consist only of white space."""
    return isinstance(text, str) and bool(text.strip())


def find_media_violations(
    attachment: Attachment | None, where: str, types: Iterable[str] = MEDIA_TYPES
) -> Iterator[Violation]:
    """Yield the violations of an image or a document; None stands for one that cannot be decoded."""
    if attachment is None or not attachment.byte_count:
        yield Violation("media_data", where, "no base64 data")
    elif attachment.media_type not in types:
        yield Violation("media_type", where, f"none of {', '.join(types)}")
    elif attachment.is_mislabeled:
        yield Violation("media_mismatch", where, f"stated as {attachment.media_type}, is {attachment.actual_type}")
