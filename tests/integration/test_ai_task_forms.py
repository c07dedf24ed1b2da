"""Tests of the forms of AI tasks, and of the task that a new account has."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

from aiohttp import web
from homeassistant.config_entries import SOURCE_USER
from homeassistant.const import CONF_MODEL
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import CONF_IMAGES, SUBENTRY_AI_TASK
from custom_components.windowed_conversation.flows import fields

from .account_forms import open_account
from .ai_tasks import SetUpTask
from .conftest import Submit, list_fields, run_server

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


@pytest.mark.parametrize(("path", "described"), DESCRIPTIONS)
async def test_new_agent_and_task_read_pictures_if_the_server_says_so(
    home: HomeAssistant, path: str, described: dict[str, Any], answer_json: AnswerJson
):
    url = await answer_json({path: described})
    form = await open_account(home, "server")
    await form(url=url)

    made = await form(name="Ada", model="llava")

    agent, task = made["result"].subentries.values()
    assert agent.data[CONF_IMAGES] is True
    assert task.data == {CONF_MODEL: "llava", CONF_IMAGES: True}


async def test_server_that_takes_too_long_says_nothing_of_pictures(
    home: HomeAssistant, answer_json: AnswerJson, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fields, "_IMAGES_TIMEOUT", 0.0)
    form = await open_account(home, "server")
    await form(url=await answer_json({"/api/show": {"capabilities": ["completion", "vision"]}}))

    made = await form(name="Ada", model="llava")

    assert [CONF_IMAGES in each.data for each in made["result"].subentries.values()] == [False, False]


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
