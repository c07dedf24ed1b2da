"""Tests for `scripts/demo --say` as a user runs it, with a separate home."""

import asyncio
import os
from pathlib import Path
import re
import shlex
import signal
import socket
import sys

import pytest

from demo.home_assistant import REPOSITORY, find_free_port
from demo.model_server import FAULTS
from tests.documents import blocks, join_lines

# A name that is evicted, a code that is protected from eviction, and more text than fits into the window.
_LONG = (
    *("--say", "my name is Ada", "--important", "remember that the alarm code is 4711"),
    *(part for number in range(8) for part in ("--say", f"remember that locker {number} is blue inside and outside")),
    *("--say", "what is the alarm code?", "--say", "what is my name?"),
)
# Asks for the name after its exchange was evicted. It is used twice in a row, because on a busy machine memory may be
# late for one turn.
_NAME = ("--say", "what is my name?")
_STORY = (
    *("--say", "my name is Ada", "--say", "remember that the bins go out on Friday"),
    *("--say", f"let me tell you a story: {'and then the baker laughed, ' * 60}"),
    *_NAME * 2,
    *("--new-conversation", *_NAME * 2),
    *("--as", "Grace", *_NAME, *("--say", "when do the bins go out?") * 2),
    *("--restart", "--as", "demo", *_NAME * 2),
)
_FAILURE = ("--say", "turn on the kitchen light", "--say", "fail with 500", "--say", "my name is Ada")
# The options of the command with sentences that README shows.
_SCREENPLAY = [
    part
    for code in blocks(REPOSITORY / "README.md", "sh")
    for line in join_lines(code)
    for part in shlex.split(line)[1:]
]


