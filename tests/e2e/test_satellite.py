"""Tests for a satellite whose speaker is unknown: its inputs belong to no person."""

from collections.abc import AsyncIterator
import json

import pytest_asyncio

from demo.voice import SENTENCE_ENTITY_ID
from tests.e2e.house import House, wait_for

_SATELLITE = "assist_satellite.satellite"
_BUTTON = "input_button.satellite"


async def say_to_satellite(house: House, text: str) -> str:
    """Send the text to the satellite, wait until it is idle again, and return the answer from its attribute."""
    house.said.append(text)
    await house.client.call_action("input_text.set_value", SENTENCE_ENTITY_ID, value=text)
    before = (await house.client.get(f"/api/states/{_SATELLITE}"))["last_changed"]
    await house.client.call_action("input_button.press", _BUTTON)

    async def satellite() -> dict:
        found: dict = await house.client.get(f"/api/states/{_SATELLITE}")
        return found

    state = await wait_for(satellite, lambda now: now["state"] == "idle" and now["last_changed"] > before)
    answer = str(state["attributes"]["answer"])
    house.said.append(answer)
    return answer


@pytest_asyncio.fixture(loop_scope="session")
async def undelayed_house(house) -> AsyncIterator[House]:
    """Yield the home with a model that answers without delay."""
    house.model.change(delay=0)
    yield house


async def test_a_name_that_is_told_to_a_satellite_is_not_the_homes(undelayed_house):
    assert await say_to_satellite(undelayed_house, "my name is Zelda") == "Nice to meet you, Zelda."
    requests = len(undelayed_house.model.requests)
    await undelayed_house.ask_twice("what is my name?")

    assert "Zelda" not in json.dumps([request.body for request in undelayed_house.model.requests[requests:]])


async def test_what_a_satellite_is_asked_to_remember_of_the_speaker_is_refused(undelayed_house):
    requests = len(undelayed_house.model.requests)
    answer = await say_to_satellite(undelayed_house, "remember that my name is Zelda")

    assert answer.startswith("I do not know who is speaking.")
    assert len(undelayed_house.model.requests) == requests


async def test_a_fact_of_the_home_that_a_satellite_is_told_is_known_to_everybody(undelayed_house):
    await say_to_satellite(undelayed_house, "remember that the spare key is under the blue pot")
    answers = await undelayed_house.ask_twice("what is the spare key?")

    assert "The spare key is under the blue pot." in answers
