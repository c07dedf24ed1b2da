"""What README shows to copy works as it stands there, with the agent's name in it."""

import re
from typing import Any

from homeassistant.components.persistent_notification import DOMAIN as NOTIFICATIONS
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
from homeassistant.util.yaml import parse_yaml
import pytest
from pytest_homeassistant_custom_component.common import async_mock_service

from demo.model_server import ModelServer
from tests.repository_files import REPOSITORY

from .conftest import AGENT, Say, SetUp

BLOCKS = re.findall(r"```yaml\n(.*?)```", (REPOSITORY / "README.md").read_text("utf-8"), re.DOTALL)
EXAMPLES: list[Any] = [parse_yaml(block.replace("conversation.openai_conversation", AGENT)) for block in BLOCKS]


@pytest.fixture
async def notified(home: HomeAssistant, set_up: SetUp) -> list[Any]:
    """Return the notifications of README's automation."""
    (automation,) = [example for example in EXAMPLES if "triggers" in example]
    await set_up()
    assert await async_setup_component(home, "automation", {"automation": automation})
    return async_mock_service(home, NOTIFICATIONS, "create")


async def test_automation_notifies_when_the_credit_has_run_out(
    notified: list[Any], say: Say, model_server: ModelServer
) -> None:
    model_server.fault("quota")

    await say("my name is Ada")

    assert [call.data["message"] for call in notified] == ["Ada needs credit."]


async def test_automation_is_silent_about_other_turns(notified: list[Any], say: Say, model_server: ModelServer) -> None:
    model_server.fault("500", 1)

    await say("my name is Ada")
    await say("my name is Ada")

    assert notified == []


async def test_actions_do_what_they_show(home: HomeAssistant, set_up: SetUp) -> None:
    actions = [example for example in EXAMPLES if "action" in example]
    sequence = [*actions, {"stop": "", "response_variable": "window"}]
    await set_up()
    assert await async_setup_component(home, "script", {"script": {"readme": {"sequence": sequence}}})

    window: Any = await home.services.async_call("script", "readme", {}, blocking=True, return_response=True)

    assert window["exchange_count"] == 1
