"""Tests that the dashboard to copy is the generated one, and that each of its entities exists."""

import re
from typing import Any

from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.util.yaml import parse_yaml

from custom_components.windowed_conversation.const import CONF_PROVIDER, PROVIDER_OPENAI
from demo.model_server import ModelServer
from scripts.write_dashboard import AGENT as DOCUMENTED_AGENT, PAGE, build_dashboard
from tests.documents import blocks

from .conftest import AGENT, SetUpFn

(BLOCK,) = blocks(PAGE, "yaml")
DASHBOARD: Any = parse_yaml(BLOCK)
GENERATED = build_dashboard()


def test_dashboard_to_copy_is_what_the_script_writes() -> None:
    assert DASHBOARD == GENERATED


def test_dashboard_to_copy_has_no_words_of_the_demo() -> None:
    assert re.findall(r"\b(?:demo|example|try it|talk)\b", BLOCK, re.IGNORECASE) == []


async def test_every_entity_of_the_dashboard_exists(
    home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer
) -> None:
    await set_up(account={CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url})

    shown = re.findall(r"\b\w+\.\w+", BLOCK.replace(DOCUMENTED_AGENT, AGENT.partition(".")[2]))

    assert len(shown) > 20
    assert [entity_id for entity_id in shown if home.states.get(entity_id) is None] == []
