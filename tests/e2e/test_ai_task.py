"""Tests of AI tasks with a real frontend, a real camera and a real automation."""

import asyncio
from io import BytesIO

from homeassistant.util.yaml import parse_yaml
from PIL import Image
import pytest
import pytest_asyncio

from demo.model_server import words
from demo.setup_agent import DOMAIN, fill_form
from tests.documents import DOCS, blocks
from tests.e2e.browser import AutomationEditor
from tests.e2e.house import House, wait_for

_FLOWS = "/api/config/config_entries"
_LAUNDRY = blocks(DOCS / "tasks.md", "yaml")[1]
_AUTOMATION = {
    "triggers": [{"trigger": "state", "entity_id": "input_button.good_night"}],
    "actions": [{"action": "light.turn_off", "target": {"entity_id": "light.kitchen_light"}}],
    "mode": "single",
}


async def _find_task(house: House) -> tuple[str, str]:
    """Return the entity id and the subentry id of the account's AI task."""
    for entity in await house.client.send_command("config/entity_registry/list"):
        if entity["platform"] == DOMAIN and entity["entity_id"].startswith("ai_task."):
            return entity["entity_id"], entity["config_subentry_id"]
    raise LookupError


@pytest_asyncio.fixture(loop_scope="session")
async def task(house: House) -> str:
    """Return the AI task, whose model reads pictures, after making it the preferred one."""
    entity_id, subentry_id = await _find_task(house)

    async def get_features() -> int:
        state = await house.client.get(f"/api/states/{entity_id}")
        return int(state["attributes"].get("supported_features", 0))

    # it reads attachments
    if not await get_features() & 2:
        handler = {"handler": [house.account.entry_id, "ai_task_data"], "subentry_id": subentry_id}
        form = await house.client.post(f"{_FLOWS}/subentries/flow", handler)
        await house.client.post(f"{_FLOWS}/subentries/flow/{form['flow_id']}", fill_form(form, {"images": True}))
        await wait_for(get_features, lambda features: bool(features & 2))
    await house.client.send_command("ai_task/preferences/set", gen_data_entity_id=entity_id)
    return entity_id


@pytest_asyncio.fixture(loop_scope="session")
async def camera(house: House) -> str:
    """Return a camera that shows a picture from a file."""

    def write_picture() -> str:
        path = house.home_assistant.config / "media" / "door.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.new("RGB", (2000, 1500), "green").save(picture := BytesIO(), "JPEG")
        path.write_bytes(picture.getvalue())
        return str(path)

    file_path = await asyncio.to_thread(write_picture)
    form = await house.client.post(f"{_FLOWS}/flow", {"handler": "local_file"})
    await house.client.post(f"{_FLOWS}/flow/{form['flow_id']}", {"file_path": file_path})
    states = await house.client.fetch_states()
    return next(each for each in states if each.startswith("camera."))


async def test_dialog_that_saves_an_automation_suggests_its_name(house: House, task: str, page) -> None:
    editor = AutomationEditor(page)
    await editor.open(house.url, _AUTOMATION)

    name, description = await editor.suggest()

    assert name == "Turn off kitchen light"
    assert "kitchen light" in description


async def test_action_gets_numbers_for_its_questions(house: House, task: str) -> None:
    questions = {
        "rain": {"type": "noul", "instructions": "Will it rain?"},
        "room": {"type": "choice", "instructions": "Where?", "criteria": {"hall": "The hall", "attic": "The attic"}},
        "haste": {"type": "score", "instructions": "How urgent?", "criteria": ["not", "a little", "very"]},
    }
    house.model.script(
        words(
            '{"question_0": {"yes": 0.75}, "question_1": {"option_0": 0.25, "option_1": 0.75}, '
            '"question_2": {"option_0": 0, "option_1": 0.5, "option_2": 0.5}}'
        )
    )

    result = await house.client.send_command(
        "call_service",
        domain="ai_task",
        service="evaluate",
        service_data={"entity_id": task, "task_name": "weather", "state": {"sky": "grey"}, "questions": questions},
        return_response=True,
    )

    assert result["response"]["answers"] == {
        "rain": {"type": "noul", "noul": 0.75},
        "room": {"type": "choice", "choice": "attic", "probabilities": {"hall": 0.25, "attic": 0.75}},
        "haste": {"type": "score", "score": 1.5, "probabilities": [0.0, 0.5, 0.5]},
    }


async def test_automation_branches_on_what_a_camera_sees(house: House, task: str, camera: str) -> None:
    look = {
        "entity_id": task,
        "task_name": "parcel",
        "instructions": "Is there a parcel at the door? People: 2.",
        "structure": {
            "parcel": {"selector": {"boolean": None}, "required": True},
            "people": {"selector": {"number": {"min": 0}}, "required": True},
            "seen": {"selector": {"text": None}, "required": True},
        },
        "attachments": [{"media_content_id": f"media-source://camera/{camera}", "media_content_type": "image/jpeg"}],
    }
    turn_on = {"action": "light.turn_on", "target": {"entity_id": "light.kitchen_light"}}
    automation = {
        "alias": "Parcel",
        "triggers": _AUTOMATION["triggers"],
        "actions": [
            {"action": "ai_task.generate_data", "data": look, "response_variable": "found"},
            {"if": "{{ found.data.people == 2 and found.data.seen == '1 image' }}", "then": [turn_on]},
        ],
        "mode": "single",
    }
    await house.client.post("/api/config/automation/config/parcel", automation)
    await wait_for(house.client.fetch_states, lambda states: "automation.parcel" in states)
    await house.client.call_action("input_button.press", "input_button.good_night")

    assert await wait_for(lambda: house.get_state("light.kitchen_light"), lambda state: state == "on")
    await house.client.delete("/api/config/automation/config/parcel")


@pytest.mark.parametrize(("probability", "is_outside"), [(0.9, True), (0.4, False)])
async def test_actions_of_the_documentation_say_when_the_laundry_can_go_outside(
    house: House, task: str, probability: float, is_outside: bool
) -> None:
    client, item_id = house.client, f"laundry_{probability}"
    path = f"/api/config/automation/config/{item_id}"
    actions = parse_yaml(_LAUNDRY.replace("ai_task.openai_ai_task", task))
    await client.post(path, {"alias": "Laundry", "triggers": _AUTOMATION["triggers"], "actions": actions})
    await wait_for(client.fetch_states, lambda states: "automation.laundry" in states)
    house.model.script(words(f'{{"question_0": {{"yes": {probability}}}}}'))

    await client.call_action("input_button.press", "input_button.good_night")

    steps = await wait_for(lambda: _list_steps(house, item_id), bool)
    assert ("action/1/then/0" in steps) == is_outside
    await client.delete(path)


async def _list_steps(house: House, item_id: str) -> list[str]:
    """Return the paths of the steps of the automation's newest run, or none before it has ended."""
    automation = {"domain": "automation", "item_id": item_id}
    runs = await house.client.send_command("trace/list", **automation)
    if not runs or runs[-1]["state"] != "stopped":
        return []
    run = await house.client.send_command("trace/get", **automation, run_id=runs[-1]["run_id"])
    return [*run["trace"]]
