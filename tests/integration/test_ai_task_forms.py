"""Tests of the forms of AI tasks, and of the task that a new account has."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

from aiohttp import web
from homeassistant.config_entries import SOURCE_RECONFIGURE, SOURCE_USER, ConfigEntry, SubentryFlowContext
from homeassistant.const import CONF_MODEL
from homeassistant.core import HomeAssistant
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import CONF_IMAGES, SUBENTRY_AI_TASK
from custom_components.windowed_conversation.flows import fields

from .account_forms import open_account
from .ai_tasks import SetUpTask
from .conftest import Submit, list_fields, run_server
from .rows import Row, row

__all__ = ["row"]

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

FIELDS: dict[str, Any] = {"name": "Clerk", "max_answer_tokens": 900, "record": "off"}

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


# Answers of servers by path, and whether the form of a task asks if the model `llava` reads pictures.
STATEMENTS: list[tuple[str, dict[str, Any], bool]] = [
    *((f"{each.id} says yes", {str(each.values[0]): each.values[1]}, False) for each in DESCRIPTIONS),
    ("llama.cpp says no", {"/props": {"modalities": {"vision": False}}}, False),
    ("Ollama says no", {"/api/show": {"capabilities": ["completion", "tools"]}}, False),
    ("LM Studio says no", {"/api/v0/models": {"data": [{"id": "llava", "type": "llm"}]}}, False),
    (
        "OpenRouter says no",
        {"/v1/models": {"data": [{"id": "llava", "architecture": {"input_modalities": ["text"]}}]}},
        False,
    ),
    ("Mistral says no", {"/v1/models": {"data": [{"id": "llava", "capabilities": {"vision": False}}]}}, False),
    ("no word of it", {"/v1/models": {"data": [{"id": "llava", "capabilities": ["tool_use"]}]}}, True),
    ("of another", {"/v1/models": {"data": [{"id": "other", "capabilities": {"vision": True}}]}}, True),
    ("silent", {}, True),
]


async def add_account(home: HomeAssistant, url: str) -> ConfigEntry:
    """Add an account with an agent and a task that have the model `llava`, and return it."""
    form = await open_account(home, "server")
    await form(url=url)
    made: dict[str, Any] = await form(name="Ada", model="llava")
    entry: ConfigEntry = made["result"]
    return entry


async def open_task_form(home: HomeAssistant, entry: ConfigEntry) -> Submit:
    """Open the form that changes the account's task, and return it."""
    _, task = entry.subentries
    flows, kind = home.config_entries.subentries, (entry.entry_id, SUBENTRY_AI_TASK)
    context = SubentryFlowContext(source=SOURCE_RECONFIGURE, subentry_id=task)
    return Submit(home, flows, await flows.async_init(kind, context=context))


async def test_form_asks_for_pictures_where_the_server_says_nothing(
    home: HomeAssistant, answer_json: AnswerJson, row: Row
):
    for name, answers, is_asked in STATEMENTS:
        async with row(name):
            entry = await add_account(home, await answer_json(answers))

            form = await open_task_form(home, entry)

            assert (CONF_IMAGES in list_fields(form)) is is_asked


async def test_what_the_server_says_of_another_model_is_stored_with_it(home: HomeAssistant, answer_json: AnswerJson):
    models = [{"id": "llava", "capabilities": {"vision": True}}, {"id": "other", "capabilities": {"vision": False}}]
    entry = await add_account(home, await answer_json({"/v1/models": {"data": models}}))
    for model, reads in (("other", False), ("llava", True)):
        form = await open_task_form(home, entry)

        await form(**FIELDS, model=model)

        _, task = entry.subentries.values()
        assert task.data[CONF_IMAGES] is reads


async def test_what_the_server_said_stays_while_it_is_silent(
    home: HomeAssistant, answer_json: AnswerJson, monkeypatch: pytest.MonkeyPatch
):
    entry = await add_account(home, await answer_json({"/props": {"modalities": {"vision": True}}}))
    form = await open_task_form(home, entry)
    monkeypatch.setattr(fields, "_IMAGES_TIMEOUT", 0.0)

    await form(**FIELDS, model="llava")

    _, task = entry.subentries.values()
    assert task.data == {CONF_MODEL: "llava", CONF_IMAGES: True, "max_answer_tokens": 900, "record": "off"}


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
