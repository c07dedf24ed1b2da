"""Tests with a family of three, a guest, two satellites and an automation: access to facts, and forgetting.

In each act, somebody tells a fact, others ask about it, and somebody has it forgotten. A forgotten fact must not occur
in any request, action response or file, and other people must lose only the exchanges that repeat it. Several families
play the acts, because an act takes longer with each act before it: conversations and memory only grow.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
import json
from pathlib import Path
import time
from typing import Any

from homeassistant.auth.const import GROUP_ID_ADMIN, GROUP_ID_READ_ONLY, GROUP_ID_USER
from homeassistant.components import conversation
from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers import device_registry as dr
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.account import async_agent_states
from custom_components.windowed_conversation.agents.agent import async_loaded_agents
from custom_components.windowed_conversation.const import (
    CONF_DEVICE_OWNERS,
    CONF_HISTORY_TOKENS,
    CONF_PERSISTENCE,
    CONF_RECORD,
    Persistence,
    RecordLevel,
)
from custom_components.windowed_conversation.turn.context import extract_user_text
from custom_components.windowed_conversation.turn.routing import WindowKey
from custom_components.windowed_conversation.window import Exchange
from demo.model_server import ModelServer, call, words

from .actions import act
from .conftest import AGENT, SetUpFn, flush_store
from .real_files import _never_blocks, hass_config_dir, hass_storage

__all__ = ["_never_blocks", "hass_config_dir", "hass_storage"]

ALL_SPEAKERS = frozenset({"anna", "ben", "clara", "guest", "kitchen", "bedside", "automation"})
# Anna is the owner of the bedside satellite.
HEARS_OWN = {
    "anna": frozenset({"anna", "bedside"}),
    "bedside": frozenset({"anna", "bedside"}),
    "ben": frozenset({"ben"}),
    "clara": frozenset({"clara"}),
    "guest": frozenset({"guest"}),
}
PERSON = {"anna": "anna", "bedside": "anna", "ben": "ben", "clara": "clara", "guest": "guest"}

# The number of families. Each of them plays acts of all tellers.
_FAMILIES = 6

# The columns are: the teller, the owner of the fact (home or own), the person who has it forgotten, the way of
# forgetting, and whether the fact is then expected to be gone (+) or not (-).
ACTS = """
anna home anna sentence +
anna home ben sentence +
anna home clara subject +
anna home kitchen sentence +
anna home bedside sentence +
anna home automation id +
anna home guest id -
anna home ben me -
ben home ben tool +
ben home anna subject +
ben home kitchen tool +
ben home clara query +
ben home bedside subject +
ben home anna id +
ben home ben me -
clara home clara query +
clara home ben tool +
clara home kitchen subject +
clara home automation query +
clara home guest query -
guest home guest sentence +
guest home anna sentence +
guest home clara tool +
guest home anna me -
kitchen home kitchen sentence +
kitchen home kitchen subject +
kitchen home anna sentence +
kitchen home ben query +
kitchen home bedside tool +
kitchen home clara me -
bedside home anna sentence +
bedside home bedside sentence +
bedside home kitchen sentence +
bedside home ben id +
automation home automation id +
automation home anna sentence +
automation home kitchen subject +
anna own anna sentence +
anna own anna subject +
anna own anna id +
anna own anna query +
anna own anna tool +
anna own anna me +
anna own bedside sentence +
anna own bedside me +
bedside own anna sentence +
bedside own bedside subject +
bedside own bedside tool +
anna own ben sentence -
anna own ben query -
anna own kitchen subject -
anna own automation id -
ben own ben sentence +
ben own ben me +
ben own anna me -
ben own bedside sentence -
clara own clara tool +
clara own guest sentence -
guest own guest me +
clara own owner everything +
"""


@dataclass(frozen=True, slots=True)
class Act:
    """One act. No other act contains its words: `thing` is the subject of the fact and `place` its secret part."""

    number: int
    teller: str
    whose: str
    forgetter: str
    way: str
    is_gone: bool

    @property
    def thing(self) -> str:
        """The word for the subject of the fact."""
        return f"{self._letters}lantern"

    @property
    def place(self) -> str:
        """The word that must not occur anywhere after the fact is forgotten."""
        return f"{self._letters}cupboard"

    @property
    def _letters(self) -> str:
        """Letters that encode the number of the act. Digits might be values, and other ends of a word its forms."""
        return "".join(chr(ord("a") + digit) for digit in divmod(self.number, 8))

    @property
    def fact(self) -> str:
        """The fact as the teller says it."""
        return f"{'my' if self.whose == 'own' else 'the'} {self.thing} is behind {self.place}"

    @property
    def hearers(self) -> frozenset[str]:
        """The speakers who may hear the fact."""
        return ALL_SPEAKERS if self.whose == "home" else HEARS_OWN[self.teller]


def acts() -> list[Act]:
    rows = [line.split() for line in ACTS.strip().splitlines()]
    return [
        Act(number, teller, whose, forgetter, way, gone == "+")
        for number, (teller, whose, forgetter, way, gone) in enumerate(rows)
    ]


@dataclass(slots=True)
class Family:
    """The family at home, with the scripted model server and the folders to search."""

    home: HomeAssistant
    model_server: ModelServer
    speakers: Mapping[str, dict[str, Any]]
    folders: tuple[Path, ...]

    def get_context(self, who: str) -> Context:
        return self.speakers[who].get("context") or Context()

    async def say(self, who: str, text: str, *answers: Any) -> Any:
        """Send a speaker's text in their conversation and return the result; `answers` are scripted for the model."""
        self.model_server.script(*(answers or (words("I do not know."),)))
        where = "house diary" if who == "automation" else f"of {who}"
        speaker = {"context": Context(), **self.speakers[who]}
        return await conversation.async_converse(self.home, text, where, language="en", agent_id=AGENT, **speaker)

    async def settle(self) -> None:
        """Wait until the steps after all turns are done and everything is on disk."""
        for agent in async_loaded_agents(self.home):
            agent.notify_listeners()
        await self.home.async_block_till_done()
        await flush_store(self.home)

    async def find_hearers(self, act: Act) -> frozenset[str]:
        """Have each speaker ask about the act's subject, and return those for whom the model was sent its place."""
        hearers = set()
        for who in sorted(ALL_SPEAKERS):
            self.model_server.log.clear()
            await self.say(who, f"where may the {act.thing} be?")
            if act.place in json.dumps([request.body for request in self.model_server.requests]):
                hearers.add(who)
        await self.settle()
        return frozenset(hearers)

    async def read_all(self, who: str, about: Act) -> str:
        """Return, as JSON, all responses to this speaker of the actions that read memory, conversations and turns."""
        look = partial(self.call_action, who)
        memories = {"kinds": ["fact", "turn", "summary"], "limit": 100}
        seen = [
            await look("recall", **memories),
            await look("recall", **memories, query=about.thing),
            await look("export_memories"),
            await look("forget", query=about.thing, dry_run=True),
        ]
        conversations, turns = await look("list_conversations"), await look("list_turns", limit=100)
        ids = [each["conversation_id"] for each in conversations["conversations"]]
        seen += [
            await look("get_conversation", conversation_id=each, content=content)
            for each in ids
            for content in ("messages", "export")
        ]
        seen += [await look("get_turn", turn_id=each["turn_id"]) for each in turns["turns"][:20]]
        return json.dumps([*seen, conversations, turns], default=str)

    async def call_action(self, who: str, action: str, **data: Any) -> Any:
        """Call an action as this speaker and return its response, or the class name of the error."""
        try:
            return await act(self.home, action, self.get_context(who), **data)
        except HomeAssistantError as err:
            return type(err).__name__

    async def exchanges(self) -> dict[str, list[Exchange]]:
        """Return the exchanges of each window by the window's key."""
        windows = {}
        for kept in async_agent_states(self.home).values():
            for key in kept.windows.stats():
                window = await kept.windows.load(key)
                windows[key] = [] if window is None else list(window.exchanges())
        return windows

    def files_with(self, text: str) -> list[str]:
        """Return the names of the files that contain a text."""

        def look() -> list[str]:
            files = [path for folder in self.folders for path in folder.rglob("*") if path.is_file()]
            return [path.name for path in files if text.encode() in path.read_bytes()]

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(look).result()

    async def forget(self, act: Act, fact: str | None) -> None:
        """Forget the fact in the way that the act prescribes, and confirm it."""
        spoken = {
            "sentence": f"forget that {act.fact}",
            "subject": f"forget everything about the {act.thing}",
            "me": "forget everything about me",
            "tool": f"nobody needs to know any more that {act.fact}",
        }
        if act.way in spoken:
            tool = (
                (call("forget", query=act.fact), words(f"Shall I forget that {act.fact}?")) if act.way == "tool" else ()
            )
            await self.say(act.forgetter, spoken[act.way], *tool)
            await self.say(act.forgetter, "yes")
            return
        conditions: dict[str, dict[str, Any]] = {
            "id": {"ids": [fact]},
            "query": {"query": act.place},
            "everything": {"person": self.get_context(act.teller).user_id, "everything": True},
        }
        await self.call_action(act.forgetter, "forget", **conditions[act.way])


