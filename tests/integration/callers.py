"""A furnished home in which callers of every kind try each command, and which is the same after each try."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from dataclasses import dataclass, field
import json
from pathlib import Path
import re
import sqlite3
import time
from typing import Any

from homeassistant.auth.const import GROUP_ID_ADMIN, GROUP_ID_READ_ONLY, GROUP_ID_USER
from homeassistant.auth.models import Group
from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import HomeAssistantError

from custom_components.windowed_conversation.agents.account import (
    AgentState,
    async_agent_states,
    async_find_recent_turns,
)
from custom_components.windowed_conversation.agents.actions import ACTIONS
from custom_components.windowed_conversation.agents.reminders import async_get_reminders
from custom_components.windowed_conversation.const import DOMAIN
from custom_components.windowed_conversation.memory.core import Memory, PastSummary, PastTurn
from custom_components.windowed_conversation.turn.routing import WindowKey
from tests.memory.content import insert_summary
from tests.record.recorded import whole, writes
from tests.window.turns import begin_turn

from .actions import act, export
from .conftest import AGENT, SayFn, flush_store
from .page import CLIENT_ID, Refused, Visitor
from .remembered import add_fact, add_suggestion, memory_of
from .states import add_satellite

SECOND_AGENT, REMINDERS = "conversation.second", "todo.reminders"
HOME, ADA = "home", "ada"

# The groups or the policy of each caller who logs in. Ada is none of them: it is her data that they try to get.
LOGINS: dict[str, list[str] | dict[str, Any]] = {
    "owner": [GROUP_ID_ADMIN],
    "administrator": [GROUP_ID_ADMIN],
    "user": [GROUP_ID_USER],
    # a user without a person
    "lodger": [GROUP_ID_USER],
    "reader": [GROUP_ID_READ_ONLY],
    # users who may use another agent only, lights only, and nothing
    "tenant": {"entities": {"entity_ids": {SECOND_AGENT: True}}},
    "guest": {"entities": {"domains": {"light": True}}},
    "stranger": [],
}
# Those without a login: an automation, a tool of a model in a turn of the user and of an unknown speaker, and a user
# who was removed.
CALLERS = frozenset({*LOGINS, "automation", "tool", "satellite", "removed"})
# The callers who have data of their own.
OWNERS = ("owner", "administrator", "user", "lodger", "reader", "tenant")

# Each word in the data of an owner consists of their name and the kind.
_KINDS = ("talk", "place", "open", "private", "suggested", "old", "turn", "summary", "task")
_WORD_PATTERN = re.compile(f"(?:{'|'.join((HOME, ADA, *OWNERS))})(?:{'|'.join(_KINDS)})")
_STATE_QUERY = """
    SELECT person, id, text || private, replaced_by, turn FROM fact
    UNION ALL SELECT person, id, conversation, said, answer FROM turn
    UNION ALL SELECT person, id, conversation, text, since FROM summary
    UNION ALL SELECT NULL, id, content, NULL, NULL FROM reminder
    UNION ALL SELECT figures ->> 'person', id, at, NULL, NULL FROM turn_record
"""


def build_words(owner: str, *kinds: str) -> frozenset[str]:
    """Return the words of these kinds, or of all, in the data of an owner."""
    return frozenset(owner + kind for kind in kinds or _KINDS)


EVERY_WORD = frozenset(word for owner in (HOME, ADA, *OWNERS) for word in build_words(owner))
_HOMES = build_words(HOME) - {"hometask"}
# The words that each caller may read by any command.
KNOWN: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(CALLERS, frozenset()),
    **{each: build_words(each) | _HOMES for each in OWNERS},
    "tenant": build_words("tenant") | build_words(HOME, "open", "old", "turn", "summary"),
    "automation": _HOMES,
    "satellite": _HOMES,
    # others may share the window of a turn
    "tool": build_words("user", "talk", "open", "old") | _HOMES,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a try: whether there was an answer, its words or those of the refusal, and whose data changed."""

    is_answered: bool
    words: frozenset[str]
    changed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Try:
    """A command that every caller tries: a sentence, the command, and who gets an answer. All others are refused."""

    sentence: str
    command: str
    answered: frozenset[str]
    # A value that is a token, such as "{ada private}" for the id of a fact, stands for its value.
    fields: Mapping[str, Any] = field(default_factory=dict)
    # The words that these callers may read in addition.
    shown: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # Whose data an answer changes. The caller's is "own".
    changed: frozenset[str] = frozenset()

    def list_callers(self) -> Iterator[tuple[str, str]]:
        """Yield each caller, with the way in which the caller uses the command."""
        is_action = self.command in {name for name, *_ in ACTIONS}
        if is_action or "." in self.command:
            yield from ((caller, "action") for caller in sorted(CALLERS))
        if "." not in self.command:
            yield from ((caller, "command") for caller in LOGINS)

    def allows(self, caller: str, outcome: Outcome) -> bool:
        """Return whether an outcome is right for a caller."""
        is_answered = caller in self.answered
        known = KNOWN[caller] | self.shown.get(caller, frozenset())
        has_changed = bool(self.changed) and is_answered
        return (
            (outcome.is_answered, bool(outcome.changed)) == (is_answered, has_changed)
            and outcome.words <= known
            and outcome.changed <= self.changed
        )


