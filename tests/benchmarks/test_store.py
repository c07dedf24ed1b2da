"""Tests that the benchmark of the store counts writes by file, and compares two checkouts by medians and ratios."""

from typing import Any

import pytest

from benchmarks.store import calculate_medians, format_rows
from benchmarks.store_parts import copy_exchange, make_topic, read_field, split_bytes


def test_bytes_of_home_assistants_own_files_are_not_counted() -> None:
    replaced = [("windowed_conversation.windows.a", 100), ("core.entity_registry", 30), ("windowed_conversation.b", 5)]

    assert split_bytes(1_000, replaced) == {"bytes": 970, "json": 105, "sqlite": 865}


def test_field_of_a_file_of_proc_is_found_by_its_whole_name() -> None:
    assert read_field("rchar: 1\nwchar: 22\nwrite_bytes: 3\n", "wchar") == "22"


def test_copies_of_an_exchange_have_their_own_topics() -> None:
    said = {"role": "user", "content": f"explain {make_topic(0)}"}
    exported = {"version": 1, "exchanges": [{"tags": ["input"], "messages": [said]}]}

    copies = copy_exchange(exported, make_topic(0), 3, first=7)

    assert copies["version"] == 1
    assert [each["messages"][0]["content"] for each in copies["exchanges"]] == [
        f"explain {make_topic(number)}" for number in (7, 8, 9)
    ]


def test_median_is_of_all_that_the_rounds_have_measured() -> None:
    rounds: list[dict[str, Any]] = [
        {"set-up s": 1.0, "first turn ms": [1.0, 9.0]},
        {"set-up s": 3.0, "first turn ms": [2.0]},
        {"set-up s": 2.0, "first turn ms": [8.0, 7.0]},
    ]

    assert calculate_medians(rounds) == {"set-up s": 2.0, "first turn ms": 7.0}


@pytest.mark.parametrize(
    ("figures", "ends"),
    [
        (({"set-up s": 1.0}, {"set-up s": 2.0}), "0.500   at most 0.5: met"),
        (({"bytes 100,000": 1.0}, {"bytes 100,000": 2.0}), "0.500   at most 0.1: MISSED"),
        (({"first turn ms": 4.0}, {"first turn ms": 1.0}), "   at most 5: met"),
        (({"json 4,000": 0.0}, {"json 4,000": 2.0}), "     0.000"),
        (({"set-up s": 1.0},), "       1.000"),
    ],
)
def test_line_ends_with_the_ratio_to_the_other_side_and_the_goal(figures, ends: str) -> None:
    (line,) = format_rows(figures)

    assert line.endswith(ends)
