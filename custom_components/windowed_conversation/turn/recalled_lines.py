"""What was recalled, as lines of data for a model: quoted, one line each, with who and when."""

from datetime import datetime, tzinfo

from ..memory import Memory, Recalled, one_line
from .narration import SUMMARY_OF
from .remembering import quoted
from .speaker import Speaker

_LINES = 8
_LENGTH = 300
_HOME = "the home"


def recalled_lines(memory: Memory, speaker: Speaker, query: str, zone: tzinfo) -> tuple[str, ...]:
    """Return what memory finds for a question and the speaker may know, best first."""
    found = memory.recall(query, person=speaker.person, speaker=speaker.name, limit=_LINES, private=speaker.is_alone)
    return tuple(_line(recalled, speaker, zone) for recalled in found)


def _line(recalled: Recalled, speaker: Speaker, zone: tzinfo) -> str:
    who = _HOME if recalled.person is None else speaker.name or recalled.person
    if recalled.kind == "episode":
        who = f"{who}, {SUMMARY_OF}"
    text = one_line((recalled.excerpt or recalled.text).replace("\n", " / "), _LENGTH)
    return f"{datetime.fromtimestamp(recalled.at, zone):%Y-%m-%d}, {who}: {quoted(text)}"
