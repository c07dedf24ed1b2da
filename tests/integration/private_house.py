"""A house with two people, a guest and satellites; each memory contains a unique marker word to detect leaks."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
import json
import time
from typing import Any

from homeassistant.auth.const import GROUP_ID_ADMIN, GROUP_ID_READ_ONLY, GROUP_ID_USER
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import llm
from pytest_homeassistant_custom_component.common import MockUser

from custom_components.windowed_conversation.agents.agent import async_loaded_agents
from custom_components.windowed_conversation.agents.store import AgentStore, async_get_store
from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_PLACEMENT,
    CONF_DEVICE_OWNERS,
    CONF_SCOPE,
    DOMAIN,
    MEMORY_API_ID,
)
from custom_components.windowed_conversation.memory.core import Memory, PastSummary, PastTurn
from custom_components.windowed_conversation.turn.context import ContextPlacement
from custom_components.windowed_conversation.turn.routing import Scope
from demo.model_server import ModelServer, call, words
from tests.memory.content import insert_summary
from tests.window.turns import begin_turn

from .conftest import SayFn, SetUpFn, flush_store, get_speech
from .states import add_satellite

HOMES = frozenset({"heron", "ibis", "crane"})
ADAS_OPEN, ADAS_PRIVATE = frozenset({"finch"}), frozenset({"wren", "robin", "swift"})
GRACES_OPEN, GRACES_PRIVATE = frozenset({"puffin"}), frozenset({"gull", "skua", "avocet"})
# Marker words of memories that are forgotten by id, and of a fact that another fact has replaced.
GONE = frozenset({"vulture", "condor", "harrier", "osprey", "kestrel", "dodo"})
ADAS, GRACES = ADAS_OPEN | ADAS_PRIVATE, GRACES_OPEN | GRACES_PRIVATE
# Marker word of an entity that is not exposed.
HIDDEN = frozenset({"hawk"})
# Marker words that the test cases themselves use in their input.
SAID = frozenset({"cobra", "viper"})
ALL_WORDS = HOMES | ADAS | GRACES | GONE | HIDDEN | SAID

FACTS = frozenset({"heron", "finch", "wren", "puffin", "gull"})
NO_WORDS = frozenset[str]()
# Marker words that each speaker may see: in a window of their own, and in a window that everybody shares.
ALONE = {
    "Ada": HOMES | ADAS,
    "Grace": HOMES | GRACES,
    "guest": HOMES,
    "satellite": HOMES,
    "Ada's satellite": HOMES | ADAS,
    "Grace at Ada's satellite": HOMES | GRACES,
    "service": HOMES,
    "automation": HOMES,
    "removed user": HOMES,
}
SHARED = ALONE | {
    "Ada": HOMES | ADAS_OPEN,
    "Grace": HOMES | GRACES_OPEN,
    "Ada's satellite": HOMES | ADAS_OPEN,
    "Grace at Ada's satellite": HOMES | GRACES_OPEN,
}
KNOWN = {Scope.CONVERSATION: ALONE, Scope.DEVICE: ALONE, Scope.USER: ALONE, Scope.AGENT: SHARED}

ALL = ["fact", "turn", "summary"]
QUESTION = "what about the locker?"

# The memories are recent enough not to expire when the daily maintenance runs.
_AT = time.time() - 30 * 86_400.0
# Everything that a test case adds is newer than this time.
_LATER = _AT + 86_400.0


def words_in(text: object) -> frozenset[str]:
    """Return the marker words that occur in a value when it is encoded as JSON."""
    plain = json.dumps(text, ensure_ascii=False, default=str).casefold()
    return frozenset(word for word in ALL_WORDS if word in plain)


@dataclass(slots=True)
class House:
    """The house: how each of its `speakers` speaks, its agents by scope, and its memories before the forgetting.

    `exported` contains all memories that were stored at first, as JSON lines.
    """

    home: HomeAssistant
    model_server: ModelServer
    say_fn: SayFn
    speakers: Mapping[str, dict[str, Any]]
    agents: dict[Scope, str] = field(default_factory=dict)
    exported: list[str] = field(default_factory=list)

    @property
    def memory(self) -> AgentStore:
        """The store that contains the memory."""
        memory = async_get_store(self.home)
        assert memory is not None
        return memory

    def get_context(self, who: str) -> Context:
        """Return the context of a speaker's action; an automation has no user."""
        return self.speakers[who].get("context") or Context()

    async def say(
        self, who: str, text: str = QUESTION, scope: Scope = Scope.CONVERSATION, conversation_id: str | None = None
    ) -> str:
        """Send a speaker's text to the agent of a scope and return the answer: without a script, a word.

        Without `conversation_id`, the conversation is one of the speaker's own.
        """
        if not self.model_server.answer_script.remaining_answers:
            self.model_server.script(words("Noted."))
        where = conversation_id or f"of {who}"
        return get_speech(await self.say_fn(text, where, agent_id=self.agents[scope], **self.speakers[who]))

    async def sent(self, who: str, text: str = QUESTION, scope: Scope = Scope.CONVERSATION, **more: Any) -> list[Any]:
        """Send a speaker's text and return the bodies of the resulting requests to the model."""
        self.model_server.log.clear()
        await self.say(who, text, scope, **more)
        assert self.model_server.requests
        return [request.body for request in self.model_server.requests]

    async def used(
        self,
        who: str,
        tool: str,
        scope: Scope = Scope.CONVERSATION,
        *,
        said: str = "please look it up",
        **arguments: Any,
    ) -> list[Any]:
        """Have the model call a tool in a speaker's turn, and return the results of the tool."""
        self.model_server.script(call(tool, **arguments), words("Done."))
        *_, last = await self.sent(who, said, scope)
        return [each["content"] for each in last["messages"] if each["role"] == "tool"]

    async def act(self, action: str, who: str, **data: Any) -> Any:
        """Call an action as this speaker and return its response."""
        context = self.get_context(who)
        return await self.home.services.async_call(
            DOMAIN, action, data, blocking=True, return_response=True, context=context
        )

    async def perform(self, action: str, who: str, **data: Any) -> None:
        """Call an action that has no response as this speaker."""
        await self.home.services.async_call(DOMAIN, action, data, blocking=True, context=self.get_context(who))

    async def found_by_others(self, who: str) -> Any:
        """Return the memories that the model of another agent finds with the `recall` tool for this speaker."""
        speaker = self.speakers[who]
        context = llm.LLMContext("other", self.get_context(who), "en", "conversation", speaker.get("device_id"))
        api = await llm.async_get_api(self.home, MEMORY_API_ID, context)
        return (await api.async_call_tool(llm.ToolInput("recall", {"query": "locker"}))).data

    async def reset(self) -> None:
        """Reset the house: remove all conversations and everything that they added to memory."""
        await self.memory.async_change(lambda memory: memory.forget(since=_LATER))
        for agent in async_loaded_agents(self.home):
            for key in agent.windows.stats():
                agent.windows.drop(key)


