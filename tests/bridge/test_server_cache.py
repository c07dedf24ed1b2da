"""Tests for the list of a server's models: the part that is stored, and the validation of a stored list."""

import json
from typing import Any

import pytest

from custom_components.windowed_conversation.bridge.account import ServerCache
from custom_components.windowed_conversation.providers.events import ListedModel

GOOD = ListedModel("scripted", 4000, None)


def again(cache: ServerCache) -> ServerCache:
    """Return the cache as restored after a restart."""
    restored = ServerCache()
    restored.restore(json.loads(json.dumps(cache.models_as_list())))
    return restored


def test_list_is_stored_after_each_change() -> None:
    known, saved = ServerCache(), list[int]()
    known.save_soon = lambda: saved.append(len(known.models))

    known.update_models([GOOD])
    known.clear()

    assert saved == [1, 0]


def test_newer_list_is_not_replaced_by_a_stored_one() -> None:
    known = ServerCache()
    known.update_models([GOOD])

    known.restore([["other", None, 100]])

    assert known.models == (GOOD,)


def test_list_without_end_and_names_that_no_file_holds_are_cut() -> None:
    known = ServerCache()
    known.update_models([ListedModel("\ud83d"), ListedModel("a" * 256), *(ListedModel(f"m{n}") for n in range(10_000))])

    kept = again(known).models
    assert (kept[0], len(kept)) == (ListedModel("m0"), 5000)


def test_models_that_cannot_be_are_ignored() -> None:
    figures: tuple[Any, ...] = ("4000", -1, 0, True, 10**12, 0.5, [])
    damaged = [7, "scripted", [], ["a", 1], [7, 1, 1], *(["a", 1, each] for each in figures)]
    known = ServerCache()

    known.restore([*damaged, ["scripted", 4000, None], *(["a", each, 1] for each in figures)])

    assert known.models == (GOOD,)


@pytest.mark.parametrize("stored", [None, 7, "text", {}, {"scripted": 4000}])
def test_what_is_no_list_is_ignored(stored: object) -> None:
    known = ServerCache()

    known.restore(stored)

    assert known.models == ()
