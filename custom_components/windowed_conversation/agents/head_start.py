"""Head starts: while a person still speaks, a model at home is loaded, or a connection to another server is opened."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, replace
import logging
import math
import time
from typing import Any

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import HomeAssistant, callback

from ..bridge.errors import faults_logged
from ..providers import ProviderError, Request, ToolSchema
from ..turn.ports import Model, PromptFingerprints, Question
from ..window import Message, Role, WindowRegistry

_LOGGER = logging.getLogger(__name__)

# For how long after a question its model is taken as loaded, in seconds: Ollama unloads a model after five minutes,
# https://docs.ollama.com/faq. Until then a server with one slot has the whole conversation in its cache, and a shorter
# request would make it forget the end. Home Assistant's own conversations end after five minutes, too.
_LOADED = 240.0

# The least time between two head starts of an account, in seconds.
_LEAST_PAUSE = 60.0

# How long a connection may take, in seconds. It is of no use to anybody later.
_CONNECTING = 10.0

# A request needs something to answer. The next turn's request has the same beginning.
_ANYTHING = "."


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The beginning of a question's requests that all speakers share.

    `key` is that of its window, whose system prompt is the one that was sent. `at` is on the monotonic clock.
    """

    key: str | None
    tools: tuple[ToolSchema, ...]
    prompt: tuple[int, int]
    at: float


class HeadStart:
    """The head starts of an account: one at a time, and at most one a minute. `connect` opens a connection.

    A server that may cost something gets no request and no key. A server at home that was not asked for a while is sent
    the beginning of the agent's last request, for one token of an answer: it then loads the model and reads the
    beginning of the next turn's request. Nothing is billed, counted, recorded or raised.
    """

    def __init__(
        self,
        hass: HomeAssistant,
        entry: ConfigEntry[Any],
        connect: Callable[[], Coroutine[Any, Any, None]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hass = hass
        self._entry = entry
        self._connect = connect
        self._clock = clock
        # by the ids of the agents
        self._beginnings: dict[str, _Beginning] = {}
        self._began_at = -math.inf
        self._task: asyncio.Task[None] | None = None
        # the beginning that the running head start has the server read, or None
        self._read: _Beginning | None = None

    @callback
    def begin(self, model: Model, windows: WindowRegistry[str], patience: float) -> None:
        """Begin one in the background if it may help a turn of the agent with these windows.

        A server at home has `patience` seconds.
        """
        now, beginning = self._clock(), self._beginnings.get(model.agent)
        is_on = self._task is not None and not self._task.done()
        if is_on or now - self._began_at < _LEAST_PAUSE or model.pause.seconds_left:
            return
        if not model.is_at_home:
            self._run(self._connect(), _CONNECTING)
        elif beginning is None or now - beginning.at >= _LOADED:
            request, self._read = _request(model, beginning, windows)
            self._run(_async_load(model, request), patience)

    @callback
    def on_question(self, question: Question, prompt: PromptFingerprints, key: str | None) -> None:
        """Take in a question for the agent's model, in the window of this key.

        A head start goes on, even if its turn was answered locally: some servers begin to load again when a client
        leaves. But while a server that answers one request at a time reads something else, the question would wait.
        Leaving then takes no longer than without a head start.
        """
        beginning = _Beginning(key, question.tools, (prompt.instructions, prompt.entities), self._clock())
        self._beginnings[question.model.agent] = beginning
        other = replace(self._read, key=beginning.key, at=beginning.at) if self._read else beginning
        if self._task is not None and other != beginning:
            self._task.cancel()

    def _run(self, work: Coroutine[Any, Any, None], seconds: float) -> None:
        self._began_at = self._clock()
        self._task = self._entry.async_create_background_task(
            self._hass, self._async_quietly(work, seconds), f"head start of {self._entry.title}"
        )

    async def _async_quietly(self, work: Coroutine[Any, Any, None], seconds: float) -> None:
        with faults_logged(_LOGGER, "A head start failed in an unexpected way"):
            try:
                async with asyncio.timeout(seconds):
                    await work
            except (ProviderError, TimeoutError) as err:
                _LOGGER.debug("A head start ended with %s", type(err).__name__)
            finally:
                self._read = None


async def _async_load(model: Model, request: Request) -> None:
    async with aclosing(model.provider.stream(request)) as events:
        async for _ in events:
            pass


def _request(
    model: Model, beginning: _Beginning | None, windows: WindowRegistry[str]
) -> tuple[Request, _Beginning | None]:
    """Return a request for one token of an answer, and the beginning that it repeats.

    None if there was none since the start, or if its window is gone or was forgotten: the model is loaded all the same.
    """
    window = windows.peek(beginning.key) if beginning is not None and beginning.key is not None else None
    system = tuple(each for each in window.messages()[:1] if each.role is Role.SYSTEM) if window is not None else ()
    tools = beginning.tools if beginning is not None and system else ()
    question = Question(model, system="", prefix="", tools=tools, done="")
    request = question.request((*system, Message.user(_ANYTHING)), tools)
    return replace(request, max_answer_tokens=1), beginning if system else None
