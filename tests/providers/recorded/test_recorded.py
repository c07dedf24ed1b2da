"""Tests that the provider and an independent reader agree on every recorded stream, however it is split."""

from collections import Counter
from dataclasses import replace
from hashlib import sha256

import pytest

from tests.providers.wires import ALL_WIRES

from .conftest import Replay
from .cuts import CUTS
from .independent import read
from .reading import Called, Reading
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
