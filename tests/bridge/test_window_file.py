"""What is written of conversations can be read, whatever they hold; what could not be read is not written."""

import json
from typing import Any

from hypothesis import given, settings, strategies as st
import pytest

from custom_components.windowed_conversation.bridge.window_file import Contents, Conversation, Encoder, Found, read
from custom_components.windowed_conversation.window import Exchange, Message, Native
from custom_components.windowed_conversation.window.restore import Evicted, Snapshot
from tests.window.conversations import windows

texts = st.text(st.characters(), max_size=20)
counts = st.integers(-(10**20), 10**20) | st.sampled_from([0, 10**9, 10**9 + 1, 10**400])
natives = st.none() | st.builds(Native, texts, texts, texts, counts)
messages = st.builds(
    Message.user,
    texts,
    created=st.none() | st.floats(),
    tokens=st.none() | counts,
    native=natives,
    tags=st.frozensets(texts, max_size=2),
)
strange = st.builds(
    lambda name, message, tokens, evicted: Snapshot(
        name, None, (Exchange((message,), message.tags, tokens),), Evicted(*evicted)
    ),
    texts,
    messages,
    counts,
    st.tuples(counts, counts, counts, counts),
)
whole = windows().map(lambda window: window.snapshot())


def through_the_file(snapshots: dict[str, Snapshot]) -> Found:
    """Return what is read of conversations that were written, each used a minute after the one before."""
    used = ((key, snapshot, 60.0 * place) for place, (key, snapshot) in enumerate(snapshots.items()))
    contents = Contents(tuple(Conversation(*each) for each in used), {})
    return read(json.loads(Encoder(lambda: 60.0 * len(snapshots)).encode(contents)))


@pytest.mark.long
@settings(deadline=None, max_examples=100)
@given(snapshots=st.dictionaries(texts, strange | whole, max_size=4))
def test_what_is_written_is_never_refused(snapshots: dict[str, Snapshot]) -> None:
    found = through_the_file(snapshots)

    assert found.unreadable == 0
    assert {each.key for each in found.conversations} <= snapshots.keys()


@pytest.mark.long
@settings(deadline=None, max_examples=40)
@given(snapshots=st.dictionaries(st.text("abc", max_size=3), whole, max_size=4))
def test_whole_conversations_come_back_as_they_were(snapshots: dict[str, Snapshot]) -> None:
    found = through_the_file(snapshots)

    assert [each.key for each in found.conversations] == list(snapshots)
    at_rest = {
        key: value._replace(exchanges=tuple(e._replace(number=0) for e in value.exchanges))
        for key, value in snapshots.items()
    }
    assert {each.key: each.snapshot for each in found.conversations} == at_rest


@pytest.mark.parametrize(
    "message",
    [
        Message.user("the pelican " * 1_500_000, tokens=5),
        Message.user("the pelican", tokens=-1),
        Message.user("the pelican", tokens=10**9 + 1),
        Message.user("the pelican", tokens=10**400),
        Message.user("the pelican \ud800", tokens=5),
        Message.assistant("the pelican", tokens=5),
    ],
    ids=["too large", "negative", "huge", "400 digits", "half a character", "no exchange"],
)
def test_what_could_not_be_read_costs_only_its_conversation_and_is_logged_without_its_text(
    message: Message, caplog: pytest.LogCaptureFixture
) -> None:
    fine = Snapshot("fine", None, (Exchange((Message.user("hello", tokens=5),), frozenset({"input"}), 5),))
    broken = Snapshot("broken", None, (Exchange((message,), frozenset(), 5),))

    found = through_the_file({"broken": broken, "fine": fine})

    assert [each.key for each in found.conversations] == ["fine"]
    assert "A conversation is not kept" in caplog.text
    assert "pelican" not in caplog.text


def test_conversation_that_has_not_changed_is_not_encoded_again(caplog: pytest.LogCaptureFixture) -> None:
    broken = Snapshot("broken", None, (Exchange((Message.user("hello", tokens=-1),), frozenset(), 5),))
    encoder = Encoder(lambda: 0.0)

    for _ in range(3):
        encoder.encode(Contents((Conversation("broken", broken, 0.0),), {}))

    assert len(caplog.records) == 1


def conversation(used: Any) -> dict[str, Any]:
    """Return what the file holds of a conversation that was used then."""
    evicted = dict.fromkeys(Evicted._fields, 0)
    window = {"format": "windowed_conversation", "version": 1, "conversation_id": "a", "exchanges": []}
    return {"key": "a", "used": used, "window": window | {"evicted": evicted}}


@pytest.mark.parametrize(
    "used", [None, "yesterday", True, float("nan"), float("inf"), -1.0, 0, 86_400.0, 4e9, 10**400, [], {}]
)
def test_conversation_of_a_clock_that_was_wrong_is_as_good_as_new(used: Any) -> None:
    (found,) = read({"conversations": [conversation(used)]}).conversations

    assert found.idle == 0


@settings(deadline=None)
@given(
    data=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["key", "window"]), inner),
        max_leaves=8,
    )
)
def test_anything_else_in_the_list_is_counted_and_costs_nothing(data: Any) -> None:
    found = read({"conversations": [data, conversation(None)]})

    assert (len(found.conversations), found.unreadable) == (1, 1)
