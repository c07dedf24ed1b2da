"""Tests of Home Assistant's contract for AI tasks: entity, preferences, sources of files, and every selector."""

from typing import Any

from homeassistant.components import ai_task
from homeassistant.components.ai_task.const import DATA_PREFERENCES
from homeassistant.components.camera.const import DATA_COMPONENT as DATA_CAMERAS
from homeassistant.components.conversation.chat_log import async_subscribe_chat_logs
from homeassistant.components.conversation.const import ChatLogEventType
from homeassistant.components.image import ImageEntity
from homeassistant.components.image.const import DOMAIN as IMAGE_DOMAIN
from homeassistant.core import HomeAssistant, State
from homeassistant.exceptions import HomeAssistantError
from homeassistant.setup import async_setup_component
from homeassistant.util.yaml import parse_yaml
import pytest
from pytest_homeassistant_custom_component.common import async_mock_service, mock_restore_cache

from demo.model_server import ModelServer, words
from tests.documents import DOCS, blocks
from tests.selectors_of_tasks import SELECTORS, make_structure

from .account_kinds import COMPATIBLE, KINDS, Kind
from .ai_tasks import FILES, TASK, Generate, SetUpTask
from .test_look import Snapshots

# The script of the documentation, apart from the task's name. An end-to-end test runs the page's other one.
PARCEL: Any = parse_yaml(blocks(DOCS / "tasks.md", "yaml")[0].replace("ai_task.openai_ai_task", TASK))
WAYS = [(KINDS[0], "gpt-5-mini"), (KINDS[1], "gpt-5-mini"), (COMPATIBLE, "scripted")]
WAYS += [(KINDS[-2], "gemini-2.5-flash"), (KINDS[-1], "claude-haiku-4-5")]


class Doorbell(ImageEntity):
    """An image entity with a picture of the last ring."""

    entity_id = "image.doorbell"
    _attr_content_type = "image/png"

    async def async_image(self) -> bytes:
        return FILES["door.png"]


@pytest.fixture
async def sights(home: HomeAssistant) -> None:
    """Add a camera that is on, one without a picture, and an image entity."""
    assert await async_setup_component(home, "camera", {})
    assert await async_setup_component(home, IMAGE_DOMAIN, {})
    await home.data[DATA_CAMERAS].async_add_entities([Snapshots("Front door"), Snapshots("Cellar", picture=None)])
    await home.data[IMAGE_DOMAIN].async_add_entities([Doorbell(home)])


@pytest.mark.parametrize(("kind", "model"), WAYS, ids=lambda each: getattr(each, "name", each))
async def test_every_selector_gives_valid_data_or_a_clear_error(
    *, set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, kind: Kind, model: str
) -> None:
    await set_up_task(kind, model=model)
    outcomes: dict[str, Any] = {}

    for name, case in SELECTORS.items():
        fields = {"value": {"selector": case.config, "required": True}}
        try:
            data = await generate(structure=fields)
        except HomeAssistantError as err:
            outcomes[name] = err.translation_key
            continue
        make_structure(fields)(data)
        outcomes[name] = "valid"

    assert {name: outcome for name, outcome in outcomes.items() if outcome != "valid"} == dict.fromkeys(
        ("choose", "file"), "invalid_data"
    )
    assert [record.violations for record in model_server.log.records if record.violations] == []


async def test_state_is_the_time_of_the_last_task(
    set_up_task: SetUpTask, generate: Generate, home: HomeAssistant
) -> None:
    await set_up_task()
    before = home.states.get(TASK)
    assert before is not None
    assert before.state == "unknown"

    await generate()

    after = home.states.get(TASK)
    assert after is not None
    assert after.state.startswith("20")


async def test_state_is_restored(set_up_task: SetUpTask, home: HomeAssistant) -> None:
    mock_restore_cache(home, [State(TASK, "2026-11-26T08:00:00+00:00")])

    await set_up_task()

    state = home.states.get(TASK)
    assert state is not None
    assert state.state == "2026-11-26T08:00:00+00:00"


async def test_preferred_task_answers_without_a_target(
    set_up_task: SetUpTask, home: HomeAssistant, model_server: ModelServer
) -> None:
    await set_up_task()
    home.data[DATA_PREFERENCES].async_set_preferences(gen_data_entity_id=TASK)
    model_server.script(words("Two people."))

    result = await ai_task.async_generate_data(home, task_name="door", instructions="Who is at the door?")

    assert result.data == "Two people."


async def test_answer_is_in_the_chat_log_of_the_task(
    set_up_task: SetUpTask, generate: Generate, home: HomeAssistant, model_server: ModelServer
) -> None:
    await set_up_task()
    added: list[tuple[str, str]] = []

    def on_event(_conversation: str, event: ChatLogEventType, data: dict[str, Any]) -> None:
        if event is ChatLogEventType.CONTENT_ADDED:
            added.append((data["content"]["role"], data["content"]["content"]))

    unsubscribe = async_subscribe_chat_logs(home, on_event)
    model_server.script(words("Two people."))
    await generate("Who is at the door?")
    unsubscribe()

    assert added[-2:] == [("user", "Who is at the door?"), ("assistant", "Two people.")]


@pytest.mark.parametrize("source", ["camera/camera.front_door", "image/image.doorbell"])
async def test_picture_of_an_entity_is_sent(
    *, set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, sights: None, source: str
) -> None:
    await set_up_task(images=True)
    model_server.script(words("A person."))
    file = {"media_content_id": f"media-source://{source}", "media_content_type": "image/jpeg"}

    assert await generate(attachments=[file]) == "A person."

    (record,) = model_server.log.records
    assert [part["type"] for part in record.body["messages"][-1]["content"]] == ["text", "image_url"]


@pytest.mark.parametrize(
    "content_id",
    ["media-source://camera/camera.cellar", "media-source://camera/camera.attic", "https://example.com/door.jpg"],
)
async def test_source_without_a_picture_is_an_error(
    *, set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, sights: None, content_id: str
) -> None:
    await set_up_task(images=True)

    with pytest.raises(HomeAssistantError):
        await generate(attachments=[{"media_content_id": content_id, "media_content_type": "image/jpeg"}])

    assert [*model_server.log.records] == []


async def test_files_for_a_model_that_reads_none_are_an_error(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, sights: None
) -> None:
    await set_up_task()
    camera = {"media_content_id": "media-source://camera/camera.front_door", "media_content_type": "image/jpeg"}

    with pytest.raises(HomeAssistantError):
        await generate(attachments=[camera])

    assert [*model_server.log.records] == []


@pytest.mark.parametrize(("parcel", "messages"), [("true", ["A parcel is at the door."]), ("false", [])])
async def test_script_of_the_documentation_says_that_a_parcel_is_at_the_door(
    *,
    set_up_task: SetUpTask,
    home: HomeAssistant,
    model_server: ModelServer,
    sights: None,
    parcel: str,
    messages: list[str],
) -> None:
    await set_up_task(images=True)
    sent = async_mock_service(home, "notify", "send_message")
    model_server.script(words(f'{{"parcel": {parcel}, "people": 1}}'))
    assert await async_setup_component(home, "script", {"script": {"look": {"sequence": PARCEL}}})

    await home.services.async_call("script", "look", {}, blocking=True)

    assert [call.data["message"] for call in sent] == messages
