"""Everyday sentences that do not concern memory. The selection is the same on every run."""

import json
from pathlib import Path
from random import Random
from typing import Any

from tests.routing.official import draw
from tests.routing.own_sets import LANGUAGES, file_of, full_home, own, read_empty_home_set

_HOMES = json.loads(Path(__file__).with_name("ordinary_homes.json").read_text("utf-8"))


def ordinary_sentences(language: str, count: int) -> list[str]:
    """Return up to `count` sentences: at most half from our own test sets, the rest from Home Assistant's templates."""
    ours = _ours(language)
    some = Random(1).sample(ours, min(len(ours), count // 2))
    file = file_of(language) if language in LANGUAGES else _file(_HOMES[language])
    drawn = [each.sentence for each in draw(full_home(file), file, count)]
    return list(dict.fromkeys([*some, *drawn]))[:count]


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
