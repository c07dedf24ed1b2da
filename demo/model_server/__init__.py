"""A scripted model behind a real HTTP server: it knows only the content of its requests, and fails on request.

It depends only on aiohttp. All that it knows of Home Assistant is the names of the tools that it is offered.
"""

from .anthropic_validation import find_anthropic_violations
from .chat_validation import count_shared_bytes, encode_messages, find_chat_violations
from .conversation import Answer
from .dropping import ContextTruncation
from .faults import FAULTS
from .gemini_validation import find_gemini_violations
from .home_history import HomeHistory
from .phrases import EXAMPLE_PHRASES
from .responses_validation import find_responses_violations
from .script import call, searched, thought, words
from .server import ModelServer
from .settings import Settings
from .shapes import SHAPES
from .threaded import serve_in_thread

__all__ = [
    "EXAMPLE_PHRASES",
    "FAULTS",
    "SHAPES",
    "Answer",
    "ContextTruncation",
    "HomeHistory",
    "ModelServer",
    "Settings",
    "call",
    "count_shared_bytes",
    "encode_messages",
    "find_anthropic_violations",
    "find_chat_violations",
    "find_gemini_violations",
    "find_responses_violations",
    "searched",
    "serve_in_thread",
    "thought",
    "words",
]
