"""Why a conversation that was written down cannot be read. Nothing of it is taken in then.

    WindowError
    +-- CodecError
        +-- NotOurs         it is something else
        +-- NewerVersion    a later version wrote it
        +-- Malformed       a part is missing, of the wrong type, or in the wrong place
        +-- TooLarge        more than a conversation can be

The texts say where, by the names of fields and by numbers, never what people said.
"""

from ..errors import WindowError


class CodecError(WindowError):
    """A conversation that was written down cannot be read."""


class NotOurs(CodecError):
    """It is something else."""


class NewerVersion(CodecError):
    """A later version wrote it."""


class Malformed(CodecError):
    """A part is missing, of the wrong type, or in the wrong place."""


class TooLarge(CodecError):
    """More than a conversation can be."""
