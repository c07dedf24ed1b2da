"""Byte pair encoding: exact counts by a vocabulary, token for token those of OpenAI's tiktoken.

Where a vocabulary comes from, and whether it may be believed, is decided elsewhere.
"""

from binascii import a2b_base64
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from io import BytesIO
from itertools import accumulate, pairwise
import re
import unicodedata

# How a text is cut into the pieces that are encoded each for itself, from tiktoken_ext/openai_public.py. Each class of
# characters stands in brackets here, and `$` is `\Z`, which is what it means there.
_PATTERNS = {
    "o200k_base": (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[\p{N}]{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"[\s]*[\r\n]+",
        r"[\s]+(?![^\s])",
        r"[\s]+",
    ),
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)",
        r"[^\r\n\p{L}\p{N}]?+[\p{L}]++",
        r"[\p{N}]{1,3}+",
        r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
        r"[\s]++\Z",
        r"[\s]*[\r\n]",
        r"[\s]+(?![^\s])",
        r"[\s]",
    ),
}

# `re` has no properties of Unicode, and to name the thousands of ranges would make it slow and its making a stall: for
# every character that is not ASCII another one is looked at, by category. Only the long s is itself, as it is an s.
_STAND_INS = {
    "Lu": "\x80",
    "Lt": "\x80",
    "Ll": "\x81",
    "Lm": "\x82",
    "Lo": "\x82",
    "M": "\x83",
    "N": "\x84",
    "Z": "\x85",
}
_OTHER = "\x86"
_STAND_FOR_THEMSELVES = "\x85\u017f"
_CLASSES = {
    r"\p{Lu}": r"A-Z\x80",
    r"\p{Lt}": r"\x80",
    r"\p{Ll}": r"a-z\u017f\x81",
    r"\p{Lm}": r"\x82",
    r"\p{Lo}": r"\x82",
    r"\p{L}": r"A-Za-z\u017f\x80-\x82",
    r"\p{M}": r"\x83",
    r"\p{N}": r"0-9\x84",
    r"\s": r"\t-\r \x85",
}
_not_ascii = re.compile(r"[^\x00-\x7f]+")

# How many bytes of one text are merged, of pieces that are no token as they are and were not met before: at half a
# microsecond to one each, 8 to 19 ms. Measured, 100,000 characters of Home Assistant's German texts have 10,000 such
# bytes, and as many random letters 100,000.
_MOST_MERGED_BYTES = 16_384

# What is remembered of pieces: their number, and their length in characters.
_MOST_PIECES = 32_768
_LONGEST_PIECE = 100


def read_ranks(vocabulary: bytes) -> dict[bytes, int]:
    """Return the ranks of the tokens from a file in tiktoken's format; raises `ValueError` for any other.

    Line by line, so that another thread may have the interpreter in between.
    """
    ranks: dict[bytes, int] = {}
    for line in BytesIO(vocabulary):
        token, _, rank = line.partition(b" ")
        ranks[a2b_base64(token)] = int(rank)
    return ranks


