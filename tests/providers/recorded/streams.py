"""The index of the recorded streams, with their sources and their places on this machine.

The streams belong to other projects, so the repository has their index only. They are looked for in `streams` beside
this module, or in the folder that `RECORDED_STREAMS` names; without them the tests that replay them are skipped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
import json
import os
from pathlib import Path

_HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("RECORDED_STREAMS") or _HERE / "streams")

# Licences that allow everybody to pass the streams on.
LICENCES = {"Apache-2.0", "BSD-3-Clause", "MIT"}


@dataclass(frozen=True)
class Recorded:
    """A stream and its source: `place` is the number of the interaction in a cassette, None for a file of events."""

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
    def location(self) -> Path:
        """Where the stream is, or would be."""
        return FOLDER / self.file

    @property
    def stream(self) -> bytes:
        """The bytes of the stream."""
        return self.location.read_bytes()


def index() -> Sequence[Recorded]:
    """Return every stream that was chosen."""
    return [Recorded(**entry) for entry in json.loads((_HERE / "index.json").read_text())]