@pytest.fixture
async def family(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer, hass_config_dir: str, store_path: Path
) -> Family:
    """Set up the family; each speaker has a conversation that does not mention the acts."""
    source = MockConfigEntry(domain="wyoming")
    source.add_to_hass(home)

    async def person(name: str, group: str = GROUP_ID_USER) -> dict[str, Any]:
        return {"context": Context(user_id=(await home.auth.async_create_user(name, group_ids=[group])).id)}

    def satellite(name: str) -> dict[str, Any]:
        devices = dr.async_get(home)
        made = devices.async_get_or_create(config_entry_id=source.entry_id, identifiers={("wyoming", name)}, name=name)
        return {"device_id": made.id}

    speakers = {
        "owner": await person("Owner", GROUP_ID_ADMIN),
        "anna": await person("Anna"),
        "ben": await person("Ben"),
        "clara": await person("Clara"),
        "guest": await person("Leo", GROUP_ID_READ_ONLY),
        "kitchen": satellite("kitchen"),
        "bedside": satellite("bedside"),
        "automation": {},
    }
    bedside = {"device": speakers["bedside"]["device_id"], "person": speakers["anna"]["context"].user_id}
    # With this budget, no window is trimmed.
    options = {CONF_DEVICE_OWNERS: [bedside], CONF_PERSISTENCE: Persistence.ALL, CONF_HISTORY_TOKENS: 1_000_000}
    await set_up(options=options, **{CONF_RECORD: RecordLevel.FULL})
    family = Family(home, model_server, speakers, (Path(hass_config_dir), store_path.parent))
    for who in sorted(ALL_SPEAKERS):
        await family.say(who, "good morning")
    return family


