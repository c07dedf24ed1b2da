"""Make the kept home of this version, in some minutes: .venv/demo/bin/python -m scripts.make_kept_home.

A real Home Assistant with the scripted model is set up through its forms, lived in, stopped, and started again. The
part of its folder that tests read goes to `tests/kept`, and a visit to a copy leaves the responses and the events.
"""

import asyncio
from contextlib import closing
import json
from pathlib import Path
import shutil
import sqlite3
import sys
from tempfile import TemporaryDirectory, gettempdir
import time
from typing import Any

from demo.client import Client, Json
from demo.home import EXPOSED_ENTITY_IDS, set_up_home
from demo.home_assistant import REPOSITORY
from demo.model_server import ModelServer, call, words
from demo.setup_agent import (
    DOMAIN,
    Account,
    ModelAccess,
    add_account,
    change_agent,
    change_options,
    fill_form,
    prefer_agent,
)
from demo.turns import take_turn
from tests import kept_home as kept
from tests.e2e.house import wait_for
from tests.e2e.kept_house import KeptHouse, restore_logins, run_kept_house

# The address has to be the same whenever a home is made. `none` is no key of anybody's.
_MODEL_PORT = 28_117
_KEY = "none"
_MODEL, _OPENAI_MODEL = "scripted", "gpt-5-mini"
_FLOWS = "/api/config/config_entries"

_OPTIONS = {
    "history_tokens": 900,
    "trim_share": 30,
    "summarize": True,
    "tool_results": "keep",
    "max_tool_turns": 3,
    "expiry_hours": 8760,
    "persistence": "all",
    "filler": "on_with_esphome",
    "filler_sentence": "Just a second.",
    "memory_days": 3650,
}
_HOUSE = {
    "prompt": "You are the voice of a small house. Answer in one sentence.",
    "fallback_agents": [kept.STUDY],
    "record": "full",
    "temperature": 0.3,
    "context_tokens": 16_000,
    "max_answer_tokens": 400,
    "scope": "user",
    "images": True,
    "turn_timeout": 240,
}
_STUDY = {"name": "Study", "model": _MODEL, "record": "full"}
_CLERK = {"record": "full", "effort": "low", "exact_counting": True}

# The files of Home Assistant that belong to the home, besides those with entries of other integrations.
_WHOLE_FILES = ("assist_pipeline.pipelines", "core.area_registry", "onboarding", "person")
# A disabled entry of each of these keeps the home from connecting to the internet.
_DOMAINS = {DOMAIN, "scripted_voice", "analytics", "marketplace"}
_MAX_DATABASE_BYTES = 300_000
_SECRETS = ("eyJ", "$2b$", "access_token", "jwt_key", "password", "sk-")

_SELECT_EVENTS = """
    SELECT event_types.event_type, shared_data
    FROM events JOIN event_types USING (event_type_id) JOIN event_data USING (data_id)
    WHERE event_types.event_type LIKE ? ORDER BY event_id
"""


async def main() -> None:
    """Make the home, unless the version has one: the home of a release never changes."""
    version = json.loads((REPOSITORY / "custom_components" / DOMAIN / "manifest.json").read_text())["version"]
    folder = kept.KEPT / version
    if folder.exists():
        sys.exit(f"{folder} exists. Delete it first if {version} is not released.")
    with TemporaryDirectory() as temporary:
        config = Path(temporary) / "home"
        async with ModelServer(port=_MODEL_PORT, strict=True, models=(_MODEL, _OPENAI_MODEL)) as model:
            config.mkdir()
            async with run_kept_house(config) as house:
                await _furnish(house, model)
                await _talk(house, model)
            kept.move_times(config / kept.DATABASE, -3600.0)
            model.reset()
            async with run_kept_house(config) as house:
                await _live_on(house)
                people = await _list_people(house.people.owner)
                await _export(house)
                await _leave_unfinished(house, model)
            _keep(config, folder, {"people": people, "model": model.address, "kept_at": time.time()})
            model.reset()
            await _visit(folder, Path(temporary) / "copy", model.address)
    size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    print(f"{folder.relative_to(REPOSITORY)}: {size:,} bytes")


async def _furnish(house: KeptHouse, model: ModelServer) -> None:
    """Add the people, the accounts, and the agents, and change their settings."""
    client = house.people.owner
    await house.people.get_client(kept.GUEST.capitalize())
    await set_up_home(client)
    server = await add_account(client, ModelAccess(url=model.url, model=_MODEL), "House")
    await _add_agent(client, server, _STUDY)
    await _wait_for_agent(client, kept.STUDY)
    await change_agent(client, server, _HOUSE)
    await _wait_for_agent(client, kept.HOUSE)
    owners = [{"device": await _find_satellite(client), "person": (await _list_people(client))[kept.OWNER]}]
    await change_options(client, server, {**_OPTIONS, "device_owners": owners})
    openai = ModelAccess(url=model.url, model=_OPENAI_MODEL, api_key=_KEY, form_name="openai")
    await change_agent(client, await add_account(client, openai, "Clerk"), _CLERK)
    form = await client.post(f"{_FLOWS}/flow", {"handler": DOMAIN})
    await client.post(f"{_FLOWS}/flow/{form['flow_id']}", {"next_step_id": "local"})
    local = await client.post(f"{_FLOWS}/flow/{form['flow_id']}", {})
    await _rename_agent(client, local["result"]["entry_id"], "Attic", kept.ATTIC)
    await prefer_agent(client, kept.HOUSE)


