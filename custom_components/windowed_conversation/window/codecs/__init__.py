"""A conversation as JSON that loses nothing, and back; what is malformed is refused whole.

What reads and writes other projects' forms is in `interop`.
"""

from .errors import CodecError, Malformed, NewerVersion, NotOurs, TooLarge
from .snapshot import dump_snapshot, load_snapshot

__all__ = ["CodecError", "Malformed", "NewerVersion", "NotOurs", "TooLarge", "dump_snapshot", "load_snapshot"]
