"""Tests that the examples in the README and the documentation work unchanged, apart from the agent's name."""

from typing import Any

from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.setup import async_setup_component
from homeassistant.util.yaml import parse_yaml

from custom_components.windowed_conversation.const import CONF_PROVIDER, PROVIDER_OPENAI
from demo.model_server import ModelServer
from tests.documents import DOC_PAGES, DOCS, blocks

from .conftest import AGENT, SetUpFn

# `test_last_night.py` runs the examples of this page separately.
BY_THEMSELVES = DOCS / "troubleshooting.md"
# Duplicates are removed, because one example is on two pages.
SHOWN = dict.fromkeys(block for page in DOC_PAGES if page != BY_THEMSELVES for block in blocks(page, "yaml"))
EXAMPLES: list[Any] = [parse_yaml(block.replace("openai_conversation", AGENT.partition(".")[2])) for block in SHOWN]


async def test_actions_do_what_they_show(home: HomeAssistant, set_up: SetUpFn) -> None:
    actions = [example for example in EXAMPLES if "action" in example]
    results = {"variables": {"results": "{{ dict(window=window, forgotten=forgotten) }}"}}
    sequence = [*actions, results, {"stop": "", "response_variable": "results"}]
    await set_up()
    assert await async_setup_component(home, "script", {"script": {"shown": {"sequence": sequence}}})

    shown: Any = await home.services.async_call("script", "shown", {}, blocking=True, return_response=True)

    assert shown["window"]["statistics"]["exchanges"] == 1
    assert [memory["text"] for memory in shown["forgotten"]["memories"]] == ["The bins go out on Friday"]


async def test_card_shows_a_sensor_that_exists(home: HomeAssistant, set_up: SetUpFn, model_server: ModelServer) -> None:
    (card,) = [example for example in EXAMPLES if "type" in example]
    await set_up(account={CONF_PROVIDER: PROVIDER_OPENAI, CONF_URL: model_server.url})

    assert [entity_id for entity_id in card["entities"] if home.states.get(entity_id) is None] == []
