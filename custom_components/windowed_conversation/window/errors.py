"""The errors of a window.

An operation that raises one of them leaves the window unchanged. The error messages contain ids and roles, but no
content.
"""


class WindowError(Exception):
    """The window rejected an operation."""


class ExchangeStillOpen(WindowError):
    """The operation is not possible while an exchange is open, for example opening another one."""


class NoOpenExchange(WindowError):
    """There is no open exchange to add to, to tag, to close or to abort."""


class UnknownExchange(WindowError):
    """The window has no closed exchange with this number."""


class InvalidMessage(WindowError):
    """The message is not allowed at this point."""


class UnknownToolCall(InvalidMessage):
    """The result is for a tool call that does not exist or already has a result."""


class DuplicateToolCall(InvalidMessage):
    """Two tool calls of an exchange have the same id."""


class UnansweredToolCalls(InvalidMessage):
    """A tool call has no result, so the conversation cannot continue."""


class InvalidTag(WindowError):
    """The tag is not a text, is blank, or is too long."""


class WindowBusy(WindowError):
    """Another turn is using the window."""
