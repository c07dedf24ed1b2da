"""The fields of a recorded turn, named as in the responses of actions. It has ids where a response has names."""

from collections.abc import Mapping
from hashlib import sha256
import json
from types import UnionType
from typing import Any, NotRequired, TypedDict, cast, get_type_hints

from ..store import has_json_type

# In characters, for each text of the statistics.
MAX_FIELD_CHARS = 500
_MAX_EXACT_JSON_INT = 2**53
_ELLIPSIS = "…"


class ToolCallText(TypedDict):
    """A tool call. Arguments that are too long to be stored whole are a truncated text."""

    name: str
    arguments: Any
    # As it was sent, or None if it was not sent.
    result: str | None


class SentRequest(TypedDict):
    """The content of a request. A part that is too long to be stored whole is a truncated text."""

    system: str
    tools: Any
    messages: list[Any]


class AttemptRecord(TypedDict):
    """A request to a model, successful or not. Times are in seconds since its start."""

    purpose: str
    # The id of the agent whose model was used.
    agent: str
    provider: str
    model: str
    outcome: str
    error: str | None
    # The provider's own finish reason.
    finish: str | None
    # In seconds since the start of the turn.
    began: float
    time_to_first_byte: float | None
    time_to_first_token: float | None
    duration: float
    parameters: dict[str, Any]
    # The fingerprints of the system prompt and of the tool list, or None if there was none.
    prompt: str | None
    tool_list: str | None
    # The names of the called tools.
    tools: list[str]
    # None if none was reported.
    usage: dict[str, int] | None
    # Read only with a single turn, if its text is stored.
    sent: NotRequired[SentRequest]


class TurnRecord(TypedDict):
    """A turn, or an agent's work outside of turns. Times are in seconds since its start."""

    # Sorts by time.
    turn_id: str
    # The start, in seconds since the epoch.
    time: float
    # The id of the agent.
    agent: str
    entity_id: str | None
    conversation_id: str | None
    # The id of a user, or None for an unknown speaker.
    person: str | None
    # What the person is known by, or None for an unknown speaker.
    known_by: str | None
    device: str | None
    # The entity id of the automation or script that asked, or None.
    automation: str | None
    route: str
    reason: str | None
    outcome: str
    error: str | None
    # The text of the error for the log.
    message: str | None
    # The id of the agent that answered.
    answered_by: str | None
    # The ids of the agents that failed before, each with its error.
    failures: list[dict[str, str]]
    # The names of the called tools.
    tools: list[str]
    failed_tool_calls: int
    # Whether the search of memory took too long, so that nothing was recalled.
    memory_late: bool
    # The number of requests, and the sum of their usage.
    requests: int
    usage: dict[str, int]
    # A decimal number of US dollars, or None if it is unknown.
    cost: str | None
    time_to_first_token: float | None
    duration: float
    # The id of the turn that precedes a summary.
    summarizes_turn: str | None
    waterfall: list[dict[str, Any]]
    attempts: list[AttemptRecord]
    # Whether the record has the text, which only some functions read.
    has_text: bool
    said: NotRequired[str]
    answer: NotRequired[str]
    tool_calls: NotRequired[list[ToolCallText]]


# The values of unknown fields, which are not stored: None if the type has it, else an empty value.
EMPTY_TURN: TurnRecord = cast(
    "TurnRecord",
    {
        name: None if isinstance(kind, UnionType) else kind()
        for name, kind in get_type_hints(TurnRecord).items()
        if name in TurnRecord.__required_keys__
    },
)

# The fields that have columns and tables of their own.
_FIELDS_ELSEWHERE = {"turn_id", "time", "has_text", "said", "answer", "tool_calls"}

encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str).encode


def encode_statistics(turn: TurnRecord) -> str:
    """Return the statistics of a turn as JSON. Raises `ValueError` if a number is not finite."""
    empty: Mapping[str, object] = EMPTY_TURN
    fields: dict[str, object] = {
        name: value for name, value in turn.items() if name not in _FIELDS_ELSEWHERE and value != empty[name]
    }
    if turn["attempts"]:
        attempts = [{name: value for name, value in each.items() if name != "sent"} for each in turn["attempts"]]
        fields["attempts"] = attempts
    return encode_json(_limit_values(fields))


def decode_statistics(text: str, turn_id: str, at: float, *, has_text: bool) -> TurnRecord | None:
    """Return the turn with these statistics, or None if they are damaged."""
    try:
        turn: Any = {**EMPTY_TURN, **json.loads(text), "turn_id": turn_id, "time": at, "has_text": has_text}
    except ValueError, TypeError, RecursionError:
        return None
    return turn if has_json_type(turn, TurnRecord) else None


def decode_json(text: str) -> Any:
    """Return the value of a JSON text, or the text itself if it was truncated."""
    try:
        return json.loads(text)
    except ValueError, RecursionError:
        return text


def truncate(text: str, length: int) -> str:
    """Return a text of at most this length that UTF-8 can encode."""
    sound = text.encode(errors="replace").decode()
    return sound if len(sound) <= length else sound[: length - len(_ELLIPSIS)] + _ELLIPSIS


def calculate_fingerprint(text: str) -> str:
    """Return the SHA-256 hash of a text in hexadecimal digits, which is the same for equal texts."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def _limit_values(value: Any) -> Any:
    """Return a JSON value with its texts and integers limited, because some come from a server."""
    match value:
        case bool():
            return value
        case str():
            return truncate(value, MAX_FIELD_CHARS)
        case int():
            return min(max(value, 0), _MAX_EXACT_JSON_INT)
        case dict():
            return {name: _limit_values(each) for name, each in value.items()}
        case list() | tuple():
            return [_limit_values(each) for each in value]
    return value
