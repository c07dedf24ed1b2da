"""Set up the account, agent, window and Assist pipeline of the demo home through the forms that a user sees.

The caller chooses the model server; turns.py defines how a turn is taken.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
import hashlib
from typing import Any

from demo.client import Client, Json
from demo.errors import DemoError

DOMAIN = "windowed_conversation"
AGENT_NAME = "Window demo"
PIPELINE_NAME = "Window demo"
PIPELINE_NAME_BY_LANGUAGE = {"en": PIPELINE_NAME, "de": "Window demo (Deutsch)"}
STT_ENTITY_ID = "stt.scripted_voice"
TTS_ENTITY_ID = "tts.scripted_voice"

_FLOW_PATH = "/api/config/config_entries"
# The states of an account that is about to be reloaded, or is being reloaded.
_RELOADING = frozenset({"not_loaded", "setup_in_progress", "unload_in_progress"})
_RELOAD_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAccess:
    """The address of a model, and the settings of its account and its agent."""

    url: str
    model: str
    api_key: str | None = None
    # The menu name of the account form.
    form_name: str = "server"
    # The choice between OpenAI's two formats, if the form offers one.
    wire_format: str | None = None
    # Whether the model gets the Assist tools.
    can_control_home: bool = True
    # In seconds. None for the defaults.
    turn_timeout: int | None = None
    # The size of the window for a new account.
    window_tokens: int | None = None
    # Whether this is the scripted model.
    is_scripted: bool = False
    has_memory: bool = True
    # Whether the agent makes suggestions from conversations.
    learns: bool = False
    # Who is asked before a lock or the garage is opened, or None for the default.
    asks_before_opening: str | None = None
    # The level of the record of turns, or None for the default.
    record_level: str | None = None

    def fingerprint(self) -> str:
        """Return a hash that identifies this choice of model without revealing the key."""
        return hashlib.sha256(repr(self).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Account:
    """The demo's account, identified by Home Assistant's ids."""

    entry_id: str
    subentry_id: str
    agent_id: str
    device_id: str


async def replace_accounts(client: Client, model: ModelAccess) -> Account:
    """Add the account with one agent, and remove all other accounts of this integration. Raises DemoError."""
    for entry in await _fetch_entries(client):
        await remove_account(client, entry["entry_id"])
    return await add_account(client, model)


async def add_account(client: Client, model: ModelAccess, agent_name: str = AGENT_NAME) -> Account:
    """Add an account with one agent, and keep existing accounts. Raises DemoError."""
    form = await client.post(f"{_FLOW_PATH}/flow", {"handler": DOMAIN})
    form = await _submit_form(client, form, {"next_step_id": model.form_name})
    try:
        form = await _submit_form(client, form, _fill_account_form(form, model))
    except DemoError as error:
        raise DemoError(f"the model's server {model.url} cannot be used: {error}") from error
    names = {"name": agent_name, "model": model.model, "deployment": model.model, "use_in_assistant": False}
    done = await _submit_form(client, form, fill_form(form, names))
    if done["type"] != "create_entry":
        raise DemoError(f"the account form asks for more than the demo knows ({done.get('step_id')}).")
    account = await find_account(client, done["result"]["entry_id"])
    if account is None:
        raise DemoError("Home Assistant did not keep the account: its log says why.")
    if changes := _build_agent_changes(model):
        await change_agent(client, account, changes)
    if model.window_tokens:
        await change_options(client, account, {"history_tokens": model.window_tokens})
    return account


async def remove_account(client: Client, entry_id: str) -> None:
    """Remove an account and its agents."""
    await client.delete(f"{_FLOW_PATH}/entry/{entry_id}")


async def submit_new_key(client: Client, flow_id: str, api_key: str) -> None:
    """Enter a new key in the form that Home Assistant opened after a key was refused. Raises DemoError."""
    form = await client.get(f"{_FLOW_PATH}/flow/{flow_id}")
    await _submit_form(client, form, {"api_key": api_key})


async def find_account(client: Client, entry_id: str | None = None) -> Account | None:
    """Return the account with this id, or any account if None, with its first agent; None if there is no account."""
    for entity in await client.send_command("config/entity_registry/list"):
        is_agent = entity["platform"] == DOMAIN and entity["entity_id"].startswith("conversation.")
        if is_agent and entry_id in (None, entity["config_entry_id"]):
            return Account(
                entry_id=entity["config_entry_id"],
                subentry_id=entity["config_subentry_id"],
                agent_id=entity["entity_id"],
                device_id=entity["device_id"],
            )
    return None


async def change_agent(client: Client, account: Account, changes: Mapping[str, Any]) -> None:
    """Submit the agent's form with these fields changed, and wait until its account is reloaded. Raises DemoError."""
    handler = [account.entry_id, "conversation"]
    # its forms cannot be opened during a reload
    await _wait_for_reload(client, account.entry_id)
    form = await client.post(f"{_FLOW_PATH}/subentries/flow", {"handler": handler, "subentry_id": account.subentry_id})
    await _submit_form(client, form, fill_form(form, changes))
    await _wait_for_reload(client, account.entry_id)


async def change_options(client: Client, account: Account, changes: Mapping[str, Any]) -> None:
    """Submit the account's options form with these fields changed, and wait until it is reloaded. Raises DemoError."""
    await _wait_for_reload(client, account.entry_id)
    form = await client.post(f"{_FLOW_PATH}/options/flow", {"handler": account.entry_id})
    await _submit_form(client, form, fill_form(form, changes), kind="options/flow")
    await _wait_for_reload(client, account.entry_id)