type Probe = Callable[[House], Coroutine[Any, Any, object]]


@dataclass(frozen=True, slots=True)
class Case:
    """A test case: a look into the house, and the marker words that it must return."""

    name: str
    look: Probe
    # The marker words, of which all must be returned.
    words: frozenset[str]
    # Marker words that are optional.
    either: frozenset[str] = frozenset()
    # Runs first. Neighbouring cases with the same one share what it did to the house.
    before: Probe | None = None


async def find_wrong_words(house: House, cases: tuple[Case, ...]) -> dict[str, list[str]]:
    """Return the unexpected and the missing marker words of each failed case, by the name of the case."""
    found = {}
    for case, previous in zip(cases, (None, *cases), strict=False):
        if previous is None or case.before is None or case.before is not previous.before:
            await house.reset()
            if case.before:
                await case.before(house)
        different = (words_in(await case.look(house)) ^ case.words) - case.either
        if different:
            found[case.name] = sorted(different)
    return found


async def get_response_or_error(response: Coroutine[Any, Any, object]) -> object:
    """Return the response of an action, or the message of its HomeAssistantError."""
    try:
        return await response
    except HomeAssistantError as err:
        return str(err)


def run_inside_turn(look: Probe) -> Probe:
    """Return a function that runs `look` during a turn, as in a script that a model calls as a tool."""

    async def inside(house: House) -> object:
        async with begin_turn(async_loaded_agents(house.home)[0].windows, "a satellite's"):
            return await look(house)

    return inside


