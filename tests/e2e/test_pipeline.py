"""Tests for the agent in Home Assistant's Assist pipeline, over the websocket that a browser uses."""

from datetime import UTC, datetime

from tests.e2e.house import wait_for


async def test_a_command_that_home_assistant_understands_never_reaches_the_model(house):
    requests = len(house.model.requests)
    turn = await house.say("turn on the kitchen light")
    assert (turn.error, await house.get_state("light.kitchen_light")) == ("", "on")
    assert await house.sensor("last_route") == "local"
    assert len(house.model.requests) == requests


async def test_the_activity_says_who_answered(house):
    began = datetime.now(UTC).isoformat()
    await house.say("turn on the kitchen light")

    async def sentences() -> list[str]:
        rows = await house.client.send_command(
            "logbook/get_events", start_time=began, entity_ids=[house.account.agent_id]
        )
        return [row["message"] for row in rows if "message" in row]

    # The recorder writes with a delay of a second.
    (sentence,) = await wait_for(sentences, bool)
    assert sentence.startswith("answered locally in ")
