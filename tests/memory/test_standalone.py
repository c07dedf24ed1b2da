"""Test of memory on its own: only the package folder on the path, the standard library and stemmers."""

from pathlib import Path
import subprocess
import sys

import custom_components.windowed_conversation.memory as package

_FOLDER = Path(str(package.__file__)).parents[1]

_PROGRAM = """
import sys

sys.modules["homeassistant"] = None
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)

from memory.core import Memory, PastTurn

memory = Memory(sys.argv[2], languages=("en", "de"))
memory.add_turn(PastTurn(conversation="c1", at=1_700_000_000.0, said="I am Ada", answer="Hello Ada", person="ada"))
print(*(found.text for found in memory.recall("who is Ada?", person="ada")), sep="|")
memory.close()
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))
"""


def test_memory_imports_and_works_without_home_assistant_or_any_other_package(path) -> None:
    ran = subprocess.run(
        [sys.executable, "-I", "-c", _PROGRAM, str(_FOLDER), str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert ran.stdout.splitlines() == ["I am Ada", "Hello Ada", "memory store"]
