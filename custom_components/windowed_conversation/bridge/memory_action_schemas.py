"""The names of the actions on memory, and their schemas."""

from typing import Any

from homeassistant.helpers import config_validation as cv
from homeassistant.util import dt as dt_util
import probatio

from ..memory import FACT_LENGTH, KINDS, NAME_LENGTH, Kind, fact_text
from .action_schemas import ATTR_LIMIT, ATTR_TEXT, figure

ATTR_BEFORE = "before"
ATTR_DRY_RUN = "dry_run"
ATTR_EVERYONE = "everyone"
ATTR_EVERYTHING = "everything"
ATTR_FILENAME = "filename"
ATTR_IDS = "ids"
ATTR_KINDS = "kinds"
ATTR_MEMORIES = "memories"
ATTR_OFFSET = "offset"
ATTR_PERSON = "person"
ATTR_PRIVATE = "private"
ATTR_QUERY = "query"
ATTR_SINCE = "since"
ATTR_UNTIL = "until"

SERVICE_REMEMBER = "remember"
SERVICE_RECALL = "recall"
SERVICE_FORGET = "forget"
SERVICE_LIST_MEMORIES = "list_memories"
SERVICE_EXPORT_MEMORIES = "export_memories"
SERVICE_IMPORT_MEMORIES = "import_memories"

_MOST_RECALLED, _MOST_LISTED, _MOST_EXPORTED, _MOST_IMPORTED = 50, 100, 1_000, 10_000
_MOST_IDS = 1_000
_QUERY_LENGTH = 1_000


def memory_id(kind: Kind, row: int) -> str:
    """Return the id of a memory in actions."""
    return f"{kind}:{row}"


def _known_id(value: object) -> tuple[Kind, int]:
    """Return the kind and the row of an id; raises `probatio.Invalid`."""
    for kind in KINDS:
        start, colon, row = str(value).partition(":")
        if start == kind and colon and row.isascii() and row.isdigit() and len(row) <= len(str(2**53)):
            return kind, int(row)
    raise probatio.Invalid(f"expected an id such as {memory_id('fact', 7)}")


def _fact(value: object) -> str:
    """Return a text that can be remembered; raises `probatio.Invalid`."""
    text = cv.string(value)
    if len(text) > FACT_LENGTH:
        raise probatio.Invalid(f"expected at most {FACT_LENGTH} characters")
    try:
        return fact_text(text)
    except ValueError as err:
        raise probatio.Invalid("expected words") from err


def _seconds(value: object) -> float:
    """Return a time, in Home Assistant's zone if it names none; raises `probatio.Invalid`."""
    time = cv.datetime(value)
    try:
        return (time if time.tzinfo else time.replace(tzinfo=dt_util.get_default_time_zone())).timestamp()
    except (OSError, OverflowError, ValueError) as err:
        raise probatio.Invalid("expected a time of the calendar") from err


def limit_of(most: int, default: int) -> dict[Any, Any]:
    """Return the field for how much is returned."""
    key = probatio.Optional(ATTR_LIMIT, default=default)
    return {key: probatio.All(figure, probatio.Range(min=1, max=most))}


NAME = probatio.All(cv.string, probatio.Length(min=1, max=NAME_LENGTH))
_QUERY = probatio.All(cv.string, probatio.Length(min=1, max=_QUERY_LENGTH))
_WHOSE = {probatio.Optional(ATTR_PERSON): NAME}
_EVERYONE = {probatio.Optional(ATTR_EVERYONE, default=False): cv.boolean}
_OFFSET = {probatio.Optional(ATTR_OFFSET, default=0): figure}
FILENAME = probatio.All(cv.string, probatio.Length(min=1, max=4_096))
_FILENAME = {probatio.Optional(ATTR_FILENAME): FILENAME}


def _kinds(default: tuple[Kind, ...]) -> dict[Any, Any]:
    return {probatio.Optional(ATTR_KINDS, default=list(default)): probatio.All(cv.ensure_list, [probatio.In(KINDS)])}


def span(end: str) -> dict[Any, Any]:
    """Return the fields for a time and a later one of this name."""
    return {probatio.Optional(ATTR_SINCE): _seconds, probatio.Optional(end): _seconds}


REMEMBER_SCHEMA = probatio.Schema(
    {**_WHOSE, probatio.Required(ATTR_TEXT): _fact, probatio.Optional(ATTR_PRIVATE): cv.boolean}
)
RECALL_SCHEMA = probatio.Schema(
    {
        **_WHOSE,
        probatio.Required(ATTR_QUERY): _QUERY,
        **_kinds(KINDS),
        **limit_of(_MOST_RECALLED, 10),
        **span(ATTR_UNTIL),
    }
)
LIST_MEMORIES_SCHEMA = probatio.Schema(
    {**_WHOSE, **_kinds(("fact",)), **limit_of(_MOST_LISTED, 20), **_OFFSET, **span(ATTR_UNTIL)}
)
FORGET_SCHEMA = probatio.Schema(
    {
        **_WHOSE,
        **_EVERYONE,
        probatio.Optional(ATTR_IDS): probatio.All(cv.ensure_list, probatio.Length(min=1, max=_MOST_IDS), [_known_id]),
        probatio.Optional(ATTR_QUERY): _QUERY,
        **span(ATTR_BEFORE),
        probatio.Optional(ATTR_EVERYTHING, default=False): cv.boolean,
        probatio.Optional(ATTR_DRY_RUN, default=False): cv.boolean,
    }
)
EXPORT_MEMORIES_SCHEMA = probatio.Schema(
    {**_WHOSE, **_EVERYONE, **limit_of(_MOST_EXPORTED, _MOST_EXPORTED), **_OFFSET, **_FILENAME}
)
IMPORT_MEMORIES_SCHEMA = probatio.Schema(
    {
        **_WHOSE,
        probatio.Optional(ATTR_MEMORIES): probatio.All(
            cv.ensure_list, probatio.Length(max=_MOST_IMPORTED), [probatio.Any(dict, str)]
        ),
        **_FILENAME,
    }
)
