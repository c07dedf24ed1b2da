"""The state of a running server, which Python code and the control API can read and change."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from .conversation import Answer
from .delivery import AnswerHold
from .dropping import ContextTruncation
from .faults import ArmedFault, FaultSwitch
from .home_history import HomeHistory
from .prompt_cache import PromptCache
from .refusal import NO_SUCH_MODEL_REFUSAL, RefusedError
from .request_log import RequestLog, RequestRecord
from .script import AnswerScript
from .settings import Settings


class ServerState(ABC):
    """Settings, the armed fault, the script, the log and the prompt cache. Options are the fields of `Settings`.

    If `home_history` is set, states in requests must agree with it. If `truncation` is set, only part of a long Chat
    Completions request is read.
    """

    def __init__(self, **options: Any) -> None:
        self.settings = Settings(**options)
        self.faults = FaultSwitch()
        self.answer_script = AnswerScript()
        self.log = RequestLog()
        self.cache = PromptCache()
        self.current_hold: AnswerHold | None = None
        self.home_history: HomeHistory | None = None
        self.truncation: ContextTruncation | None = None
        self._initial_settings = self.settings

    @property
    def requests(self) -> list[RequestRecord]:
        """The requests for answers, oldest first; requests for model lists and counts are only in `log.records`."""
        return [record for record in self.log.records if record.for_answer]

    @property
    @abstractmethod
    def open_streams(self) -> int:
        """The number of requests that are being answered."""

    @property
    @abstractmethod
    def open_connections(self) -> int:
        """The number of open connections, including idle ones but not those to the control API."""

    def fault(
        self,
        name: str,
        times: int | None = None,
        *,
        retry_after: float | None = None,
        after_words: int | None = None,
        code: str | None = None,
    ) -> None:
        """Fail the next `times` requests (None: all) with this fault. Raises ValueError for an invalid value."""
        self.faults.armed = ArmedFault(name, times, retry_after, after_words, code)

    def script(self, *answers: Answer) -> None:
        """Set the answers to the next requests, one each, and discard an earlier script.

        A refused request does not use up an answer.
        """
        self.answer_script = AnswerScript(answers)

    def hold(self, after_words: int) -> AnswerHold:
        """Pause each answer after this many words until the returned Hold is released, or until `reset`."""
        self.current_hold = AnswerHold(after_words)
        return self.current_hold

    def change(self, **options: Any) -> None:
        """Change fields of `Settings` except `host` and `port`. Raises ValueError for an invalid value."""
        if fixed := {"host", "port"} & options.keys():
            raise ValueError(f"{' and '.join(sorted(fixed))} cannot be changed while the server runs")
        self.settings = replace(self.settings, **options)

    def require_model(self, name: str) -> str:
        """Return the name of the model if it is offered. Raises RefusedError if it is not."""
        if self.settings.parse_model_id(name) is None:
            raise RefusedError(NO_SUCH_MODEL_REFUSAL)
        return name

    def reset(self) -> None:
        """Restore the start options, remove fault, script, hold and home, and clear the log and the prompt cache."""
        self.settings = self._initial_settings
        if self.current_hold:
            self.current_hold.release()
            self.current_hold = None
        self.home_history = None
        self.truncation = None
        self.faults.armed = None
        self.answer_script = AnswerScript()
        self.log.clear()
        self.cache.clear()
