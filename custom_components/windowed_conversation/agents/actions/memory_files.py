"""Memory in JSON Lines files, in folders that Home Assistant allows. Every function blocks on disk I/O."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
import errno
from itertools import count
import json
import os
from pathlib import Path
import stat
from threading import Lock
from typing import Any

from homeassistant.core import HomeAssistant

from ...bridge.errors import build_refusal
from ...const import DOMAIN
from ...memory.core import BadLine

_FILE_SUFFIX = ".jsonl"
_FILE_MODE = 0o600
# Home Assistant serves this folder over HTTP without authentication.
_PUBLIC_FOLDER = "www"
# In characters. Exported lines are never longer.
_MAX_LINE_CHARS = 100_000

# The name of the temporary file in each folder. Only one export runs at a time, so the next export can delete a
# temporary file that remained after a kill.
_TEMPORARY_FILENAME = f".{DOMAIN}.unfinished"
_write_lock = Lock()


def resolve_allowed_path(hass: HomeAssistant, filename: str) -> Path:
    """Return the path of a file that is named relative to the configuration folder.

    Raises `ServiceValidationError` if the file may not be used.
    """
    try:
        path = Path(hass.config.path(filename)).resolve()
    except ValueError as err:
        raise build_refusal("file_failed", error="not a valid filename") from err
    public = Path(hass.config.path(_PUBLIC_FOLDER)).resolve()
    if path.suffix != _FILE_SUFFIX or path.is_relative_to(public) or not hass.config.is_allowed_path(str(path)):
        allowed = sorted(hass.config.allowlist_external_dirs)
        folders = [each for each in allowed if not Path(each).resolve().is_relative_to(public)]
        raise build_refusal("file_not_allowed", path=str(path), folders=", ".join(folders))
    return path


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write all lines or none to a file that only its owner can read, and return their number. Raises OSError."""
    unfinished = path.with_name(_TEMPORARY_FILENAME)
    with _write_lock:
        unfinished.unlink(missing_ok=True)
        try:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                count = sum(bool(file.write(f"{line}\n")) for line in lines)
                file.flush()
                os.fsync(descriptor)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    return count


@contextmanager
def read_lines(path: Path) -> Iterator[Iterable[str]]:
    """Yield the lines of a file. Raises OSError, and `BadLine` for a line that is not valid text."""

    def open_nonblocking(name: str, flags: int) -> int:
        # a named pipe would otherwise block until somebody opens it for writing
        return os.open(name, flags | os.O_NONBLOCK)

    with open(path, encoding="utf-8", opener=open_nonblocking) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        yield _iter_lines(file)


def iter_json_lines(memories: Iterable[dict[str, Any] | str]) -> Iterator[str]:
    """Yield memories from an action's data as JSON lines. Raises `BadLine` for one that cannot be written as JSON."""
    for number, each in enumerate(memories, 1):
        try:
            yield each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as err:
            raise BadLine(number) from err


def assign_line_owners(lines: Iterable[str], people: set[str], person: str | None) -> Iterator[str]:
    """Yield each line with its owner: the person in the line, or `person`, who becomes the owner of all lines.

    Raises `ServiceValidationError` if an owner is no known person, or if lines of several people would get the same
    owner.
    """
    owners: set[str] = set()
    for number, line in enumerate(lines, 1):
        fields = _parse_fields(line)
        owner = fields.get("person")
        if not isinstance(owner, str):
            yield line
        elif person is None:
            if owner not in people:
                raise build_refusal("memory_import_unknown_person", line=str(number))
            yield line
        else:
            owners.add(owner)
            if len(owners) > 1:
                raise build_refusal("memory_import_several_people", line=str(number))
            yield json.dumps({**fields, "person": person}, ensure_ascii=False)


def _parse_fields(line: str) -> dict[str, Any]:
    """Return the fields of a JSON line, or none for an invalid line, which memory reports when it reads the line."""
    try:
        fields = json.loads(line)
    except ValueError, RecursionError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _iter_lines(file: Any) -> Iterator[str]:
    for number in count(1):
        try:
            line = file.readline(_MAX_LINE_CHARS)
        except UnicodeDecodeError as err:
            raise BadLine(number) from err
        if not line:
            return
        yield line