async def _add_agent(client: Client, account: Account, settings: Json) -> None:
    form = await client.post(f"{_FLOWS}/subentries/flow", {"handler": [account.entry_id, "conversation"]})
    await client.post(f"{_FLOWS}/subentries/flow/{form['flow_id']}", fill_form(form, settings))


async def _rename_agent(client: Client, entry_id: str, name: str, entity_id: str) -> None:
    """Rename the agent of an account without a model, and its entity."""
    for each in await client.send_command("config/entity_registry/list"):
        if each["config_entry_id"] == entry_id and each["entity_id"].startswith("conversation."):
            account = Account(entry_id, each["config_subentry_id"], each["entity_id"], each["device_id"])
            await change_agent(client, account, {"name": name})
            await _wait_for_agent(client, account.agent_id)
            await client.send_command(
                "config/entity_registry/update", entity_id=account.agent_id, new_entity_id=entity_id
            )


async def _wait_for_agent(client: Client, entity_id: str) -> None:
    """Wait until an agent can be used again after a change of its account."""

    async def fetch_state() -> str:
        states = await client.fetch_states()
        return str(states[entity_id]["state"]) if entity_id in states else "unavailable"

    # the account is still loaded right after a change
    await asyncio.sleep(1)
    await wait_for(fetch_state, lambda state: state != "unavailable")


async def _find_satellite(client: Client) -> str:
    """Return the id of the satellite's device."""
    devices = await client.send_command("config/device_registry/list")
    return next(str(each["id"]) for each in devices if ["scripted_voice", "satellite"] in each["identifiers"])


async def _list_people(client: Client) -> dict[str, str]:
    """Return the user ids by user name."""
    users = await client.send_command("config/auth/list")
    return {user["username"]: user["id"] for user in users if user["username"]}


async def _talk(house: KeptHouse, model: ModelServer) -> None:
    """Hold the conversations of the first day."""
    owner, guest = kept.OWNER, kept.GUEST
    await _say(house, owner, kept.STUDY, kept.DIARY, f"my name is {kept.NAME}")
    await house.act(owner, "tag_exchange", entity_id=kept.STUDY, conversation_id=kept.DIARY, add=[kept.TAG])
    await _say(
        house,
        owner,
        kept.STUDY,
        kept.DIARY,
        "I would like the kitchen light switched on",
        "turn off the kitchen light",
        f"remember that {kept.OWNERS_FACT}",
    )
    stories = [f"tell me a story about the {thing} in 120 words" for thing in ("sea", "moon", "wind", "well", "mill")]
    await _say(house, owner, kept.STUDY, kept.CELLAR, "consider that the wine is on the left", *stories)
    await _wait_for_summary(house)
    for verb in ("remember", "forget"):
        await _say(house, owner, kept.HOUSE, "a", f"{verb} that {kept.FORGOTTEN_FACT}")
    for fact in (kept.REPLACED_FACT, kept.HOMES_FACT):
        await _say(house, owner, kept.HOUSE, "a", f"remember that {fact}")
    await _say(house, guest, kept.HOUSE, "b", f"remember that {kept.GUESTS_FACT}", "who am I?")
    remember = call("remember", text=kept.WORDED_FACT, quote=kept.WORDED_FACT, words=kept.WORDED_BY)
    model.script(remember, words("I will know it."))
    await _say(house, owner, kept.HOUSE, "a", f"note this for later: {kept.WORDED_FACT}")
    await _say(house, owner, kept.CLERK, kept.LETTERS, f"my name is {kept.NAME}", "think about the weather")


async def _live_on(house: KeptHouse) -> None:
    """Go on after a restart: talk to each agent."""
    await _say(house, kept.GUEST, kept.HOUSE, "c", "turn on the kitchen light")
    await _say(house, kept.OWNER, kept.ATTIC, "e", "turn on the garage light")
    await _say(house, kept.OWNER, kept.STUDY, kept.DIARY, "what is my name?")
    await _say(house, kept.OWNER, kept.CLERK, kept.LETTERS, "I would like the bedroom light switched on")
    client = house.people.owner
    task: Json = {"entity_id": kept.TASK, "task_name": "guests", "instructions": "guests: 4"}
    task["structure"] = {"guests": {"selector": {"number": {}}}}
    await client.post("/api/services/ai_task/generate_data?return_response", task)
    await take_turn(client, "what do you know about me?", device_id=await _find_satellite(client))


async def _say(house: KeptHouse, person: str, agent: str, conversation_id: str, *texts: str) -> None:
    for text in texts:
        answer = await house.say(person, agent, text, conversation_id)
        print(f"{person} to {agent}: {text}\n    {answer}")


