"""Tests for surrogate pairs that a server splits between two chunks."""

from codecs import getincrementaldecoder
from random import Random

import pytest

from custom_components.windowed_conversation.providers.json_values import SurrogateJoiner

FIRST, SECOND = "\ud83d", "\ude00"
CHARACTERS = ("a", "\n", "é", "照", "\N{GRINNING FACE}", FIRST, SECOND, FIRST + SECOND)


def random_pieces(seed: int) -> list[str]:
    random = Random(seed)
    return ["".join(random.choices(CHARACTERS, k=random.randrange(4))) for _ in range(random.randrange(1, 9))]


PIECES = [[FIRST, "", SECOND], [FIRST, "a", SECOND], [FIRST, FIRST, SECOND], *map(random_pieces, range(200))]


def test_borders_of_the_pieces_make_no_difference(subtests: pytest.Subtests) -> None:
    for pieces in PIECES:
        with subtests.test(pieces=ascii(pieces)):
            characters = SurrogateJoiner()

            text = "".join([characters.feed(piece) for piece in pieces])

            decoder = getincrementaldecoder("utf-16-le")("replace")
            assert text == decoder.decode("".join(pieces).encode("utf-16-le", "surrogatepass"))


def test_no_half_is_ever_passed_on(subtests: pytest.Subtests) -> None:
    for pieces in PIECES:
        with subtests.test(pieces=ascii(pieces)):
            characters = SurrogateJoiner()

            for piece in pieces:
                characters.feed(piece).encode()
