"""Tests of the files of AI tasks: which are sent in which form, and which are refused."""

from pathlib import Path
from typing import Any

from homeassistant.exceptions import HomeAssistantError
import pytest

from demo.model_server import ModelServer, words

from .account_kinds import KINDS, Kind
from .ai_tasks import Generate, SetUpTask, attach

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
