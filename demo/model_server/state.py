"""The state of a running server, read and changed from Python and the control API alike."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from .conversation import Answer
from .delivery import Hold
from .dropping import Dropping
from .faults import ArmedFault, FaultSwitch
from .home_history import HomeHistory
from .prompt_cache import PromptCache
from .refusal import NO_SUCH_MODEL, RefusedError
from .request_log import Record, RequestLog
from .script import Script
from .settings import Settings


class State(ABC):
    """Settings, the armed fault, the script, the log and the prompt cache. Options are the fields of `Settings`.

    Requests have to tell the home as `home` says that it was, if that is set. With `dropping`, only part of a long
    request to Chat Completions is read.
    """

    def __init__(self, **options: Any) -> None:
        self.settings = Settings(**options)
        self.faults = FaultSwitch()
        self.scripted = Script()
        self.log = RequestLog()
        self.cache = PromptCache()
        self.held: Hold | None = None
        self.home: HomeHistory | None = None
        self.dropping: Dropping | None = None
        self._started_with = self.settings

    @property
    def requests(self) -> list[Record]:
        """The requests for answers, oldest first; those for lists and counts are only in `log.records`."""
        return [record for record in self.log.records if record.for_answer]

    @property
    @abstractmethod
    def open_streams(self) -> int:
        """How many requests are being answered now."""

    @property
    @abstractmethod
    def open_connections(self) -> int:
        """How many connections are open, idle ones included, those to the control API not."""

    def fault(
        self,
        name: str,
        times: int | None = None,
        *,
        retry_after: float | None = None,
        after_words: int | None = None,
        code: str | None = None,
    ) -> None:
        """Answer the next `times` requests (None: all) with this fault; raises ValueError on a wrong value."""
        self.faults.armed = ArmedFault(name, times, retry_after, after_words, code)

    def script(self, *answers: Answer) -> None:
        """Answer the next requests with these, one each, and no longer with an earlier script.

        A request that is refused takes none.
        """
        self.scripted = Script(answers)

    def hold(self, after_words: int) -> Hold:
        """Stop each answer after this many words until the returned event is set, or until `reset`."""
        self.held = Hold(after_words)
        return self.held

    def change(self, **options: Any) -> None:
        """Change fields of `Settings` but `host` and `port`; raises ValueError on a wrong value."""
        if fixed := {"host", "port"} & options.keys():
            raise ValueError(f"{' and '.join(sorted(fixed))} cannot be changed while the server runs")
        self.settings = replace(self.settings, **options)

    def named_model(self, name: str) -> str:
        """Return the name of a model that is offered; raises RefusedError where it is none."""
        if self.settings.choice(name) is None:
            raise RefusedError(NO_SUCH_MODEL)
        return name

    def reset(self) -> None:
        """Go back to the start options, with no fault, script, hold or home, an empty log and an empty prompt cache."""
        self.settings = self._started_with
        if self.held:
            self.held.release()
            self.held = None
        self.home = None
        self.dropping = None
        self.faults.armed = None
        self.scripted = Script()
        self.log.clear()
        self.cache.clear()
