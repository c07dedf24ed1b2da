"""An account's server while it is set up: its models and their sizes, whether it responds, and head starts."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
import logging
import math
import time
from typing import Any

from homeassistant.config_entries import ConfigEntry
from homeassistant.core import HassJob, HomeAssistant, callback
from homeassistant.helpers.event import async_call_later
from homeassistant.util import dt as dt_util

from ..bridge.account import ServerCache
from ..bridge.errors import faults_logged
from ..providers import (
    CONNECTION_ERRORS,
    AuthError,
    DeadlineExceeded,
    ListedModel,
    NamesItsSize,
    Provider,
    ProviderError,
    Request,
    ToolSchema,
    Unavailable,
)
from ..turn.model import BilledRequest, Model, PromptFingerprints, Question
from ..window import Message, Role, WindowRegistry
from .issues import async_raise_or_clear_server

_LOGGER = logging.getLogger(__name__)

# How long a server has for the whole list of its models, in seconds. The SDKs' own time-outs are for each read: a
# server that sends a byte now and then would be waited for without end.
_PATIENCE = 10.0

# When a server that a question found away becomes an issue, and how often it is looked for from then on, in seconds.
_AWAY_FOR_LONG = 30 * 60.0
_LOOK_AGAIN = 5 * 60.0
# How long a server has to say how much a model reads, and how long it is believed, in seconds. The user may restart it
# with a larger context.
_SIZE_PATIENCE = 5.0
_SIZE_STAYS = 300.0

_TEXTS: dict[type[ProviderError], str] = {
    Unavailable: "cannot be reached",
    DeadlineExceeded: "does not answer in time",
    AuthError: "refuses the key",
}

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


class AccountServer:
    """The server of an account. Nothing waits for it: its last list has the context sizes of its models.

    `on_listed` is called with each list. Logs one line when the server stops responding, and one when it is back.
    Raises an issue if it is still away half an hour after a question found it so, until it responds again.
    """

    def __init__(
        self,
        hass: HomeAssistant,
        entry: ConfigEntry[Any],
        provider: Provider,
        cache: ServerCache,
        on_listed: Callable[[Sequence[ListedModel]], Awaitable[None]],
    ) -> None:
        self._hass = hass
        self._entry = entry
        self._provider = provider
        self._cache = cache
        self._on_listed = on_listed
        self._is_listed = False
        self._listing: asyncio.Task[None] | None = None
        self._stop_timer: Callable[[], None] | None = None
        self._sizing: asyncio.Task[None] | None = None
        # When to ask how much a model reads, by its name, in seconds of the event loop.
        self._sizes_due_at: dict[str, float] = {}

    @property
    def answered_at(self) -> datetime | None:
        """When the server last answered a turn since the start, or None."""
        return self._cache.answered_at

    @callback
    def begin(self) -> None:
        """List the models in the background after the set-up. Starts reauthentication if the server refuses the key."""
        self._entry.async_on_unload(self._stop_looking)
        if self._cache.unanswered_since is None:
            async_raise_or_clear_server(self._hass, self._entry.entry_id, None)
        else:
            self._look_in(max(0.0, self._cache.unanswered_since + _AWAY_FOR_LONG - self._hass.loop.time()))
        self._list_soon(self._on_list_failed)

    @callback
    def on_answered(self) -> None:
        """Record that a turn was answered, and list the models if that has not been possible so far."""
        self._cache.answered_at = dt_util.utcnow()
        if self._cache.is_away:
            self._on_reachable()
        if not self._is_listed:
            # a server that responds without a list works
            self._list_soon(lambda _error: None)

    @callback
    def follow_size(self, billed: BilledRequest) -> None:
        """Ask how much the model reads after its first answer, when a bill is a surprise, and now and then.

        Only a server at home is asked: a gateway may not expect it.
        """
        model, now = billed.model, self._hass.loop.time()
        due_at = self._sizes_due_at.get(model.name, now)
        if not isinstance(self._provider, NamesItsSize) or not model.is_at_home or not billed.server:
            return
        if (now >= due_at or model.size.may_have_changed) and (self._sizing is None or self._sizing.done()):
            model.size.may_have_changed = False
            self._sizes_due_at[model.name] = now + _SIZE_STAYS
            self._sizing = self._entry.async_create_background_task(
                self._hass,
                self._async_ask_size(self._provider, model, billed.server),
                f"ask how much {model.name} reads",
            )

    async def _async_ask_size(self, provider: NamesItsSize, model: Model, server: str) -> None:
        with faults_logged(_LOGGER, "Asking how much a model reads failed in an unexpected way"):
            try:
                async with asyncio.timeout(_SIZE_PATIENCE):
                    size = await _async_size(provider, model.name, server)
            except (ProviderError, TimeoutError) as err:
                _LOGGER.debug("The server of %s does not say what it reads: %s", self._entry.title, type(err).__name__)
                # asked again after the next answer
                del self._sizes_due_at[model.name]
                return
            if size is not None:
                model.size.on_asked(size)

    @callback
    def on_failed(self, error: ProviderError, *, has_begun: bool) -> None:
        """Record why a turn has no answer from this server. A server that has begun an answer is not away."""
        if isinstance(error, AuthError):
            self._entry.async_start_reauth(self._hass)
        elif isinstance(error, CONNECTION_ERRORS) and not has_begun:
            self._is_listed = False
            self._on_away(error)
            if self._cache.unanswered_since is None:
                self._cache.unanswered_since = self._hass.loop.time()
                self._look_in(_AWAY_FOR_LONG)

    async def async_models(self) -> list[ListedModel]:
        """Return the models that the server lists now, or those that it listed last."""
        try:
            return await self._async_list()
        except ProviderError:
            return [*self._cache.models]

    @callback
    def _list_soon(self, on_error: Callable[[ProviderError], None]) -> None:
        if self._listing is None or self._listing.done():
            self._listing = self._entry.async_create_background_task(
                self._hass, self._async_list_in_background(on_error), f"list the models of {self._entry.title}"
            )

    async def _async_list_in_background(self, on_error: Callable[[ProviderError], None]) -> None:
        with faults_logged(_LOGGER, "Listing the models failed in an unexpected way"):
            try:
                await self._async_list()
            except ProviderError as err:
                on_error(err)

    async def _async_list(self) -> list[ListedModel]:
        try:
            async with asyncio.timeout(_PATIENCE):
                models = await self._provider.list_models()
        except TimeoutError as err:
            raise DeadlineExceeded("the models are not listed in time") from err
        self._is_listed = True
        self._on_reachable()
        self._cache.update(models)
        await self._on_listed(models)
        return models

    @callback
    def _on_list_failed(self, error: ProviderError) -> None:
        if isinstance(error, AuthError):
            self._entry.async_start_reauth(self._hass)
        if isinstance(error, (*CONNECTION_ERRORS, AuthError)):
            self._on_away(error)
            return
        # the server responds; not every server has a list
        self._is_listed = True
        _LOGGER.warning("The server of %s does not list its models: %s", self._entry.title, error)

    @callback
    def _on_away(self, error: ProviderError) -> None:
        if not self._cache.is_away:
            self._cache.is_away = True
            text = next(text for kind, text in _TEXTS.items() if isinstance(error, kind))
            _LOGGER.warning("The server of %s %s: %s", self._entry.title, text, error)

    @callback
    def _on_reachable(self) -> None:
        if self._cache.is_away:
            self._cache.is_away, self._cache.unanswered_since = False, None
            self._stop_looking()
            async_raise_or_clear_server(self._hass, self._entry.entry_id, None)
            _LOGGER.info("The server of %s answers again", self._entry.title)

    @callback
    def _look_in(self, seconds: float) -> None:
        self._stop_timer = async_call_later(self._hass, seconds, HassJob(self._look, cancel_on_shutdown=True))

    @callback
    def _look(self, _now: datetime) -> None:
        """List the models to see whether the server is back, although nobody asks."""
        self._look_in(_LOOK_AGAIN)
        self._list_soon(self._on_look_failed)

    @callback
    def _on_look_failed(self, error: ProviderError) -> None:
        if isinstance(error, CONNECTION_ERRORS):
            async_raise_or_clear_server(self._hass, self._entry.entry_id, self._entry.title)
        else:
            self._on_reachable()

    @callback
    def _stop_looking(self) -> None:
        if self._stop_timer is not None:
            self._stop_timer()
            self._stop_timer = None


async def _async_size(provider: NamesItsSize, model: str, server: str) -> int | None:
    """Ask for a model's size, twice if a connection that was kept had been closed. Raises `ProviderError`."""
    try:
        return await provider.context_tokens(model, server)
    except Unavailable:
        return await provider.context_tokens(model, server)


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
