"""The index of the recorded streams, with their sources and their locations on this machine.

The streams belong to other projects, so the repository contains only their index. They are read from `streams` beside
this module, or from the folder that `RECORDED_STREAMS` names. If they are missing, the tests that replay them are
skipped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
import json
import os
from pathlib import Path

_HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("RECORDED_STREAMS") or _HERE / "streams")

# Licenses that permit everybody to redistribute the streams.
LICENCES = {"Apache-2.0", "BSD-3-Clause", "MIT"}


@dataclass(frozen=True)
class Recorded:
    """A stream and its source: `place` is the number of the interaction in a cassette, or None for a file of events."""

    file: str
    format: str
    server: str
    model: str
    repository: str
    commit: str
    path: str
    place: int | None
    licence: str
    sha256: str

    @property
    def stream_path(self) -> Path:
        """The path of the stream's file, whether or not it exists."""
        return FOLDER / self.file

    @property
    def stream(self) -> bytes:
        """The bytes of the stream's file."""
        return self.stream_path.read_bytes()


def index() -> Sequence[Recorded]:
    """Return all streams in the index."""
    return [Recorded(**entry) for entry in json.loads((_HERE / "index.json").read_text())]
