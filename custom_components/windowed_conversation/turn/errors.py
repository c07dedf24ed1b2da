"""What can go wrong in a turn besides the provider.

    TurnError
    +-- NothingSaid          the input holds nothing to answer
    +-- EmptyAnswer          the model answered with nothing
    +-- NoSummary            the model was asked for a summary and gave none
    +-- NoTokenCount         the provider has no endpoint that counts tokens
    +-- PromptFailed         the instructions could not be rendered
    +-- ToolsUnavailable     a set of tools that the agent is to offer does not exist or may not be used
    +-- LocalAnswerFailed    Home Assistant understood the input and could not do it: it says why itself
    +-- Busy                 another turn of the conversation did not end in time
    +-- IdTooLong            the id of the conversation, or of the device, is longer than any needs to be

Messages are for the log: they never hold what people said. What a person is told is a translation.
"""


class TurnError(Exception):
    """A turn could not be brought to an answer."""


class NothingSaid(TurnError):
    """The input holds nothing to answer."""


class EmptyAnswer(TurnError):
    """The model answered with nothing."""


class NoSummary(TurnError):
    """The model was asked for a summary and gave none."""


class NoTokenCount(TurnError):
    """The provider has no endpoint that counts tokens."""


class PromptFailed(TurnError):
    """The instructions could not be rendered."""


class ToolsUnavailable(TurnError):
    """A set of tools that the agent is to offer does not exist or may not be used."""


class LocalAnswerFailed(TurnError):
    """Home Assistant understood the input and could not do it: it says why itself."""


class Busy(TurnError):
    """Another turn of the conversation did not end in time."""


class IdTooLong(TurnError):
    """The id of the conversation, or of the device, is longer than any needs to be."""
