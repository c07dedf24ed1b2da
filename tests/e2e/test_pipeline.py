"""The agent behind Home Assistant's Assist pipeline, over the websocket that a browser uses."""

from datetime import UTC, datetime

from tests.e2e.house import wait_for


async def test_a_command_that_home_assistant_understands_never_reaches_the_model(house):
    requests = len(house.model.requests)
    turn = await house.say("turn on the kitchen light")
    assert (turn.error, await house.state("light.kitchen_light")) == ("", "on")
    assert await house.sensor("last_route") == "local"
    assert len(house.model.requests) == requests


async def test_the_answer_comes_word_by_word_while_the_model_still_writes(house):
    turn = await house.say("tell me a story about the sea")
    assert turn.error == ""
    assert len(turn.pieces) > 50
    assert turn.first_token < turn.duration / 4


async def test_a_name_that_was_told_is_known_in_the_same_conversation(house):
    told = await house.say("my name is Ada")
    asked = await house.say("what is my name?", told.conversation_id)
    assert asked.speech == "Your name is Ada."
    assert await house.sensor("last_route") == "model"


async def test_the_model_switches_what_home_assistant_does_not_understand(house):
    turn = await house.say("I would like the kitchen light switched on")
    assert [call.failed for call in turn.calls.values()] == [False]
    assert await house.state("light.kitchen_light") == "on"


async def test_the_activity_says_who_answered(house):
    began = datetime.now(UTC).isoformat()
    await house.say("turn on the kitchen light")

    async def sentences() -> list[str]:
        rows = await house.client.command("logbook/get_events", start_time=began, entity_ids=[house.account.agent_id])
        return [row["message"] for row in rows if "message" in row]

    # the recorder writes a second later
    assert await wait_for(sentences, bool) == ["answered locally"]
