"""Tests whether the facts in a prompt include the one that answers the question, when only a few of many facts fit.

`memory_more_facts.txt` was written for this repository (CC0): further facts of such a home, in one section per owner.
"""

from collections.abc import Iterator
import json
from pathlib import Path
import random
from typing import Any

from homeassistant.core import Context, HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockUser

from custom_components.windowed_conversation.agents.store import async_get_store
from custom_components.windowed_conversation.const import CONF_ROUTING
from custom_components.windowed_conversation.memory.core import Memory
from custom_components.windowed_conversation.turn.routing import RoutingMode
from demo.model_server import ModelServer
from tests.documents import DOCS, prose

from .conftest import SayFn, SetUpFn

_FOLDER = Path(__file__).parents[2] / "benchmarks"
_HOUSEHOLD: dict[str, Any] = json.loads((_FOLDER / "memory_household.json").read_text())
_MORE = (_FOLDER / "memory_more_facts.txt").read_text()
_PAGE = " ".join(prose(DOCS / "decisions" / "memory-without-vectors.md").split())
_START = 1_760_000_000.0
_DAY = 86_400.0


def more_facts() -> Iterator[dict[str, Any]]:
    """Yield further facts from the same period, which answer none of the questions."""
    chance = random.Random(14)
    for section in _MORE.split("# ")[1:]:
        owner, *facts = section.splitlines()
        scope = "house" if owner == "home" else owner
        for number, fact in enumerate(facts):
            name = f"{owner} {number}"
            yield {"id": name, "day": chance.randrange(201), "scope": scope, "fact": fact, "replaces": None}


def tell(memory: Memory, people: dict[str | None, str | None]) -> None:
    """Store the facts of 200 days, and forget those that the test data marks as forgotten."""
    rows: dict[str | None, int] = {}
    for told in sorted((*_HOUSEHOLD["told"], *more_facts()), key=lambda told: told["day"]):
        owner = people.get(told["scope"])
        rows[told["id"]] = memory.add_fact(
            told["fact"],
            person=owner,
            private=owner is not None,
            replaces=rows.get(told["replaces"]),
            at=_START + told["day"] * _DAY,
        )
    memory.forget(ids=[("fact", rows[name]) for name in _HOUSEHOLD["deleted"]])


@pytest.mark.long
async def test_prompt_has_the_fact_that_answers_among_hundreds_of_others(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    await set_up(**{CONF_ROUTING: RoutingMode.MODEL_ONLY})
    people: dict[str | None, str | None] = {None: None}
    for name in ("anna", "ben"):
        people[name] = MockUser(name=name.title()).add_to_hass(home).id
    memory = async_get_store(home)
    assert memory is not None
    await memory.async_change(lambda memory: tell(memory, people))
    facts = {told["id"]: told["fact"] for told in _HOUSEHOLD["told"]}
    asked = [question for question in _HOUSEHOLD["questions"] if question["want"]]

    missed, leaked = [], []
    for number, question in enumerate(asked):
        await say(question["q"], f"question {number}", context=Context(user_id=people[question["who"]]))
        prompt = "\n".join(message["content"] for message in model_server.requests[-1].body["messages"][:2])
        missed += [question["q"]] * (not any(facts[name] in prompt for name in question["want"]))
        leaked += [name for name in question["forbid"] if facts[name] in prompt]

    assert len(list(more_facts())) == 400
    assert len(missed) <= len(asked) * 0.1, missed
    assert f"for {len(asked) - len(missed)} of the {len(asked)} questions" in _PAGE, missed
    assert leaked == []
