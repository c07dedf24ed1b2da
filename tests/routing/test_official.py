"""Tests that sentences from Home Assistant's own templates stay local if Home Assistant matches them correctly."""

from homeassistant.core import HomeAssistant
import pytest

from .agents import add_agent
from .conftest import Build
from .judge import sayer
from .kept import kept
from .official import LANGUAGES
from .own_sets import file_of, full_home
from .stub import Stub

SENTENCES = 200


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
async def test_nothing_is_lost_that_home_assistant_does_right(
    hass: HomeAssistant, build_home: Build, stub: Stub, language: str
) -> None:
    file = file_of(language)
    home = await build_home(full_home(file))
    say = sayer(home, await add_agent(hass, stub.url), stub)

    result = await kept(home, file, say, SENTENCES)

    assert result.right > SENTENCES / 2
    assert not result.lost, "\n".join(result.lost)
