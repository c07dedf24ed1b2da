"""A trace of the functions of a package that are called, in all threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
import sys
import threading
from types import CodeType, ModuleType
from typing import Any

_UNTRACED = {"<module>", "__annotate__"}
_EVENTS = sys.monitoring.events


@dataclass
class CallTrace:
    """The called functions in order, each by module and qualified name.

    A change is counted when a call, or the resumption of a coroutine, is in another module than the previous one in the
    same thread.
    """

    calls: list[tuple[str, str]] = field(default_factory=list)
    changes: int = 0

    @property
    def functions(self) -> int:
        """The number of different functions that were called, including generator expressions and lambdas."""
        return len(set(self.calls))

    @property
    def modules(self) -> int:
        """The number of different modules whose functions were called."""
        return len({module for module, _ in self.calls})


@contextmanager
def traced(package: ModuleType) -> Iterator[CallTrace]:
    """Trace the functions of a package and yield the trace. Only one trace can be active at a time."""
    folder = Path(str(package.__file__)).parent
    trace = CallTrace()
    before = threading.local()
    modules: dict[str, str] = {}

    def module_of(code: CodeType) -> str | None:
        path = Path(code.co_filename)
        return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else None

    def on_call(code: CodeType, _offset: int) -> Any:
        if code.co_name in _UNTRACED:
            return sys.monitoring.DISABLE
        if (module := modules.get(code.co_filename)) is None:
            if (module := module_of(code)) is None:
                return sys.monitoring.DISABLE
            modules[code.co_filename] = module
        trace.calls.append((module, code.co_qualname))
        trace.changes += getattr(before, "module", module) != module
        before.module = module
        return None

    sys.monitoring.use_tool_id(sys.monitoring.PROFILER_ID, __name__)
    for event in (_EVENTS.PY_START, _EVENTS.PY_RESUME):
        sys.monitoring.register_callback(sys.monitoring.PROFILER_ID, event, on_call)
    sys.monitoring.set_events(sys.monitoring.PROFILER_ID, _EVENTS.PY_START | _EVENTS.PY_RESUME)
    try:
        yield trace
    finally:
        sys.monitoring.set_events(sys.monitoring.PROFILER_ID, _EVENTS.NO_EVENTS)
        sys.monitoring.free_tool_id(sys.monitoring.PROFILER_ID)
        sys.monitoring.restart_events()
