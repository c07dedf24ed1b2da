"""The sets of sentences, each with its home; each sentence has an expected route and an expected result."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from homeassistant.util.yaml import load_yaml

from .entities import Json
from .homes import HomePlan

FOLDER = Path(__file__).parent / "sets"

LOCAL = "local"
MODEL = "model"
# Home Assistant may misunderstand these sentences: both the model and a correct local answer are accepted.
EITHER = "either"


@dataclass(frozen=True, slots=True)
class Case:
    """A sentence, its route, and its effects in the home."""

    sentence: str
    route: str
    group: str = ""
    language: str = "en"
    after: str = ""
    # States and attributes by entity, before the sentence.
    setup: Mapping[str, Json] = field(default_factory=dict)
    initial_timers: tuple[str, ...] = ()
    # The expected changes of states and attributes by entity.
    changes: Mapping[str, Json] = field(default_factory=dict)
    ignored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # The answer must contain one of these words.
    says: tuple[str, ...] = ()
    # The expected announcement, empty for none. Not checked if it is None.
    announces: str | None = None
    # The expected names or commands of timers with their minutes. Not checked if it is None.
    timers: tuple[tuple[str, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class Set:
    """Sentences for the same home."""

    name: str
    plan: HomePlan
    cases: tuple[Case, ...]


def load(path: Path) -> Any:
    """Return the content of a YAML file."""
    return load_yaml(path)


def hard() -> Set:
    """Return the hard set, for a home with people, satellites and lists."""
    people: Json = {
        "persons": {"Anna": "home"},
        "satellites": {"Puck": "living_room", "Kitchen satellite": "kitchen"},
        "shopping_list": (),
    }
    return _read_set("hard", FOLDER / "hard" / "house", people)


def intents() -> Set:
    """Return the set of sentences that were taken from Home Assistant's own tests."""
    return _read_set("intents", FOLDER / "intents" / "en", {})


def assist_mini(name: str) -> Set:
    """Return the set for one of the homes of `assist-mini`."""
    return _read_set(f"assist-mini/{name}", FOLDER / "assist-mini" / name, {})


def assist_mini_names() -> list[str]:
    """Return the names of the homes of `assist-mini`."""
    return sorted(path.parent.name for path in (FOLDER / "assist-mini").glob("*/_fixtures.yaml"))


def _read_set(name: str, folder: Path, more: Json) -> Set:
    plan = HomePlan.read(load(folder / "_fixtures.yaml"), **more)
    files = sorted(path for path in folder.glob("*.yaml") if path.name != "_fixtures.yaml")
    return Set(name, plan, tuple(case for path in files for case in _cases(load(path))))


def _cases(file: Json) -> Iterator[Case]:
    for test in file["tests"]:
        for sentence in test["sentences"]:
            yield Case(
                sentence=sentence,
                route=test.get("route", LOCAL),
                group=test.get("why", file["category"]),
                setup=test.get("setup") or {},
                changes=test.get("expect_changes") or {},
                ignored={key: tuple(names) for key, names in (test.get("ignore_changes") or {}).items()},
                says=tuple(test.get("expect_response", ())),
            )
