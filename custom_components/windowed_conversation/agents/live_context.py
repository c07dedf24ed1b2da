"""Additions to a turn's requests besides its window: the profile of facts, recalled lines, and states of the home."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
import logging
import time
from typing import Any

from ..home.bridge.states import HomeStates, async_get_home_states
from ..home.core.home import MAX_STATES_TOKENS, NO_STATES_TEXT, Home, StatesText, build_states_text
from ..memory.core import RecallHit
from ..memory.turn.recall import (
    MAX_RECALLED_TOKENS,
    PromptFacts,
    RecallText,
    build_prompt_facts,
    build_sent_context,
    choose_recalled_lines,
    interleave_hits,
    is_about_home_state,
)
from ..memory.turn.recall_query import build_recall_query
from ..memory.turn.speaker import Speaker
from ..turn.context import (
    MAX_LIVE_TOKENS,
    TRIMMED_NOTE,
    ContextPlacement,
    InputStamp,
    LiveContext,
    format_context,
    live_sections,
)
from ..turn.names import area_name, remove_delimiters
from ..window import Exchange, TextKind, Window, is_summary
from .account import SentContext
from .agent import Agent
from .config import AgentConfig
from .store import AgentStore, async_get_store
from .window_notes import WindowNotes

_LOGGER = logging.getLogger(__name__)

# The largest number of profiles that are cached for later turns.
_MAX_CACHED_PROFILES = 16

# In seconds. A search of memory that takes longer is not used.
MEMORY_TIMEOUT = 0.5

# Tells a model of the question of memory that the user has answered with neither yes nor no.
_OPEN_QUESTION_NOTE = (
    'the user was asked "{}" and said neither yes nor no, so nothing was deleted; '
    "if the input is about that, end with exactly this question"
)


def calculate_live_limit(config: AgentConfig) -> int:
    """Return the largest token count of an agent's live context, without a stamp, if its model has room for it."""
    memory, home = config.memory * MAX_RECALLED_TOKENS, config.sends_states * MAX_STATES_TOKENS
    return min(MAX_LIVE_TOKENS, memory + home)


