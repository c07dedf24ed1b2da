"""What an exchange tells about the home is evicted with it, and no older state stays."""

import json
from typing import Any

from hypothesis import given, settings, strategies as st
import pytest

from custom_components.windowed_conversation.window import Message, Remembered, Told, ToolCall, Window, WindowPolicy
from custom_components.windowed_conversation.window.codecs import Malformed, dump_snapshot, load_snapshot
from custom_components.windowed_conversation.window.summary import older_passage

from .histories import LengthCounter, cost, new_window, without_system

ROOMY = WindowPolicy(10_000)


def take_turn(window: Window, text: str, *tags: str, recalled: str = "", anew: bool = False, **states: str) -> None:
    """Let the window go through a turn, before whose question there are states and something recalled."""
    lines = ",".join(f"{name}={state}" for name, state in states.items())
    told = Told(1, 1 + len(lines), len(lines), states) if states else None
    place = 1 + len(lines)
    mark = Remembered(place, place + len(recalled), len(recalled)) if recalled else None
    window.open(f"[{lines}{recalled}]{text}", tags=tags, recalled=mark, told=told, anew=anew)
    window.add(Message.assistant("Yes."))
    window.close()


def questions(window: Window) -> list[str]:
    """Return what the user's messages say."""
    return [message.content for message in window.messages() if message.role == "user"]


def newest_states(window: Window) -> dict[str, str]:
    """Return the states that the texts tell, the later ones over the earlier ones."""
    lines = [text[1:].partition("]")[0] for text in questions(window) if "=" in text]
    return dict(pair.split("=") for line in lines for pair in line.split(",") if pair)


def test_it_stays_over_trims_of_other_exchanges() -> None:
    window = new_window(WindowPolicy(200, 0.4))
    take_turn(window, "x" * 80)
    take_turn(window, "hello", lamp="on")

    window.open("y" * 85)

    assert questions(window) == ["[lamp=on]hello", "y" * 85]


def test_older_state_leaves_with_the_exchange_that_told_a_newer_one() -> None:
    window = new_window(WindowPolicy(200, 0.4))
    take_turn(window, "hello", "important", lamp="on")
    take_turn(window, "x" * 60, lamp="off")

    window.open("y" * 100)

    assert questions(window) == ["[]hello", "y" * 100]


def use_tool(window: Window, *tags: str, listed: str = "", **states: str) -> None:
    """Let the window go through a turn with a tool that lists something of the home, or only changes it."""
    window.open("z", tags=tags)
    window.add(Message.assistant(tool_calls=(ToolCall("c", "look", {}),)))
    told = Told(1, 1 + len(listed), len(listed), states)
    window.add(Message.tool("c", "look", f"<{listed}>{'-' * 300}", told=told))
    window.add(Message.assistant("Yes."))
    window.close()


def results(window: Window) -> list[Message]:
    """Return the results of tools."""
    return [message for message in window.messages() if message.role == "tool"]


def test_older_state_leaves_with_the_exchange_whose_tool_has_changed_it() -> None:
    window = new_window(WindowPolicy(900, 0.4))
    take_turn(window, "hello", "important", lamp="on")
    use_tool(window, lamp="off")

    window.open("y" * 800)

    assert questions(window) == ["[]hello", "y" * 800]


def test_stub_has_no_states_and_is_still_known_to_have_told_them() -> None:
    window = new_window(ROOMY)
    use_tool(window, listed="lamp=off", lamp="off")

    (stub,) = results(window)
    assert "beginning with <>---" in stub.content
    assert stub.told == Told(0, 0, 0, {"lamp": "off"})


def test_result_that_is_kept_loses_its_states_when_all_is_told_anew() -> None:
    window = new_window(WindowPolicy(10_000, tool_results="keep"))
    use_tool(window, listed="lamp=off", lamp="off")
    before = window.stats().current_tokens
    take_turn(window, "hello", anew=True)

    (result,) = results(window)
    assert (result.content, result.told) == (f"<>{'-' * 300}", None)
    assert window.stats().current_tokens == before - len("lamp=off") + cost(window.messages()[-2:])


def test_what_a_result_tells_survives_a_file() -> None:
    window = new_window(WindowPolicy(10_000, tool_results="keep"))
    use_tool(window, listed="lamp=off", lamp="off")
    again = new_window(window.policy)
    again.restore(load_snapshot(dump_snapshot(window.snapshot())))

    assert results(again) == results(window)


def test_abort_puts_back_what_was_taken_out() -> None:
    window = new_window(WindowPolicy(200, 0.4))
    take_turn(window, "hello", "important", lamp="on")
    take_turn(window, "x" * 60, lamp="off")
    before = window.messages()

    window.open("y" * 80, anew=True)
    window.abort()

    assert window.messages() == before


def test_what_is_told_anew_takes_the_place_of_all_that_was_told() -> None:
    window = new_window(ROOMY)
    take_turn(window, "one", lamp="on", recalled="!")
    take_turn(window, "two", lamp="off")
    take_turn(window, "three", anew=True, lamp="on")

    assert questions(window) == ["[!]one", "[]two", "[lamp=on]three"]


def test_what_was_recalled_leaves_from_its_place_when_what_was_told_has_left() -> None:
    window = new_window(WindowPolicy(200, 0.2))
    take_turn(window, "x" * 60)
    take_turn(window, "hello", lamp="on", recalled="A fact")
    take_turn(window, "again", anew=True)

    window.open("y" * 110)

    assert questions(window)[0] == "[]hello"


def test_summary_leaves_no_older_state_before_it() -> None:
    window = new_window(ROOMY)
    take_turn(window, "hello", "important", lamp="on")
    take_turn(window, "bye", lamp="off")
    take_turn(window, "again")
    passage = older_passage(None, window.exchanges(), 1, frozenset())
    assert passage is not None

    window.summarize(passage, "They spoke.")

    assert newest_states(window) == {}


turns = st.tuples(
    st.integers(0, 60),
    st.sampled_from([(), ("important",), ("ephemeral",)]),
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["on", "off"]), max_size=3),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(turns, min_size=1, max_size=12), st.integers(50, 400), st.none() | st.floats(0, 0.9))
def test_no_state_is_older_than_one_that_was_told_later(history: list[Any], budget: int, share: float | None) -> None:
    window = new_window(WindowPolicy(budget, share))
    home: dict[str, str] = {}
    for length, tags, states in history:
        home |= states
        take_turn(window, "x" * length, *tags, **states)

        assert newest_states(window).items() <= home.items()
        assert window.stats().current_tokens == cost(without_system(window.messages()))


def test_it_comes_back_from_a_file() -> None:
    window = new_window(ROOMY)
    take_turn(window, "hello", lamp="on")
    again = Window("conversation", window.policy, LengthCounter())
    again.restore(load_snapshot(json.loads(json.dumps(dump_snapshot(window.snapshot())))))

    assert again.messages() == window.messages()


@pytest.mark.parametrize(
    "damage",
    [{"start": 9, "end": 2}, {"states": {"lamp": 1}}, {"states": ["lamp"]}, {"is_snapshot": "yes"}, {"more": 1}],
)
def test_damaged_one_is_refused(damage: dict[str, Any]) -> None:
    window = new_window(ROOMY)
    take_turn(window, "hello", lamp="on")
    written = dump_snapshot(window.snapshot())
    written["exchanges"][0]["messages"][0]["told"] |= damage

    with pytest.raises(Malformed):
        load_snapshot(written)
