"""The people of the demo home: a connection for each, which is opened when they first speak."""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from demo.client import Client, RefusedError, enter
from demo.errors import DemoError
from demo.home_assistant import HomeAssistant

# The owner, who logs in to the browser, too.
USER = "demo"
# Everybody's.
PASSWORD = "demo"


class People:
    """Everybody at one Home Assistant that runs; leave the context to close all connections."""

    def __init__(self, home_assistant: HomeAssistant) -> None:
        """Keep where they live; entering the context connects the owner."""
        self._home_assistant = home_assistant
        self._clients: dict[str, Client] = {}
        self._connections = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Connect the owner, who is created if the home is new, and wait for everything to be started."""
        await self._connect(USER)
        await self.owner.wait_until_running()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        self._clients.clear()
        await self._connections.aclose()

    @property
    def owner(self) -> Client:
        """The owner's connection, another one after each restart."""
        return self._clients[USER]

    async def client(self, person: str) -> Client:
        """Return a person's connection, after adding who is new to the home. Raises RefusedError."""
        username = _username(person)
        if username not in self._clients:
            known = {user["username"] for user in await self.owner.command("config/auth/list")}
            if username not in known:
                await self._add(person)
            await self._connect(username)
        return self._clients[username]

    async def restart(self) -> None:
        """Stop Home Assistant and start it again. Raises DemoError."""
        await self.__aexit__(None, None, None)
        await self._home_assistant.stop()
        await self._home_assistant.start()
        await self.__aenter__()

    async def _add(self, person: str) -> None:
        user = (await self.owner.command("config/auth/create", name=person, group_ids=["system-users"]))["user"]
        login = {"user_id": user["id"], "username": _username(person), "password": PASSWORD}
        await self.owner.command("config/auth_provider/homeassistant/create", **login)

    async def _connect(self, username: str) -> None:
        url = self._home_assistant.url
        try:
            tokens = await enter(url, username, PASSWORD)
        except RefusedError as error:
            raise DemoError(f"the demo home no longer lets {username} in: start over with --fresh.") from error
        self._clients[username] = await self._connections.enter_async_context(Client(url, tokens))


def _username(person: str) -> str:
    return person.strip().casefold()
