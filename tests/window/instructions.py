"""Counts executed instructions of the window's code: an amount of work that is the same on every machine."""

from collections.abc import Callable
from pathlib import Path
import sys
from types import CodeType

from custom_components.windowed_conversation import window as package

_TOOL = 3
_OURS = str(Path(str(package.__file__)).parent)


def executed_by(work: Callable[[], None]) -> int:
    """Return the number of instructions of the window's code that `work` executes."""
    executed = 0

    def on_instruction(code: CodeType, _: int) -> object:
        nonlocal executed
        ours = code.co_filename.startswith(_OURS)
        executed += ours
        return None if ours else sys.monitoring.DISABLE

    sys.monitoring.use_tool_id(_TOOL, "instructions")
    sys.monitoring.register_callback(_TOOL, sys.monitoring.events.INSTRUCTION, on_instruction)
    sys.monitoring.set_events(_TOOL, sys.monitoring.events.INSTRUCTION)
    try:
        work()
    finally:
        sys.monitoring.set_events(_TOOL, 0)
        sys.monitoring.free_tool_id(_TOOL)
    return executed
