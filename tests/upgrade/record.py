"""Records a home for the upgrade tests: a real Home Assistant with the integration of the checkout in which it is run.

usage, in a checkout of the version to record:  PYTHONPATH=. .venv/demo/bin/python .../tests/upgrade/record.py FOLDER

FOLDER must not exist. It gets the integration's files and what Home Assistant keeps of its entries, devices and
entities, and `seen.json`: what the recorded version showed in the end. The model server's address is a placeholder.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
import json
from pathlib import Path
import sys
import tempfile
from typing import Any

from demo.client import Client, enter
from demo.home import furnish
from demo.home_assistant import HomeAssistant, free_port
from demo.model_server import ModelServer

DOMAIN = "windowed_conversation"
PLACEHOLDER = "model.example"

_FLOWS = "/api/config/config_entries"
MODELS = ("scripted", "gpt-5-mini", "our-deployment", "gemini-2.5-flash", "claude-haiku-4-5")
# Tokens, for one question that is longer.
_SHORT_CONTEXT = 4000
# Seconds after which the sensors have followed a turn, and the summary that a trim has led to.
_SETTLED = 1.0

_TALK = (
    "my name is Ada",
    "remember that the wifi password is swordfish",
    "I would like the kitchen light switched on",
    "turn off the kitchen light",
    "what is my name?",
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An account as a person enters it: the form in the menu, the agent, and what is changed in the other forms."""

    form: str
    name: str
    account: dict[str, Any] = field(default_factory=dict)
    first: dict[str, Any] = field(default_factory=dict)
    agent: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


# Between them they set each field to something else than its default.
_ACCOUNTS = (
    Recorded(
        "server",
        "Ada",
        first={"model": "scripted"},
        agent={
            "prompt": "You are Ada, who was here before the upgrade.",
            "temperature": 0.3,
            "context_tokens": 32_000,
            "reply_tokens": 700,
            "left_out": ["secret"],
            "first_word_timeout": 11,
            "turn_timeout": 55,
            "max_tool_iterations": 6,
        },
        options={"history_tokens": 350, "trim_share": 40, "max_windows": 7, "expiry_hours": 48},
    ),
    Recorded(
        "openai",
        "Bob",
        account={"api_key": "no-key", "format": "responses"},
        first={"model": "gpt-5-mini"},
        agent={"effort": "low", "compaction": "provider", "counting": "o200k_base", "others": ["conversation.ada"]},
        options={"persistence": "all", "tool_results": "keep", "result_cap_tokens": 900},
    ),
    Recorded(
        "azure",
        "Cyd",
        account={"api_key": "no-key", "format": "chat", "api_version": "2024-10-21"},
        first={"model": "our-deployment", "model_family": "gpt-4.1-mini"},
        agent={"scope": "agent", "context_placement": "system"},
        options={"max_tool_turns": 3},
    ),
    Recorded(
        "anthropic",
        "Dan",
        account={"api_key": "no-key"},
        first={"model": "claude-haiku-4-5"},
        agent={"routing": "llm_only", "scope": "user", "history_tokens": 1500, "llm_hass_api": []},
    ),
    Recorded(
        "gemini",
        "Eve",
        account={"api_key": "no-key"},
        first={"model": "gemini-2.5-flash"},
        options={"history_tokens": 350, "summarize": True},
    ),
    Recorded("local", "Fay", agent={"scope": "agent"}),
    # nobody knows what its model costs
    Recorded("openai", "Gus", account={"api_key": "no-key", "format": "chat"}, first={"model": "scripted"}),
)


