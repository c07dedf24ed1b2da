"""Residue that OpenAI's server could not read: remembered, so that it is refused once and not in every turn.

Each server encrypts for one organization.
"""

from dataclasses import replace
import json

from ...window import Native
from ..events import Request
from ..residue import residue_of


class UnreadableResidue:
    """What the server of a provider has refused to read, as hashes: the residue itself goes with its window."""

    def __init__(self, provider: str) -> None:
        """Begin with nothing; `provider` is what the residue is stamped with that is sent."""
        self._provider = provider
        self._refused: set[int] = set()

    def remember(self, request: Request) -> bool:
        """Take in a request whose residue could not be read, any part of it; returns whether it had some."""
        sent = {
            _hash(message.native)
            for message in request.messages
            if message.native and residue_of(message, self._provider, request.model) is not None
        }
        self._refused |= sent
        return bool(sent)

    def left_out(self, request: Request) -> Request:
        """Return the request without it, which is the one that another provider would write where all of it is."""
        if not self._refused:
            return request
        messages = (
            replace(message, native=None) if message.native and _hash(message.native) in self._refused else message
            for message in request.messages
        )
        return replace(request, messages=tuple(messages))


def _hash(native: Native) -> int:
    return hash((native.provider, native.model, json.dumps(native.value, sort_keys=True)))
