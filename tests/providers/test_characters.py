"""Halves of characters, wherever a server cuts its chunks."""

from codecs import getincrementaldecoder

from hypothesis import example, given, strategies as st

from custom_components.windowed_conversation.providers.characters import WholeCharacters

FIRST, SECOND = "\ud83d", "\ude00"

pieces_of_any_text = st.lists(st.text(alphabet=["a", "\n", "é", "照", "\N{GRINNING FACE}", FIRST, SECOND], max_size=4))


@given(pieces_of_any_text)
@example([FIRST, "", SECOND])
@example([FIRST, "a", SECOND])
@example([FIRST, FIRST, SECOND])
def test_borders_of_the_pieces_make_no_difference(pieces: list[str]) -> None:
    characters = WholeCharacters()

    fed = "".join([characters.feed(piece) for piece in pieces])

    decoder = getincrementaldecoder("utf-16-le")("replace")
    assert fed == decoder.decode("".join(pieces).encode("utf-16-le", "surrogatepass"))


@given(pieces_of_any_text)
def test_no_half_is_ever_passed_on(pieces: list[str]) -> None:
    characters = WholeCharacters()

    for piece in pieces:
        characters.feed(piece).encode()