async def _submit(client: Client, kind: str, form: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = await client.post(f"{_FLOWS}/{kind}/{form['flow_id']}", answers)
    if answer.get("errors") or (answer["type"] == "abort" and not answer["reason"].endswith("successful")):
        raise RuntimeError(f"a form does not take {answers}: {answer.get('errors') or answer['reason']}")
    return answer


def _filled_in(fields: Iterable[dict[str, Any]], answers: dict[str, Any]) -> dict[str, Any]:
    """Return what the form would submit if a person changed these fields, in whichever sections they are."""
    values: dict[str, Any] = {}
    for each in fields:
        name = each["name"]
        suggested = (each.get("description") or {}).get("suggested_value", each.get("default"))
        if "schema" in each:
            values[name] = _filled_in(each["schema"], answers)
        elif (value := answers.get(name, suggested)) is not None:
            values[name] = value
    return values


async def _add(client: Client, model: ModelServer, recorded: Recorded) -> dict[str, Any]:
    """Go through the forms; returns the entry."""
    url = model.address if recorded.form in {"azure", "gemini", "anthropic"} else model.url
    form = await client.post(f"{_FLOWS}/flow", {"handler": DOMAIN})
    form = await _submit(client, "flow", form, {"next_step_id": recorded.form})
    if form["type"] == "form":
        form = await _submit(client, "flow", form, _filled_in(form["data_schema"], {"url": url, **recorded.account}))
        form = await _submit(
            client, "flow", form, _filled_in(form["data_schema"], {"name": recorded.name, **recorded.first})
        )
    entry: dict[str, Any] = form["result"]
    if recorded.options:
        form = await client.post(f"{_FLOWS}/options/flow", {"handler": entry["entry_id"]})
        await _submit(client, "options/flow", form, _filled_in(form["data_schema"], recorded.options))
    agents = await client.command("config_entries/subentries/list", entry_id=entry["entry_id"])
    handler = {"handler": [entry["entry_id"], "conversation"], "subentry_id": agents[0]["subentry_id"]}
    form = await client.post(f"{_FLOWS}/subentries/flow", handler)
    changed = {"name": recorded.name, **recorded.agent}
    await _submit(client, "subentries/flow", form, _filled_in(form["data_schema"], changed))
    await asyncio.sleep(_SETTLED)
    return entry


async def _say(client: Client, agent: str, text: str, conversation: str | None = "upgrade") -> None:
    said = {"text": text, "agent_id": agent, "language": "en"}
    await client.post("/api/conversation/process", said | ({"conversation_id": conversation} if conversation else {}))
    await asyncio.sleep(_SETTLED)


async def _entities(client: Client) -> list[dict[str, Any]]:
    found = await client.command("config/entity_registry/list")
    return [entity for entity in found if entity["platform"] == DOMAIN]


async def _live_in(client: Client, model: ModelServer) -> None:
    """Talk to each agent, tag, have a model refuse what is too long, and name things as people do."""
    agents = [entity["entity_id"] for entity in await _entities(client) if entity["entity_id"].startswith("conv")]
    for agent in agents:
        for number, text in enumerate(_TALK):
            await _say(client, agent, text)
            if number == 0 and agent == "conversation.ada":
                about = {"conversation_id": "upgrade", "add": ["important", "mine"]}
                await client.call(f"{DOMAIN}.tag_exchange", agent, **about)
    for number in range(6):
        await _say(client, "conversation.ada", f"remember that locker {number} is the blue one")
        await _say(client, "conversation.eve", f"remember that locker {number} is the green one")
    await _say(client, "conversation.ada", "my name is Nobody", None)
    model.change(context_size=_SHORT_CONTEXT)
    await _say(client, "conversation.bob", "tell me more of this: " + "a long story, " * 2000, "long")
    model.change(context_size=None)
    renamed = {"name": "What Ada remembers", "new_entity_id": "sensor.what_ada_remembers", "icon": "mdi:brain"}
    await client.command("config/entity_registry/update", entity_id="sensor.ada_window_tokens", **renamed)
    await client.command(
        "config/entity_registry/update", entity_id="conversation.eve", new_entity_id="conversation.kitchen"
    )
    for entity in await _entities(client):
        if entity["unique_id"].endswith("_cached_input_tokens") and "eve" in entity["entity_id"]:
            await client.command("config/entity_registry/update", entity_id=entity["entity_id"], disabled_by="user")
    devices = await client.command("config/device_registry/list")
    (bob,) = [device["id"] for device in devices if device["name"] == "Bob"]
    await client.command("config/device_registry/update", device_id=bob, name_by_user="Robert")


async def _windows(client: Client, figures: dict[str, Any], agent: str) -> dict[str, Any]:
    """Return the conversations that the agent's sensor names."""
    windows = {}
    for conversation in figures["attributes"]["conversations"]:
        data = {"entity_id": agent, "conversation_id": conversation["conversation_id"]}
        answer = await client.post(f"/api/services/{DOMAIN}/get_window?return_response", data)
        windows[data["conversation_id"]] = [
            {key: message[key] for key in ("role", "content", "tags")}
            for message in answer["service_response"]["messages"]
        ]
    return windows


async def _seen(client: Client, entries: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what a person can see in the end."""
    states, agents = await client.states(), {}
    ids = {entity["unique_id"]: entity["entity_id"] for entity in await _entities(client)}
    for name, entry in entries.items():
        subentries = await client.command("config_entries/subentries/list", entry_id=entry["entry_id"])
        agent_id = subentries[0]["subentry_id"]
        figures = states[ids[f"{agent_id}_window_utilization"]]
        told = await client.get(f"/api/diagnostics/config_entry/{entry['entry_id']}")
        (shown,) = told["data"]["agents"]
        agents[name] = {
            "entry_id": entry["entry_id"],
            "subentry_id": agent_id,
            "title": subentries[0]["title"],
            "entity_id": ids[agent_id],
            "configuration": shown["configuration"],
            "totals": shown["totals"],
            "costs": shown["costs"],
            "learned": told["data"]["learned"],
            "windows": await _windows(client, figures, ids[agent_id]),
        }
    return {
        "at": datetime.now(UTC).isoformat(),
        "user_id": (await client.command("auth/current_user"))["id"],
        "home_assistant": (await client.get("/api/config"))["version"],
        "agents": agents,
        "entity_ids": sorted(ids.values()),
        "states": {entity_id: states[entity_id]["state"] for entity_id in sorted(states.keys() & ids.values())},
    }


def _ours(name: str, content: dict[str, Any], seen: dict[str, Any]) -> dict[str, Any]:
    """Return what a file of Home Assistant's says of the integration."""
    data = content["data"]
    match name:
        case "core.config_entries":
            data["entries"] = [entry for entry in data["entries"] if entry["domain"] == DOMAIN]
        case "core.entity_registry":
            data["entities"] = [entity for entity in data["entities"] if entity["platform"] == DOMAIN]
            data["deleted_entities"] = []
        case "core.device_registry":
            data["devices"] = [device for device in data["devices"] if DOMAIN in dict(device["identifiers"])]
            data["deleted_devices"] = []
        case "core.restore_state":
            content["data"] = [each for each in data if each["state"]["entity_id"] in seen["entity_ids"]]
    return content


def _keep(storage: Path, folder: Path, seen: dict[str, Any], address: str) -> None:
    names = ("core.config_entries", "core.entity_registry", "core.device_registry", "core.restore_state")
    folder.mkdir(parents=True)
    for path in sorted([storage / name for name in names] + [*storage.glob(f"{DOMAIN}.*")]):
        _write(folder / path.name, _ours(path.name, json.loads(path.read_text()), seen), address)
    _write(folder / "seen.json", seen, address)


def _write(path: Path, content: dict[str, Any], address: str) -> None:
    text = json.dumps(content, ensure_ascii=False)
    path.write_text(text.replace(address.removeprefix("http://"), PLACEHOLDER) + "\n")


async def _record(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as config:
        async with ModelServer(models=MODELS) as model:
            home_assistant = HomeAssistant(Path(config), free_port())
            async with home_assistant:
                tokens = await enter(home_assistant.url, "demo", "demo")
                async with Client(home_assistant.url, tokens) as client:
                    await client.wait_until_running()
                    await furnish(client)
                    entries = {each.name: await _add(client, model, each) for each in _ACCOUNTS}
                    await _live_in(client, model)
                    seen = await _seen(client, entries)
        _keep(Path(config) / ".storage", folder, seen, model.address)


if __name__ == "__main__":
    asyncio.run(_record(Path(sys.argv[1]).absolute()))
