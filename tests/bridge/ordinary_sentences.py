"""Everyday sentences that do not concern memory. The selection is the same on every run.

A language has sentences of its own in `tests/routing`, or a file of them in `ordinary/`.
"""

import json
from pathlib import Path
from random import Random
from typing import Any

from tests.routing.official import draw
from tests.routing.own_sets import LANGUAGES, file_of, full_home, own, read_empty_home_set

_FOLDER = Path(__file__).parent
_HOMES = json.loads((_FOLDER / "ordinary_homes.json").read_text("utf-8"))


def ordinary_sentences(language: str, count: int) -> list[str]:
    """Return up to `count` sentences: those of the language's file, or at most half from our own test sets.

    The rest is drawn from Home Assistant's templates.
    """
    if (_FOLDER / "ordinary" / f"{language}.txt").exists():
        ours = (_FOLDER / "ordinary" / f"{language}.txt").read_text("utf-8").splitlines()
        drawn = [] if len(ours) >= count else _draw(language, count)
        return list(dict.fromkeys([*ours, *drawn]))[:count]
    ours = _ours(language)
    some = Random(1).sample(ours, min(len(ours), count // 2))
    return list(dict.fromkeys([*some, *_draw(language, count)]))[:count]


def _draw(language: str, count: int) -> list[str]:
    file = file_of(language) if language in LANGUAGES else _file(_HOMES[language])
    return [each.sentence for each in draw(full_home(file), file, count)]


def _ours(language: str) -> list[str]:
    if language not in LANGUAGES:
        return []
    cases = (*own(language).cases, *read_empty_home_set(language).cases)
    return list(dict.fromkeys(case.sentence for case in cases))


def _file(home: dict[str, Any]) -> dict[str, Any]:
    """Return the home in the format of our test set files, with only the content that `draw` needs."""
    return {
        **home,
        "message": {"local": {"": {"announces": home["message"]}}},
        "timer_name": {"local": {"": {"timer": [home["timer"]]}}},
        "timer_command": {"local": {"": {"timer": [home["command"]]}}},
        "todo_list_item": {"local": {"": {"todo.tasks": [home["task"], home["new_task"]]}}},
        "shopping_list_item": {"local": {"": {"shopping_list": [home["bought"], home["new_item"]]}}},
    }
