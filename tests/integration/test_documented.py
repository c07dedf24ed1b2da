"""Tests that the documentation lists exactly the data of events and responses and the attributes of sensors."""

from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
import re
from typing import Any

from homeassistant.auth.const import GROUP_ID_ADMIN
from homeassistant.components.sensor import SensorEntityCapabilityAttribute
from homeassistant.const import CONF_MODEL, CONF_URL
from homeassistant.core import Context, HomeAssistant
from homeassistant.util.yaml import parse_yaml
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry, async_capture_events

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.agents.hand_over import async_fire_lost_answers
from custom_components.windowed_conversation.bridge.turn_report import EVENT_REPLACED, async_fire_agent_event
from custom_components.windowed_conversation.const import (
    CONF_FALLBACK_AGENTS,
    CONF_PROVIDER,
    CONF_RECORD,
    CONF_ROUTING,
    DOMAIN,
    PROVIDER_OPENAI,
    RecordLevel,
)
from custom_components.windowed_conversation.providers.events import Usage
from custom_components.windowed_conversation.sensor import COST_SENSORS, SENSORS
from demo.model_server import ModelServer, call, words
from tests.documents import DOCS, column, table
from tests.repository_files import ACTIONS, TEXTS

from .actions import act
from .conftest import SayFn, SetUpFn, flush_store, until
from .summarizing import SMALL, STORY
from .test_memory_actions import folder

# The pages are read at import time, because reading files in the event loop is not allowed.
EVENTS = column(DOCS / "actions.md", "Events")
ATTRIBUTES = table(DOCS / "sensors.md", "Attributes")


@pytest.fixture
async def priced(set_up: SetUpFn, model_server: ModelServer) -> MockConfigEntry:
    """Return an account whose agent has cost sensors and a small window that is summarized."""
    account = {CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url}
    return await set_up(options=SMALL, account=account)


async def test_events_hold_what_is_documented(
    home: HomeAssistant, priced, say: SayFn, get_agent: Callable[[MockConfigEntry], Agent]
) -> None:
    fired = {event: async_capture_events(home, event) for event in EVENTS}
    for _ in range(5):
        await say(STORY)
    for ask in ("remember", "forget"):
        await say(f"{ask} that the bins go out on Friday")
    agent = get_agent(priced)
    agent.state.promises.restore({"a promise": "a conversation"})
    async_fire_lost_answers(agent)
    async_fire_agent_event(home, EVENT_REPLACED, agent.id, fact="fact:1")
    home.states.async_set("person.ada", "home", {"user_id": "ada", "friendly_name": "Ada"})
    await say("Remind Ada when she leaves to take her keys")
    home.states.async_set("person.ada", "not_home", {"user_id": "ada", "friendly_name": "Ada"})
    await until(lambda: all(fired.values()))

    documented = {event: set(column(DOCS / "actions.md", event)) for event in EVENTS}
    assert {event: set(captured[0].data) for event, captured in fired.items()} == documented


def test_usage_in_events_is_what_is_documented() -> None:
    (usage,) = [row[1] for row in table(DOCS / "actions.md", EVENTS[0]) if row[0] == "`usage`"]

    assert set(re.findall(r"`(\w+)`", usage)) == {field.name for field in fields(Usage)}


def test_attributes_are_those_that_are_documented(priced, get_agent: Callable[[MockConfigEntry], Agent]) -> None:
    named = [(each.key, each.attributes_fn) for each in (*SENSORS, *COST_SENSORS) if each.attributes_fn]

    attributes = {
        (TEXTS["entity"]["sensor"][key]["name"], f"`{name}`")
        for key, read in named
        # an attribute of every sensor, which the last route has without a value
        for name in read(get_agent(priced)).keys() - {SensorEntityCapabilityAttribute.STATE_CLASS}
    }

    assert {tuple(row[:2]) for row in ATTRIBUTES} == attributes


__all__ = ["folder"]

PAGE = DOCS / "actions.md"
# The pages are read at import time, because reading files in the event loop is not allowed.
TEXT = PAGE.read_text(encoding="utf-8")
FREE_FORM = "in free form"
USAGE = re.findall(r"`(\w+)`", next(row[1] for row in table(PAGE, "windowed_conversation_turn") if "usage" in row[0]))
MODEL = "gpt-5-mini"


def read_keys(heading: str) -> dict[str, str]:
    """Return each key of the table below a heading with its description."""
    return {key: row[1] for row in table(PAGE, heading) for key in re.findall(r"`([\w.]+)`", row[0])}


TURN_KEYS = read_keys("The statistics of a turn")


def document(action: str) -> dict[str, str]:
    """Return the documented keys of an action's response, those inside others with their path."""
    keys = read_keys(f"Response of `{action}`")
    if action == "list_turns":
        keys |= {f"turns.{key}": text for key, text in TURN_KEYS.items()}
    if action == "get_turn":
        keys |= TURN_KEYS
    if action == "forget":
        memories = read_keys("Response of `recall`")
        keys |= {key: text for key, text in memories.items() if key.startswith("memories.")}
    return keys | {f"{key}.{name}": "" for key in keys if key.split(".")[-1] == "usage" for name in USAGE}


