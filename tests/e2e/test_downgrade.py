"""A test that nothing is lost when Home Assistant is downgraded by one release, with its files as they are."""

from demo.client import Client, log_in_or_onboard
from demo.home import set_up_home
from demo.home_assistant import REPOSITORY, HomeAssistantProcess, find_free_port
from demo.model_server import ModelServer
from demo.setup_agent import ModelAccess, find_account, prefer_agent, replace_accounts
from demo.turns import take_turn

_OLDEST_PYTHON = str(REPOSITORY / ".venv" / "test" / "bin" / "python")


async def test_downgrade_of_home_assistant_loses_nothing(tmp_path):
    async with ModelServer(strict=True) as model:
        newest = HomeAssistantProcess(tmp_path, find_free_port())
        async with newest, Client(newest.url, await log_in_or_onboard(newest.url, "demo", "demo")) as client:
            await client.wait_until_running()
            await set_up_home(client)
            account = await replace_accounts(client, ModelAccess(url=model.url, model="scripted"))
            pipeline = await prefer_agent(client, account.agent_id)
            await take_turn(client, "my name is Ada", conversation_id="diary", pipeline=pipeline)
            await take_turn(client, "remember that the bins go out on Friday", pipeline=pipeline)
        # the one file of Home Assistant itself that the older release refuses, and writes anew
        (tmp_path / ".storage" / "http").unlink()
        oldest = HomeAssistantProcess(tmp_path, find_free_port(), python=_OLDEST_PYTHON)
        async with oldest, Client(oldest.url, await log_in_or_onboard(oldest.url, "demo", "demo")) as client:
            await client.wait_until_running()
            found = await find_account(client)
            name = await take_turn(client, "what is my name?", conversation_id="diary", pipeline=pipeline)
            facts = await take_turn(client, "what do you remember?", pipeline=pipeline)

    assert found == account
    assert "Ada" in name.speech
    assert "the bins go out on Friday" in facts.speech
