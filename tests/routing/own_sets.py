"""This project's own sets of sentences: in each language one home, with and without people, satellites and lists."""

from collections.abc import Iterator, Mapping
from typing import Any

from .entities import Json, Spec
from .homes import SHOPPING_LIST, HomePlan
from .sets import EITHER, FOLDER, LOCAL, MODEL, Case, Set, load

LANGUAGES = ("en", "de", "fr", "es", "it", "nl", "pl")

# The group of sentences that must not act in any interpretation.
NEVER_ACTS = "never_acts"

_EMPTY_HOME = "empty_home"
_AFTER = {"after_question": "question", "after_statement": "statement"}
_NO_GROUPS = ("language", "names", "task", "bought")
_TIMER_MINUTES = 10


def file_of(language: str) -> Json:
    """Return the content of the file for a language."""
    file: Json = load(FOLDER / "own" / f"{language}.yaml")
    return file


def own(language: str) -> Set:
    """Return the sentences in a language for the full home."""
    file = file_of(language)
    groups = {name: group for name, group in file.items() if name not in (*_NO_GROUPS, _EMPTY_HOME)}
    return Set(f"own/{language}", full_home(file), tuple(_cases(language, groups)))


def read_empty_home_set(language: str) -> Set:
    """Return the sentences in a language for a home without people, satellites, timers and lists."""
    file = file_of(language)
    groups = {_EMPTY_HOME: file[_EMPTY_HOME]}
    return Set(f"own/{language}, empty home", _plan(file, without=("todo",)), tuple(_cases(language, groups)))


def full_home(file: Json) -> HomePlan:
    """Return the plan of the full home, with the names from a language's file."""
    return _plan(
        file,
        persons={"Anna": "home", "Ben": file["names"]["work"]},
        zones=(file["names"]["work"],),
        satellites={"Puck": "living_room", "Echo": "kitchen"},
        shopping_list=(file["bought"],),
    )


def _plan(file: Json, without: tuple[str, ...] = (), **more: Any) -> HomePlan:
    home, names = load(FOLDER / "own" / "_home.yaml"), file["names"]
    specs = (
        Spec(
            entity_id=entity_id,
            name=names[entity_id],
            area=entity.get("area"),
            device=None,
            state=entity.get("state"),
            attributes=entity.get("attributes", {}) | ({"todo_items": [file["task"]]} if "todo" in entity_id else {}),
        )
        for entity_id, entity in home["entities"].items()
    )
    return HomePlan(
        specs=tuple(spec for spec in specs if spec.domain not in without),
        areas={key: (names[key], names.get(floor)) for key, floor in home["areas"].items()},
        language=file["language"],
        **more,
    )


def _cases(language: str, groups: Mapping[str, Json]) -> Iterator[Case]:
    for name, group in groups.items():
        for sentence in group.get(MODEL, ()):
            yield Case(sentence, MODEL, name, language, _AFTER.get(name, ""))
        for route in (LOCAL, EITHER):
            for sentence, expected in group.get(route, {}).items():
                yield _case(language, name, route, sentence, expected)


def _case(language: str, group: str, route: str, sentence: str, expected: Json) -> Case:
    given = dict(expected.get("given", {}))
    timers = tuple(given.pop("timers", ()))
    due = expected.get("timer", dict.fromkeys(timers, _TIMER_MINUTES))
    return Case(
        sentence,
        route,
        group,
        language,
        _AFTER.get(group, ""),
        setup={entity_id: {"state": state} for entity_id, state in given.items()},
        initial_timers=timers,
        changes={key: _change(value) for key, value in expected.items() if "." in key or key == SHOPPING_LIST},
        says=tuple(expected.get("says", ())),
        announces=expected.get("announces", ""),
        timers=tuple(due.items()),
    )


def _change(value: str | list[str]) -> Json:
    return {"items": value} if isinstance(value, list) else {"state": value}
