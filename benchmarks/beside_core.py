"""A real Home Assistant in this process, core's agents set up by their own config flows, and turns with any agent."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from inspect import signature
import logging
import os
from pathlib import Path
import time
from typing import Any

from homeassistant import bootstrap, runner
from homeassistant.components import conversation
from homeassistant.components.conversation import ChatLog, ConversationResult
from homeassistant.config_entries import SOURCE_USER
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.chat_session import async_get_chat_session

from demo.client import Client, log_in_or_onboard
from demo.home_assistant import build_environment, find_free_port, write_initial_files

# Chat sessions have an owner since Home Assistant 2026.11, which is passed as `context`.
SESSION_OWNER_ARGUMENTS: dict[str, Any] = (
    {"context": None} if "context" in signature(async_get_chat_session).parameters else {}
)


@dataclass(frozen=True, slots=True)
class Contender:
    """A conversation agent that takes part in a benchmark; `agent_id` is set only for agents of this integration."""

    entity_id: str
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class FinishedTurn:
    """A finished turn: the time of its first token, and its result.

    `first_token_ns` is the monotonic time, in nanoseconds, at which the first text arrived in the chat log.
    `cpu_seconds` is the CPU time, in seconds, that the event loop's thread used until then.
    """

    first_token_ns: int
    cpu_seconds: float
    result: ConversationResult


async def add_core_agent(hass: HomeAssistant, domain: str, inputs: Mapping[str, str], model: str) -> Contender:
    """Set up an integration of core with the values for its form, and with a model if the form asks for one."""
    flow = hass.config_entries.flow
    form = await flow.async_init(domain, context={"source": SOURCE_USER})
    answers: Mapping[str, str] = inputs
    while form["type"] != "create_entry":
        if form.get("errors"):
            raise SystemExit(f"{domain} cannot be set up: {form['errors']}")
        if form["type"] == "menu":
            raise SystemExit(f"{domain} has a menu")
        form = await flow.async_configure(form["flow_id"], dict(answers))
        answers = {"chat_model": model}
    await hass.async_block_till_done()
    return Contender(next(e.entity_id for e in er.async_get(hass).entities.values() if _is_agent(e, domain)))


def _is_agent(entry: er.RegistryEntry, platform: str) -> bool:
    return entry.platform == platform and entry.domain == "conversation"


@asynccontextmanager
async def run_demo_home(folder: str) -> AsyncIterator[tuple[HomeAssistant, Client]]:
    """Yield the demo's Home Assistant, running in this process, and a client that is connected to it."""
    port = find_free_port()
    write_initial_files(Path(folder), port)
    os.environ |= build_environment(Path(folder))
    hass = await bootstrap.async_setup_hass(runner.RuntimeConfig(config_dir=folder))
    if hass is None:
        raise SystemExit("Home Assistant does not start")
    logging.disable(logging.WARNING)
    url = f"http://127.0.0.1:{port}"
    try:
        await hass.async_start()
        async with Client(url, await log_in_or_onboard(url, "bench", "bench")) as client:
            await client.wait_until_running()
            yield hass, client
    finally:
        await hass.async_stop(force=True)


async def take_turn(
    hass: HomeAssistant,
    entity_id: str,
    text: str,
    conversation_id: str | None,
    device_id: str | None = None,
    *,
    user_id: str | None = None,
) -> FinishedTurn:
    """Send a text to an agent and return the finished turn; without a `conversation_id`, start a new conversation.

    Like the Assist pipeline, this listens to the chat log for the first text. Home Assistant accepts only the ids of
    conversations that it knows.
    """
    arrived: list[tuple[int, float]] = []
    began = time.thread_time()

    def on_delta(_: ChatLog, delta: Mapping[str, Any]) -> None:
        if delta.get("content") and delta.get("role") != "user":
            arrived.append((time.monotonic_ns(), time.thread_time() - began))

    with (
        async_get_chat_session(hass, conversation_id, **SESSION_OWNER_ARGUMENTS) as session,
        conversation.async_get_chat_log(hass, session, chat_log_delta_listener=on_delta),
    ):
        result = await conversation.async_converse(
            hass, text, session.conversation_id, Context(user_id=user_id), "en", entity_id, device_id
        )
    if result.response.error_code or not arrived:
        raise SystemExit(f"{entity_id} has no answer: {result.response.error_code}")
    return FinishedTurn(*arrived[0], result)
