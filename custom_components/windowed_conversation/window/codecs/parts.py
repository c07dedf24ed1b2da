"""The parts that several formats share: dates, tags, residue, attachments, exchanges."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
import json
from typing import Any

from ..errors import WindowError
from ..exchange import Exchange, OpenExchange
from ..messages import Attachment, Message, Native
from ..restore import EvictionCounts
from ..tags import check_tags, join_tags
from .errors import Malformed, TooLarge
from .fields import Fields

_EVICTED = EvictionCounts._fields
# More than a window ever evicts.
_MOST_EVICTED = 10**15
# Of one exchange: three times as many as the most tool rounds of a turn have with the most calls each. To check them
# takes the square of their number.
_MOST_MESSAGES = 10_000
MARKS = ("tags", "created", "tokens", "native", "attachments")


def write_marks(message: Message) -> dict[str, Any]:
    """Return the marks of a message as JSON: tags, time, tokens and so on, without empty fields."""
    marks = {
        "tags": sorted(message.tags),
        "created": message.created,
        "tokens": message.tokens,
        "native": _write_native(message.native),
        "attachments": [_write_attachment(attachment) for attachment in message.attachments],
    }
    return {name: value for name, value in marks.items() if value not in (None, [])}


def read_marks(fields: Fields) -> dict[str, Any]:
    """Return the `Message` fields that `write_marks` wrote."""
    return {
        "tags": read_tags(fields, "tags"),
        "created": fields.seconds("created") if fields.has("created") else None,
        "tokens": fields.integer("tokens") if fields.has("tokens") else None,
        "native": _read_native(fields.child("native")) if fields.has("native") else None,
        "attachments": tuple(read_attachment(each) for each in fields.children("attachments")),
    }


def read_tags(fields: Fields, name: str) -> frozenset[str]:
    """Return tags that are valid in a window."""
    try:
        return check_tags(fields.texts(name))
    except WindowError as err:
        raise fields.error(name, f"is not accepted: {err}") from err


def read_evicted(fields: Fields) -> EvictionCounts:
    """Return the counts of evictions."""
    fields.expect_only(*_EVICTED)
    return EvictionCounts(*(fields.integer(name, _MOST_EVICTED) for name in _EVICTED))


def build_exchange(
    messages: Sequence[Message], tags: frozenset[str], where: str, sources: Iterable[str] = ()
) -> Exchange:
    """Return the exchange made of counted messages. Raises `Malformed` if they are not a whole one, and `TooLarge`."""
    if not messages:
        raise Malformed(f"{where} is empty")
    if len(messages) > _MOST_MESSAGES:
        raise TooLarge(f"{where} has more than {_MOST_MESSAGES} messages")
    try:
        exchange = OpenExchange(messages[0])
        for message in messages[1:]:
            exchange.append(message)
        exchange.tags = join_tags(exchange.tags, tags)
        exchange.sources = frozenset(sources)
        return exchange.to_exchange()
    except WindowError as err:
        # without the error's own text, which holds ids
        raise Malformed(f"{where} is no whole exchange: {type(err).__name__}") from err


def _write_native(native: Native | None) -> dict[str, Any] | None:
    """Return a provider's residue if JSON can hold it. Residue is an optimization, not part of the conversation."""
    if native is None:
        return None
    try:
        value = json.dumps(native.value, ensure_ascii=False, separators=(",", ":"))
    except TypeError, ValueError, RecursionError:
        return None
    if json.loads(value) != native.value:
        return None
    tokens = {"tokens": native.tokens} if native.tokens else {}
    return {"provider": native.provider, "model": native.model, "value": value, **tokens}


def _read_native(fields: Fields) -> Native:
    fields.expect_only("provider", "model", "value", "tokens")
    tokens = fields.integer("tokens") if fields.has("tokens") else 0
    return Native(fields.text("provider"), fields.text("model"), fields.json("value"), tokens)


def _write_attachment(attachment: Attachment) -> dict[str, str]:
    data = b64encode(attachment.data).decode()
    return {"mime_type": attachment.mime_type, "name": attachment.name, "data": data}


def read_attachment(fields: Fields) -> Attachment:
    """Return the attachment of a message."""
    fields.expect_only("mime_type", "name", "data")
    try:
        data = b64decode(fields.text("data"), validate=True)
    except ValueError as err:
        raise fields.error("data", "is no base64") from err
    return Attachment(fields.text("mime_type"), data, fields.text("name"))