async def furnish(
    home: HomeAssistant,
    set_up: SetUpFn,
    say: SayFn,
    model_server: ModelServer,
    placement: ContextPlacement,
    **agent: Any,
) -> House:
    """Set up a house with one agent for each scope, and forget some of its memories."""
    home.states.async_set("light.hawk", "on", {"friendly_name": "Hawk lamp"})
    async_expose_entity(home, "conversation", "light.hawk", should_expose=False)
    bedside = add_satellite(home, "Bedside")

    async def person(name: str, group: str) -> Context:
        return Context(user_id=(await home.auth.async_create_user(name, group_ids=[group])).id)

    await person("Owner", GROUP_ID_ADMIN)
    ada, grace = await person("Ada", GROUP_ID_USER), await person("Grace", GROUP_ID_USER)
    service = MockUser(name="Voice over IP", system_generated=True).add_to_hass(home)
    speakers: dict[str, dict[str, Any]] = {
        "Ada": {"context": ada},
        "Grace": {"context": grace},
        "guest": {"context": await person("Leo", GROUP_ID_READ_ONLY)},
        "admin": {"context": await person("Admin", GROUP_ID_ADMIN)},
        "satellite": {"device_id": add_satellite(home, "Kitchen")},
        "Ada's satellite": {"device_id": bedside},
        "Grace at Ada's satellite": {"device_id": bedside, "context": grace},
        "service": {"context": Context(user_id=service.id)},
        "automation": {},
        "removed user": {"context": Context(user_id="f" * 32)},
    }
    house = House(home, model_server, say, speakers)
    owners = {CONF_DEVICE_OWNERS: [{"device": bedside, "person": ada.user_id}]}
    for scope in Scope:
        await set_up(options=owners, **{CONF_SCOPE: scope, CONF_CONTEXT_PLACEMENT: placement, **agent})
        (entity_id,) = set(home.states.async_entity_ids("conversation")) - {
            "conversation.home_assistant",
            *house.agents.values(),
        }
        house.agents[scope] = entity_id
    await house.memory.async_change(lambda memory: _tell(memory, str(ada.user_id), str(grace.user_id)))
    house.exported = await house.memory.async_read(lambda memory: list(memory.export()), [])
    await _forget(house)
    await flush_store(home)
    return house


def _tell(memory: Memory, ada: str, grace: str) -> None:
    """Store all memories of the house, including those that are forgotten later."""
    memory.add_fact("The heron locker has spare fuses", at=_AT)
    memory.add_turn(PastTurn("h", _AT, "ibis stamps, locker", "Yes"))
    insert_summary(memory, PastSummary("k", _AT, _AT, "Crane kites, locker"))
    for person, fact, private, said, summary in (
        (ada, "Keeps finch seeds in a locker", "Hid the wren diary behind the locker", "robin pills, locker", "swift"),
        (grace, "Paints puffin signs for lockers", "Owes money for a gull locker", "skua rings, locker", "avocet"),
    ):
        memory.add_fact(fact, person=person, at=_AT)
        memory.add_fact(private, person=person, private=True, at=_AT)
        memory.add_turn(PastTurn(f"t {person}", _AT, said, "Yes", person=person))
        insert_summary(memory, PastSummary(f"e {person}", _AT, _AT, f"{summary} debts, locker", person=person))
    memory.add_fact("Vulture paint stands beside some locker", at=_AT)
    memory.add_fact("Fears condor noises near lockers", person=ada, private=True, at=_AT)
    memory.add_turn(PastTurn("h2", _AT, "is the harrier lamp at a locker", "Perhaps"))
    memory.add_turn(PastTurn("a2", _AT, "osprey tickets, locker nine", "Noted", person=ada))
    insert_summary(memory, PastSummary("k2", _AT, _AT, "A kestrel film was in one locker", person=ada))
    old = memory.add_fact("Has a dodo mug within locker two", person=ada, at=_AT)
    memory.add_fact("Drinks from glasses only", person=ada, replaces=old, at=_AT)


async def _forget(house: House) -> None:
    """Forget the memories in `GONE`, each as the person it belongs to."""
    rows = [each for each in map(json.loads, house.exported) if words_in(each) & GONE - {"dodo"}]
    for who, person in (("Ada", house.get_context("Ada").user_id), ("automation", None)):
        ids = [f"{each['kind']}:{each['id']}" for each in rows if each.get("person") == person]
        await house.act("forget", who, ids=ids)
