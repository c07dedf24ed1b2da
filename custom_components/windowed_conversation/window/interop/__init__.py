"""A window in other projects' forms, and back: the state of a LangGraph graph, the messages of Chat Completions.

For programs that use the window without Home Assistant, which never loads this folder; `docs/langgraph.md` shows one.
"""

from .chat_completions import chat_completions, from_chat_completions
from .langgraph import from_langgraph_state, to_langgraph_state

__all__ = ["chat_completions", "from_chat_completions", "from_langgraph_state", "to_langgraph_state"]
