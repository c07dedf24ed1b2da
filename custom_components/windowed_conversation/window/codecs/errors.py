"""Why a stored conversation cannot be read. Nothing of it is loaded then.

    WindowError
    +-- CodecError
        +-- NotOurs         the data is not a conversation of ours
        +-- NewerVersion    a later version wrote it
        +-- Malformed       a part is missing, has the wrong type, or is in the wrong place
        +-- TooLarge        it is larger than a conversation can be

The messages name fields and numbers, never what people said.
"""

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
