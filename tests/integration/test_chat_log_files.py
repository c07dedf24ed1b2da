"""Tests for files that another integration has attached to a user message of a chat log."""

from base64 import b64encode
from collections.abc import Callable, Coroutine
from io import BytesIO
from pathlib import Path
from typing import Any

from homeassistant.components.conversation import HOME_ASSISTANT_AGENT, AssistantContent, UserContent, async_converse
from homeassistant.components.conversation.chat_log import Attachment, async_get_chat_log
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers.chat_session import async_get_chat_session
from PIL import Image
import pytest

from custom_components.windowed_conversation.const import CONF_MEMORY, CONF_ROUTING
from custom_components.windowed_conversation.providers import UNSEEN_NOTE
from demo.model_server import ModelServer, words

from .account_kinds import KINDS
from .conftest import AGENT, SetUpFn

OPENAI_CHAT = next(kind for kind in KINDS if kind.name == "openai_chat")
QUESTION = "what is on the label?"

# a picture of one color, which has the same bytes after it was encoded again
Image.new("RGB", (64, 48), "navy").save(_encoded := BytesIO(), "JPEG", quality=85)
PICTURE = _encoded.getvalue()
SENT_PICTURE = b64encode(PICTURE).decode()

type AskFn = Callable[..., Coroutine[Any, Any, dict[str, Any]]]


@pytest.fixture
async def picture(home: HomeAssistant, tmp_path: Path) -> Path:
    """Return the path of a small picture."""
    path = tmp_path / "label.jpg"
    await home.async_add_executor_job(path.write_bytes, PICTURE)
    return path


@pytest.fixture
def ask(home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer) -> AskFn:
    """Return a function that asks a model about files, and returns its newest request and all that are attached."""

    async def ask(model: str, *paths: Path, earlier: Path | None = None) -> dict[str, Any]:
        model_server.change(models=("scripted", "gpt-5.5"))
        settings = {"model": model, CONF_ROUTING: "model_only", CONF_MEMORY: "off"}
        await set_up(account=OPENAI_CHAT.account(model_server), **settings)
        model_server.script(words("Plums."))
        with (
            async_get_chat_session(home, "test") as session,
            async_get_chat_log(home, session, chat_log_delta_listener=lambda *_: None) as chat_log,
        ):
            if earlier is not None:
                chat_log.async_add_user_content(UserContent("look at this", [_attach(earlier)]))
                answer = AssistantContent(HOME_ASSISTANT_AGENT, "I have no eyes.")
                chat_log.async_add_assistant_content_without_tools(answer)
            chat_log.async_add_user_content(UserContent(QUESTION, [_attach(path) for path in paths] or None))
            await async_converse(home, QUESTION, session.conversation_id, Context(), agent_id=AGENT)
        return {"messages": model_server.requests[-1].body["messages"]}

    return ask


def _attach(path: Path) -> Attachment:
    return Attachment(f"media-source://test/{path.name}", "image/jpeg", path)


async def test_picture_is_sent_to_a_model_that_reads_pictures(ask: AskFn, picture: Path) -> None:
    request = await ask("gpt-5.5", picture)

    assert SENT_PICTURE in str(request["messages"][-1])
    assert UNSEEN_NOTE not in str(request)


async def test_note_stands_for_a_picture_that_the_model_does_not_read(ask: AskFn, picture: Path) -> None:
    request = await ask("scripted", picture)

    assert str(request["messages"][-1]).count(UNSEEN_NOTE) == 1
    assert SENT_PICTURE not in str(request)


async def test_note_stands_for_a_file_that_cannot_be_read(ask: AskFn, picture: Path, tmp_path: Path) -> None:
    request = await ask("gpt-5.5", tmp_path / "missing.jpg", picture)

    assert str(request["messages"][-1]).count(UNSEEN_NOTE) == 1
    assert SENT_PICTURE in str(request["messages"][-1])


async def test_note_stands_for_a_picture_of_an_earlier_message(ask: AskFn, picture: Path) -> None:
    request = await ask("gpt-5.5", earlier=picture)

    (earlier,) = [each for each in request["messages"] if "look at this" in str(each["content"])]
    assert UNSEEN_NOTE in str(earlier)
    assert UNSEEN_NOTE not in str(request["messages"][-1])
