"""The turns that the current task is part of."""

from contextvars import ContextVar

# A turn that leads to itself would wait for ever. A task that outlives its turn still inherits the mark, which by then
# belongs to no window.
turns_above: ContextVar[frozenset[object]] = ContextVar("turns_above", default=frozenset())


def is_in_turn() -> bool:
    """Return whether the current task is part of a turn, or was started by one."""
    return bool(turns_above.get())