async def tell(family: Family, act: Act) -> str | None:
    """Tell the fact and ask about it. Return the id of the fact, or None if none was stored."""
    await family.say(act.teller, f"remember that {act.fact}")
    facts = await list_facts(family, act.teller)
    for who in sorted(act.hearers)[:3]:
        await family.say(who, f"where is the {act.thing}?", words(f"The {act.thing} is behind {act.place}."))
    await family.settle()
    return next((each["id"] for each in facts if act.place in each["text"]), None)


async def list_facts(family: Family, who: str) -> list[dict[str, Any]]:
    """Return the facts that a speaker may see."""
    person = PERSON.get(who, "automation")
    response = await act(family.home, "recall", family.get_context(person), kinds=["fact"], limit=100)
    memories: list[dict[str, Any]] = response["memories"]
    return memories


def text_of(exchange: Exchange) -> str:
    return " ".join(extract_user_text(message.content) for message in exchange.messages)


def find_wrongly_lost(act: Act, family: Family, before: Any, after: Any, since: float) -> list[str]:
    """Return the texts of lost exchanges that should have been kept.

    An exchange may be lost if it repeats the fact, or if it belongs to the teller or the forgetter and began after
    `since`. For the ways `me` and `everything`, all exchanges of these two people may be lost.
    """
    owners = {family.get_context(PERSON[who]).user_id for who in (act.teller, act.forgetter) if who in PERSON}
    lost = []
    for key, exchanges in before.items():
        remaining = {each.messages[0].created for each in after.get(key, ())}
        is_owners = WindowKey.parse(key).user in owners
        for each in exchanges:
            began = each.messages[0].created or 0.0
            repeats = act.place in text_of(each) or (act.way == "subject" and act.thing in text_of(each))
            may_go = repeats or (is_owners and (began >= since or act.way in {"me", "everything"}))
            if began not in remaining and not may_go:
                lost.append(text_of(each))
    return lost


async def find_wrongs(family: Family, act: Act) -> list[str]:
    """Play an act and return all violated expectations."""
    wrong = []
    since = time.time()
    fact = await tell(family, act)
    hearers = await family.find_hearers(act)
    if hearers != act.hearers:
        wrong.append(f"heard before by {sorted(hearers)}")
    before = await family.exchanges()
    await family.forget(act, fact)
    await family.settle()
    lost = find_wrongly_lost(act, family, before, await family.exchanges(), since)
    if lost:
        wrong.append(f"others have lost {lost}")
    hearers = await family.find_hearers(act)
    if hearers != (frozenset() if act.is_gone else act.hearers):
        wrong.append(f"heard afterwards by {sorted(hearers)}")
    # An automation may see all conversations.
    may_see = act.hearers | {"automation"}
    people = ALL_SPEAKERS - {"kitchen", "bedside"}
    readers = {who for who in people if act.place in await family.read_all(who, act)}
    if readers - (frozenset() if act.is_gone else may_see):
        wrong.append(f"seen by {sorted(readers)}")
    if act.is_gone and (files := family.files_with(act.place)):
        wrong.append(f"in {files}")
    return wrong


@pytest.mark.long
@pytest.mark.parametrize("number", range(_FAMILIES))
async def test_forgotten_fact_is_nowhere_and_others_lose_nothing_in_a_family(
    family: Family, number: int, subtests: pytest.Subtests
) -> None:
    for each in acts()[number::_FAMILIES]:
        with subtests.test(str(each)):
            assert await find_wrongs(family, each) == []


def test_families_play_sixty_acts() -> None:
    assert len(acts()) == 60
