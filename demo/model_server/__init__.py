"""A scripted model behind a real HTTP server: it knows only the content of its requests, and fails on request.

It depends only on aiohttp. All that it knows of Home Assistant is the names of the tools that it is offered.
"""

from .anthropic_validation import anthropic_violations
from .chat_validation import chat_violations, message_bytes, shared_prefix
from .conversation import Answer
from .dropping import Dropping
from .faults import FAULTS
from .gemini_validation import gemini_violations
from .home_history import HomeHistory
from .phrases import WHAT_TO_TRY
from .responses_validation import responses_violations
from .script import call, thought, words
from .server import ModelServer
from .settings import Settings
from .shapes import SHAPES
from .threaded import serve_in_thread

__all__ = [
    "FAULTS",
    "SHAPES",
    "WHAT_TO_TRY",
    "Answer",
    "Dropping",
    "HomeHistory",
    "ModelServer",
    "Settings",
    "anthropic_violations",
    "call",
    "chat_violations",
    "gemini_violations",
    "message_bytes",
    "responses_violations",
    "serve_in_thread",
    "shared_prefix",
    "thought",
    "words",
]
