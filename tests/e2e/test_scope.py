"""Tests for the scope of a conversation in a real Home Assistant: a device continues its conversation in a new session.

Home Assistant ends a session after five idle minutes: a satellite then sends no conversation id, and a browser sends
one that is no longer known; both get a new id. The tests send both kinds of request without waiting five minutes.
"""

from collections.abc import AsyncIterator
import json

import pytest
import pytest_asyncio

from demo.turns import Turn
from tests.e2e.house import House, remove_live_context, wait_for

# The id of a session that has expired: Home Assistant replaces an id of its own that it no longer knows.
_OVER = "01JCVK2Z4H6M8N0P2R4T6V8X0Z"


async def add_device(house: House, handler: str, name: str) -> str:
    """Add a virtual device of an integration, rename it, put it into the kitchen, and return its device id."""
    flows = "/api/config/config_entries/flow"
    form = await house.client.post(flows, {"handler": handler})
    entry = (await house.client.post(f"{flows}/{form['flow_id']}", {}))["result"]["entry_id"]

    async def devices() -> list[dict]:
        found = await house.client.send_command("config/device_registry/list")
        return [device for device in found if entry in device["config_entries"]]

    (device,) = await wait_for(devices, lambda found: len(found) == 1)
    areas = await house.client.send_command("config/area_registry/list")
    kitchen = next(area["area_id"] for area in areas if area["name"] == "Kitchen")
    changes = {"name_by_user": name, "area_id": kitchen}
    await house.client.send_command("config/device_registry/update", device_id=device["id"], **changes)
    return str(device["id"])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def satellite_ids(shared_house) -> tuple[str, str]:
    """Return the ids of two devices."""
    return await add_device(shared_house, "moon", "Satellite"), await add_device(
        shared_house, "sun", "Another satellite"
    )


@pytest_asyncio.fixture(loop_scope="session")
async def by_device(house) -> AsyncIterator[House]:
    """Yield the home with an agent that treats all input from one device as one conversation."""
    house.model.change(delay=0)
    await house.change_agent(scope="device")
    await wait_until_set_up(house)
    house.model.log.clear()
    yield house
    await house.change_agent(scope="conversation")
    await wait_until_set_up(house)


async def wait_until_set_up(house: House) -> None:
    """Wait until the account was set up again, which includes a request for the server's list of models."""
    await wait_for(lambda: list_requests(house), lambda requests: requests > 0)
    await house.wait_for_sensor("window_tokens", str.isdecimal)


async def list_requests(house: House) -> int:
    """Return the number of requests for the list of models since the server's log was cleared."""
    return sum(record.method == "GET" for record in house.model.log.records)


def sent(house: House) -> list[list[str]]:
    """Return each message of each request as JSON text."""
    return [[json.dumps(message) for message in request.body["messages"]] for request in house.model.requests]


async def new_session(house: House, before: Turn, device: str, conversation_id: str | None) -> Turn:
    """Ask for the name, and assert that the answer belongs to a new session."""
    turn = await house.say("what is my name?", conversation_id, device_id=device)
    assert turn.conversation_id not in {before.conversation_id, conversation_id}
    return turn


@pytest.mark.parametrize("conversation_id", [None, _OVER])
async def test_a_device_goes_on_with_its_conversation_in_a_new_session(by_device, satellite_ids, conversation_id):
    told = await by_device.say("my name is Ada", device_id=satellite_ids[0])
    asked = await new_session(by_device, told, satellite_ids[0], conversation_id)

    first, second = sent(by_device)
    answer = {"role": "assistant", "content": told.speech}
    assert asked.speech == "Your name is Ada."
    assert second[:-1] == [*map(remove_live_context, first), json.dumps(answer)]
    assert "device: Satellite; area: Kitchen" in second[-1]


async def test_another_device_has_a_conversation_of_its_own(by_device, satellite_ids):
    told = await by_device.say("my name is Ada", device_id=satellite_ids[0])
    await new_session(by_device, told, satellite_ids[1], None)

    *earlier, _ = sent(by_device)[-1]
    assert "my name is Ada" not in str(earlier)


async def test_without_the_option_a_new_session_is_a_new_conversation(house, satellite_ids):
    told = await house.say("my name is Ada", device_id=satellite_ids[0])
    await new_session(house, told, satellite_ids[0], None)

    *earlier, _ = sent(house)[-1]
    assert "my name is Ada" not in str(earlier)
