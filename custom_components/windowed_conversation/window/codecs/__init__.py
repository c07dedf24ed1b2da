"""Lossless JSON serialization of a conversation. Malformed input is rejected as a whole."""

from .fields import CodecError as CodecError, decode_json as decode_json
from .snapshot import dump_snapshot as dump_snapshot, load_snapshot as load_snapshot
