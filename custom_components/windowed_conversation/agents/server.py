"""The server of a loaded account: its models and their context sizes, its availability, and head starts."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
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

from ..bridge.account import ServerCache
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
    SupportsContextSize,
    ToolSchema,
    Unavailable,
)
from ..store import do_nothing
from ..turn.model import BilledRequest, Model, Question
from ..window import Message, Role, WindowRegistry
from .issues import Issue, async_update_issue, async_update_server_issue

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


class AccountServer:
    """The server of an account. It is watched in the background, and its last list has the models' context sizes.

    `provider` is the account's. `on_listed` is called with each list. One line is logged when the server stops
    responding, and one when it is back. An issue is raised if it is still away half an hour after a turn found it away,
    until it responds again.
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
        self.provider = provider
        self._cache = cache
        self._on_listed = on_listed
        self._is_listed = False
        self._list_task: asyncio.Task[None] | None = None
        self._cancel_timer: Callable[[], None] | None = None
        self._size_task: asyncio.Task[None] | None = None
        # When to request the context size of a model again, by model name, in seconds of the event loop's clock.
        self._due_at_by_model: dict[str, float] = {}

    @property
    def answered_at(self) -> datetime | None:
        """The time of a model's last answer since startup, or None."""
        return self._cache.answered_at

    @property
    def is_reachable(self) -> bool | None:
        """Whether the server responded when it was last asked, or None if it was not asked since the set-up."""
        if self._cache.is_away:
            return False
        return True if self._is_listed or self.answered_at is not None else None

    @property
    def away_at(self) -> datetime | None:
        """The time since which the server does not respond, or None."""
        return self._cache.away_at

    @property
    def models(self) -> tuple[ListedModel, ...]:
        """The models that the server listed last."""
        return self._cache.models

    @callback
    def start(self) -> None:
        """List the models in the background after the set-up. Start reauthentication if the server refuses the key."""
        self._entry.async_on_unload(self._stop_checks)
        if self._cache.unanswered_since is None:
            async_update_server_issue(self._hass, self._entry.entry_id, None)
        else:
            self._schedule_check(max(0.0, self._cache.unanswered_since + _AWAY_ISSUE_DELAY - self._hass.loop.time()))
        self._start_listing(self._on_list_failed)

    @callback
    def on_answered(self, agent_id: str) -> None:
        """Record that the agent's model answered a request, and list the models if that has not succeeded yet."""
        async_update_issue(self._hass, Issue.MODEL_RETIRED, agent_id, None)
        self._cache.answered_at = dt_util.utcnow()
        if self._cache.is_away:
            self._on_reachable()
        if not self._is_listed:
            # a server without a model list may still work, so an error is ignored
            self._start_listing(do_nothing)

    @callback
    def update_context_size(self, billed: BilledRequest) -> None:
        """Request the model's context size after its first answer, after unexpected usage, and from time to time.

        Only a server in the home network is asked, because a gateway may not expect the request.
        """
        model, now = billed.model, self._hass.loop.time()
        due_at = self._due_at_by_model.get(model.name, now)
        if not isinstance(self.provider, SupportsContextSize) or not model.is_at_home or not billed.server_identity:
            return
        if (now >= due_at or model.size.may_have_changed) and (self._size_task is None or self._size_task.done()):
            model.size.may_have_changed = False
            self._due_at_by_model[model.name] = now + _CONTEXT_SIZE_LIFETIME
            self._size_task = self._entry.async_create_background_task(
                self._hass,
                self._async_update_size(self.provider, model, billed.server_identity),
                f"ask how much {model.name} reads",
            )

    async def _async_update_size(self, provider: SupportsContextSize, model: Model, server: str) -> None:
        with log_and_suppress_faults(_LOGGER, "Asking how much a model reads failed in an unexpected way"):
            try:
                async with asyncio.timeout(_CONTEXT_SIZE_TIMEOUT):
                    size = await _async_fetch_context_size(provider, model.name, server)
            except (ProviderError, TimeoutError) as err:
                _LOGGER.debug("The server of %s does not say what it reads: %s", self._entry.title, type(err).__name__)
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
            self._entry.async_start_reauth(self._hass)
        elif isinstance(error, ModelNotFound) and model is not None:
            self._on_model_missing(model)
        elif isinstance(error, CONNECTION_ERRORS) and not has_begun:
            self._is_listed = False
            self._on_unreachable(error)
            if self._cache.unanswered_since is None:
                self._cache.unanswered_since = self._hass.loop.time()
                self._schedule_check(_AWAY_ISSUE_DELAY)

    def _on_model_missing(self, model: Model) -> None:
        """Raise an issue, unless the agent has got another model during the turn."""
        agent = self._entry.subentries.get(model.agent_id)
        if agent is not None and agent.data.get(CONF_MODEL) == model.name:
            placeholders = {"agent": agent.title, "model": model.name}
            async_update_issue(self._hass, Issue.MODEL_RETIRED, model.agent_id, placeholders)

    async def async_list_models(self) -> list[ListedModel]:
        """Return the models that the server lists now, or its last list if it does not respond."""
        try:
            return await self._async_fetch_models()
        except ProviderError:
            return [*self._cache.models]

    def _start_listing(self, on_error: Callable[[ProviderError], None]) -> None:
        if self._list_task is None or self._list_task.done():
            self._list_task = self._entry.async_create_background_task(
                self._hass, self._async_list_in_background(on_error), f"list the models of {self._entry.title}"
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
        self._cache.update_models(models)
        await self._on_listed(models)
        return models

    def _on_list_failed(self, error: ProviderError) -> None:
        if isinstance(error, AuthError):
            self._entry.async_start_reauth(self._hass)
        if isinstance(error, (*CONNECTION_ERRORS, AuthError)):
            self._on_unreachable(error)
            return
        # the server responds, but not every server can list its models
        self._is_listed = True
        _LOGGER.warning("The server of %s does not list its models: %s", self._entry.title, error)

    def _on_unreachable(self, error: ProviderError) -> None:
        if not self._cache.is_away:
            self._cache.is_away, self._cache.away_at = True, dt_util.utcnow()
            text = next(text for kind, text in _TEXT_BY_ERROR.items() if isinstance(error, kind))
            _LOGGER.warning("The server of %s %s: %s", self._entry.title, text, error)

    def _on_reachable(self) -> None:
        if self._cache.is_away:
            self._cache.is_away, self._cache.away_at, self._cache.unanswered_since = False, None, None
            self._stop_checks()
            async_update_server_issue(self._hass, self._entry.entry_id, None)
            _LOGGER.info("The server of %s answers again", self._entry.title)

    def _schedule_check(self, seconds: float) -> None:
        self._cancel_timer = async_call_later(self._hass, seconds, HassJob(self._check_server, cancel_on_shutdown=True))

    @callback
    def _check_server(self, _now: datetime) -> None:
        self._schedule_check(_CHECK_INTERVAL)
        self._start_listing(self._on_check_failed)

    def _on_check_failed(self, error: ProviderError) -> None:
        if isinstance(error, CONNECTION_ERRORS):
            async_update_server_issue(self._hass, self._entry.entry_id, self._entry.title)
        else:
            self._on_reachable()

    def _stop_checks(self) -> None:
        if self._cancel_timer is not None:
            self._cancel_timer()
            self._cancel_timer = None


async def _async_fetch_context_size(provider: SupportsContextSize, model: str, server: str) -> int | None:
    """Return a model's context size. Tries twice, in case a kept-alive connection was closed.

    Raises `ProviderError`.
    """
    try:
        return await provider.fetch_context_tokens(model, server)
    except Unavailable:
        return await provider.fetch_context_tokens(model, server)


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


class HeadStart:
    """The head starts of an account: one at a time, and at most one a minute. `connect` opens a connection.

    A server that may charge for requests gets only a connection, without a request or key. A server in the home network
    that was idle for a while gets the beginning of the agent's last request and is asked for one token: it then loads
    the model and processes the beginning of the next turn's request. Nothing is billed, counted, recorded or raised as
    an issue.
    """

    def __init__(
        self,
        hass: HomeAssistant,
        entry: ConfigEntry[Any],
        connect: Callable[[HomeAssistant, Mapping[str, Any]], Coroutine[Any, Any, None]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hass = hass
        self._entry = entry
        self._connect = connect
        self._clock = clock
        # The beginnings of the last questions, by agent id.
        self._prefix_by_agent: dict[str, _RequestPrefix] = {}
        self._started_at = -math.inf
        self._task: asyncio.Task[None] | None = None
        # The beginning that the running head start has sent to the server, or None.
        self._sent_prefix: _RequestPrefix | None = None

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
            self._start_task(self._connect(self._hass, self._entry.data), _CONNECT_TIMEOUT)
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
        other = replace(self._sent_prefix, key=prefix.key, asked_at=prefix.asked_at) if self._sent_prefix else prefix
        if self._task is not None and other != prefix:
            self._task.cancel()

    def _start_task(self, work: Coroutine[Any, Any, None], seconds: float) -> None:
        self._started_at = self._clock()
        self._task = self._entry.async_create_background_task(
            self._hass, self._async_run_with_timeout(work, seconds), f"head start of {self._entry.title}"
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
