"""Errors of memory, besides `MemoryUnavailable`."""


class MemoryFull(ValueError):
    """The limit of facts is reached. Nothing was added, and no current fact is dropped for a new one."""


class BadLine(ValueError):
    """A line that cannot be loaded; nothing was loaded. `line` is counted from 1."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line} is not one that memory exports")
        self.line = line
