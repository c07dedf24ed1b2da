"""Tests for a satellite whose speaker is unknown: its inputs belong to no person."""

from collections.abc import AsyncIterator
import json

import pytest_asyncio

from demo.model_server import words
from demo.voice import BUTTON_ENTITY_ID, SATELLITE_ENTITY_ID, SENTENCE_ENTITY_ID, ask_satellite
from tests.e2e.house import House, wait_for

_FILLERS = ["Hm.", "One moment."]
_STILL = "I'm still on it."
_PROMISE = "This is taking a while. I'll let you know here."
# Each of these would be read aloud by some voice.
_MARKS = (
    *(
        "**",
        "__",
        "~~",
        "```",
        "`",
        "# ",
        "## ",
        "- ",
        "* ",
        "+ ",
        "> ",
        "(http",
        "---",
        "***",
        "|",
        "|---|",
        ":--",
        "--:",
    ),
    *("[", "](", "![", "](http", "http://", "https://", "www.", "<br>", "<b>", "</", "&nbsp;", "&amp;", "[1]", "[^1]"),
    *("【", "†", "🔥", "👍", "✅", "😀", "🏠", "\\("),
)


async def say_to_satellite(house: House, text: str) -> str:
    """Send the text to the satellite, wait until it is idle again, and return the answer from its attribute."""
    house.said.append(text)
    await house.client.call_action("input_text.set_value", SENTENCE_ENTITY_ID, value=text)
    before = (await house.client.get(f"/api/states/{SATELLITE_ENTITY_ID}"))["last_changed"]
    await house.client.call_action("input_button.press", BUTTON_ENTITY_ID)

    async def satellite() -> dict:
        found: dict = await house.client.get(f"/api/states/{SATELLITE_ENTITY_ID}")
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
    await undelayed_house.say("what is my name?")

    assert "Zelda" not in json.dumps([request.body for request in undelayed_house.model.requests[requests:]])


async def test_what_a_satellite_is_asked_to_remember_of_the_speaker_is_refused(undelayed_house):
    requests = len(undelayed_house.model.requests)
    answer = await say_to_satellite(undelayed_house, "remember that my name is Zelda")

    assert answer.startswith("I don't know your voice here")
    assert len(undelayed_house.model.requests) == requests


async def test_a_fact_of_the_home_that_a_satellite_is_told_is_known_to_everybody(undelayed_house):
    await say_to_satellite(undelayed_house, "remember that the spare key is under the blue pot")
    turn = await undelayed_house.say("what is the spare key?")

    assert turn.speech == "The spare key is under the blue pot."


_MARKED = """# Two things
**The** [oven](https://www.example.org/oven) is *on* since `noon` 🔥 [1]
- see ![a picture](http://example.org/a.png) and <b>more</b>, too 👍
* __this__ ~~not that~~【2†source】
> 1. first

| room | state |
|---|:--|
| kitchen | on ✅ 😀 |

---

```
code 🏠
```"""


async def hear(house: House, text: str, latency: float) -> list[str]:
    """Let the model be silent for this time, and return the texts that are heard at the satellite."""
    house.model.change(latency=latency)
    try:
        heard = await ask_satellite(
            house.client,
            text,
            is_done=lambda heard: bool(heard) and heard[-1]["after"] >= latency,
            watch=lambda _: None,
        )
    finally:
        house.model.change(latency=0)
    return [each["text"].strip() for each in heard]


async def test_silent_model_is_waited_for_with_a_filler(undelayed_house):
    assert await hear(undelayed_house, "my name is Zelda", 8) == [*_FILLERS, "Nice to meet you, Zelda."]


async def test_answer_of_a_very_slow_model_is_announced(undelayed_house):
    heard = await hear(undelayed_house, "my name is Yvonne", 30)

    late = 'About "my name is Yvonne": Nice to meet you, Yvonne.'
    assert heard == [*_FILLERS, _STILL, _PROMISE, late]


async def test_satellite_says_no_marks_and_the_chat_dialog_shows_them(undelayed_house):
    undelayed_house.model.script(words(_MARKED), words(_MARKED))

    spoken = await say_to_satellite(undelayed_house, "and what is on?")
    turn = await undelayed_house.say("and what is on?")

    assert [mark for mark in _MARKS if mark in spoken] == []
    assert "The oven is on since noon" in spoken
    assert turn.streamed_text == turn.speech == _MARKED.replace("![a picture](http://example.org/a.png)", "a picture")
