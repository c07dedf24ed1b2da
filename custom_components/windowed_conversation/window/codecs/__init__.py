"""A conversation in other forms, and back: our own, which loses nothing, Chat Completions, and LangGraph.

Where it is kept, and when, is decided elsewhere. A conversation that is malformed is refused whole.
"""

from .chat_completions import chat_completions, from_chat_completions
from .errors import CodecError, Malformed, NewerVersion, NotOurs, TooLarge
from .langgraph import from_langgraph_state, to_langgraph_state
from .snapshot import dump, dump_snapshot, load, load_snapshot

__all__ = [
    "CodecError",
    "Malformed",
    "NewerVersion",
    "NotOurs",
    "TooLarge",
    "chat_completions",
    "dump",
    "dump_snapshot",
    "from_chat_completions",
    "from_langgraph_state",
    "load",
    "load_snapshot",
    "to_langgraph_state",
]
