"""Examples of metadata in texts, and a helper that filters a text in pieces."""

from collections.abc import Iterable

from custom_components.windowed_conversation.providers import UNSEEN_NOTE
from custom_components.windowed_conversation.providers.events import ReasoningDelta, TextDelta
from custom_components.windowed_conversation.turn.repetition import REPETITION_NOTE
from custom_components.windowed_conversation.turn.speech.speech_filter import SpeechFilter
from custom_components.windowed_conversation.window import INTERRUPTED_ANSWER, INTERRUPTED_CALL
from custom_components.windowed_conversation.window.summary import QUESTION
from custom_components.windowed_conversation.window.tool_results import CUT_MARK_PREFIX, STUB_PREFIX

CONTEXT = "[CONTEXT: time: Monday 2026-11-23 08:00; speaker: Ada; area: Attic]"
RECALL = (
    "[CONTEXT: time: Monday 2026-11-23 08:00; speaker: Ada; "
    'memory, quoted: 2026-11-20 home: "The bins go out"; 2026-11-21 Ada: "hi", answered: "Hello, \'Ada\'."]'
)
TIME = "## Time\nMonday 2026-11-23 08:05"
SECTIONS = f"{TIME}\n\n## Speaker\nAda\n\n## Area\nAttic"
RECALL_SECTIONS = f'{SECTIONS}\n\n## Memory\n2026-11-20 home: "The bins go out"; 2026-11-21 Ada: "hi"'
STUB = f'{STUB_PREFIX}GetState {{"area":["Attic"]}}: 412 tokens, beginning with {{"lights":["a","b"]}}]'
CUT = f"{CUT_MARK_PREFIX}2000 of 90000 characters.]"
ALL_NOTES = (INTERRUPTED_ANSWER, INTERRUPTED_CALL, QUESTION, REPETITION_NOTE, UNSEEN_NOTE, STUB, CUT)
TOOLS = frozenset({"intent__HassTurnOn", "GetState"})
JSON_CALL = '{"name": "HassTurnOn", "arguments": {"name": "kitchen \\"} light", "area": ["}"]}}'


def filter_pieces(pieces: Iterable[str]) -> tuple[str, str]:
    """Return the complete speech and the complete reasoning of a text that arrives in these pieces."""
    speech = SpeechFilter(TOOLS)
    deltas = [delta for piece in pieces for delta in speech.feed(piece)] + [*speech.flush()]
    spoken = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    thought = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    return spoken, thought
