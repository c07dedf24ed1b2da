"""Tests of AI tasks in a real Home Assistant: their action, their data, their files, their errors and their figures."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from io import BytesIO
import json
from pathlib import Path
from typing import Any

from aiohttp import web
from homeassistant.components import ai_task
from homeassistant.components.ai_task import AITaskEntityFeature
from homeassistant.config_entries import SOURCE_USER, ConfigSubentryData
from homeassistant.const import CONF_API_KEY, CONF_MODEL, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import llm
from homeassistant.setup import async_setup_component
from PIL import Image
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_IMAGES,
    CONF_PROVIDER,
    DOMAIN,
    PROVIDER_OPENAI_CHAT,
    SUBENTRY_AI_TASK,
)
from demo.model_server import Answer, ModelServer, words
from demo.model_server.faults import ArmedFault

from .account_forms import open_account
from .account_kinds import KINDS, Kind
from .actions import act
from .conftest import Submit, flush_store, list_fields, listed, run_server

TASK = "ai_task.robot"
FAULTS = {
    "401": "auth_error",
    "404": "model_not_found",
    "422": "bad_request",
    "500": "unavailable",
    "quota": "quota_error",
    "length": "incomplete",
    "refusal": "refused",
    "content_filter": "refused",
    "empty_answer": "empty_answer",
    "cut_mid_stream": "unavailable",
    "malformed_event": "bad_stream",
}
STRUCTURE = {
    "people": {"selector": {"number": {"min": 0, "max": 10}}, "required": True, "description": "How many people"},
    "parcel": {"selector": {"boolean": {}}, "required": True},
    "note": {"selector": {"text": {}}},
}

READERS = [
    (KINDS[0], "gpt-5-mini"),
    (KINDS[1], "gpt-5-mini"),
    (KINDS[-2], "gemini-2.5-flash"),
    (KINDS[-1], "claude-haiku-4-5"),
]


def jpeg(size: tuple[int, int] = (60, 40), kind: str = "JPEG") -> bytes:
    Image.new("RGB", size, "red").save(data := BytesIO(), kind)
    return data.getvalue()


FILES = {
    "door.jpg": jpeg(),
    "door.png": jpeg(kind="PNG"),
    "lies.png": jpeg(),
    "door.webp": jpeg(kind="WEBP"),
    "door.gif": jpeg(kind="GIF"),
    "plan.pdf": b"%PDF-1.4 one page",
    "door.heic": b"\0\0\0\x18ftypheic" + bytes(60),
    "door.mp4": b"\0\0\0\x18ftypmp42" + bytes(60),
    "torn.jpg": jpeg()[:100],
    "notes.txt": b"Two people.",
    "long.pdf": b"%PDF-1.4" + bytes(11 * 2**20),
    "large.pdf": b"%PDF-1.4" + bytes(21 * 2**20),
}

# What servers say of the model `llava`, by the path.
DESCRIPTIONS = [
    pytest.param("/props", {"modalities": {"vision": True}}, id="llama.cpp"),
    pytest.param("/api/show", {"capabilities": ["completion", "vision"]}, id="Ollama"),
    pytest.param("/api/v0/models", {"data": [{"id": "llava", "type": "vlm"}]}, id="LM Studio"),
    pytest.param(
        "/v1/models",
        {"data": [{"id": "llava", "architecture": {"input_modalities": ["text", "image"]}}]},
        id="OpenRouter",
    ),
    pytest.param("/v1/models", {"data": [{"id": "llava", "capabilities": {"vision": True}}]}, id="Mistral"),
]

type AnswerJson = Callable[[dict[str, Any]], Coroutine[Any, Any, str]]
type Generate = Callable[..., Coroutine[Any, Any, Any]]
type SetUpTask = Callable[..., Coroutine[Any, Any, MockConfigEntry]]


@pytest.fixture
async def media(tmp_path: Path) -> Path:
    """Return the media folder, which has all files."""

    def write_files() -> None:
        for name, content in FILES.items():
            (tmp_path / name).write_bytes(content)

    await asyncio.to_thread(write_files)
    return tmp_path


@pytest.fixture
async def set_up_task(home: HomeAssistant, model_server: ModelServer, every_sensor: None, media: Path) -> SetUpTask:
    """Return a function that sets up an account with an AI task and returns its config entry."""
    home.config.media_dirs = {"local": str(media)}
    assert await async_setup_component(home, "media_source", {})

    async def set_up_task(kind: Kind | None = None, **task: Any) -> MockConfigEntry:
        compatible = {CONF_PROVIDER: PROVIDER_OPENAI_CHAT, CONF_URL: model_server.url, CONF_API_KEY: "key"}
        subentry = ConfigSubentryData(
            data={CONF_MODEL: "scripted", **task}, subentry_type=SUBENTRY_AI_TASK, title="Robot", unique_id=None
        )
        data = kind.account(model_server) if kind else compatible
        entry = MockConfigEntry(domain=DOMAIN, title="Server", data=data, subentries_data=[subentry])
        entry.add_to_hass(home)
        model_server.change(models=("scripted", str(subentry["data"][CONF_MODEL])))
        assert await home.config_entries.async_setup(entry.entry_id)
        await listed(home)
        model_server.log.clear()
        return entry

    return set_up_task


@pytest.fixture
def generate(home: HomeAssistant) -> Generate:
    """Return a function that calls the action and returns its data."""

    async def generate(instructions: str = "Who is at the door?", **fields: Any) -> Any:
        data = {"entity_id": TASK, "task_name": "door", "instructions": instructions, **fields}
        response = await home.services.async_call("ai_task", "generate_data", data, blocking=True, return_response=True)
        assert response is not None
        return response["data"]

    return generate


def answered(*answers: str) -> list[Answer]:
    return [words(each) for each in answers]


def attach(*names: str, mime_type: str = "") -> list[dict[str, str]]:
    """Return the field of the action that attaches these files of the media folder."""
    source = "media-source://media_source/local"
    return [{"media_content_id": f"{source}/{name}", "media_content_type": mime_type} for name in names]


@pytest.fixture
async def answer_json() -> AsyncIterator[AnswerJson]:
    """Yield a function that starts a server with the model `llava` and these answers by path, and returns its URL."""
    async with AsyncExitStack() as stack:

        async def answer_json(answers: dict[str, Any]) -> str:
            known = {"/v1/models": {"data": [{"id": "llava"}]}, **answers}

            async def answer(request: web.Request) -> web.Response:
                found = known.get(request.path)
                return web.json_response(found, status=404 if found is None else 200)

            return f"{await stack.enter_async_context(run_server(answer))}/v1"

        yield answer_json


def list_media(model_server: ModelServer) -> list[int]:
    """Return the number of pictures and documents in each request."""
    return [len(find_media(record.body)) for record in model_server.log.records]


def find_media(value: Any) -> list[str]:
    """Return the base64 data of the pictures and documents in a request body of any format."""
    if isinstance(value, list):
        return [data for each in value for data in find_media(each)]
    if isinstance(value, dict):
        own = [value[name] for name in ("image_url", "file_data", "url", "data") if isinstance(value.get(name), str)]
        return [*own, *[data for each in value.values() for data in find_media(each)]]
    return []


async def test_text_is_what_the_model_writes(set_up_task: SetUpTask, generate: Generate, model_server: ModelServer):
    await set_up_task()
    model_server.script(words("Two people."))

    assert await generate() == "Two people."


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_data_is_the_models_own_without_nulls_of_optional_fields(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, kind: Kind
):
    await set_up_task(kind)
    model_server.script(words('{"people": 2, "parcel": true, "note": null}'))

    data = await generate(structure=STRUCTURE)

    assert repr(data) == "{'people': 2, 'parcel': True}"


@pytest.mark.parametrize(
    "answer",
    [
        '```json\n{"people": 2, "parcel": true}\n```',
        'Here it is: {"people": 2, "parcel": true}',
        '<think>{"people": 9}</think>{"people": 2, "parcel": true}',
    ],
)
async def test_data_is_found_in_other_text(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, answer: str
):
    await set_up_task()
    model_server.script(words(answer))

    assert await generate(structure=STRUCTURE) == {"people": 2, "parcel": True}


@pytest.mark.parametrize(
    "wrong",
    [
        '{"people": "two", "parcel": true}',
        '{"people": 2',
        '{"people": 11, "parcel": true}',
        "Two people.",
        '{"people": NaN, "parcel": true}',
    ],
)
async def test_model_corrects_its_data(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, wrong: str
):
    await set_up_task()
    model_server.script(*answered(wrong, '{"people": 2, "parcel": true}'))

    assert await generate(structure=STRUCTURE) == {"people": 2, "parcel": True}


async def test_model_sees_what_was_wrong(set_up_task: SetUpTask, generate: Generate, model_server: ModelServer):
    await set_up_task()
    model_server.script(*answered('{"people": "two", "parcel": true}', '{"people": 2, "parcel": true}'))

    await generate(structure=STRUCTURE)

    *_, wrong, asked = model_server.log.records[-1].body["messages"]
    assert wrong["content"] == '{"people": "two", "parcel": true}'
    assert "people" in asked["content"]


async def test_data_that_stays_wrong_is_an_error(set_up_task: SetUpTask, generate: Generate, model_server: ModelServer):
    await set_up_task()
    model_server.script(*answered("Two people.", "I said: two people."))

    with pytest.raises(HomeAssistantError) as raised:
        await generate(structure=STRUCTURE)

    assert raised.value.translation_key == "invalid_data"


async def test_refusal_of_the_schema_sends_it_as_text(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer
):
    await set_up_task()
    model_server.faults.armed = ArmedFault("400", times=1)
    model_server.script(words('{"people": 2, "parcel": true}'))

    assert await generate(structure=STRUCTURE) == {"people": 2, "parcel": True}


@pytest.mark.parametrize(("fault", "key"), FAULTS.items())
async def test_failure_is_a_translated_error(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, fault: str, key: str
):
    await set_up_task()
    model_server.faults.armed = ArmedFault(fault, times=3)

    with pytest.raises(HomeAssistantError) as raised:
        await generate()

    assert raised.value.translation_key == key


async def test_pause_of_the_provider_is_waited_for(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer
):
    await set_up_task()
    model_server.faults.armed = ArmedFault("429", times=1, retry_after=1)
    model_server.script(words("Two people."))

    assert await generate() == "Two people."


async def test_task_with_tools_is_refused(set_up_task: SetUpTask, home: HomeAssistant):
    await set_up_task()
    api = llm.async_get_apis(home)[0]

    with pytest.raises(HomeAssistantError) as raised:
        await ai_task.async_generate_data(home, task_name="door", entity_id=TASK, instructions="Look.", llm_api=api)

    assert raised.value.translation_key == "no_tools_in_tasks"


@pytest.mark.parametrize(("kind", "model"), READERS, ids=lambda each: getattr(each, "name", each))
@pytest.mark.parametrize("name", ["door.jpg", "door.png", "lies.png", "door.webp", "door.gif", "plan.pdf"])
async def test_file_is_sent_in_each_format(
    *,
    set_up_task: SetUpTask,
    generate: Generate,
    model_server: ModelServer,
    kind: Kind,
    model: str,
    name: str,
):
    await set_up_task(kind, model=model)
    model_server.script(words("Two people."))

    assert await generate(attachments=attach(name, mime_type="video/mp4")) == "Two people."
    assert [record.violations for record in model_server.log.records] == [[]]
    assert list_media(model_server) == [1]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("door.heic", "file_not_readable"),
        ("door.mp4", "file_not_readable"),
        ("torn.jpg", "file_not_readable"),
        ("notes.txt", "file_not_readable"),
        ("large.pdf", "file_too_large"),
    ],
)
async def test_file_that_no_model_reads_is_an_error(
    *, set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, name: str, key: str
):
    await set_up_task(KINDS[0], model="gpt-5-mini")

    with pytest.raises(HomeAssistantError) as raised:
        await generate(attachments=attach(name, mime_type="image/jpeg"))

    assert raised.value.translation_key == key
    assert [*model_server.log.records] == []


async def test_compatible_server_gets_no_pdf(set_up_task: SetUpTask, generate: Generate):
    await set_up_task(images=True)

    with pytest.raises(HomeAssistantError) as raised:
        await generate(attachments=attach("plan.pdf"))

    assert raised.value.translation_key == "file_not_readable"


async def test_files_are_too_large_together(set_up_task: SetUpTask, generate: Generate):
    await set_up_task(KINDS[0], model="gpt-5-mini")

    with pytest.raises(HomeAssistantError) as raised:
        await generate(attachments=attach("long.pdf", "long.pdf"))

    assert raised.value.translation_key == "file_too_large"


async def test_only_the_base_name_of_a_file_is_sent(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, tmp_path: Path
):
    await set_up_task(KINDS[0], model="gpt-5-mini")

    await generate(attachments=attach("plan.pdf"))

    raw = model_server.log.records[-1].raw
    assert b"plan.pdf" in raw
    assert str(tmp_path).encode() not in raw


@pytest.mark.parametrize(("images", "can"), [(True, True), (False, False)])
async def test_entity_says_whether_it_takes_files(set_up_task: SetUpTask, home: HomeAssistant, images: bool, can: bool):
    await set_up_task(images=images)

    state = home.states.get(TASK)
    assert state is not None
    assert bool(state.attributes["supported_features"] & AITaskEntityFeature.SUPPORT_ATTACHMENTS) is can


async def test_request_has_the_instructions_and_nothing_of_the_home(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer
):
    await set_up_task()

    await generate("Write a haiku about rain.")

    (record,) = model_server.log.records
    system, user = record.body["messages"]
    assert system["content"].startswith("You are a Home Assistant expert")
    assert user["content"] == "Write a haiku about rain."
    assert "tools" not in record.body
    assert record.body["max_tokens"] == 4000


async def test_task_is_counted(
    set_up_task: SetUpTask, generate: Generate, home: HomeAssistant, figure: Callable[[str], str]
):
    await set_up_task(KINDS[0], model="gpt-5-mini")

    await generate()
    await home.async_block_till_done()
    await flush_store(home)

    assert figure("requests") == "1"
    assert int(figure("input_tokens")) > 0
    assert int(figure("output_tokens")) > 0
    assert float(figure("total_cost")) > 0


async def test_task_is_in_the_record_with_its_words(set_up_task: SetUpTask, generate: Generate, home: HomeAssistant):
    await set_up_task(record="full")

    data = await generate("Who is at the door?", structure=STRUCTURE)
    await home.async_block_till_done()
    await flush_store(home)

    (listed_turn,) = (await act(home, "list_turns", route="task"))["turns"]
    turn = await act(home, "get_turn", turn_id=listed_turn["turn_id"])
    assert (turn["entity_id"], turn["route"], turn["outcome"]) == (TASK, "task", "answered")
    assert [each["purpose"] for each in turn["attempts"]] == ["task"]
    assert (turn["said"], json.loads(turn["answer"])) == ("Who is at the door?", data)


async def test_failed_task_is_in_the_record(
    set_up_task: SetUpTask, generate: Generate, home: HomeAssistant, model_server: ModelServer
):
    await set_up_task()
    model_server.script(*answered("Two.", "Two!"))
    with pytest.raises(HomeAssistantError):
        await generate(structure=STRUCTURE)
    await flush_store(home)

    (turn,) = (await act(home, "list_turns", route="task"))["turns"]
    assert (turn["outcome"], turn["error"], turn["requests"]) == ("error", "invalid_data", 2)


async def test_refused_key_starts_reauthentication(
    set_up_task: SetUpTask, generate: Generate, home: HomeAssistant, model_server: ModelServer
):
    await set_up_task()
    model_server.faults.armed = ArmedFault("401", times=1)

    with pytest.raises(HomeAssistantError):
        await generate()
    await home.async_block_till_done()

    assert [flow["context"]["source"] for flow in home.config_entries.flow.async_progress()] == ["reauth"]


async def test_task_survives_a_reload_and_leaves_with_its_account(
    set_up_task: SetUpTask, generate: Generate, home: HomeAssistant
):
    entry = await set_up_task()

    assert await home.config_entries.async_reload(entry.entry_id)
    assert await generate()
    await home.config_entries.async_remove(entry.entry_id)

    assert home.states.get(TASK) is None


@pytest.mark.parametrize(("path", "described"), DESCRIPTIONS)
async def test_new_task_reads_pictures_if_the_server_says_so(
    home: HomeAssistant, path: str, described: dict[str, Any], answer_json: AnswerJson
):
    url = await answer_json({path: described})
    form = await open_account(home, "server")
    await form(url=url)

    made = await form(name="Ada", model="llava")

    _, task = made["result"].subentries.values()
    assert task.data == {CONF_MODEL: "llava", CONF_IMAGES: True}


async def test_new_task_reads_no_pictures_if_the_server_says_nothing(home: HomeAssistant, answer_json: AnswerJson):
    form = await open_account(home, "server")
    await form(url=await answer_json({}))

    made = await form(name="Ada", model="llava")

    _, task = made["result"].subentries.values()
    assert task.data == {CONF_MODEL: "llava"}


async def test_task_is_added_and_changed_by_its_form(set_up_task: SetUpTask, home: HomeAssistant):
    entry = await set_up_task()
    flows = home.config_entries.subentries
    kind = (entry.entry_id, SUBENTRY_AI_TASK)
    form = Submit(home, flows, await flows.async_init(kind, context={"source": SOURCE_USER}))
    assert list(list_fields(form)) == ["name", "model", "images", "effort", "max_answer_tokens", "record"]

    await form(name="Helper", model="scripted", images=True, max_answer_tokens=900, record="off")

    added = next(each for each in entry.subentries.values() if each.title == "Helper")
    assert added.data == {"model": "scripted", "images": True, "max_answer_tokens": 900, "record": "off"}
    state = home.states.get("ai_task.helper")
    assert state is not None
    shown = await entry.start_subentry_reconfigure_flow(home, added.subentry_id)
    form = Submit(home, flows, shown)
    done = await form(name="Helper", model="scripted", images=False, max_answer_tokens=900, record="off")
    assert (done["reason"], added.subentry_id in entry.runtime_data.tasks) == ("reconfigure_successful", True)


async def test_account_without_a_model_offers_no_task(home: HomeAssistant, entry_without_model: MockConfigEntry):
    assert SUBENTRY_AI_TASK not in entry_without_model.supported_subentry_types
