"""Lossless JSON for a conversation: writing it, and reading it back. Malformed input is refused as a whole.

The formats of other projects are in `interop`.
"""

from .errors import CodecError, Malformed, NewerVersion, NotOurs, TooLarge
from .snapshot import dump_snapshot, load_snapshot

__all__ = ["CodecError", "Malformed", "NewerVersion", "NotOurs", "TooLarge", "dump_snapshot", "load_snapshot"]
