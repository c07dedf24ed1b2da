"""Tests for the question of who is home, in ten languages: no local answer may be wrong."""

from itertools import product

from homeassistant.core import HomeAssistant
import pytest

from .agents import add_agent
from .conftest import Build
from .homes import Home, HomePlan
from .judge import Heard, Say, sayer
from .sets import FOLDER, LOCAL, Case, load
from .stub import Stub

LANGUAGES = load(FOLDER / "who_is_home.yaml")


@pytest.fixture
async def home(build_home: Build) -> Home:
    return await build_home(HomePlan((), persons={"Anna": "home", "Ben": "not_home"}))


def is_wrong(heard: Heard, says: str | None, does_not_say: str | None) -> bool:
    """Return whether the question got a local answer that is wrong."""
    words = heard.speech.casefold().replace(",", " ").replace(".", " ").split()
    return not heard.needs_model and ((says is not None and says not in words) or does_not_say in words)


async def wrong(home: Home, say: Say) -> list[str]:
    """Return the questions that are answered wrongly, while Anna is at home and while nobody is."""
    answered = []
    for (language, of), at_home in product(LANGUAGES.items(), (True, False)):
        yes_or_no = (of["yes"], of["no"]) if at_home else (of["no"], of["yes"])
        expected = {"anyone": yes_or_no, "anna": yes_or_no, "who": ("anna", None) if at_home else (None, "anna")}
        for key, (says, does_not_say) in expected.items():
            await home.restore({"person.anna": {"state": "home" if at_home else "not_home"}})
            heard = await say(Case(of[key], LOCAL, language=language))
            answered += [f"{language}: {of[key]} {heard.speech}"] if is_wrong(heard, says, does_not_say) else []
    return answered


@pytest.mark.long
async def test_nobody_is_told_wrongly_who_is_home(hass: HomeAssistant, home: Home, stub: Stub) -> None:
    say = sayer(home, await add_agent(hass, stub.url), stub)

    assert not (answered := await wrong(home, say)), "\n".join(answered)


@pytest.mark.long
async def test_nobody_is_told_wrongly_who_is_home_without_a_model(hass: HomeAssistant, home: Home) -> None:
    say = sayer(home, await add_agent(hass, None))

    assert not (answered := await wrong(home, say)), "\n".join(answered)
