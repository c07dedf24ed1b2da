"""Turns of one conversation that arrive together: Home Assistant lets one at a time have the chat log."""

import asyncio

from demo.client import Client, enter
from tests.e2e.house import wait_for


def speech(answer: dict) -> str:
    """Return what was said."""
    return answer["response"]["speech"]["plain"]["speech"]


async def process(client: Client, agent_id: str, text: str, conversation_id: str) -> str:
    """Say it as an automation does; returns the answer."""
    answer = await client.command("conversation/process", text=text, agent_id=agent_id, conversation_id=conversation_id)
    return speech(answer)


async def test_automations_that_speak_at_once_are_answered_one_after_the_other(house):
    agent = house.account.agent_id
    said = [f"consider that locker {number} is blue" for number in range(5)]
    await asyncio.gather(*(process(house.client, agent, text, "at once") for text in said))

    asked = [request.body["messages"][-1]["content"] for request in house.model.requests]
    assert [text for text in said if any(text in content for content in asked)] == said
    assert [len(request.body["messages"]) for request in house.model.requests] == [2, 4, 6, 8, 10]
    assert [request.violations for request in house.model.requests] == [[]] * 5


async def test_automation_waits_for_a_person_who_is_being_answered(house):
    person = asyncio.create_task(house.say("tell me a story about the sea", "with a person"))
    await wait_for(lambda: asyncio.sleep(0, house.model.open_streams), lambda streams: streams > 0)
    answer = await process(house.client, house.account.agent_id, "my name is Ada", "with a person")

    assert (await person).error == ""
    assert answer == "Nice to meet you, Ada."
    assert (await house.say("what is my name?", "with a person")).speech == "Your name is Ada."


async def test_conversation_of_someone_else_is_refused_in_plain_words(house):
    await house.say("my name is Ada", "a private one")
    user = await house.client.command("config/auth/create", name="Guest", group_ids=["system-users"])
    await house.client.command(
        "config/auth_provider/homeassistant/create", user_id=user["user"]["id"], username="guest", password="guest"
    )
    async with Client(house.url, await enter(house.url, "guest", "guest")) as guest:
        answer = await process(guest, house.account.agent_id, "what is my name?", "a private one")

    assert answer == "This conversation belongs to someone else."
