"""Tests for a guest, a user who is not an administrator: conversations of others, and the tools of the home."""

from demo.client import Client, log_in_or_onboard


def get_speech(answer: dict) -> str:
    """Return the spoken text of a response."""
    return answer["response"]["speech"]["plain"]["speech"]


async def send_text(client: Client, agent_id: str, text: str, conversation_id: str) -> str:
    """Send the text as an automation does, and return the answer."""
    answer = await client.send_command(
        "conversation/process", text=text, agent_id=agent_id, conversation_id=conversation_id
    )
    return get_speech(answer)


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