class BytePairCounter:
    """The exact number of tokens of a text by one of OpenAI's encodings; control tokens count as the text they are.

    Not built on tiktoken itself, which holds the interpreter for 100 ms and more while it takes a vocabulary in. This
    takes as long, but an event loop in another thread goes on meanwhile. As the pieces of a text come again and again,
    it is no slower at counting: some milliseconds for 100,000 characters. See `benchmarks/exact_counting.py`.

    A text is only counted to its end where that is quick: of what is no word of any language, such as 32,000 random
    characters, a part is counted, and the rest taken to be like that. Not for several threads at once.
    """

    def __init__(self, encoding: str, ranks: Mapping[bytes, int]) -> None:
        """Raise `LookupError` for an encoding other than "o200k_base" and "cl100k_base"."""
        self.encoding = encoding
        self._pattern = _pattern(encoding)
        self._stand_ins = _StandIns({ord(character): character for character in _STAND_FOR_THEMSELVES})
        self._pieces = _Pieces(ranks)

    def count(self, text: str) -> int:
        """Return the number of tokens, 0 for an empty text."""
        self._pieces.begin()
        try:
            return sum(map(self._pieces.__getitem__, self._split(text))) + self._pieces.not_merged()
        except UnicodeEncodeError:
            # halves of characters: whole ones where two belong together
            return self.count(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def _split(self, text: str) -> Iterable[str]:
        """Return the pieces."""
        if text.isascii():
            return self._pattern.findall(text)
        alike = _not_ascii.sub(lambda found: found[0].translate(self._stand_ins), text)
        borders = accumulate(map(len, self._pattern.findall(alike)), initial=0)
        return (text[begin:end] for begin, end in pairwise(borders))


class _StandIns(dict[int, str]):
    """What stands for each character that was met, for `str.translate`."""

    def __missing__(self, code: int) -> str:
        category = unicodedata.category(chr(code))
        self[code] = stand_in = _STAND_INS.get(category) or _STAND_INS.get(category[0], _OTHER)
        return stand_in


class _Pieces(dict[str, int]):
    """The tokens of each piece that was met."""

    def __init__(self, ranks: Mapping[bytes, int]) -> None:
        super().__init__()
        self._ranks = ranks
        self.begin()

    def begin(self) -> None:
        """Begin a text."""
        self._merged_bytes = 0
        self._merged_tokens = 0
        self._bytes_left = 0

    def not_merged(self) -> int:
        """Return the tokens of what was left when enough of the text was merged, taken to be like the rest."""
        return round(self._bytes_left * self._merged_tokens / self._merged_bytes) if self._bytes_left else 0

    def __missing__(self, piece: str) -> int:
        encoded = piece.encode()
        if encoded in self._ranks:
            return self._remembered(piece, 1)
        part = encoded[: _MOST_MERGED_BYTES - self._merged_bytes]
        tokens = _merged(part, self._ranks)
        self._merged_bytes += len(part)
        self._merged_tokens += tokens
        self._bytes_left += len(encoded) - len(part)
        return tokens if part != encoded else self._remembered(piece, tokens)

    def _remembered(self, piece: str, tokens: int) -> int:
        if len(piece) <= _LONGEST_PIECE:
            if len(self) >= _MOST_PIECES:
                self.clear()
            self[piece] = tokens
        return tokens


def _merged(piece: bytes, ranks: Mapping[bytes, int]) -> int:
    """Return how many tokens are left when neighbours have been merged, always those of the lowest rank first.

    A part is known by where it begins. With a heap, so that a long piece takes n log n.
    """
    size = len(piece)
    ends = [*range(1, size + 1)]
    before = [*range(-1, size - 1)]
    # the rank of each part together with its next, -1 where that is no token
    pairs = [ranks.get(piece[start : start + 2], -1) for start in range(size - 1)]
    pairs.append(-1)
    lowest = [(rank, start) for start, rank in enumerate(pairs) if rank >= 0]
    heapify(lowest)
    tokens = size
    while lowest:
        rank, start = heappop(lowest)
        if pairs[start] != rank:
            continue
        tokens -= 1
        joined = ends[start]
        pairs[joined] = pairs[start] = -1
        ends[start] = end = ends[joined]
        if end < size:
            before[end] = start
            _pair(start, pairs, ranks.get(piece[start : ends[end]], -1), lowest)
        if start:
            _pair(before[start], pairs, ranks.get(piece[before[start] : end], -1), lowest)
    return tokens


def _pair(start: int, pairs: list[int], rank: int, lowest: list[tuple[int, int]]) -> None:
    pairs[start] = rank
    if rank >= 0:
        heappush(lowest, (rank, start))


def _pattern(encoding: str) -> re.Pattern[str]:
    pattern = "|".join(_PATTERNS[encoding])
    for name, members in _CLASSES.items():
        pattern = pattern.replace(name, members)
    return re.compile(pattern)
