"""The tags of messages and exchanges: which are automatic, and which tags are valid."""

from collections.abc import Callable, Iterable
from functools import lru_cache

from .errors import InvalidTag
from .messages import Role

MAX_TAG_LENGTH = 100

# Conversations share few sets of tags. Each is one object, checked and hashed once.
SETS_IN_USE = 256

NO_TAGS = frozenset[str]()
# The tags that a trim looks at: these exchanges are evicted last, and those first.
IMPORTANT = "important"
EPHEMERAL = "ephemeral"
# A summary has this tag and is protected.
SUMMARY = "summary"
# An exchange whose turn ended before its answer did. Not an automatic tag of messages: it belongs to the exchange.
INCOMPLETE = "incomplete"

INPUT = frozenset({"input"})
OUTPUT_AND_CALL = frozenset({"output", "tool_call"})
BY_ROLE = {
    Role.SYSTEM: NO_TAGS,
    Role.USER: INPUT,
    Role.ASSISTANT: frozenset({"output"}),
    Role.TOOL: frozenset({"tool_call"}),
}

AUTOMATIC = frozenset[str]().union(*BY_ROLE.values())


def check_tags(tags: Iterable[str]) -> frozenset[str]:
    """Return the tags as a set. Raises `InvalidTag` for one that is not a text, blank, or over 100 characters."""
    if isinstance(tags, str):
        raise InvalidTag("tags are given as a collection, not as one text")
    return tag_set(tuple(tags))


@lru_cache(maxsize=SETS_IN_USE)
def tag_set(tags: tuple[str, ...]) -> frozenset[str]:
    """Return the tags as a set. Raises `InvalidTag` like `check_tags`."""
    for tag in tags:
        if not isinstance(tag, str) or not tag.strip():
            raise InvalidTag("a tag is a text that is not blank")
        if len(tag) > MAX_TAG_LENGTH:
            raise InvalidTag(f"a tag has at most {MAX_TAG_LENGTH} characters, not {len(tag)}")
    return frozenset(tags)


@lru_cache(maxsize=SETS_IN_USE)
def join_tags(tags: frozenset[str], more: frozenset[str]) -> frozenset[str]:
    """Return the union of both sets."""
    return tags | more


def tag_filter(tags: Iterable[str], match: str, exclude: Iterable[str]) -> Callable[[frozenset[str]], bool]:
    """Return a function that tells from an exchange's tags whether it is shown.

    An exchange is shown if it has any, or all, of `tags` (or if there are none), and none of `exclude`. Raises
    `InvalidTag`, and `ValueError` if `match` is neither "any" nor "all".
    """
    if match not in {"any", "all"}:
        raise ValueError(f"match must be 'any' or 'all', not {match!r}")
    wanted, unwanted = check_tags(tags), check_tags(exclude)

    def shows(found: frozenset[str]) -> bool:
        is_wanted = wanted <= found if match == "all" or not wanted else bool(wanted & found)
        return is_wanted and not unwanted & found

    return shows
