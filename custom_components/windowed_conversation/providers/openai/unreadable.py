"""Residue that an OpenAI server could not read, remembered so that it is sent only once.

Each server encrypts for one organization.
"""

from dataclasses import replace
import json

from ...window import Native
from ..events import Request
from ..residue import residue_of


class UnreadableResidue:
    """Hashes of residue that a provider's server has refused. The residue itself goes with its window."""

    def __init__(self, provider: str) -> None:
        """Start empty; `provider` is the stamp on the residue that is sent."""
        self._provider = provider
        self._refused: set[int] = set()

    def remember(self, request: Request) -> bool:
        """Record a request whose residue the server could not read. Return whether it had any."""
        sent = {
            _hash(message.native)
            for message in request.messages
            if message.native and residue_of(message, self._provider, request.model) is not None
        }
        self._refused |= sent
        return bool(sent)

    def without_unreadable(self, request: Request) -> Request:
        """Return the request without the residue that the server has refused."""
        if not self._refused:
            return request
        messages = (
            replace(message, native=None) if message.native and _hash(message.native) in self._refused else message
            for message in request.messages
        )
        return replace(request, messages=tuple(messages))


def _hash(native: Native) -> int:
    return hash((native.provider, native.model, json.dumps(native.value, sort_keys=True)))
