"""A kept home in a real Home Assistant: its logins, and what its people say and call over HTTP."""

from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
import sys

import bcrypt

from demo.client import Json
from demo.home_assistant import HomeAssistantProcess, find_free_port, write_storage_file
from demo.people import PASSWORD, PersonClients
from demo.setup_agent import DOMAIN


@dataclass(frozen=True, slots=True)
class KeptHouse:
    """A running kept home: `tests.kept_home.Visited` over HTTP."""

    home_assistant: HomeAssistantProcess
    people: PersonClients

    async def say(self, person: str, agent: str, text: str, conversation_id: str) -> str:
        """Return the answer to a text."""
        data = {"agent_id": agent, "text": text, "conversation_id": conversation_id, "language": "en"}
        answer = await (await self.people.get_client(person)).post("/api/conversation/process", data)
        return str(answer["response"]["speech"]["plain"]["speech"])

    async def act(self, person: str, action: str, **data: object) -> Json:
        """Return the response of an action."""
        client = await self.people.get_client(person)
        response: Json = (await client.post(f"/api/services/{DOMAIN}/{action}?return_response", data))[
            "service_response"
        ]
        return response


@asynccontextmanager
async def run_kept_house(config: Path, python: str = sys.executable) -> AsyncIterator[KeptHouse]:
    """Run Home Assistant with this folder, and yield the home. `python` is the interpreter of its environment."""
    home_assistant = HomeAssistantProcess(config, find_free_port(), python=python)
    async with home_assistant, PersonClients(home_assistant) as people:
        yield KeptHouse(home_assistant, people)


def restore_logins(config: Path, *usernames: str) -> None:
    """Give people the password of the demo, because a kept home has none."""
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(rounds=4))
    users = [{"username": each, "password": b64encode(hashed).decode()} for each in usernames]
    write_storage_file(config / ".storage" / "auth_provider.homeassistant", (1, 1), {"users": users})
