"""Images and documents in a request, and their costs in tokens.

Each wire format encodes them differently; this module handles base64, data URLs, and the price in tokens.
"""

import base64
import binascii
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

IMAGE_TYPES = ("image/gif", "image/jpeg", "image/png", "image/webp")
DOCUMENT_TYPE = "application/pdf"
MEDIA_TYPES = (*IMAGE_TYPES, DOCUMENT_TYPE)

# The price of any attachment, in bytes of the token estimate: about what providers charge for a small picture.
_ATTACHMENT_COST_BYTES = 1200
# The first bytes of each type, by which a provider notices that a picture has another type than was stated:
# https://github.com/home-assistant/core/issues/167208
_FIRST_BYTES = {"image/jpeg": b"\xff\xd8\xff", "image/png": b"\x89PNG", "image/gif": b"GIF8", DOCUMENT_TYPE: b"%PDF"}
_TYPE_KEYS = frozenset({"media_type", "mimeType", "mime_type"})


@dataclass(frozen=True, slots=True)
class Attachment:
    """An image or a document; `byte_count` is in bytes, `actual_type` is what its data is, empty if that is unknown."""

    media_type: str
    byte_count: int
    actual_type: str = ""

    @property
    def is_mislabeled(self) -> bool:
        """Whether the data is of another known type than the stated one."""
        return self.actual_type not in ("", self.media_type)


def decode_attachment(media_type: object, data: object) -> Attachment | None:
    """Return the attachment in base64 data, or None if the data is malformed."""
    try:
        decoded = base64.b64decode(data, validate=True) if isinstance(data, str) else b""
    except binascii.Error, ValueError:
        return None
    actual = next((kind for kind, first in _FIRST_BYTES.items() if decoded.startswith(first)), "")
    return Attachment(str(media_type), len(decoded), actual)


def decode_data_url(url: object) -> Attachment | None:
    """Return the attachment in a `data:` URL, or None if it is not one."""
    head, comma, data = url.partition(",") if isinstance(url, str) else ("", "", "")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return decode_attachment(head.removeprefix("data:").removesuffix(";base64"), data)


def price_attachments(value: Any) -> Any:
    """Return the JSON value with each attachment's data replaced by a digest whose length is the attachment's price."""
    if isinstance(value, list):
        return [price_attachments(each) for each in value]
    if isinstance(value, dict):
        typed = not _TYPE_KEYS.isdisjoint(value)
        return {
            key: _build_digest(each) if _is_attachment_data(key, each, typed) else price_attachments(each)
            for key, each in value.items()
        }
    return value


def _is_attachment_data(key: str, value: object, typed: bool) -> bool:
    return isinstance(value, str) and (value.startswith("data:") or (typed and key == "data"))


def _build_digest(data: str) -> str:
    digest = sha256(data.encode("utf-8", "surrogatepass")).hexdigest()
    return (digest * (_ATTACHMENT_COST_BYTES // len(digest) + 1))[:_ATTACHMENT_COST_BYTES]
