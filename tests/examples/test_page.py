"""Test that runs the program of `docs/langgraph.md` unchanged against a model server, twice with the same file."""

import asyncio
import os
from pathlib import Path
import re
import sys

import pytest

from custom_components import windowed_conversation
from demo.model_server import ModelServer

PACKAGE = Path(windowed_conversation.__path__[0])
REPOSITORY = PACKAGE.parents[1]
PAGE = REPOSITORY / "docs" / "langgraph.md"


async def run(folder: Path, server: ModelServer, *said: str) -> list[str]:
    """Run the program with these inputs, and return the lines that it prints."""
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    path = os.pathsep.join((str(PACKAGE), str(REPOSITORY / "examples")))
    environment = {"PYTHONPATH": path, "OPENAI_API_KEY": "key", "OPENAI_BASE_URL": server.url}
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, *said),
        cwd=folder,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await child.communicate()
    assert child.returncode == 0
    return printed.decode().splitlines()


@pytest.mark.long
@pytest.mark.usefixtures("socket_enabled")
async def test_program_of_the_page_goes_on_with_its_conversation(tmp_path: Path) -> None:
    async with ModelServer(strict=True, models=("gpt-4.1-mini",)) as server:
        (greeting,) = await run(tmp_path, server, "My name is Ada")
        answers = await run(tmp_path, server, "How are you?", "What is my name?")

    assert "Ada" in greeting
    assert "Ada" in answers[-1]
    assert [message["role"] for message in server.requests[-1].body["messages"]] == [
        *("system", "user", "assistant"),
        *("user", "assistant"),
        "user",
    ]
