"""Test of the window on its own: only the package folder on the path, and only the standard library."""

from pathlib import Path
import subprocess
import sys

import custom_components.windowed_conversation.window as package

_FOLDER = Path(str(package.__file__)).parents[1]

_PROGRAM = """
import sys

sys.modules["homeassistant"] = None
sys.path.insert(0, sys.argv[1])

from window import EstimatedCounter, Message, ToolCall, Window, WindowPolicy

window = Window("conversation-id", WindowPolicy(history_tokens=8000, trim_share=0.25), EstimatedCounter())
window.set_system_prompt("You are a helpful home.")
window.open("turn on the lights", tags={"input"})
window.add(Message.assistant(tool_calls=(ToolCall("call-1", "turn_on", {"area": "kitchen"}),)))
window.add(Message.tool("call-1", "turn_on", "done"))
window.add(Message.assistant("They are on."))
window.close()
print(*(message.role for message in window.messages()))
print(*sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names - {"__main__"}))
"""


def test_window_imports_and_works_without_home_assistant_or_any_other_package() -> None:
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _PROGRAM, str(_FOLDER)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert ran.stdout.splitlines() == ["system user assistant tool assistant", "homeassistant window"]
