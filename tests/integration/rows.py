"""Rows of a table that share one home: each is a subtest, after which the home and the server are as before."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.agents.setup import async_delete_leftover_file
from custom_components.windowed_conversation.const import DOMAIN
from demo.model_server import ModelServer

from .conftest import listed

type Row = Callable[[str], AbstractAsyncContextManager[None]]


@pytest.fixture
def row(home: HomeAssistant, model_server: ModelServer, subtests: pytest.Subtests) -> Row:
    """Return a function that runs a row of a table as a subtest with the given name.

    The row must use all answers of its script. Its accounts, memory, open flows, and changes to the server end with it,
    and the next row finds the server at another address.
    """

    @asynccontextmanager
    async def row(name: str) -> AsyncIterator[None]:
        with subtests.test(name):
            try:
                yield
                assert list(model_server.answer_script.remaining_answers) == []
            finally:
                await _remove_accounts(home)
                # a request on a connection of an earlier row would be repeated when that connection is cut
                await model_server.stop()
                model_server.reset()
                await model_server.start()

    return row


async def _remove_accounts(home: HomeAssistant) -> None:
    for flow in home.config_entries.flow.async_progress_by_handler(DOMAIN):
        home.config_entries.flow.async_abort(flow["flow_id"])
    for entry in home.config_entries.async_entries(DOMAIN):
        await home.config_entries.async_remove(entry.entry_id)
        # what belonged to the account is deleted in the background, for which the memory file has to be open
        await listed(home)
    assert await async_delete_leftover_file(home)
