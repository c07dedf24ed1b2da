"""A log of the server's requests and their outcomes, for tests and benchmarks. API keys are never stored.

Times are `time.monotonic_ns()`, which is CLOCK_MONOTONIC and the same for all processes of the machine.
"""

from collections import deque
from dataclasses import asdict, dataclass, field
from enum import StrEnum, auto
import time
from typing import Any

from aiohttp import web

from .violations import Violation

_MAX_RECORDS = 1000
_SECRET_HEADERS = frozenset({"authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie"})


class RequestOutcome(StrEnum):
    """The ways in which the handling of a request can end."""

    OPEN = auto()
    ANSWERED = auto()
    REFUSED = auto()
    CLIENT_LEFT = auto()
    CUT = auto()
    STOPPED = auto()


@dataclass(slots=True)
class RequestRecord:
    """One request. Times are in nanoseconds, or None if that point was not reached."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    arrived_ns: int
    # The wire format.
    format: str
    query: dict[str, str] = field(default_factory=dict)
    # Whether it asks for a model's answer, and not for the list of models, a token count or a compaction.
    for_answer: bool = False
    # The length of the body in bytes.
    size: int = 0
    # The body as JSON.
    body: Any = None
    # The received body, which the control API omits.
    raw: bytes = field(default=b"", repr=False)
    violations: list[Violation] = field(default_factory=list)
    fault: str | None = None
    status: int | None = None
    # Empty until the answer has been billed.
    usage: dict[str, int] = field(default_factory=dict)
    # The time just before the first bytes of the answer were written.
    first_event_ns: int | None = None
    # The time just before the first text of the answer was written.
    first_content_ns: int | None = None
    # The number of written events with text.
    text_events: int = 0
    ended_ns: int | None = None
    outcome: RequestOutcome = RequestOutcome.OPEN
    # The client's address and port, which identifies requests on the same connection.
    client: str = ""

    @property
    def client_left(self) -> bool:
        """Whether the client disconnected before the answer was complete."""
        return self.outcome is RequestOutcome.CLIENT_LEFT

    def mark_written(self, *, text: bool) -> None:
        """Record that bytes of the answer are about to be written."""
        now = time.monotonic_ns()
        self.first_event_ns = self.first_event_ns or now
        if text:
            self.text_events += 1
            self.first_content_ns = self.first_content_ns or now

    def end(self, outcome: RequestOutcome) -> None:
        """Record the outcome and the end of the request; only the first outcome counts."""
        if self.outcome is RequestOutcome.OPEN:
            self.outcome = outcome
            self.ended_ns = time.monotonic_ns()

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON for the control API."""
        shown = {**asdict(self), "client_left": self.client_left}
        del shown["raw"]
        return shown


class RequestLog:
    """The newest requests, oldest first, and the total number of requests."""

    def __init__(self) -> None:
        self.records: deque[RequestRecord] = deque(maxlen=_MAX_RECORDS)
        self.received_count = 0

    def open_record(self, http: web.Request, wire: str, *, for_answer: bool) -> RequestRecord:
        """Create the record of a request that has just arrived."""
        arrived = time.monotonic_ns()
        kept = {name.lower(): value for name, value in http.headers.items() if name.lower() not in _SECRET_HEADERS}
        query = {name: value for name, value in http.query.items() if name != "key"}
        self.received_count += 1
        record = RequestRecord(self.received_count, http.method, http.path, kept, arrived, wire, query, for_answer)
        record.client = str(http.transport.get_extra_info("peername")) if http.transport else ""
        self.records.append(record)
        return record

    def clear(self) -> None:
        """Remove the requests from the log, but keep the total number."""
        self.records.clear()