class Demo:
    """The demo command, with ports and a state folder that no other demo uses."""

    def __init__(self, state: Path) -> None:
        self._options = (
            *("--state", str(state)),
            *("--port", str(find_free_port())),
            *("--model-port", str(find_free_port())),
        )

    async def run(self, *options: str, **environment: str) -> tuple[int, str]:
        """Run the command with these options, and return its exit code and output."""
        process = await self.start(*options, **environment)
        printed, _ = await process.communicate()
        return await process.wait(), printed.decode()

    async def start(self, *options: str, **environment: str) -> asyncio.subprocess.Process:
        """Start the command and return its process, whose output goes to one pipe."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-u", "-m", "demo", *self._options, *options),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=REPOSITORY,
            env=kept | environment,
        )


@pytest.fixture
def demo(tmp_path) -> Demo:
    return Demo(tmp_path)


async def test_it_shows_turns_and_sensors_and_keeps_the_home_until_fresh_and_a_failure_is_the_exit_code(demo):
    code, printed = await demo.run(*_SCREENPLAY)
    _, kept = await demo.run("--say", "turn on the kitchen light")
    failed, fresh = await demo.run("--fresh", "--provider", "anthropic", *_FAILURE)
    assert re.findall(r"^Route +(\w+)", printed, re.MULTILINE) == ["local", "model", "model"]
    assert "Kitchen light: off -> on" in printed
    assert "Agent    Your name is Ada." in printed
    assert re.search(r"^Window .* in 3 exchanges$", printed, re.MULTILINE)
    assert re.search(r"Total cost +0\.\d+ USD", printed)
    assert re.search(r"Turns answered locally +1\n +Turns answered by model +2\n", printed)
    assert code == 0
    assert "Kitchen light: on, as before" in kept
    assert "Kitchen light: off -> on" in fresh
    assert re.findall(r"^Route +(\w+)", fresh, re.MULTILINE) == ["local", "error", "model"]
    assert "Agent    Nice to meet you, Ada." in fresh
    assert failed == 1


async def test_trims_and_summaries_are_shown_and_what_is_protected_stays(demo):
    code, printed = await demo.run("--no-memory", "--window", "500", "--summary", *_LONG)
    blocks = [int(number) for number in re.findall(r"^Trim +(\d+) exchanges?, \d+ tokens", printed, re.MULTILINE)]
    held = [int(number) for number in re.findall(r"^Window +(\d+) of 500 tokens in", printed, re.MULTILINE)]
    protected = [int(number) for number in re.findall(r"^Window .* (\d+) protected$", printed, re.MULTILINE)]
    assert len(blocks) >= 2
    assert min(blocks) >= 2
    assert len(held) == len(_LONG) // 2 + len(blocks)
    assert max(held) <= 500
    # Every turn except the first has protected exchanges; summaries are protected as well.
    assert len(protected) == len(held) - 1
    assert protected[0] == min(protected)
    assert len(re.findall(r"^Summary  You told me: ", printed, re.MULTILINE)) == len(blocks)
    assert "Agent    The alarm code is 4711." in printed
    assert "Agent    Your name is Ada." in printed
    assert code == 0


async def test_a_name_that_left_the_window_is_remembered_for_the_person_who_told_it(demo):
    forget = ("--say", "forget that the bins go out on Friday", "--say", "hello there")
    code, printed = await demo.run("--window", "400", *_STORY, *forget)
    told, *asked = printed.partition("\nYou      what is my name?")
    parts = re.split(r"^--- (.*)$", "".join(asked), flags=re.MULTILINE)
    names = [set(re.findall(r"^Agent    (.* name\b.*)$", part, re.MULTILINE)) for part in parts[::2]]
    assert parts[1::2] == ["a new conversation", "Grace speaks", "restarting Home Assistant", "demo speaks"]
    assert ["Your name is Ada." in each for each in names] == [True, True, False, False, True]
    assert names[2] == {"I do not know your name."}
    assert "Summary" not in printed
    assert re.search(r"^Trim +\d+ exchanges", told, re.MULTILINE)
    assert re.search(r"^Memory   \d+ tokens of what was said before", "".join(asked), re.MULTILINE)
    assert "Agent    The bins go out on Friday." in parts[4]
    assert re.search(r"^Window   empty", printed, re.MULTILINE)
    assert code == 0


async def test_the_tour_does_ten_things_in_the_home_and_each_is_as_it_should_be(demo):
    code, printed = await demo.run("--tour")
    assert [int(number) for number in re.findall(r"^=== (\d+) of 10: ", printed, re.MULTILINE)] == [*range(1, 11)]
    assert "10 of 10 things were as they should be." in printed
    changes = re.findall(r"^Home     (.+: \w+) -> (\w+)", printed, re.MULTILINE)
    assert ("Kitchen light: off", "on") in changes
    assert ("Side door: locked", "unlocked") in changes
    assert ("Coffee machine: off", "on") in changes
    assert not any(changed.startswith("Garage door") for changed, _ in changes)
    assert len(re.findall(r"^Look     http", printed, re.MULTILINE)) == 10
    assert code == 0


async def test_german_is_spoken_to_an_assistant_of_its_own(demo):
    code, printed = await demo.run("--language", "de", "--say", "Mach das Küchenlicht an", "--say", "Ist alles zu?")
    assert re.findall(r"^Route +(\w+)", printed, re.MULTILINE) == ["local", "model"]
    assert "Kitchen light: off -> on" in printed
    assert code == 0


async def test_a_port_in_use_is_one_sentence(demo):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, printed = await demo.run("--port", str(port), "--say", "hello")
    assert (
        printed
        == f"scripts/demo: port {port} cannot be used (Address already in use): choose another one with --port.\n"
    )
    assert code == 1


async def test_a_server_that_cannot_be_reached_is_one_sentence_without_the_key(demo):
    code, printed = await demo.run(
        "--say", "hello", OPENAI_API_KEY="sk-very-secret", OPENAI_BASE_URL=f"http://127.0.0.1:{find_free_port()}/v1"
    )
    assert len(re.findall(r"^scripts/demo: .*cannot be used.*\.$", printed, re.MULTILINE)) == 1
    assert "sk-very-secret" not in printed
    assert code == 1


async def test_its_help_names_every_fault():
    process = await asyncio.create_subprocess_exec(
        REPOSITORY / "scripts" / "demo", "--help", stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    lines = {" ".join(line.split()) for line in printed.decode().splitlines()}
    assert {f"{name} {fault.description}" for name, fault in FAULTS.items()} <= lines


async def test_ctrl_c_ends_it_cleanly(demo):
    process = await demo.start()
    while b"Ctrl-C ends it" not in await process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    await process.stdout.read()
    assert await process.wait() == 0
