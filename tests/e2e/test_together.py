"""Tests for concurrent turns of one conversation: Home Assistant gives only one at a time access to the chat log."""

import asyncio

from demo.client import Client, log_in_or_onboard
from tests.e2e.house import wait_for


def get_speech(answer: dict) -> str:
    """Return the spoken text of a response."""
    return answer["response"]["speech"]["plain"]["speech"]


async def send_text(client: Client, agent_id: str, text: str, conversation_id: str) -> str:
    """Send the text as an automation does, and return the answer."""
    answer = await client.send_command(
        "conversation/process", text=text, agent_id=agent_id, conversation_id=conversation_id
    )
    return get_speech(answer)


async def test_automations_that_speak_at_once_are_answered_one_after_the_other(house):
    agent = house.account.agent_id
    said = [f"consider that locker {number} is blue" for number in range(5)]
    await asyncio.gather(*(send_text(house.client, agent, text, "at once") for text in said))

    asked = [request.body["messages"][-1]["content"] for request in house.model.requests]
    assert [text for text in said if any(text in content for content in asked)] == said
    assert [len(request.body["messages"]) for request in house.model.requests] == [2, 4, 6, 8, 10]
    assert [request.violations for request in house.model.requests] == [[]] * 5


async def test_automation_waits_for_a_person_who_is_being_answered(house):
    person = asyncio.create_task(house.say("tell me a story in 60 words", "with a person"))
    await wait_for(lambda: asyncio.sleep(0, house.model.open_streams), lambda streams: streams > 0)
    answer = await send_text(house.client, house.account.agent_id, "my name is Ada", "with a person")

    assert (await person).error == ""
    assert answer == "Nice to meet you, Ada."
    assert (await house.say("what is my name?", "with a person")).speech == "Your name is Ada."


async def guest_of(house, name: str) -> Client:
    """Return a connection of a new user who is not an administrator."""
    user = await house.client.send_command("config/auth/create", name=name.title(), group_ids=["system-users"])
    await house.client.send_command(
        "config/auth_provider/homeassistant/create", user_id=user["user"]["id"], username=name, password=name
    )
    return Client(house.url, await log_in_or_onboard(house.url, name, name))


async def test_conversation_of_someone_else_is_refused_in_plain_words(house):
    await house.say("my name is Ada", "a private one")
    async with await guest_of(house, "guest") as guest:
        answer = await send_text(guest, house.account.agent_id, "what is my name?", "a private one")

    assert answer == "This conversation belongs to someone else."


async def test_guest_has_the_tools_of_the_home_and_not_those_of_administrators(house):
    await house.change_agent(llm_hass_api=["assist", "homeassistant"])
    try:
        async with await guest_of(house, "visitor") as visitor:
            answer = await send_text(
                visitor, house.account.agent_id, "I would like the kitchen light switched on", "mine"
            )
        offered = tools(house)
        await house.say("hello there")
        offered_to_administrators = tools(house)
    finally:
        await house.change_agent(llm_hass_api=["assist"])

    assert "on" in answer
    assert await house.get_state("light.kitchen_light") == "on"
    assert offered < offered_to_administrators


def tools(house) -> set[str]:
    """Return the names, without namespace, of the tools in the last request."""
    return {each["function"]["name"].rpartition("__")[2] for each in house.model.requests[-1].body["tools"]}
