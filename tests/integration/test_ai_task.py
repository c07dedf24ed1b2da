"""Tests of AI tasks in a real Home Assistant: their data, files, errors, record and figures."""

from collections.abc import Callable
import json
from pathlib import Path
from typing import Any

from homeassistant.components.ai_task import AITaskEntityFeature
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers.json import json_bytes
import pytest

from demo.model_server import ModelServer, words
from demo.model_server.faults import ArmedFault

from .account_kinds import KINDS, Kind
from .actions import act
from .ai_tasks import STRUCTURE, TASK, Generate, SetUpTask, answered, attach
from .conftest import flush_store
from .rows import Row, row

__all__ = ["row"]

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


async def test_text_is_what_the_model_writes(set_up_task: SetUpTask, generate: Generate, model_server: ModelServer):
    await set_up_task()
    model_server.script(words("Two people."))

    assert await generate() == "Two people."


async def test_data_is_the_models_own_without_nulls_of_optional_fields(
    row: Row, set_up_task: SetUpTask, generate: Generate, model_server: ModelServer
):
    for kind in KINDS:
        async with row(kind.name):
            await set_up_task(kind)
            model_server.script(words('{"people": 2, "parcel": true, "note": null}'))

            data = await generate(structure=STRUCTURE)

            assert repr(data) == "{'people': 2, 'parcel': True}"


async def test_data_is_found_in_other_text(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, subtests: pytest.Subtests
):
    await set_up_task()
    for answer in (
        '```json\n{"people": 2, "parcel": true}\n```',
        'Here it is: {"people": 2, "parcel": true}',
        '<think>{"people": 9}</think>{"people": 2, "parcel": true}',
    ):
        with subtests.test(answer=answer):
            model_server.script(words(answer))

            assert await generate(structure=STRUCTURE) == {"people": 2, "parcel": True}


async def test_model_corrects_its_data(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, subtests: pytest.Subtests
):
    await set_up_task()
    for wrong in (
        '{"people": "two", "parcel": true}',
        '{"people": 2',
        '{"people": 11, "parcel": true}',
        "Two people.",
        '{"people": NaN, "parcel": true}',
    ):
        with subtests.test(wrong=wrong):
            model_server.log.clear()
            model_server.script(*answered(wrong, '{"people": 2, "parcel": true}'))

            assert await generate(structure=STRUCTURE) == {"people": 2, "parcel": True}
            assert len(model_server.requests) == 2


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

    with pytest.raises(HomeAssistantError) as error:
        await generate(structure=STRUCTURE)

    assert error.value.translation_key == "invalid_data"


async def test_data_with_too_many_levels_is_an_error(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, subtests: pytest.Subtests
):
    await set_up_task()
    structure = {"list": {"selector": {"object": {}}, "required": True}}
    for levels in (101, 900, 5_000, 20_000):
        deep = f'{{"list": {"[" * levels}{"]" * levels}}}'
        with subtests.test(levels=levels):
            model_server.script(*answered(deep, deep))

            with pytest.raises(HomeAssistantError) as error:
                await generate(structure=structure)

            assert error.value.translation_key == "invalid_data"


async def test_half_of_a_surrogate_pair_is_replaced_in_data(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer
):
    await set_up_task()
    structure = {"notes": {"selector": {"object": {}}, "required": True}}
    model_server.script(words(r'{"notes": [{"a\udc00": "a\ud800b"}, "\ud83e\udd8a"]}'))

    data = await generate(structure=structure)

    assert data == {"notes": [{"a\ufffd": "a\ufffdb"}, "\U0001f98a"]}
    assert json_bytes(data)


async def test_refusal_of_the_schema_sends_it_as_text(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer
):
    await set_up_task()
    model_server.faults.armed = ArmedFault("400", times=1)
    model_server.script(words('{"people": 2, "parcel": true}'))

    assert await generate(structure=STRUCTURE) == {"people": 2, "parcel": True}


async def test_failure_is_a_translated_error(
    row: Row, set_up_task: SetUpTask, generate: Generate, model_server: ModelServer
):
    for fault, key in FAULTS.items():
        async with row(fault):
            await set_up_task()
            model_server.faults.armed = ArmedFault(fault, times=3)

            with pytest.raises(HomeAssistantError) as error:
                await generate()

            assert error.value.translation_key == key


async def test_pause_of_the_provider_is_waited_for(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer
):
    await set_up_task()
    model_server.faults.armed = ArmedFault("429", times=1, retry_after=0.2)
    model_server.script(words("Two people."))

    assert await generate() == "Two people."


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


async def test_invalid_data_is_an_answer_of_the_server(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer
):
    entry = await set_up_task()
    model_server.script(*answered("Two.", "Two!"))
    with pytest.raises(HomeAssistantError):
        await generate(structure=STRUCTURE)

    assert entry.runtime_data.server.cache.answered_at is not None


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


READERS = [
    (KINDS[0], "gpt-5-mini"),
    (KINDS[1], "gpt-5-mini"),
    (KINDS[-2], "gemini-2.5-flash"),
    (KINDS[-1], "claude-haiku-4-5"),
]


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


@pytest.mark.parametrize(("kind", "model"), READERS, ids=lambda each: getattr(each, "name", each))
async def test_file_is_sent_in_each_format(
    *,
    set_up_task: SetUpTask,
    generate: Generate,
    model_server: ModelServer,
    kind: Kind,
    model: str,
    subtests: pytest.Subtests,
):
    await set_up_task(kind, model=model)
    for name in ("door.jpg", "door.png", "lies.png", "door.webp", "door.gif", "plan.pdf"):
        with subtests.test(name):
            model_server.log.clear()
            model_server.script(words("Two people."))

            assert await generate(attachments=attach(name, mime_type="video/mp4")) == "Two people."
            assert [record.violations for record in model_server.log.records] == [[]]
            assert list_media(model_server) == [1]


async def test_file_that_no_model_reads_is_an_error(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, subtests: pytest.Subtests
):
    await set_up_task(KINDS[0], model="gpt-5-mini")
    for name, key in (
        ("door.heic", "file_not_readable"),
        ("door.mp4", "file_not_readable"),
        ("torn.jpg", "file_not_readable"),
        ("notes.txt", "file_not_readable"),
        ("large.pdf", "file_too_large"),
    ):
        with subtests.test(name):
            model_server.log.clear()

            with pytest.raises(HomeAssistantError) as error:
                await generate(attachments=attach(name, mime_type="image/jpeg"))

            assert error.value.translation_key == key
            assert [*model_server.log.records] == []


async def test_compatible_server_gets_no_pdf(set_up_task: SetUpTask, generate: Generate):
    await set_up_task(images=True)

    with pytest.raises(HomeAssistantError) as error:
        await generate(attachments=attach("plan.pdf"))

    assert error.value.translation_key == "file_not_readable"


async def test_files_are_too_large_together(set_up_task: SetUpTask, generate: Generate):
    await set_up_task(KINDS[0], model="gpt-5-mini")

    with pytest.raises(HomeAssistantError) as error:
        await generate(attachments=attach("long.pdf", "long.pdf"))

    assert error.value.translation_key == "file_too_large"


async def test_only_the_base_name_of_a_file_is_sent(
    set_up_task: SetUpTask, generate: Generate, model_server: ModelServer, tmp_path: Path
):
    await set_up_task(KINDS[0], model="gpt-5-mini")

    await generate(attachments=attach("plan.pdf"))

    raw = model_server.log.records[-1].raw
    assert b"plan.pdf" in raw
    assert str(tmp_path).encode() not in raw
