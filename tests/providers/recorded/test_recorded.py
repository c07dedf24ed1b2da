"""Tests that the provider and an independent reader agree on recorded and generated streams, however split."""

from collections import Counter
from dataclasses import replace
from hashlib import sha256

import pytest

from custom_components.windowed_conversation.providers.events import Usage
from tests.providers.wires import ALL_WIRES
from tests.providers.wires.parts import Call, Calls, End, Reasoning, Text, Wire

from .conftest import Replay
from .cuts import CUTS
from .independent import read
from .reading import Called, Reading, UsageCounts
from .server_sent_events import payloads
from .streams import FOLDER, LICENCES, Recorded, index

CHOSEN = index()
STREAMS = [each for each in CHOSEN if each.stream_path.is_file()]
FORMATS = {wire.name for wire in ALL_WIRES}

CASES = [pytest.param(source.format, source, id=source.file) for source in STREAMS]


def without_generated_ids(ours: Reading, theirs: Reading) -> Reading:
    """Return our reading without the ids that the provider generated because the server sent none."""
    given = {call.id for call in theirs.calls}
    calls = (Called(call.id if call.id in given else "", call.name, call.arguments) for call in ours.calls)
    return replace(ours, calls=tuple(calls))


@pytest.mark.parametrize(("format_", "source"), CASES)
@pytest.mark.parametrize("cut", CUTS)
async def test_stream_says_the_same_to_both_readers(cut: str, source: Recorded, replay: Replay) -> None:
    theirs = read(source.format, source.stream)

    ours = await replay(CUTS[cut](source.stream, source.file))

    assert without_generated_ids(ours, theirs) == theirs


@pytest.mark.parametrize("source", STREAMS, ids=lambda each: each.file)
def test_stream_is_the_one_that_was_chosen(source: Recorded) -> None:
    assert sha256(source.stream).hexdigest() == source.sha256


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the recorded streams are not on this machine")
def test_every_chosen_stream_is_there() -> None:
    assert [each.file for each in CHOSEN if each not in STREAMS] == []


def test_streams_of_every_format_were_chosen() -> None:
    found = Counter(each.format for each in CHOSEN)

    assert found.keys() == FORMATS
    assert found.total() >= 60


def test_source_is_named_and_may_be_passed_on(subtests: pytest.Subtests) -> None:
    for source in CHOSEN:
        with subtests.test(file=source.file):
            assert source.licence in LICENCES
            assert source.repository.count("/") == 1
            assert len(source.commit) == 40
            assert source.path


WORDS = ("Grüße ", "aus 東京 ", "\N{GRINNING FACE}")
TWO_CALLS = Calls((Call("call_1", "turn_on", ('{"name": ', '"Küche"}')), Call("call_2", "turn_off", ("{}",))))
USAGE = Usage(input=120, cached=100, output=30, reasoning=10)

with_each_format = pytest.mark.parametrize(
    ("format_", "written"), [(wire.name, wire) for wire in ALL_WIRES], ids=lambda each: getattr(each, "name", "")
)


@with_each_format
def test_reader_finds_what_was_written(format_: str, written: Wire) -> None:
    stream = b"".join(written.answer(Reasoning(("I think.",)), Text(WORDS), TWO_CALLS, usage=USAGE))

    reading = read(format_, stream)

    assert (reading.text, reading.reasoning, reading.outcome) == ("".join(WORDS), "I think.", "tool_calls")
    assert reading.calls == (Called("call_1", "turn_on", {"name": "Küche"}), Called("call_2", "turn_off", {}))
    assert reading.usage == UsageCounts(input=120, cached=100, output=30, reasoning=10)


@with_each_format
@pytest.mark.parametrize(
    ("end", "ending"), [(End.LENGTH, "Incomplete"), (End.REFUSED, "AnswerRefused"), (End.NONE, "BadStream")]
)
def test_reader_finds_how_an_answer_ended(end: End, ending: str, format_: str, written: Wire) -> None:
    assert read(format_, b"".join(written.answer(Text(WORDS), end=end))).outcome == ending


@with_each_format
@pytest.mark.parametrize("cut", CUTS)
async def test_both_readers_agree(cut: str, format_: str, written: Wire, replay: Replay) -> None:
    stream = b"".join(written.answer(Reasoning(("I think.",)), Text(WORDS), TWO_CALLS, usage=USAGE))

    assert await replay(CUTS[cut](stream, format_)) == read(format_, stream)


@pytest.mark.parametrize("cut", [cut for cut in CUTS if cut != "with CRLF"])
def test_pieces_are_the_stream(cut: str) -> None:
    stream = "data: Grüße\r\n\r\ndata: 東京\n\n".encode() * 100

    assert b"".join(CUTS[cut](stream, "a name")) == stream


def test_cut_goes_through_every_character_of_several_bytes() -> None:
    pieces = CUTS["in lines and characters"]("data: ü東\n\n".encode(), "")

    assert max(len(piece.decode(errors="ignore").encode()) for piece in pieces if max(piece) > 127) <= len(b"ta: ")


@pytest.mark.parametrize(
    ("stream", "found"),
    [
        (b"data: a\n\ndata:b\n\n", ["a", "b"]),
        (b"\xef\xbb\xbfdata: a\r\rdata: b\r\r", ["a", "b"]),
        (b": comment\r\n\r\nevent: x\r\nid: 1\r\ndata: a\r\ndata: b\r\n\r\n", ["a\nb"]),
        (b"data: a\n\ndata: not ended", ["a"]),
        (b"data:  two blanks\n\ndata\n\n", [" two blanks", ""]),
    ],
)
def test_events_are_read_as_the_standard_says(stream: bytes, found: list[str]) -> None:
    assert list(payloads(stream)) == found
