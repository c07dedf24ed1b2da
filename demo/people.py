"""The people of the demo home: each has a connection, which is opened at their first input."""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from demo.client import Client, RefusedError, enter
from demo.errors import DemoError
from demo.home_assistant import HomeAssistant

# The user name of the owner, who is also the user for the browser login.
USER = "demo"
# The password of all users.
PASSWORD = "demo"


class People:
    """The connections of all people to a running Home Assistant; leaving the context closes them."""

    def __init__(self, home_assistant: HomeAssistant) -> None:
        """Store the Home Assistant; entering the context connects the owner."""
        self._home_assistant = home_assistant
        self._clients: dict[str, Client] = {}
        self._connections = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Connect the owner, who is created in a new home, and wait until Home Assistant has started completely."""
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
        """The owner's connection, which is replaced at each restart."""
        return self._clients[USER]

    async def client(self, person: str) -> Client:
        """Return the connection of a person, who is added first if the home does not know them. Raises RefusedError."""
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