async def prefer_agent(client: Client, agent_id: str) -> str:
    """Make the agent's pipeline the preferred one and return its id; the pipeline itself never answers any input."""
    pipeline_id = await ensure_pipeline(client, agent_id, PIPELINE_NAME)
    await client.send_command("assist_pipeline/pipeline/set_preferred", pipeline_id=pipeline_id)
    return pipeline_id


async def ensure_pipeline(client: Client, agent_id: str, name: str, language: str = "en") -> str:
    """Create or change the pipeline of this name so that it uses the agent, and return its id.

    Its speech-to-text and text-to-speech are the scripted voice.
    """
    found = await client.send_command("assist_pipeline/pipeline/list")
    fields = {
        "name": name,
        "language": language,
        "conversation_engine": agent_id,
        # with "*", Home Assistant understands only the language of the speech-to-text
        "conversation_language": "*" if language == "en" else language,
        "stt_engine": STT_ENTITY_ID,
        "stt_language": "en",
        "tts_engine": TTS_ENTITY_ID,
        "tts_language": "en",
        "tts_voice": None,
        "wake_word_entity": None,
        "wake_word_id": None,
        "prefer_local_intents": False,
    }
    known = next((each["id"] for each in found["pipelines"] if each["name"] == name), None)
    if known:
        await client.send_command("assist_pipeline/pipeline/update", pipeline_id=known, **fields)
    else:
        known = (await client.send_command("assist_pipeline/pipeline/create", **fields))["id"]
    pipeline_id: str = known
    return pipeline_id


async def find_sensor_ids(client: Client, entry_id: str | None = None) -> dict[str, str]:
    """Return the entity ids of the agents' enabled sensors by key, such as window_tokens, of one or all accounts."""
    entities = [each for each in await client.send_command("config/entity_registry/list") if each["platform"] == DOMAIN]
    # AI tasks have some of these sensors, too
    agents = {each["config_subentry_id"] for each in entities if each["entity_id"].startswith("conversation.")}
    return {
        entity["translation_key"]: entity["entity_id"]
        for entity in entities
        if entity["entity_id"].startswith("sensor.")
        and entity["disabled_by"] is None
        and entity["config_subentry_id"] in agents
        and entry_id in (None, entity["config_entry_id"])
    }


def fill_form(form: Json, changes: Mapping[str, Any]) -> Json:
    """Return the values that the form would submit if a user changed only these fields, also those in sections."""
    return _fill_fields(form["data_schema"], changes)


def _fill_account_form(form: Json, model: ModelAccess) -> Json:
    """Return the values for an account form; some forms have the address in their advanced section."""
    entered = {"url": model.url, "api_key": model.api_key, "format": model.wire_format}
    entered = {name: value for name, value in entered.items() if value is not None}
    return fill_form(form, entered)


def _fill_fields(fields: list[Json], changes: Mapping[str, Any]) -> Json:
    values: Json = {}
    for field in fields:
        name = field["name"]
        if "schema" in field:
            values[name] = _fill_fields(field["schema"], changes)
        elif name in changes:
            values[name] = changes[name]
        elif (value := (field.get("description") or {}).get("suggested_value", field.get("default"))) is not None:
            values[name] = value
    return values


def _build_agent_changes(model: ModelAccess) -> Json:
    changes: Json = {} if model.can_control_home else {"llm_hass_api": []}
    if model.turn_timeout:
        changes["turn_timeout"] = model.turn_timeout
    if not model.has_memory:
        changes["memory"] = "off"
    elif model.learns:
        changes["memory"] = "suggestions"
    if model.asks_before_opening is not None:
        changes["ask_before_opening"] = model.asks_before_opening
    if model.record_level is not None:
        changes["record"] = model.record_level
    return changes


async def _wait_for_reload(client: Client, entry_id: str) -> None:
    """Wait until an account is loaded, or cannot be. Its agents do not exist before. Raises DemoError."""
    for _ in range(_RELOAD_SECONDS * 20):
        found: Json = await client.send_command("config_entries/get_single", entry_id=entry_id)
        if found["config_entry"]["state"] not in _RELOADING:
            return
        await asyncio.sleep(1 / 20)
    raise DemoError("the account is not loaded: Home Assistant's log says why, unless somebody disabled it.")


async def _fetch_entries(client: Client) -> list[Json]:
    entries: list[Json] = await client.send_command("config_entries/get", domain=DOMAIN)
    return entries


async def _submit_form(client: Client, form: Json, inputs: Json, kind: str = "") -> Json:
    """Return the next form, or the final result. Raises DemoError if Home Assistant rejects the answers."""
    kind = kind or ("subentries/flow" if isinstance(form["handler"], list) else "flow")
    answer: Json = await client.post(f"{_FLOW_PATH}/{kind}/{form['flow_id']}", inputs)
    if answer.get("errors"):
        raise DemoError(f'the form "{answer["step_id"]}" was not accepted: {", ".join(answer["errors"].values())}.')
    if answer["type"] == "abort" and not answer["reason"].endswith("successful"):
        raise DemoError(f"the form ended early: {answer['reason']}.")
    return answer
