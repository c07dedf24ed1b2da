"""Conversion of a window to and from formats of other projects: LangGraph state and Chat Completions messages.

For programs that use the window without Home Assistant, which never loads this folder. See `docs/langgraph.md`.
"""

from .chat_completions import (
    from_chat_completions as from_chat_completions,
    to_chat_completions as to_chat_completions,
)
from .langgraph import (
    from_langgraph_state as from_langgraph_state,
    to_langgraph_state as to_langgraph_state,
)
