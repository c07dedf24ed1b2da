"""Tests of AI tasks with the tools of an LLM API, which another integration gives to them."""

from collections.abc import Callable, Coroutine
import json
from typing import Any

from homeassistant.components import ai_task
from homeassistant.core import HomeAssistant
from homeassistant.helpers import llm
import probatio
import pytest

from demo.model_server import ModelServer, call, words

from .account_kinds import KINDS
from .ai_tasks import TASK, SetUpTask
from .conftest import flush_store
from .large_source import AddSource, Calls, Source, SourceTool
from .remembered import recorded_turns
from .rows import Row, row

__all__ = ["row"]

STRUCTURE = probatio.Schema({probatio.Required("invoices"): int})

type Run = Callable[..., Coroutine[Any, Any, Any]]


@pytest.fixture
def run(home: HomeAssistant) -> Run:
    """Return a function that gives a task the tools of a registered API, and returns its data."""

    async def run(api_id: str = "archive", structure: probatio.Schema | None = None) -> Any:
        (api,) = [each for each in llm.async_get_apis(home) if each.id == api_id]
        result = await ai_task.async_generate_data(
            home, task_name="door", entity_id=TASK, instructions="Count.", structure=structure, llm_api=api
        )
        return result.data

    return run


@pytest.fixture
def calls(home: HomeAssistant) -> Calls:
    """Register an API with two tools, one of which destroys something. Return their calls."""
    calls: Calls = []
    erase = SourceTool("erase_disks", "Erase all disks.", calls)
    erase.annotations = llm.ToolAnnotations(destructive=True)
    api = Source(hass=home, id="office", name="Office")
    object.__setattr__(api, "tools", [SourceTool("count_invoices", "Count them.", calls), erase])
    llm.async_register_api(home, api)
    return calls


async def test_task_calls_a_tool_in_each_format(
    row: Row, set_up_task: SetUpTask, run: Run, calls: Calls, model_server: ModelServer
) -> None:
    for number, kind in enumerate(KINDS):
        async with row(kind.name):
            await set_up_task(kind)
            model_server.script(call("count_invoices", amount=number), words('{"invoices": 3}'))

            data = await run("office", STRUCTURE)

            assert (data, calls[-1], len(model_server.requests)) == (
                {"invoices": 3},
                ("count_invoices", {"amount": number}),
                2,
            )


async def test_model_sees_the_result_of_its_call(
    set_up_task: SetUpTask, run: Run, calls: Calls, model_server: ModelServer
) -> None:
    await set_up_task()
    model_server.script(call("count_invoices", amount=3), words("Three."))

    text = await run("office")

    (result,) = [each for each in model_server.requests[-1].body["messages"] if each["role"] == "tool"]
    assert (text, json.loads(result["content"])) == ("Three.", {"done": "count_invoices"})


async def test_task_does_nothing_that_a_person_would_be_asked_about(
    set_up_task: SetUpTask, run: Run, calls: Calls, model_server: ModelServer
) -> None:
    await set_up_task()
    model_server.script(call("erase_disks", amount=3), words("I may not."))

    await run("office")

    (result,) = [each for each in model_server.requests[-1].body["messages"] if each["role"] == "tool"]
    assert (calls, json.loads(result["content"])["done"]) == ([], False)


async def test_task_finds_the_tools_of_a_large_source(
    home: HomeAssistant, set_up_task: SetUpTask, run: Run, add_source: AddSource, model_server: ModelServer
) -> None:
    calls = add_source()
    await set_up_task()
    given = {"name": "invoices_of_sauna", "arguments": {"amount": 3}}
    model_server.script(call("find_tools", words="invoices sauna"), call("call_tool", **given), words("Three."))

    await run()
    await flush_store(home)

    (task,) = await recorded_turns(home)
    assert calls == [("invoices_of_sauna", {"amount": 3})]
    assert len(model_server.requests[0].body["tools"]) == 2
    assert task["tools"] == ["windowed_conversation__find_tools", "invoices_of_sauna"]


async def test_task_whose_model_repeats_a_call_ends(
    set_up_task: SetUpTask, run: Run, calls: Calls, model_server: ModelServer
) -> None:
    await set_up_task()
    model_server.script(*[call("count_invoices", amount=1)] * 4, words("Enough."))

    await run("office")

    assert len(calls) == 4
    assert "tools" not in model_server.requests[-1].body
