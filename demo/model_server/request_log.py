"""A log of the server's requests and their outcomes, for tests and benchmarks. Keys are never kept.

Times are `time.monotonic_ns()`: CLOCK_MONOTONIC, the same for every process of the machine.
"""

from collections import deque
from dataclasses import asdict, dataclass, field
from enum import StrEnum, auto
import time
from typing import Any

from aiohttp import web

from .violations import Violation

_KEPT_RECORDS = 1000
_KEY_HEADERS = frozenset({"authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie"})


class Outcome(StrEnum):
    """The end of a request."""

    OPEN = auto()
    ANSWERED = auto()
    REFUSED = auto()
    CLIENT_LEFT = auto()
    CUT = auto()
    STOPPED = auto()


@dataclass(slots=True)
class Record:
    """One request in the wire format `format`. Times are nanoseconds, or None if it did not come to that.

    `raw` is the body as it came, `size` its bytes, `body` its JSON; the control API leaves `raw` out.
    `for_answer` is whether the model is asked, not the list of models, a token count or a compaction.
    `usage` is empty until the answer has been billed.
    `first_event_ns` is when the first bytes of the answer were about to be written, `first_content_ns` the same for
    the first text; `text_events` counts the events with text that were written.
    `client` is the client's end of the connection, by which requests on one connection are known.
    """

    number: int
    method: str
    path: str
    headers: dict[str, str]
    arrived_ns: int
    format: str
    query: dict[str, str] = field(default_factory=dict)
    for_answer: bool = False
    size: int = 0
    body: Any = None
    raw: bytes = field(default=b"", repr=False)
    violations: list[Violation] = field(default_factory=list)
    fault: str | None = None
    status: int | None = None
    usage: dict[str, int] = field(default_factory=dict)
    first_event_ns: int | None = None
    first_content_ns: int | None = None
    text_events: int = 0
    ended_ns: int | None = None
    outcome: Outcome = Outcome.OPEN
    client: str = ""

    @property
    def client_left(self) -> bool:
        """Whether the client hung up before the answer was complete."""
        return self.outcome is Outcome.CLIENT_LEFT

    def written(self, *, text: bool) -> None:
        """Note that bytes of the answer are about to be written."""
        now = time.monotonic_ns()
        self.first_event_ns = self.first_event_ns or now
        if text:
            self.text_events += 1
            self.first_content_ns = self.first_content_ns or now

    def end(self, outcome: Outcome) -> None:
        """Note how it ended; the first reason counts."""
        if self.outcome is Outcome.OPEN:
            self.outcome = outcome
            self.ended_ns = time.monotonic_ns()

    def to_json(self) -> dict[str, Any]:
        """Return the record for the control API."""
        shown = {**asdict(self), "client_left": self.client_left}
        del shown["raw"]
        return shown


class RequestLog:
    """The newest requests, oldest first, and how many there were."""

    def __init__(self) -> None:
        self.records: deque[Record] = deque(maxlen=_KEPT_RECORDS)
        self.received = 0

    def open(self, http: web.Request, wire: str, *, for_answer: bool) -> Record:
        """Start the record of a request that has arrived just now."""
        arrived = time.monotonic_ns()
        kept = {name.lower(): value for name, value in http.headers.items() if name.lower() not in _KEY_HEADERS}
        query = {name: value for name, value in http.query.items() if name != "key"}
        self.received += 1
        record = Record(self.received, http.method, http.path, kept, arrived, wire, query, for_answer)
        record.client = str(http.transport.get_extra_info("peername")) if http.transport else ""
        self.records.append(record)
        return record

    def clear(self) -> None:
        """Forget the requests, not how many there were."""
        self.records.clear()
