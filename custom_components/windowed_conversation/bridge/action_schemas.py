"""The names of the actions, and their schemas."""

from enum import StrEnum

from homeassistant.const import ATTR_ENTITY_ID
from homeassistant.helpers import config_validation as cv
import probatio

from ..window import MAX_COUNT, is_count

ATTR_CONVERSATION_ID = "conversation_id"
ATTR_CONTENT = "content"
ATTR_CONVERSATION = "conversation"
ATTR_NEW_CONVERSATION_ID = "new_conversation_id"
ATTR_EXCHANGE = "exchange"
ATTR_ADD = "add"
ATTR_REMOVE = "remove"
ATTR_TAGS = "tags"
ATTR_MATCH = "match"
ATTR_EXCLUDE = "exclude"
ATTR_KEEP = "keep"
ATTR_TEXT = "text"
ATTR_LIMIT = "limit"

SERVICE_LIST_CONVERSATIONS = "list_conversations"
SERVICE_GET_WINDOW = "get_window"
SERVICE_RESET_WINDOW = "reset_window"
SERVICE_EXPORT_CONVERSATION = "export_conversation"
SERVICE_IMPORT_CONVERSATION = "import_conversation"
SERVICE_FORK_CONVERSATION = "fork_conversation"
SERVICE_TAG_EXCHANGE = "tag_exchange"
SERVICE_SUMMARIZE_WINDOW = "summarize_window"
SERVICE_COUNT_TOKENS = "count_tokens"

_DEFAULT_KEEP = 2
_DEFAULT_LIMIT, _GREATEST_LIMIT = 20, 100
# A request ends with what the user says.
_DEFAULT_TEXT = "Hello"


class WindowContent(StrEnum):
    """The content of the response of `get_window`."""

    MESSAGES = "messages"
    STATISTICS = "statistics"


class TagMatch(StrEnum):
    """The rule for an exchange to match: any of the given tags, or all of them."""

    ANY = "any"
    ALL = "all"


def figure(value: object) -> int:
    """Return a whole number, also of a template's text; raises `probatio.Invalid`."""
    figure = value if isinstance(value, int) else cv.positive_int(value)
    if not is_count(figure) or (isinstance(value, float) and value != figure):
        raise probatio.Invalid(f"expected a whole number from 0 to {MAX_COUNT}")
    return figure


_TAGS = probatio.All(cv.ensure_list, [cv.string])
_CONVERSATION = {
    probatio.Required(ATTR_ENTITY_ID): cv.entity_id,
    probatio.Optional(ATTR_CONVERSATION_ID): cv.string,
}
LIST_SCHEMA = probatio.Schema(
    {
        probatio.Optional(ATTR_ENTITY_ID): cv.entity_id,
        probatio.Optional(ATTR_LIMIT, default=_DEFAULT_LIMIT): probatio.All(
            figure, probatio.Range(min=1, max=_GREATEST_LIMIT)
        ),
    }
)
GET_WINDOW_SCHEMA = probatio.Schema(
    {
        **_CONVERSATION,
        probatio.Optional(ATTR_CONTENT, default=WindowContent.MESSAGES): probatio.Coerce(WindowContent),
        probatio.Optional(ATTR_TAGS, default=list): _TAGS,
        probatio.Optional(ATTR_MATCH, default=TagMatch.ANY): probatio.Coerce(TagMatch),
        probatio.Optional(ATTR_EXCLUDE, default=list): _TAGS,
    }
)
CONVERSATION_SCHEMA = probatio.Schema(_CONVERSATION)
IMPORT_SCHEMA = probatio.Schema({**_CONVERSATION, probatio.Required(ATTR_CONVERSATION): dict})
FORK_SCHEMA = probatio.Schema({**_CONVERSATION, probatio.Required(ATTR_NEW_CONVERSATION_ID): cv.string})
TAG_SCHEMA = probatio.Schema(
    {
        **_CONVERSATION,
        probatio.Optional(ATTR_EXCHANGE, default=1): figure,
        probatio.Optional(ATTR_ADD, default=list): _TAGS,
        probatio.Optional(ATTR_REMOVE, default=list): _TAGS,
    }
)
SUMMARIZE_SCHEMA = probatio.Schema({**_CONVERSATION, probatio.Optional(ATTR_KEEP, default=_DEFAULT_KEEP): figure})

COUNT_SCHEMA = probatio.Schema(
    {
        **_CONVERSATION,
        probatio.Optional(ATTR_TEXT, default=_DEFAULT_TEXT): probatio.All(cv.string, probatio.Length(min=1)),
    }
)
