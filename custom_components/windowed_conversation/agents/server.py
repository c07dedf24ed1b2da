"""The server of a loaded account: its models and their context sizes, its availability, and head starts."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
import logging
import math
import time
from typing import Any

from homeassistant.config_entries import ConfigEntry
from homeassistant.const import CONF_MODEL
from homeassistant.core import HassJob, HomeAssistant, callback
from homeassistant.helpers.event import async_call_later
from homeassistant.util import dt as dt_util

from ..bridge.account import ServerCache, async_open_connection
from ..bridge.errors import log_and_suppress_faults
from ..providers import (
    CONNECTION_ERRORS,
    AuthError,
    DeadlineExceeded,
    ListedModel,
    ModelNotFound,
    Provider,
    ProviderError,
    Request,
    ToolSchema,
    Unavailable,
)
from ..store import do_nothing
from ..turn.model import BilledRequest, Model, Question
from ..window import Message, Role, WindowRegistry
from .issues import Issue, async_update_issue

_LOGGER = logging.getLogger(__name__)

# In seconds, for the complete list of models. The timeouts of the SDKs apply to each read, so they would never end a
# response of which a byte arrives now and then.
_LIST_TIMEOUT = 10.0

# In seconds: when a server that a turn found to be away becomes an issue, and how often it is checked after that.
_AWAY_ISSUE_DELAY = 30 * 60.0
_CHECK_INTERVAL = 5 * 60.0
# In seconds: how long the request for a model's context size may take, and how long its result is valid. The user may
# restart the server with a larger context.
_CONTEXT_SIZE_TIMEOUT = 5.0
_CONTEXT_SIZE_LIFETIME = 300.0

_TEXT_BY_ERROR: dict[type[ProviderError], str] = {
    Unavailable: "cannot be reached",
    DeadlineExceeded: "does not answer in time",
    AuthError: "refuses the key",
}

# In seconds. For this long after a question, its model is considered loaded, because Ollama unloads a model after five
# minutes, https://docs.ollama.com/faq. Until then, a server with one slot has the complete conversation in its cache,
# and a shorter request would remove the end of it. Home Assistant's own conversations also end after five minutes.
_ASSUMED_LOADED_SECONDS = 240.0

# In seconds, the shortest time between two head starts of an account.
_MIN_START_INTERVAL = 60.0

# In seconds, for opening a connection. One that takes longer is too late to help the turn.
_CONNECT_TIMEOUT = 10.0

# A request needs a user message. The request of the next turn has the same beginning but another message.
_PLACEHOLDER_TEXT = "."


@dataclass(slots=True)
class AccountServer:
    """The server of an account. It is watched in the background, and its last list has the models' context sizes.

    One line is logged when the server stops responding, and one when it is back. An issue is raised if it is still away
    half an hour after a turn found it away, until it responds again.
    """

    hass: HomeAssistant
    entry: ConfigEntry[Any]
    provider: Provider
    cache: ServerCache
    # Called with each list of models.
    on_listed: Callable[[Sequence[ListedModel]], Awaitable[None]]
    _is_listed: bool = False
    _list_task: asyncio.Task[None] | None = None
    _cancel_timer: Callable[[], None] | None = None
    _size_task: asyncio.Task[None] | None = None
    # When to request the context size of a model again, by model name, in seconds of the event loop's clock.
    _due_at_by_model: dict[str, float] = field(default_factory=dict)

    @property
    def is_reachable(self) -> bool | None:
        """Whether the server responded when it was last asked, or None if it was not asked since the set-up."""
        if self.cache.away_at is not None:
            return False
        return True if self._is_listed or self.cache.answered_at is not None else None

    @callback
    def start(self) -> None:
        """List the models in the background after the set-up. Start reauthentication if the server refuses the key."""
        self.entry.async_on_unload(self._stop_checks)
        if self.cache.unanswered_since is None:
            async_update_issue(self.hass, Issue.SERVER_AWAY, self.entry.entry_id, None)
        else:
            self._schedule_check(max(0.0, self.cache.unanswered_since + _AWAY_ISSUE_DELAY - self.hass.loop.time()))
        self._start_listing(self._on_list_failed)

    @callback
    def on_answered(self, agent_id: str) -> None:
        """Record that the agent's model answered a request, and list the models if that has not succeeded yet."""
        async_update_issue(self.hass, Issue.MODEL_RETIRED, agent_id, None)
        self.cache.answered_at = dt_util.utcnow()
        self._on_reachable()
        if not self._is_listed:
            # a server without a model list may still work, so an error is ignored
            self._start_listing(do_nothing)

    @callback
    def update_context_size(self, billed: BilledRequest) -> None:
        """Request the model's context size after its first answer, after unexpected usage, and from time to time.

        Only a server in the home network is asked, because a gateway may not expect the request.
        """
        model, now = billed.model, self.hass.loop.time()
        due_at = self._due_at_by_model.get(model.name, now)
        if not model.is_at_home or not billed.server_identity:
            return
        if (now >= due_at or model.size.may_have_changed) and (self._size_task is None or self._size_task.done()):
            model.size.may_have_changed = False
            self._due_at_by_model[model.name] = now + _CONTEXT_SIZE_LIFETIME
            self._size_task = self.entry.async_create_background_task(
                self.hass,
                self._async_update_size(model, billed.server_identity),
                f"ask how much {model.name} reads",
            )

    async def _async_update_size(self, model: Model, server: str) -> None:
        with log_and_suppress_faults(_LOGGER, "Asking how much a model reads failed in an unexpected way"):
            try:
                async with asyncio.timeout(_CONTEXT_SIZE_TIMEOUT):
                    size = await self.provider.fetch_context_tokens(model.name, server)
            except (ProviderError, TimeoutError) as err:
                _LOGGER.debug("The server of %s does not say what it reads: %s", self.entry.title, type(err).__name__)
                # ask again after the next answer
                del self._due_at_by_model[model.name]
                return
            if size is not None:
                model.size.on_size_queried(size)

    @callback
    def on_failed(self, error: ProviderError, model: Model | None, *, has_begun: bool) -> None:
        """Record why the model did not answer a turn. A server that has begun its answer is not considered away.

        `model` is None if it was not asked.
        """
        if isinstance(error, AuthError):
            self.entry.async_start_reauth(self.hass)
        elif isinstance(error, ModelNotFound) and model is not None:
            agent = self.entry.subentries.get(model.agent_id)
            # the agent may have got another model during the turn
            if agent is not None and agent.data.get(CONF_MODEL) == model.name:
                placeholders = {"agent": agent.title, "model": model.name}
                async_update_issue(self.hass, Issue.MODEL_RETIRED, model.agent_id, placeholders)
        elif isinstance(error, CONNECTION_ERRORS) and not has_begun:
            self._is_listed = False
            self._on_unreachable(error)
            if self.cache.unanswered_since is None:
                self.cache.unanswered_since = self.hass.loop.time()
                self._schedule_check(_AWAY_ISSUE_DELAY)

    async def async_list_models(self) -> list[ListedModel]:
        """Return the models that the server lists now, or its last list if it does not respond."""
        try:
            return await self._async_fetch_models()
        except ProviderError:
            return [*self.cache.models]

    def _start_listing(self, on_error: Callable[[ProviderError], None]) -> None:
        if self._list_task is None or self._list_task.done():
            self._list_task = self.entry.async_create_background_task(
                self.hass, self._async_list_in_background(on_error), f"list the models of {self.entry.title}"
            )

    async def _async_list_in_background(self, on_error: Callable[[ProviderError], None]) -> None:
        with log_and_suppress_faults(_LOGGER, "Listing the models failed in an unexpected way"):
            try:
                await self._async_fetch_models()
            except ProviderError as err:
                on_error(err)

    async def _async_fetch_models(self) -> list[ListedModel]:
        try:
            async with asyncio.timeout(_LIST_TIMEOUT):
                models = await self.provider.list_models()
        except TimeoutError as err:
            raise DeadlineExceeded("the models are not listed in time") from err
        self._is_listed = True
        self._on_reachable()
        self.cache.update_models(models)
        await self.on_listed(models)
        return models

    def _on_list_failed(self, error: ProviderError) -> None:
        if isinstance(error, AuthError):
            self.entry.async_start_reauth(self.hass)
        if isinstance(error, (*CONNECTION_ERRORS, AuthError)):
            self._on_unreachable(error)
            return
        # the server responds, but not every server can list its models
        self._is_listed = True
        _LOGGER.warning("The server of %s does not list its models: %s", self.entry.title, error)

    def _on_unreachable(self, error: ProviderError) -> None:
        if self.cache.away_at is None:
            self.cache.away_at = dt_util.utcnow()
            text = next(text for kind, text in _TEXT_BY_ERROR.items() if isinstance(error, kind))
            _LOGGER.warning("The server of %s %s: %s", self.entry.title, text, error)

    def _on_reachable(self) -> None:
        if self.cache.away_at is not None:
            self.cache.away_at = self.cache.unanswered_since = None
            self._stop_checks()
            async_update_issue(self.hass, Issue.SERVER_AWAY, self.entry.entry_id, None)
            _LOGGER.info("The server of %s answers again", self.entry.title)

    def _schedule_check(self, seconds: float) -> None:
        self._cancel_timer = async_call_later(self.hass, seconds, HassJob(self._check_server, cancel_on_shutdown=True))

    @callback
    def _check_server(self, _now: datetime) -> None:
        self._schedule_check(_CHECK_INTERVAL)
        self._start_listing(self._on_check_failed)

    def _on_check_failed(self, error: ProviderError) -> None:
        if isinstance(error, CONNECTION_ERRORS):
            async_update_issue(self.hass, Issue.SERVER_AWAY, self.entry.entry_id, {"account": self.entry.title})
        else:
            self._on_reachable()

    def _stop_checks(self) -> None:
        if self._cancel_timer is not None:
            self._cancel_timer()
            self._cancel_timer = None


