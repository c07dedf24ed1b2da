"""A scripted model behind a real HTTP server: it knows only what it is sent, and fails on request.

Needs aiohttp and nothing else; knows nothing of Home Assistant but the names of the tools that it is offered.
"""

from .faults import FAULTS
from .phrases import WHAT_TO_TRY
from .server import ModelServer
from .settings import Settings
from .shapes import SHAPES
from .threaded import serve_in_thread
from .validation import chat_violations, message_bytes, shared_prefix

__all__ = [
    "FAULTS",
    "SHAPES",
    "WHAT_TO_TRY",
    "ModelServer",
    "Settings",
    "chat_violations",
    "message_bytes",
    "serve_in_thread",
    "shared_prefix",
]