DOCUMENTED = {action: document(action) for action in ACTIONS}
FREE = {action: {key for key, text in keys.items() if FREE_FORM in text} for action, keys in DOCUMENTED.items()}


def read_example(action: str) -> Any:
    """Return the example response of an action."""
    part = re.split(r"^#", TEXT.partition(f"#### Response of `{action}`\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    return parse_yaml(example)


def iter_keys(value: object, free: set[str], path: str = "") -> Iterator[str]:
    """Yield the path of each key in a response, not looking into those of a free form."""
    if isinstance(value, list):
        for item in value:
            yield from iter_keys(item, free, path)
    elif isinstance(value, dict) and path.removesuffix(".") not in free:
        for key, inside in value.items():
            yield f"{path}{key}"
            yield from iter_keys(inside, free, f"{path}{key}.")


class Caller:
    """Calls actions and collects their responses by the name of the action."""

    def __init__(self, home: HomeAssistant) -> None:
        self.home = home
        self.responses: dict[str, list[Any]] = {action: [] for action in ACTIONS}

    async def call(self, action: str, **data: Any) -> Any:
        """Call an action and return its response."""
        response = await act(self.home, action, **data)
        self.responses[action].append(response)
        return response

    def list_returned_keys(self) -> dict[str, set[str]]:
        """Return the paths of all keys that each action has returned."""
        return {action: set(iter_keys(found, FREE[action])) for action, found in self.responses.items()}


@pytest.fixture
async def talked(home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer) -> None:
    """Have a conversation with a tool call, a fact, and a failure, by an agent that keeps the full content of turns."""
    model_server.change(models=(MODEL,))
    settings = {CONF_MODEL: MODEL, CONF_ROUTING: "model_only", CONF_RECORD: RecordLevel.FULL}
    account = {CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url}
    await set_up(account=account, **settings, **{CONF_FALLBACK_AGENTS: ["conversation.home_assistant"]})
    model_server.script(call("HassTurnOn", name="kitchen light"), words("Done."))
    for text in ("switch it on", "my name is Ada", "the word is pelican"):
        await say(text)
    model_server.fault("500", 1)
    await say("turn on kitchen light")
    await flush_store(home)


@pytest.fixture
def caller(home: HomeAssistant, talked: None, folder: Path) -> Caller:
    """Return a caller of actions after a conversation."""
    return Caller(home)


async def look_at_conversations(caller: Caller) -> None:
    """Call each action on conversations."""
    await caller.call("list_conversations")
    for content in ("messages", "statistics", "token_count"):
        await caller.call("get_conversation", content=content)
    export = (await caller.call("get_conversation", content="export"))["export"]
    await caller.call("import_conversation", conversation_id="imported", export=export)
    await caller.call("tag_exchange", add=["bird"])
    await caller.call("summarize_conversation", keep=1)
    await caller.call("delete_conversation", conversation_id="imported")


async def look_at_memory(caller: Caller) -> None:
    """Call each action on memory."""
    owner = await caller.home.auth.async_create_user("Ada", group_ids=[GROUP_ID_ADMIN])
    for day in ("Friday", "Monday"):
        await caller.call("remember", text=f"The bins go out on {day}")
    await caller.call("recall")
    await caller.call("export_memories", everyone=True, filename="exports/memories.jsonl")
    await caller.call("import_memories", filename="exports/memories.jsonl")
    await caller.call("export_memories", context=Context(user_id=owner.id))
    await caller.call("forget", query="pelican", dry_run=True)
    await caller.call("forget", query="bins")


async def look_at_turns(caller: Caller) -> None:
    """Call each action on the record of turns."""
    listed = await caller.call("list_turns")
    for turn in listed["turns"]:
        await caller.call("get_turn", turn_id=turn["turn_id"], **({"request": 1} if turn["requests"] else {}))
    await caller.call("list_turns", filename="exports/turns.jsonl")


async def test_actions_return_the_keys_that_are_documented(caller: Caller) -> None:
    await look_at_turns(caller)
    await look_at_conversations(caller)
    await look_at_memory(caller)

    assert caller.list_returned_keys() == {action: set(keys) for action, keys in DOCUMENTED.items()}


@pytest.mark.parametrize("action", ACTIONS)
def test_example_response_has_only_documented_keys(action: str) -> None:
    example = read_example(action)

    assert isinstance(example, dict)
    assert set(iter_keys(example, FREE[action])) - DOCUMENTED[action].keys() == set()


def test_every_action_returns_something(home: HomeAssistant, talked: None) -> None:
    assert {action: home.services.supports_response(DOMAIN, action).value for action in ACTIONS} == {
        action: "only" if action.startswith(("list_conv", "get_")) or action == "recall" else "optional"
        for action in ACTIONS
    }
