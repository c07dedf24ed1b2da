"""The file with an agent's conversations and totals: how it is written, and what can be read of it."""

from collections.abc import Callable
from contextlib import suppress
import logging
from pathlib import Path
import time
from typing import Any, NamedTuple

from homeassistant.helpers.json import json_bytes, json_fragment
from homeassistant.util.file import WriteError, write_utf8_file_atomic
from homeassistant.util.json import json_loads

from ..window import Snapshot
from ..window.codecs import CodecError, dump_snapshot, load_snapshot

_LOGGER = logging.getLogger(__name__)

VERSION = 1

_CONVERSATIONS = "conversations"
_TOTALS = "totals"
_KEY = "key"
_USED = "used"
_WINDOW = "window"
_DAMAGED = ".damaged"

# 2026-01-01, in seconds since the epoch: a clock that says less was not set yet.
_CLOCK_WAS_SET = 1_767_225_600


class Damaged(Exception):
    """The file has content that we do not write."""


class Conversation(NamedTuple):
    """A conversation by the key of its window; `used` is when it was used last, by the clock of the registry."""

    key: str
    snapshot: Snapshot
    used: float


class Contents(NamedTuple):
    """The contents of the file at one moment. Immutable, so that another thread can read it."""

    conversations: tuple[Conversation, ...]
    totals: dict[str, Any]


class Encoder:
    """Makes contents JSON. A conversation that has not changed since the last time is not encoded again."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with nothing encoded; `clock` is the registry's."""
        self._clock = clock
        self._encoded: dict[str, tuple[Snapshot, bytes | None]] = {}

    def encode(self, contents: Contents) -> bytes:
        """Return the file's data; a conversation that could not be read back is omitted, with a warning."""
        before, self._encoded = self._encoded, {}
        epoch = time.time() - self._clock()
        written = []
        for key, snapshot, used in contents.conversations:
            known, encoded = before.get(key, (None, None))
            if known is not snapshot:
                encoded = _encode(key, snapshot)
            self._encoded[key] = snapshot, encoded
            if encoded is not None:
                written.append({_KEY: key, _USED: round(epoch + used, 3), _WINDOW: json_fragment(encoded)})
        return json_bytes({_CONVERSATIONS: written, _TOTALS: contents.totals})


def _encode(key: str, snapshot: Snapshot) -> bytes | None:
    """Return a conversation as JSON, or None if it could not be read back."""
    try:
        json_bytes(key)
        encoded = json_bytes(dump_snapshot(snapshot))
        load_snapshot(json_loads(encoded))
    except (CodecError, RecursionError, TypeError, ValueError) as err:
        # without the error's message, which may quote what was said
        _LOGGER.warning("A conversation is not kept: it could not be read again (%s)", type(err).__name__)
        return None
    return encoded


class FoundConversation(NamedTuple):
    """A conversation of the file; `idle` is for how many seconds it was not used."""

    key: str
    snapshot: Snapshot
    idle: float


class Found(NamedTuple):
    """What can be read of the file: conversations, the least recently used one first; how many cannot; the totals."""

    conversations: list[FoundConversation]
    unreadable: int
    totals: object


def check(path: Path) -> None:
    """Raise `Damaged` unless there is no file, or one that the Store can read, and OSError if it cannot be opened."""
    with suppress(FileNotFoundError):
        _data(path)


def _data(path: Path) -> dict[str, Any]:
    """Return the data of a file; raises `Damaged` if the Store cannot read it, and OSError."""
    try:
        content = json_loads(path.read_bytes())
    except ValueError as err:
        raise Damaged from err
    if not isinstance(content, dict):
        raise Damaged
    data, version = content.get("data"), content.get("version")
    if not isinstance(data, dict) or not isinstance(version, int) or not 1 <= version <= VERSION:
        raise Damaged
    return data


def read(data: dict[str, Any]) -> Found:
    """Return what can be read of the file's data; raises `Damaged` if it holds no list of conversations."""
    written = data.get(_CONVERSATIONS)
    if not isinstance(written, list):
        raise Damaged
    now = time.time()
    found = [each for each in (_read(each, now) for each in written) if each is not None]
    found.sort(key=lambda each: -each.idle)
    return Found(found, len(written) - len(found), data.get(_TOTALS))


def _read(data: object, now: float) -> FoundConversation | None:
    """Return a conversation, or None if it cannot be read."""
    if not isinstance(data, dict) or not isinstance(data.get(_KEY), str):
        return None
    try:
        snapshot = load_snapshot(data.get(_WINDOW))
    except CodecError as err:
        _LOGGER.debug("A conversation cannot be read: %s", err)
        return None
    return FoundConversation(data[_KEY], snapshot, _idle(data.get(_USED), now))


def _idle(used: object, now: float) -> float:
    """Return how long ago a conversation was used; 0 if the clock was wrong then, or is now."""
    if not isinstance(used, int | float) or not _CLOCK_WAS_SET <= used <= now:
        return 0.0
    return now - used


def rewrite(path: Path, change: Callable[[str, Snapshot], Snapshot]) -> None:
    """Apply a change to each conversation in a file, by its key. Unreadable parts are deleted.

    Raises `OSError` if the file cannot be written.
    """
    try:
        check(path)
        content: Any = json_loads(path.read_bytes())
    except FileNotFoundError:
        return
    except Damaged:
        path.unlink(missing_ok=True)
        return
    written = content["data"].get(_CONVERSATIONS)
    rest = [_rewritten(each, change) for each in written] if isinstance(written, list) else []
    if rest != written:
        content["data"][_CONVERSATIONS] = [each for each in rest if each is not None]
        try:
            write_utf8_file_atomic(str(path), json_bytes(content), private=True, mode="wb")
        except WriteError as err:
            raise OSError(*getattr(err.__cause__, "args", ())) from err


def _rewritten(data: Any, change: Callable[[str, Snapshot], Snapshot]) -> Any:
    """Return a conversation after a change, or None if nothing of it is left or can be read."""
    found = _read(data, time.time())
    if found is None:
        return None
    after = change(found.key, found.snapshot)
    if after is found.snapshot:
        return data
    return {**data, _WINDOW: dump_snapshot(after)} if after.exchanges else None


class Damage(NamedTuple):
    """A file that was set aside, and how many of its conversations can be read and cannot; None if none can."""

    path: Path
    readable: int
    unreadable: int | None


def set_aside(path: Path) -> None:
    """Keep the file as it is under another name; another one that was set aside before is not replaced."""
    aside = path.with_name(f"{path.name}{_DAMAGED}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}{_DAMAGED}.{number}")
    path.rename(aside)
    _LOGGER.error("Not all conversations in %s can be read; the file is kept as %s", path, aside)


def damage(path: Path) -> Damage | None:
    """Return what is known of the newest file that was set aside, or None if there is none."""
    aside = max(path.parent.glob(f"{path.name}{_DAMAGED}*"), key=lambda each: each.stat().st_ctime, default=None)
    if aside is None:
        return None
    try:
        found = read(_data(aside))
    except Damaged, OSError:
        return Damage(aside, 0, None)
    return Damage(aside, len(found.conversations), found.unreadable)
