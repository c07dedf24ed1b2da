"""Tests that forgotten text is in no file of a real Home Assistant, including the recorder's database and the log."""

from pathlib import Path

from demo.home_assistant import HomeAssistantProcess, find_free_port
from demo.model_server import ModelServer
from tests.e2e.test_restart import run_house

_SECRET = "swordfish"
_TOLD = f"the wifi password is {_SECRET}"


def holding(folder: Path) -> list[str]:
    """Return the names of the files that contain the secret."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in files if _SECRET.encode() in path.read_bytes().lower()]


async def test_what_is_forgotten_is_in_no_file_and_in_no_request_after_a_restart(tmp_path):
    home_assistant = HomeAssistantProcess(tmp_path, find_free_port())
    async with ModelServer(strict=True) as model:
        async with run_house(home_assistant, model, []) as house:
            for text in (f"consider that {_TOLD}", f"remember that {_TOLD}", "tell me a story"):
                await house.say(text, "mine")
            assert _SECRET in str(model.requests[-1].body)
            told = holding(tmp_path)
            forgotten = await house.say(f"forget that {_TOLD}", "other")
        left = holding(tmp_path)
        async with run_house(home_assistant, model, []) as house:
            await house.say("what is the wifi password?", "mine")

    assert _SECRET in forgotten.speech
    assert any(name.startswith("windowed_conversation.db") for name in told)
    assert {"home-assistant_v2.db", home_assistant.output_file.name} <= {path.name for path in tmp_path.iterdir()}
    assert left == []
    assert _SECRET not in str(model.requests[-1].body)