async def _wait_for_summary(house: KeptHouse) -> None:
    async def list_tags() -> Json:
        cellar = {"entity_id": kept.STUDY, "conversation_id": kept.CELLAR, "content": "statistics"}
        tags: Json = (await house.act(kept.OWNER, "get_conversation", **cellar))["statistics"]["tags"]
        return tags

    await wait_for(list_tags, lambda tags: "summary" in tags)


async def _export(house: KeptHouse) -> None:
    """Write the exports to the folder `media`."""
    diary = {"entity_id": kept.STUDY, "conversation_id": kept.DIARY, "content": "export"}
    export = (await house.act(kept.OWNER, "get_conversation", **diary))["export"]
    media = house.home_assistant.config / "media"
    (media / "conversation.json").write_text(json.dumps(export, indent=1))
    await house.act(kept.OWNER, "export_memories", everyone=True, filename="media/memories.jsonl")
    await house.act(kept.OWNER, "list_turns", filename="media/turns.jsonl")


async def _leave_unfinished(house: KeptHouse, model: ModelServer) -> None:
    """Leave a turn that another agent answered, and an answer that was promised."""
    model.fault("500", 1)
    await _say(house, kept.OWNER, kept.HOUSE, "d", "what is the meaning of all this?")
    model.change(latency=120.0)
    promise = await take_turn(house.people.owner, "tell me a story about patience")
    print(promise.speech)


def _keep(config: Path, folder: Path, about: Json) -> None:
    """Keep the part of a config folder that belongs to the home."""
    storage = folder / ".storage"
    storage.mkdir(parents=True)
    files = {each: json.loads((config / ".storage" / each).read_text()) for each in (*_WHOLE_FILES, *_REDUCED_FILES)}
    entries = [each for each in files["core.config_entries"]["data"]["entries"] if each["domain"] in _DOMAINS]
    for name, reduce in _REDUCED_FILES.items():
        reduce(files[name]["data"], {each["entry_id"] for each in entries})
    for name, content in files.items():
        (storage / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    shutil.copytree(config / "media", folder / "exports")
    (folder / "home.json").write_text(json.dumps(about, indent=1) + "\n")
    (folder / "responses.json").write_text("{}")
    with closing(kept.connect(config / kept.DATABASE)) as connection:
        connection.execute("VACUUM INTO ?", (str(folder / kept.DATABASE),))
    with closing(kept.connect(folder / kept.DATABASE)) as connection:
        # as the integration leaves it
        connection.execute("PRAGMA journal_mode = WAL")
    _check(folder)


def _reduce_auth(data: Json, _entries: set[str]) -> None:
    data["refresh_tokens"] = []


def _reduce_entries(data: Json, entries: set[str]) -> None:
    data["entries"] = [each for each in data["entries"] if each["entry_id"] in entries]


def _reduce_devices(data: Json, entries: set[str]) -> None:
    data["deleted_devices"] = []
    data["devices"] = [each for each in data["devices"] if each["config_entry_id"] in entries]


def _reduce_entities(data: Json, entries: set[str]) -> None:
    data["deleted_entities"] = []
    data["entities"] = [
        each
        for each in data["entities"]
        if each["config_entry_id"] in entries or each["entity_id"] in EXPOSED_ENTITY_IDS
    ]


_REDUCED_FILES = {
    "auth": _reduce_auth,
    "core.config_entries": _reduce_entries,
    "core.device_registry": _reduce_devices,
    "core.entity_registry": _reduce_entities,
}


def _check(folder: Path) -> None:
    """Raise ValueError if the home is too large, or has what looks like a secret or a path of this machine."""
    if (folder / kept.DATABASE).stat().st_size > _MAX_DATABASE_BYTES:
        raise ValueError("the file of the store is too large")
    forbidden = (*_SECRETS, str(REPOSITORY), gettempdir())
    for path in (each for each in folder.rglob("*") if each.is_file()):
        content = path.read_text(errors="replace")
        if found := [each for each in forbidden if each in content]:
            raise ValueError(f"{path}: {found}")


async def _visit(folder: Path, copy: Path, model: str) -> None:
    """Visit a copy of the kept home, and keep the responses and the events."""
    kept.copy_home(folder.name, copy, model)
    restore_logins(copy, kept.OWNER, kept.GUEST)
    async with run_kept_house(copy) as house:
        responses = await kept.visit(house)
    found: dict[str, Any] = {"actions": responses, "events": _read_events(copy)}
    text = json.dumps(found, indent=1, ensure_ascii=False).replace(str(copy), "/config")
    (folder / "responses.json").write_text(text + "\n")
    _check(folder)


def _read_events(config: Path) -> dict[str, list[Json]]:
    """Return the data of our events by their types, as the recorder has written them."""
    events: dict[str, list[Json]] = {}
    with closing(sqlite3.connect(config / "home-assistant_v2.db")) as connection:
        for kind, data in connection.execute(_SELECT_EVENTS, (f"{DOMAIN}_%",)):
            events.setdefault(kind, []).append(json.loads(data))
    return events


if __name__ == "__main__":
    asyncio.run(main())
