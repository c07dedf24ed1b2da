"""The errors that can end a turn, besides the provider's.

Their messages are for the log and never contain what a person said. Users get a translated text.
"""


class TurnError(Exception):
    """The base class of errors that end a turn without an answer."""


class EmptyInput(TurnError):
    """The input has no text."""


class EmptyAnswer(TurnError):
    """The model's answer was empty.

    `is_unexplained` means that the answer contained nothing at all, so the length of the request may be the reason.
    """

    def __init__(self, *message: str, is_unexplained: bool = False) -> None:
        super().__init__(*message)
        self.is_unexplained = is_unexplained


class NoSummary(TurnError):
    """The model did not write the summary that it was asked for."""


class InvalidData(TurnError):
    """The model's answer does not have the data that was asked for. `is_json` is false if it is no JSON at all."""

    def __init__(self, *message: str, is_json: bool = True) -> None:
        super().__init__(*message)
        self.is_json = is_json


class TokenCountUnsupported(TurnError):
    """The provider has no endpoint that counts tokens."""


class PromptRenderingFailed(TurnError):
    """The instructions could not be rendered."""


class ToolsUnavailable(TurnError):
    """A tool set (LLM API) that the agent is configured to use does not exist."""


class LocalAnswerFailed(TurnError):
    """Home Assistant understood the input but failed to act on it; its own response explains the failure."""


class ConversationBusy(TurnError):
    """Another turn of the conversation did not end in time."""


class IdTooLong(TurnError):
    """The id of the conversation or the device is too long."""
