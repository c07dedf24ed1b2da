"""AI tasks for tests: their set-up, the call of their action, and files."""

import asyncio
from collections.abc import Callable, Coroutine
from io import BytesIO
from pathlib import Path
from typing import Any

from homeassistant.config_entries import ConfigSubentryData
from homeassistant.const import CONF_API_KEY, CONF_MODEL, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
from PIL import Image
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_PROVIDER,
    DOMAIN,
    PROVIDER_OPENAI_CHAT,
    SUBENTRY_AI_TASK,
)
from demo.model_server import Answer, ModelServer, words

from .account_kinds import Kind

TASK = "ai_task.robot"
STRUCTURE = {
    "people": {"selector": {"number": {"min": 0, "max": 10}}, "required": True, "description": "How many people"},
    "parcel": {"selector": {"boolean": {}}, "required": True},
    "note": {"selector": {"text": {}}},
}


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
        # the models are listed in the background
        await home.async_block_till_done(wait_background_tasks=True)
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
