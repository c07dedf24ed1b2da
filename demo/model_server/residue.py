"""Signatures and sealed contents, which a model returns with its thoughts and expects back unchanged.

They are signed with this server's key for one model: those of another server or model, or changed ones, are invalid.
"""

import base64
import binascii
from hashlib import sha256
import hmac
from uuid import uuid4

_SECRET_KEY = b"the scripted model's own"
_MAC_BYTES = 16


def seal_content(model: str, content: bytes) -> str:
    """Return the content as an opaque text that only this model can open."""
    return base64.b64encode(_compute_mac(model, content) + content).decode()


def unseal_content(model: str, sealed: object) -> bytes | None:
    """Return the content if it was sealed for this model and has not been changed, or else None."""
    try:
        whole = base64.b64decode(sealed, validate=True) if isinstance(sealed, str) else b""
    except binascii.Error, ValueError:
        return None
    mac, content = whole[:_MAC_BYTES], whole[_MAC_BYTES:]
    return content if hmac.compare_digest(mac, _compute_mac(model, content)) else None


def sign_text(model: str, text: str) -> str:
    """Return a signature of the text, which differs each time."""
    salt = uuid4().bytes
    return base64.b64encode(salt + _compute_mac(model, salt + text.encode())).decode()


def is_signature_valid(model: str, text: str, signature: object) -> bool:
    """Return whether this model signed exactly this text."""
    try:
        whole = base64.b64decode(signature, validate=True) if isinstance(signature, str) else b""
    except binascii.Error, ValueError:
        return False
    salt, mac = whole[:_MAC_BYTES], whole[_MAC_BYTES:]
    return hmac.compare_digest(mac, _compute_mac(model, salt + text.encode("utf-8", "surrogatepass")))


def _compute_mac(model: str, content: bytes) -> bytes:
    return hmac.digest(_SECRET_KEY, model.encode("utf-8", "surrogatepass") + b"\n" + content, sha256)[:_MAC_BYTES]
