"""The errors of stored conversations, of which nothing is loaded then. Their messages name fields, never a text."""

from ..errors import WindowError


class CodecError(WindowError):
    """A stored conversation cannot be read."""


class NotOurs(CodecError):
    """The data is not a conversation of ours."""


class NewerVersion(CodecError):
    """A later version wrote it."""


class Malformed(CodecError):
    """A part is missing, has the wrong type, or is in the wrong place."""


class TooLarge(CodecError):
    """The data is larger than a conversation can be."""
