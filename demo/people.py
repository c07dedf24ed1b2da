"""The people of the demo home: each has a connection, which is opened at their first input."""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from demo.client import Client, RefusedError, log_in_or_onboard
from demo.errors import DemoError
from demo.home_assistant import HomeAssistantProcess

# The user name of the owner, who is also the user for the browser login.
OWNER_USERNAME = "demo"
# The password of all users.
PASSWORD = "demo"


class PersonClients:
    """The connections of all people to a running Home Assistant; leaving the context closes them."""

    def __init__(self, home_assistant: HomeAssistantProcess) -> None:
        """Store the Home Assistant; entering the context connects the owner."""
        self._home_assistant = home_assistant
        self._client_by_username: dict[str, Client] = {}
        self._exit_stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Connect the owner, who is created in a new home, and wait until Home Assistant has started completely."""
        await self._connect(OWNER_USERNAME)
        await self.owner.wait_until_running()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        self._client_by_username.clear()
        await self._exit_stack.aclose()

    @property
    def owner(self) -> Client:
        """The owner's connection, which is replaced at each restart."""
        return self._client_by_username[OWNER_USERNAME]

    async def get_client(self, person: str) -> Client:
        """Return the connection of a person, who is added first if the home does not know them. Raises RefusedError."""
        username = _normalize_username(person)
        if username not in self._client_by_username:
            known = {user["username"] for user in await self.owner.send_command("config/auth/list")}
            if username not in known:
                await self._add_user(person)
            await self._connect(username)
        return self._client_by_username[username]

    async def restart(self) -> None:
        """Stop Home Assistant and start it again. Raises DemoError."""
        await self.__aexit__(None, None, None)
        await self._home_assistant.stop()
        await self._home_assistant.start()
        await self.__aenter__()

    async def _add_user(self, person: str) -> None:
        user = (await self.owner.send_command("config/auth/create", name=person, group_ids=["system-users"]))["user"]
        login = {"user_id": user["id"], "username": _normalize_username(person), "password": PASSWORD}
        await self.owner.send_command("config/auth_provider/homeassistant/create", **login)

    async def _connect(self, username: str) -> None:
        url = self._home_assistant.url
        try:
            tokens = await log_in_or_onboard(url, username, PASSWORD)
        except RefusedError as error:
            raise DemoError(f"the demo home no longer lets {username} in: start over with --fresh.") from error
        self._client_by_username[username] = await self._exit_stack.enter_async_context(Client(url, tokens))


def _normalize_username(person: str) -> str:
    return person.strip().casefold()
