"""Starts a home that an earlier version has left, and notes what is there and what its agents answer."""

import asyncio
from dataclasses import dataclass, field
import json
from pathlib import Path
from typing import Any

from homeassistant import loader
from homeassistant.auth import auth_manager_from_config
from homeassistant.bootstrap import async_load_base_functionality
from homeassistant.components import conversation
from homeassistant.config_entries import ConfigEntries
from homeassistant.core import Context, CoreState, HomeAssistant
from homeassistant.helpers import device_registry as dr, entity_registry as er, issue_registry as ir
from homeassistant.helpers.json import json_bytes
from homeassistant.setup import async_setup_component
from pytest_homeassistant_custom_component.common import MockUser

from custom_components.windowed_conversation.diagnostics import async_get_config_entry_diagnostics
from demo.model_server import ModelServer
from tests.clock import IdleClock

from .record import DOMAIN, MODELS, PLACEHOLDER

# In the order in which they are asked: Eve's turn is followed by a summary, which asks the model, too.
WITH_A_MODEL = ("Ada", "Bob", "Cyd", "Dan", "Gus", "Eve")
AGENTS = (*WITH_A_MODEL, "Fay")


@dataclass(slots=True)
class Home:
    """A home before the upgrade, as `record.py` has seen it and its files say, and after it. By names of agents."""

    version: str
    before: dict[str, Any]
    entities_before: dict[str, dict[str, Any]]
    devices_before: dict[str, str | None]
    states: dict[str, str] = field(default_factory=dict)
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    excluded_tags: list[str] = field(default_factory=list)
    entities: dict[str, dict[str, Any]] = field(default_factory=dict)
    devices: dict[str, str | None] = field(default_factory=dict)
    issues: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    windows: dict[str, dict[str, Any]] = field(default_factory=dict)
    speech: dict[str, str] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=dict)

    def agent(self, name: str) -> dict[str, Any]:
        """Return what an agent told of itself after the upgrade."""
        (agent,) = self.told[name]["agents"]
        return dict(agent)


def read(folder: Path, name: str) -> dict[str, Any]:
    """Return what a file of a folder holds."""
    content: dict[str, Any] = json.loads((folder / name).read_text())
    return content


def install(folder: Path, storage: Path, address: str) -> None:
    """Put the files where Home Assistant finds them, with an option that no version knows in each place for options."""
    storage.mkdir()
    for path in folder.iterdir():
        (storage / path.name).write_text(path.read_text().replace(PLACEHOLDER, address))
    entries = read(storage, "core.config_entries")
    for entry in entries["data"]["entries"]:
        for options in (entry["data"], entry["options"], *(each["data"] for each in entry["subentries"])):
            options["of_another_version"] = "something"
    (storage / "core.config_entries").write_text(json.dumps(entries))


async def live_in(home: Home, folder: Path, config: Path) -> None:
    """Start the home and see what is there, then ask each agent something that was said before."""
    clock = IdleClock(asyncio.get_running_loop())
    clock.start()
    async with ModelServer(models=MODELS) as model:
        install(folder, config / ".storage", model.address.removeprefix("http://"))
        hass = await started(config, home.before["user_id"])
        try:
            await look(hass, home)
            for name in WITH_A_MODEL:
                await ask(hass, home, model, name)
        finally:
            await hass.async_stop(force=True)
    clock.stop()


async def started(config: Path, user_id: str) -> HomeAssistant:
    """Return Home Assistant as its bootstrap makes it, with what an agent needs of it."""
    hass = HomeAssistant(str(config))
    hass.config.skip_pip = True
    loader.async_setup(hass)
    hass.config_entries = ConfigEntries(hass, {})
    assert await async_load_base_functionality(hass)
    hass.auth = await auth_manager_from_config(hass, [], [])
    MockUser(id=user_id, name="Demo", is_owner=True).add_to_hass(hass)
    hass.set_state(CoreState.running)
    for component in ("homeassistant", "intent", DOMAIN):
        assert await async_setup_component(hass, component, {})
    await hass.async_block_till_done(wait_background_tasks=True)
    return hass


async def look(hass: HomeAssistant, home: Home) -> None:
    """Note what is there after the start."""
    for name, agent in home.before["agents"].items():
        entry = hass.config_entries.async_get_known_entry(agent["entry_id"])
        told = await async_get_config_entry_diagnostics(hass, entry)
        # as a person gets it
        home.told[name] = json.loads(json_bytes(told))
        home.titles[name] = entry.runtime_data.agents[agent["subentry_id"]].config.name
        home.excluded_tags += entry.runtime_data.agents[agent["subentry_id"]].config.excluded_tags
        home.windows[name] = {
            conversation_id: await window(hass, agent["entity_id"], conversation_id, home.before["user_id"])
            for conversation_id in conversations(hass, agent["subentry_id"])
        }
    entities = er.async_get(hass).entities.values()
    home.entities = {each.unique_id: each.extended_dict for each in entities if each.platform == DOMAIN}
    home.devices = {str(each.name): each.name_by_user for each in dr.async_get(hass).devices}
    home.issues = [issue.issue_id for issue in ir.async_get(hass).issues.values() if issue.domain == DOMAIN]
    home.states = {state.entity_id: state.state for state in hass.states.async_all()}


def conversations(hass: HomeAssistant, agent_id: str) -> list[str]:
    """Return the ids of the conversations that an agent's sensor names."""
    sensor = er.async_get(hass).async_get_entity_id("sensor", DOMAIN, f"{agent_id}_window_utilization")
    assert sensor is not None
    state = hass.states.get(sensor)
    assert state is not None
    return [each["conversation_id"] for each in state.attributes["conversations"]]


async def window(hass: HomeAssistant, agent: str, conversation_id: str, user_id: str) -> list[dict[str, Any]]:
    """Return the messages of a conversation."""
    data = {"entity_id": agent, "conversation_id": conversation_id}
    answer: Any = await hass.services.async_call(
        DOMAIN, "get_window", data, blocking=True, return_response=True, context=Context(user_id=user_id)
    )
    return [{key: message[key] for key in ("role", "content", "tags")} for message in answer["messages"]]


async def ask(hass: HomeAssistant, home: Home, model: ModelServer, name: str) -> None:
    """Ask an agent for the name that it was told before the upgrade."""
    model.log.clear()
    context, agent = Context(user_id=home.before["user_id"]), home.before["agents"][name]["entity_id"]
    result = await conversation.async_converse(hass, "what is my name?", "upgrade", context, "en", agent)
    home.speech[name] = result.response.speech["plain"]["speech"]
    home.sent[name] = next(record.raw.decode() for record in model.log.records if record.for_answer)
