"""The demo home for the end-to-end tests: send inputs, read sensors, change settings, and read the log.

conftest.py starts and stops the home. This module uses no test framework.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
import re
from typing import Any

from custom_components.windowed_conversation.turn.context import TRIMMED_NOTE
from demo.client import Client
from demo.home_assistant import HomeAssistantProcess
from demo.model_server import ModelServer
from demo.setup_agent import DOMAIN, Account, change_agent, change_options, find_account, remove_account
from demo.turns import Turn, TurnEventCallback, take_turn, wait_for_turn
from demo.voice import take_voice_turn

# Seconds that a test waits for a state.
_PATIENCE = 30.0

# The log is searched only for inputs and answers of at least this length, because shorter texts occur in any log.
_MIN_PRIVATE_CHARS = 12
_LIVE_CONTEXT = re.compile(rf"; (?:{TRIMMED_NOTE}|(?:states|memory, quoted): )[^\]]*")
# Home Assistant logs this if a browser closes its connection while a message is sent to it.
_CLOSED_CONNECTION = re.compile(
    r"ClientConnectionResetError exception in shielded future.*?ClientConnectionResetError: Cannot write to closing",
    re.DOTALL,
)
# A Home Assistant that stops interrupts the threads of its executor that do not end at once, on a loaded machine also
# those that only wait for work. It logs where a thread was, and a waiting one logs the interruption.
_INTERRUPTED_THREAD = re.compile(
    r"Thread\[SyncWorker_\d+\] is still running at shutdown: .*?(?=^\d{4}-\d\d-\d\d |\Z)"
    r"|Exception in worker\n(?:(?!\d{4}-\d\d-\d\d )[^\n]*\n)*?SystemExit$",
    re.DOTALL | re.MULTILINE,
)
# The number of characters of the log shown before a forbidden text; twice that number is shown after it.
_TALE = 500


@dataclass(slots=True)
class House:
    """A running Home Assistant with the agent, its model server, and a logged-in connection."""

    home_assistant: HomeAssistantProcess
    model: ModelServer
    client: Client
    account: Account
    pipeline: str
    sensors: dict[str, str]
    said: list[str]

    @property
    def url(self) -> str:
        """The base URL for a browser."""
        return self.home_assistant.url

    async def say(self, text: str, conversation_id: str | None = None, **more: Any) -> Turn:
        """Send the text through the Assist pipeline and wait for the sensors; None starts a new conversation."""
        self.said.append(text)
        began = datetime.now(UTC)
        turn = await take_turn(self.client, text, conversation_id=conversation_id, pipeline=self.pipeline, **more)
        self.said.append(turn.speech)
        await wait_for_turn(self.client, self.sensors["last_route"], began)
        return turn

    async def say_aloud(self, text: str, watch: TurnEventCallback) -> Turn:
        """Speak the text in a new conversation; `watch` also receives the audio of the answer."""
        self.said.append(text)
        began = datetime.now(UTC)
        turn = await take_voice_turn(self.client, text, pipeline=self.pipeline, watch=watch)
        self.said.append(turn.speech)
        await wait_for_turn(self.client, self.sensors["last_route"], began)
        return turn

    async def get_state(self, entity_id: str) -> str:
        """Return the state of an entity."""
        found: str = (await self.client.get(f"/api/states/{entity_id}"))["state"]
        return found

    async def sensor(self, key: str) -> str:
        """Return the state of the agent's sensor with this key, such as "window_tokens"."""
        return await self.get_state(self.sensors[key])

    async def wait_for_sensor(self, key: str, is_right: Callable[[str], bool]) -> str:
        """Return the sensor's state once `is_right` accepts it. Raises TimeoutError with the last state."""
        return await wait_for(lambda: self.sensor(key), is_right)

    async def change_options(self, **changes: Any) -> None:
        """Change the account's options through its form."""
        await change_options(self.client, self.account, changes)

    async def change_agent(self, **changes: Any) -> None:
        """Change the agent through its form, which reloads it; a section is a dict of its fields."""
        await change_agent(self.client, self.account, changes)

    async def wait_until_loaded(self) -> None:
        """Wait until the account is loaded again; a change of its agent reloads it."""
        await wait_for(self._get_account_state, lambda state: state == "loaded")

    async def _get_account_state(self) -> str:
        entry = await self.client.send_command("config_entries/get_single", entry_id=self.account.entry_id)
        state: str = entry["config_entry"]["state"]
        return state

    async def ask_other_account(self, text: str) -> str:
        """Send the text to the agent of the account that a test has added, and return its answer."""
        self.said.append(text)
        entries = await self.client.send_command("config_entries/get", domain=DOMAIN)
        (added,) = (entry["entry_id"] for entry in entries if entry["entry_id"] != self.account.entry_id)
        account = await find_account(self.client, added)
        assert account is not None
        data = {"agent_id": account.agent_id, "text": text}
        answer = await self.client.post("/api/services/conversation/process?return_response", data)
        said = str(answer["service_response"]["response"]["speech"]["plain"]["speech"])
        self.said.append(said)
        return said

    async def remove_other_accounts(self) -> None:
        """Remove the accounts that tests have added."""
        for entry in await self.client.send_command("config_entries/get", domain=DOMAIN):
            if entry["entry_id"] != self.account.entry_id:
                await remove_account(self.client, entry["entry_id"])

    def log(self) -> str:
        """Return the output of Home Assistant since its start."""
        return self.home_assistant.output_file.read_text(errors="replace")


def tell_tales(log: str, said: Iterable[str]) -> list[str]:
    """Return the excerpts of a log around forbidden texts: tracebacks, blocking calls, and the texts in `said`."""
    log = _INTERRUPTED_THREAD.sub("", _CLOSED_CONNECTION.sub("", log))
    forbidden = ["Traceback (most recent call last)", "Detected blocking call"]
    forbidden += [text for text in said if len(text) >= _MIN_PRIVATE_CHARS]
    return [log[max(log.index(text) - _TALE, 0) :][: 3 * _TALE] for text in forbidden if text in log]


async def wait_for[T](read: Callable[[], Awaitable[T]], is_right: Callable[[T], bool]) -> T:
    """Return the result of `read` once `is_right` accepts it. Raises TimeoutError with the last result."""
    value = await read()
    deadline = asyncio.get_running_loop().time() + _PATIENCE
    while not is_right(value):
        if asyncio.get_running_loop().time() > deadline:
            raise TimeoutError(f"still {value!r} after {_PATIENCE:g} seconds")
        await asyncio.sleep(0.05)
        value = await read()
    return value


def remove_live_context(text: str) -> str:
    """Return the text of a message or a request without the live context."""
    return _LIVE_CONTEXT.sub("", text)
