"""The errors of a turn besides the provider's.

Messages are for the log: they never contain the words of a person. Users get a translated text.
"""


class TurnError(Exception):
    """A turn ended without an answer."""


class NothingSaid(TurnError):
    """The input has no words."""


class EmptyAnswer(TurnError):
    """The model's answer was empty.

    `is_unexplained`: there was nothing in it at all, so that the length of the request may be the reason.
    """

    def __init__(self, *message: str, is_unexplained: bool = False) -> None:
        super().__init__(*message)
        self.is_unexplained = is_unexplained


class NoSummary(TurnError):
    """The model was asked for a summary and wrote none."""


class NoTokenCount(TurnError):
    """The provider has no endpoint that counts tokens."""


class PromptFailed(TurnError):
    """The instructions could not be rendered."""


class ToolsUnavailable(TurnError):
    """A set of tools of the agent does not exist."""


class LocalAnswerFailed(TurnError):
    """Home Assistant understood the input and failed to act on it: it says why."""


class Busy(TurnError):
    """Another turn of the conversation did not end in time."""


class IdTooLong(TurnError):
    """The id of the conversation or the device is too long."""
