"""The names of the actions on the record of turns, and their schemas."""

from typing import Any

from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.helpers import config_validation as cv
import probatio

from .action_schemas import ATTR_CONVERSATION_ID, figure
from .errors import ERROR_KEYS
from .memory_action_schemas import ATTR_FILENAME, ATTR_PERSON, ATTR_UNTIL, FILENAME, NAME, limit_of, span

ATTR_AFTER = "after"
ATTR_ERROR = "error"
ATTR_OUTCOME = "outcome"
ATTR_REQUEST = "request"
ATTR_ROUTE = "route"
ATTR_TOOL = "tool"
ATTR_TURN_ID = "turn_id"

SERVICE_EXPORT_TURNS = "export_turns"
SERVICE_GET_TURN = "get_turn"
SERVICE_LIST_TURNS = "list_turns"

TURN_ROUTES = ("local", "llm", "fallback", "summary")
TURN_OUTCOMES = ("answered", "error", "cancelled")

_MOST_LISTED = 100
# What is listed if no number is given.
_LISTED = 20
_TURN_ID = probatio.All(cv.string, probatio.Length(min=1, max=64))

# Of whom, with which agent, and when.
_WHICH: dict[Any, Any] = {
    probatio.Optional(ATTR_ENTITY_ID): cv.entity_id,
    probatio.Optional(ATTR_PERSON): NAME,
    **span(ATTR_UNTIL),
}
LIST_TURNS_SCHEMA = probatio.Schema(
    {
        **_WHICH,
        probatio.Optional(ATTR_ROUTE): probatio.In(TURN_ROUTES),
        probatio.Optional(ATTR_OUTCOME): probatio.In(TURN_OUTCOMES),
        probatio.Optional(ATTR_ERROR): probatio.In(sorted(ERROR_KEYS.values())),
        probatio.Optional(ATTR_TOOL): NAME,
        probatio.Optional(ATTR_CONVERSATION_ID): NAME,
        **limit_of(_MOST_LISTED, _LISTED),
        probatio.Optional(ATTR_AFTER): _TURN_ID,
    }
)
GET_TURN_SCHEMA = probatio.Schema(
    {
        probatio.Required(ATTR_TURN_ID): _TURN_ID,
        probatio.Optional(ATTR_REQUEST): probatio.All(figure, probatio.Range(min=1, max=1_000)),
    }
)
EXPORT_TURNS_SCHEMA = probatio.Schema({**_WHICH, probatio.Required(ATTR_FILENAME): FILENAME})
