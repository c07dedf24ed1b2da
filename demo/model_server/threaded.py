"""Runs the server in its own thread, for tests that have no event loop or that keep theirs busy."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from .server import ModelServer


@contextmanager
def serve_in_thread(**options: Any) -> Iterator[ModelServer]:
    """Run a server with options for `ModelServer`. Only its attributes may be used.

    Raises the errors of `ModelServer.start`.
    """
    loop = asyncio.new_event_loop()
    server = ModelServer(**options)
    try:
        loop.run_until_complete(server.start())
        thread = Thread(target=loop.run_forever, name="model-server")
        thread.start()
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
