"""Five ways to split a stream into the pieces that a network delivers."""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from random import Random

# Of a longer stream, only this many bytes at each end are sent byte by byte: the complete stream would take minutes.
_SLOW_END = 2048


def _whole(stream: bytes, name: str) -> list[bytes]:
    return [stream]


def _at_random(stream: bytes, name: str) -> list[bytes]:
    random = Random(name)
    return _cut(stream, (random.randrange(len(stream)) for _ in range(len(stream) // 200 + 3)))


def _split_into_bytes(stream: bytes, name: str) -> list[bytes]:
    ends = (*range(_SLOW_END), *range(max(0, len(stream) - _SLOW_END), len(stream)))
    return _cut(stream, ends)


def _split_lines_and_characters(stream: bytes, name: str) -> list[bytes]:
    """Split in the middle of every line, after every carriage return, and inside every multi-byte character."""
    lines, at = set(), 0
    for line in stream.splitlines(keepends=True):
        lines |= {at + len(line) // 2, at + len(line) - 1}
        at += len(line)
    characters = (place for place, byte in enumerate(stream) if byte & 0xC0 == 0x80)
    return _cut(stream, (*lines, *characters))


def _with_crlf(stream: bytes, name: str) -> list[bytes]:
    return _at_random(stream.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"), f"{name}, CRLF")


def _cut(stream: bytes, places: Iterable[int]) -> list[bytes]:
    bounds = sorted({0, len(stream), *(place for place in places if place < len(stream))})
    return [stream[start:end] for start, end in pairwise(bounds)]


# The stream's name is the seed of the random splits, so that a failure can be reproduced.
CUTS: Mapping[str, Callable[[bytes, str], list[bytes]]] = {
    "whole": _whole,
    "at random": _at_random,
    "byte by byte": _split_into_bytes,
    "in lines and characters": _split_lines_and_characters,
    "with CRLF": _with_crlf,
}