@dataclass(slots=True)
class Callers:
    """The callers in their home."""

    home: HomeAssistant
    say: SayFn
    store_path: Path
    # The furnished file.
    copy: sqlite3.Connection
    contexts: dict[str, Context] = field(default_factory=dict)
    visitors: dict[str, Visitor] = field(default_factory=dict)
    # The values of fields by their tokens.
    tokens: dict[str, Any] = field(default_factory=dict)
    # Everything that is kept, by its owner.
    state: dict[str, list[Any]] = field(default_factory=dict)
    _windows: dict[str, Any] = field(default_factory=dict)
    _recent_turns: dict[str, Any] = field(default_factory=dict)

    @property
    def agents(self) -> dict[str, AgentState]:
        """The states of all agents."""
        return async_agent_states(self.home)

    async def add_users(self, open_client: Any) -> None:
        """Create the users with a connection each. The first becomes the owner."""
        for name, rights in LOGINS.items():
            user = await self.home.auth.async_create_user(name, group_ids=rights if isinstance(rights, list) else [])
            if isinstance(rights, dict):
                user.groups = [Group(name, rights)]
            token = await self.home.auth.async_create_refresh_token(user, CLIENT_ID)
            client = await open_client(self.home, self.home.auth.async_create_access_token(token))
            self.visitors[name], self.contexts[name] = Visitor(user, client), Context(user_id=user.id)
        ada = await self.home.auth.async_create_user(ADA, group_ids=[GROUP_ID_USER])
        self.contexts |= {ADA: Context(user_id=ada.id), "tool": self.contexts["user"]}
        self.contexts |= {"removed": Context(user_id="removed")}
        for name in {ADA, *OWNERS} - {"lodger"}:
            self.home.states.async_set(f"person.{name}", "home", {"user_id": self.contexts[name].user_id})

    async def furnish(self) -> None:
        """Give Ada, the home and each owner conversations, turns, and memories. Everything is as now after a try."""
        # Ada has the last word
        for owner in (HOME, *OWNERS, ADA):
            await self._talk(owner)
            await self._remember(owner)
        await act(self.home, "summarize_conversation", self.contexts[ADA], conversation_id="old", keep=1)
        task = whole(1, f"{HOME}task", agent="task", time=time.time(), route="task", conversation_id=None)
        memory_of(self.home).writer.put(*writes(task))
        item = {"entity_id": REMINDERS, "item": f"{HOME}open"}
        await self.home.services.async_call("todo", "add_item", item, blocking=True)
        await flush_store(self.home)
        self.tokens |= {"{ada}": self.contexts[ADA].user_id, "{task}": task["turn_id"]}
        self.tokens |= {f"{{{each} talk}}": "talk" for each in CALLERS}
        self.tokens |= {"{automation talk}": "homes", "{satellite talk}": "homes"}
        self.tokens["{ada's key}"] = str(WindowKey("adas", self.contexts[ADA].user_id))
        self.tokens["{export}"] = await export(self.home, "homes")
        for turn in (await act(self.home, "list_turns", limit=100))["turns"]:
            self.tokens[f"{{{turn['person'] or HOME} {turn['route']}}}"] = turn["turn_id"]
            self.tokens[f"{{{turn['conversation_id']} {turn['route']}}}"] = turn["turn_id"]
        select = "SELECT said, 'turn:' || id FROM turn UNION ALL SELECT text, 'summary:' || id FROM summary"
        self.tokens |= {f"{{{said.split()[0]}}}": row for said, row in await self._select(select)}
        await self.home.async_add_executor_job(self._copy_file, True)
        self._windows = {agent_id: each.windows.snapshots() for agent_id, each in self.agents.items()}
        self._recent_turns = {agent_id: [*each.recent_turns] for agent_id, each in self.agents.items()}
        self.state = await self._read_state()

    async def _talk(self, owner: str) -> None:
        """Let somebody talk. One of Ada's conversations has a name that all use, and one is summarized."""
        context, agent = self.contexts.get(owner, Context()), SECOND_AGENT if owner == "tenant" else AGENT
        more = {"device_id": add_satellite(self.home, f"{ADA}place")} if owner == ADA else {}
        for name in {ADA: ("talk", "adas", "old"), HOME: ("homes",)}.get(owner, ("talk",)):
            for word in ("begin", "end"):
                await self.say(f"{owner}talk {owner}{word}", name, context=context, agent_id=agent, **more)

    async def _remember(self, owner: str) -> None:
        user = self.contexts[owner].user_id if owner in self.contexts else None
        memory_of(self.home).writer.put(PastTurn("earlier", time.time(), f"{owner}turn", f"{owner}answer", person=user))
        summary = PastSummary("earlier", time.time(), time.time(), f"{owner}summary {owner}said", person=user)
        await memory_of(self.home).async_change(lambda memory: insert_summary(memory, summary))
        old = await add_fact(self.home, f"{owner}old {owner}past", person=user)
        facts = {
            "open": await add_fact(self.home, f"{owner}open {owner}first", person=user),
            "new": await add_fact(self.home, f"{owner}open {owner}second", person=user, replaces=old),
        }
        if user is not None:
            facts["private"] = await add_fact(self.home, f"{owner}private {owner}third", person=user, private=True)
            facts["suggested"] = await add_suggestion(self.home, user, f"{owner}suggested {owner}fourth", time.time())
        self.tokens |= {f"{{{owner} {kind}}}": f"fact:{row}" for kind, row in facts.items()}

    async def attempt(self, each: Try, caller: str, way: str) -> Outcome:
        """Return the outcome of a try. Afterwards, everything is as before."""
        before = self.state
        fields = {name: self._resolve(value, caller) for name, value in each.fields.items()}
        is_answered = True
        try:
            answer = await getattr(self, f"_use_{way}")(each.command, caller, fields)
        except (HomeAssistantError, Refused) as err:
            is_answered, answer = False, [str(err), vars(err)]
        after = await self._read_state()
        changed = {owner for owner in before | after if before.get(owner) != after.get(owner)}
        if changed:
            await self._restore()
        me = "user" if caller == "tool" else caller
        names = frozenset("own" if owner == me else owner for owner in changed)
        words = frozenset(_WORD_PATTERN.findall(json.dumps(answer, default=str).casefold()))
        return Outcome(is_answered, words, names)

    async def _use_command(self, command: str, caller: str, fields: Mapping[str, Any]) -> Any:
        return await self.visitors[caller].call(command, **fields)

    async def _use_action(self, command: str, caller: str, fields: dict[str, Any]) -> Any:
        domain, _, name = command.rpartition(".")
        context = self.contexts.get(caller, Context())
        turn: AbstractAsyncContextManager[Any] = nullcontext()
        if caller in {"tool", "satellite"}:
            turn = begin_turn(next(iter(self.agents.values())).windows, "everyone's")
        has_answer = self.home.services.supports_response(domain or DOMAIN, name) != "none"
        async with turn:
            return await self.home.services.async_call(
                domain or DOMAIN, name, fields, blocking=True, context=context, return_response=has_answer
            )

    def _resolve(self, value: Any, caller: str) -> Any:
        if not isinstance(value, str) or not value.startswith("{"):
            return value
        name = value.replace("own", "user" if caller == "tool" else caller)
        # not everybody has everything
        return self.tokens.get(name, "fact:9999") if "own" in value else self.tokens[name]

    async def _read_state(self) -> dict[str, list[Any]]:
        """Return everything that is kept, by its owner."""
        names = {context.user_id: name for name, context in self.contexts.items() if name not in {"tool", "removed"}}
        if memory_of(self.home).writer.counts.queued:
            await flush_store(self.home)
        state: dict[str, list[Any]] = {}
        for person, *rest in await self._select(_STATE_QUERY):
            state.setdefault(names.get(person, HOME), []).append(rest)
        for agent_id, agent in self.agents.items():
            for key, snapshot in sorted(agent.windows.snapshots().items()):
                owner = names.get(WindowKey.parse(key).user, HOME)
                state.setdefault(owner, []).append((agent_id, key, snapshot))
        for turn in async_find_recent_turns(self.home):
            owner = names.get(turn.record["person"], HOME)
            state.setdefault(owner, []).append(turn.record["turn_id"])
        return state

    async def _select(self, query: str) -> list[tuple[Any, ...]]:
        def read(memory: Memory) -> list[tuple[Any, ...]]:
            with memory.database.read_transaction() as connection:
                return connection.execute(query).fetchall()

        return await memory_of(self.home).async_read(read, [])

    async def _restore(self) -> None:
        for agent_id, agent in self.agents.items():
            for key in agent.windows.stats():
                agent.windows.drop(key)
            for key, snapshot in self._windows[agent_id].items():
                agent.windows.restore(key, snapshot)
            agent.recent_turns.clear()
            agent.recent_turns.extend(self._recent_turns[agent_id])
        await flush_store(self.home)
        await self.home.async_add_executor_job(self._copy_file, False)
        await memory_of(self.home).async_change(_read_facts_again)
        await async_get_reminders(self.home).async_read()

    def _copy_file(self, is_source: bool) -> None:
        with closing(sqlite3.connect(self.store_path)) as file:
            source, target = (file, self.copy) if is_source else (self.copy, file)
            source.backup(target)


def _read_facts_again(memory: Memory) -> None:
    with memory.change_facts():
        pass
