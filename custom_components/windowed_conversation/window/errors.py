"""The errors of a window, each of which leaves it unchanged. Their messages hold ids and roles, never a text."""


class WindowError(Exception):
    """A window refused an operation."""


class ExchangeStillOpen(WindowError):
    """An exchange was opened before the last one was closed or aborted."""


class NoOpenExchange(WindowError):
    """There is no open exchange to add to, to tag, to close or to abort."""


class UnknownExchange(WindowError):
    """No closed exchange in the window has this number."""


class InvalidMessage(WindowError):
    """A message that is not allowed at this point."""


class UnknownToolCall(InvalidMessage):
    """A result for a call that was never made, or that has its result already."""


class DuplicateToolCall(InvalidMessage):
    """Two tool calls of an exchange have the same id."""


class UnansweredToolCalls(InvalidMessage):
    """The conversation continues while a call has no result."""


class InvalidTag(WindowError):
    """A tag that is not a text, blank, or too long."""


class WindowBusy(WindowError):
    """Another turn uses the window."""