class TurnContext:
    """The profile of facts and the live context of a turn, whose last forms are `sent`."""

    def __init__(self, agent: Agent, window: Window, speaker: Speaker, stamp: InputStamp, open_question: str) -> None:
        config = agent.config
        # Says whether the speaker may see an entity, by its id; None if they may see all.
        self.sees: Callable[[str], bool] | None = None
        self.sent = SentContext()
        # Whether the turn continued without its search of memory, because that took too long.
        self.is_search_late = False
        self._agent = agent
        self._count_tokens = agent.counter.count
        self._window = window
        self._speaker = speaker
        self._stamp = stamp
        self._memory_store = async_get_store(agent.hass) if config.memory else None
        self._home_states = async_get_home_states(agent.hass) if config.sends_states else None
        self._formatter = RecallText(speaker.name, stamp.now)
        self._candidates: Sequence[RecallHit] = ()
        self._search: asyncio.Task[None] | None = None
        self._search_started_at = self._search_seconds = 0.0
        self._states_text: StatesText | None = None
        self.notes = agent.state.notes_by_window.setdefault(window, WindowNotes())
        self._previous_states = self.notes.listed_states
        self._is_in_system = config.context_placement is ContextPlacement.SYSTEM
        self._note_tokens = self._count_tokens(format_context("", (), TRIMMED_NOTE))
        self._open_question_note = _OPEN_QUESTION_NOTE.format(remove_delimiters(open_question)) if open_question else ""
        self._open_question_tokens = self._count_tokens(self._open_question_note)
        self._stamp_tokens = self._count_tokens(live_sections(stamp, "", ())) if self._is_in_system else 0

    @property
    def max_tokens(self) -> int:
        """The largest token count of the live context, including a stamp beside it in the system instruction."""
        memory = MAX_RECALLED_TOKENS if self._memory_store is not None else 0
        home = MAX_STATES_TOKENS if self._home_states is not None else 0
        note = self._note_tokens if self._window.stats().evicted_exchanges else 0
        note += self._open_question_tokens
        return min(MAX_LIVE_TOKENS, memory + home + self._stamp_tokens + note)

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The sizes of the added parts, for the trace and the last turn's attributes."""
        has_memory, sizes = self._memory_store is not None, dict[str, Any]()
        if self._home_states is not None:
            states = self._states_text or NO_STATES_TEXT
            sizes = {"states_listed": len(states.state_by_key), "states_tokens": states.tokens}
        return {
            "recalled_tokens": self.sent.recalled.tokens if has_memory else None,
            "recall_ms": round(1000 * self._search_seconds, 1) if has_memory else None,
            **sizes,
        }

    def start_search(self) -> None:
        """Begin to search memory, while the rest of the question is built."""
        if self._memory_store is not None:
            search = self._async_search(self._memory_store)
            self._search = self._agent.hass.async_create_task(search, "search memory")

    async def async_read_memory(self) -> None:
        """Wait for the search and read the facts. If the search is too slow, the turn continues without its results."""
        if self._memory_store is None or self._search is None:
            return
        await self._search
        if self._memory_store.predates_forgetting(self._search_started_at):
            self._candidates = ()
        # facts that are just being forgotten must not be sent
        if not self._memory_store.predates_forgetting(time.time()):
            self.sent.facts = self._build_profile(self._memory_store)

    async def _async_search(self, store: AgentStore) -> None:
        command_words, named = store.command_words, ""
        if self._home_states is not None:
            home = self._get_home(self._home_states)
            command_words |= home.get_name_words()
            keys = home.find_mentions(self._speaker.text).entities
            named = " ".join([name for key in keys for name in home.entities[key].names])
        nothing: tuple[list[RecallHit], list[RecallHit]] = [], []
        arguments = self._speaker, self._stamp.now, command_words, named
        self._search_started_at, began = time.time(), time.monotonic()
        try:
            async with asyncio.timeout(MEMORY_TIMEOUT):
                # the first query in a language compiles its patterns, so it is built in the thread
                found = await store.async_read(
                    lambda memory: memory.recall_relevant(build_recall_query(*arguments)), nothing
                )
        except TimeoutError:
            self.is_search_late = True
            store.late_searches += 1
        except Exception as err:  # noqa: BLE001 - a turn goes on without memory after any error
            _LOGGER.debug("A turn continues without a search of memory: %s", type(err).__name__)
        else:
            self._candidates = tuple(interleave_hits(*found))
        self._search_seconds = time.monotonic() - began

    def _build_profile(self, store: AgentStore) -> PromptFacts:
        # everybody who uses the window gets this prompt, so a shared one has no facts of a person
        owner = self._speaker.person if self._speaker.is_alone else None
        key, profiles = (owner, self._speaker.is_alone, self._formatter.owner_name), self._agent.profiles
        facts = store.get_facts(owner, private=self._speaker.is_alone)
        known_facts, profile = profiles.pop(key, ([], PromptFacts()))
        if facts != known_facts:
            profile = build_prompt_facts(facts, self._formatter, partial(self._agent.counter.count_as, TextKind.FIXED))
        profiles[key] = facts, profile
        if len(profiles) > _MAX_CACHED_PROFILES:
            del profiles[next(iter(profiles))]
        return profile

    def build_live_context(self, exchanges: Sequence[Exchange], limit: int) -> LiveContext:
        """Return the live context, limited to `limit` tokens, of a request that sends these closed exchanges."""
        limit -= self._stamp_tokens + self._open_question_tokens
        # exchanges have left the window, and no summary says so
        is_cut = self._window.stats().evicted_exchanges > 0 and not any(map(is_summary, exchanges))
        note = TRIMMED_NOTE if is_cut and limit >= self._note_tokens else ""
        limit -= self._note_tokens if note else 0
        note = "; ".join(filter(None, (note, self._open_question_note)))
        most = min(MAX_RECALLED_TOKENS, limit // 2 if self._home_states else limit)
        sent = build_sent_context(exchanges, self.sent.facts, self._speaker.text)
        # lazy, because the first few lines usually fill the limit
        found = (each for each in self._candidates if not is_about_home_state(each, names_home=self._mentions_home))
        recalled = self.sent.recalled = choose_recalled_lines(found, sent, self._formatter, self._count_tokens, most)
        states = self.sent.states = self._get_states_text(min(MAX_STATES_TOKENS, limit - recalled.tokens)).text
        if self._is_in_system:
            text = live_sections(self._stamp, states, recalled.lines, note)
        else:
            text = format_context(states, recalled.lines, note)
        self.sent.live_tokens = self._count_tokens(text)
        return LiveContext(text, self.sent.live_tokens, frozenset(recalled.source_ids))

    def _mentions_home(self, sentence: str) -> bool:
        if self._home_states is None:
            return False
        named = self._get_home(self._home_states).find_mentions(sentence)
        return bool(named.entities or named.kinds)

    def _get_home(self, states: HomeStates) -> Home:
        home, sees = states.get_home(self._speaker.language), self.sees
        return home if sees is None else replace(home, entities={k: v for k, v in home.entities.items() if sees(k)})

    def _get_states_text(self, limit: int) -> StatesText:
        """Return the states of the home, the same for all requests of the turn unless one has less room for them."""
        if self._home_states is None:
            return NO_STATES_TEXT
        if self._states_text is None or self._states_text.tokens > limit:
            home = self._get_home(self._home_states)
            self._states_text = self.notes.listed_states = build_states_text(
                home.entities,
                home.find_mentions(self._speaker.text),
                area_name(self._stamp.area or ""),
                self._previous_states,
                limit=limit,
                count=self._count_tokens,
                now=time.time(),
            )
        return self._states_text