@dataclass(frozen=True, slots=True)
class _RequestPrefix:
    """The beginning of a question's requests, which is the same for all speakers."""

    # The key of the window that has the system prompt as it was sent.
    key: str | None
    tools: tuple[ToolSchema, ...]
    # The hash of the system prompt without the facts, which differ from speaker to speaker.
    prompt_hash: int
    # On the monotonic clock.
    asked_at: float


@dataclass(slots=True)
class HeadStart:
    """The head starts of an account: one at a time, and at most one a minute.

    A server that may charge for requests gets only a connection, without a request or key. A server in the home network
    that was idle for a while gets the beginning of the agent's last request and is asked for one token: it then loads
    the model and processes the beginning of the next turn's request. Nothing is billed, counted, recorded or raised as
    an issue.
    """

    hass: HomeAssistant
    entry: ConfigEntry[Any]
    _clock: Callable[[], float] = time.monotonic
    # The beginnings of the last questions, by agent id.
    _prefix_by_agent: dict[str, _RequestPrefix] = field(default_factory=dict)
    _started_at: float = -math.inf
    _task: asyncio.Task[None] | None = None
    # The beginning that the running head start has sent to the server, or None.
    _sent_prefix: _RequestPrefix | None = None

    @callback
    def start(self, model: Model, windows: WindowRegistry[str], patience: float) -> None:
        """Start one in the background if it may help the next turn of the agent with these windows.

        A server in the home network has `patience` seconds to finish.
        """
        now, beginning = self._clock(), self._prefix_by_agent.get(model.agent_id)
        is_on = self._task is not None and not self._task.done()
        if is_on or now - self._started_at < _MIN_START_INTERVAL or model.pause.remaining_seconds:
            return
        if not model.is_at_home:
            self._start_task(async_open_connection(self.hass, self.entry.data), _CONNECT_TIMEOUT)
        elif beginning is None or now - beginning.asked_at >= _ASSUMED_LOADED_SECONDS:
            request, self._sent_prefix = _build_request(model, beginning, windows)
            self._start_task(_async_load_model(model, request), patience)

    @callback
    def on_question(self, question: Question, system: str, key: str | None) -> None:
        """Remember the beginning of a question. `key` is the window's, and `system` the prompt without the facts.

        A running head start continues if it has the same prefix, even if its turn was answered locally, because some
        servers start loading again when a client disconnects. If the prefix differs, it is cancelled, because a
        server that handles one request at a time would let the question wait.
        """
        prefix = _RequestPrefix(key, question.tools, hash(system), self._clock())
        self._prefix_by_agent[question.model.agent_id] = prefix
        other = self._sent_prefix
        if self._task and other and (other.tools, other.prompt_hash) != (prefix.tools, prefix.prompt_hash):
            self._task.cancel()

    def _start_task(self, work: Coroutine[Any, Any, None], seconds: float) -> None:
        self._started_at = self._clock()
        self._task = self.entry.async_create_background_task(
            self.hass, self._async_run_with_timeout(work, seconds), f"head start of {self.entry.title}"
        )

    async def _async_run_with_timeout(self, work: Coroutine[Any, Any, None], seconds: float) -> None:
        with log_and_suppress_faults(_LOGGER, "A head start failed in an unexpected way"):
            try:
                async with asyncio.timeout(seconds):
                    await work
            except (ProviderError, TimeoutError) as err:
                _LOGGER.debug("A head start ended with %s", type(err).__name__)
            finally:
                self._sent_prefix = None


async def _async_load_model(model: Model, request: Request) -> None:
    async with aclosing(model.provider.stream(request)) as events:
        async for _ in events:
            pass


def _build_request(
    model: Model, prefix: _RequestPrefix | None, windows: WindowRegistry[str]
) -> tuple[Request, _RequestPrefix | None]:
    """Return a request for one token, and the beginning that it repeats.

    The beginning is None if there has been none since startup, or if its window is gone or was forgotten. The request
    still loads the model.
    """
    window = windows.get_loaded(prefix.key) if prefix is not None and prefix.key is not None else None
    system = tuple(each for each in window.messages()[:1] if each.role is Role.SYSTEM) if window is not None else ()
    tools = prefix.tools if prefix is not None and system else ()
    question = Question(model, system_prompt="", stamp_prefix="", tools=tools, empty_answer_phrase="")
    request = question.build_request((*system, Message.user(_PLACEHOLDER_TEXT)), tools)
    return replace(request, max_answer_tokens=1), prefix if system else None
