"""What a window does not accept, in one tree. Every one of these leaves the window unchanged.

    WindowError
    +-- ExchangeStillOpen         an exchange is begun before the last one was closed or aborted
    +-- NoOpenExchange            add, tag, close or abort, and no exchange is open
    +-- UnknownExchange           no closed exchange in the window has this number
    +-- InvalidMessage            a message that cannot stand where it was put
    |   +-- UnknownToolCall       a result for a call that was never made, or has its result already
    |   +-- DuplicateToolCall     the same call id twice in one exchange
    |   +-- UnansweredToolCalls   the conversation goes on while a call has no result
    +-- InvalidTag                no text, blank, or too long
    +-- WindowBusy                another turn has the window

The texts are for the log: they hold ids and roles, never what people said.
"""


class WindowError(Exception):
    """A window does not accept what it was asked to do."""


class ExchangeStillOpen(WindowError):
    """An exchange is begun before the last one was closed or aborted."""


class NoOpenExchange(WindowError):
    """There is no open exchange to add to, to tag, to close or to abort."""


class UnknownExchange(WindowError):
    """No closed exchange in the window has this number."""


class InvalidMessage(WindowError):
    """A message that cannot stand where it was put."""


class UnknownToolCall(InvalidMessage):
    """A result for a call that was never made, or has its result already."""


class DuplicateToolCall(InvalidMessage):
    """The same call id twice in one exchange."""


class UnansweredToolCalls(InvalidMessage):
    """The conversation goes on while a call has no result."""


class InvalidTag(WindowError):
    """A tag that is no text, blank, or too long."""


class WindowBusy(WindowError):
    """Another turn has the window."""
