"""Take the recorded streams out of clones of their sources: `python -m tests.providers.recorded.take CLONES`.

`CLONES` has a git directory for each repository, `owner+name/repo`. A clone that is missing is an error, and so is a
stream that is no longer what was chosen.
"""

from collections.abc import Iterator, Mapping
import gzip
import json
from pathlib import Path
import subprocess
import sys
from typing import Any

import yaml

from .streams import FOLDER, Recorded, index

_GZIP = b"\x1f\x8b"
# The formats whose servers name each event; a file of events has the data alone.
_NAMED = {"anthropic", "responses"}


def _show(clones: Path, recorded: Recorded, path: str) -> bytes:
    git_directory = clones / recorded.repository.replace("/", "+") / "repo"
    command = ["git", f"--git-dir={git_directory}", "show", f"{recorded.commit}:{path}"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def _stream(recorded: Recorded, source: bytes) -> bytes:
    if recorded.place is None:
        return "".join(_events(recorded, source.decode())).encode()
    cassette = yaml.load(source, Loader=yaml.CSafeLoader)
    return _body(cassette["interactions"][recorded.place]["response"])


def _events(recorded: Recorded, lines: str) -> Iterator[str]:
    for line in filter(str.strip, lines.splitlines()):
        name = f"event: {json.loads(line)['type']}\n" if recorded.format in _NAMED else ""
        yield f"{name}data: {line}\n\n"
    if recorded.format == "chat":
        yield "data: [DONE]\n\n"


def _body(response: Mapping[str, Any]) -> bytes:
    body = response.get("body") or response.get("content")
    written = body.get("string") if isinstance(body, dict) else body
    stream = written if isinstance(written, bytes) else written.encode()
    return gzip.decompress(stream) if stream.startswith(_GZIP) else stream


def take(clones: Path) -> None:
    """Write every stream, and the licence of every source; raises `ValueError` for one that was not chosen."""
    for recorded in index():
        stream = _stream(recorded, _show(clones, recorded, recorded.path))
        if not recorded.is_as_it_came(stream):
            raise ValueError(f"{recorded.file} is not the stream that was chosen")
        licence = FOLDER / "LICENSES" / f"{recorded.repository.replace('/', '-')}.txt"
        for folder in (recorded.location.parent, licence.parent):
            folder.mkdir(parents=True, exist_ok=True)
        recorded.location.write_bytes(stream)
        licence.write_bytes(_show(clones, recorded, "LICENSE"))


if __name__ == "__main__":
    take(Path(sys.argv[1]))
