"""Tests with random events in a real home: every request contains the current states and no hidden entity."""

from collections.abc import Callable, Coroutine
import json
from random import Random
import re
import time
from typing import Any

from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import entity_registry as er
from homeassistant.helpers.event import async_track_state_change_event
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.const import (
    CONF_CONTEXT_PLACEMENT,
    CONF_HISTORY_TOKENS,
    CONF_MEMORY,
    CONF_PERSISTENCE,
    CONF_ROUTING,
    CONF_STATES,
    CONF_TOOL_RESULTS,
    DOMAIN,
)
from custom_components.windowed_conversation.memory.core import PastTurn
from custom_components.windowed_conversation.turn.context import ContextPlacement
from custom_components.windowed_conversation.turn.routing import RoutingMode
from demo.model_server import ModelServer, call, words

from .conftest import AGENT, SayFn, SetUpFn, start, stop
from .remembered import memory_of

TURNS = 40
LIGHTS = [f"input_boolean.{name}" for name in ("kitchen", "hall", "cellar")]
LOOKS = [(), (call("get_states"),), (call("get_states", names=["light"]), call("get_states", domains=["light"]))]

type EventFn = Callable[[], Coroutine[Any, Any, None]]


def states_in(messages: list[dict[str, Any]]) -> tuple[dict[str, str], list[str]]:
    """Return the states that a request lists by name, and the names without states. Older messages must have none."""
    *older, newest = [str(each["content"]) for each in messages if each["role"] == "user"]
    assert not any("; states: " in each or "; memory, quoted: " in each for each in older)
    found = re.match(r"\[CONTEXT: .*?; states: (.*?)(?:; memory, quoted: .*?)?\]\n", newest)
    found = found or re.search(r"\n## States\n(.*)", str(messages[0]["content"]))
    parts = found[1].split(" | ") if found else []
    rest = [each.removeprefix("rest ").split(", ") for each in parts if each.startswith("rest ")]
    pairs = [pair.partition("=") for each in parts for pair in each.partition(": ")[2].split(", ")]
    listed = {name: state.removesuffix(" (changed)") for name, is_state, state in pairs if is_state}
    return listed, [word for words in rest for word in words]


class Day:
    """A day in the home, whose events depend on the seed."""

    def __init__(self, home: HomeAssistant, entry: MockConfigEntry, seed: int) -> None:
        self._home = home
        self._entry = entry
        self.random = Random(seed)
        self.conversation_id = "first"
        self._copy_count = 0
        self._last_export: dict[str, Any] = {}
        self._happenings: list[EventFn] = [self.switch] * 6 + [self.hide] * 3 + [self.rename, self.reload, self.restart]
        self._happenings += [self.fork, self.export, self.bring_back]

    async def go_on(self) -> None:
        """Trigger one or two random events."""
        for happen in self.random.choices(self._happenings, k=self.random.choice([1, 2])):
            await happen()
        await self._home.async_block_till_done()

    @property
    def hidden(self) -> list[str]:
        """The names of entities that are not exposed."""
        exposed = er.async_get(self._home).entities
        return [
            state.name
            for light in LIGHTS
            if (state := self._home.states.get(light)) and not exposed[light].options["conversation"]["should_expose"]
        ]

    async def switch(self) -> None:
        light = {"entity_id": self.random.choice(LIGHTS)}
        action = self.random.choice(["turn_on", "turn_off"])
        await self._home.services.async_call("input_boolean", action, light, blocking=True)

    async def hide(self) -> None:
        shows = self.random.choice([True, False])
        async_expose_entity(self._home, "conversation", self.random.choice(LIGHTS), should_expose=shows)

    async def rename(self) -> None:
        light, number = self.random.choice(LIGHTS), self.random.randrange(1000)
        er.async_get(self._home).async_update_entity(light, name=f"{light.partition('.')[2]} light {number}")

    async def reload(self) -> None:
        assert await self._home.config_entries.async_reload(self._entry.entry_id)

    async def restart(self) -> None:
        await stop(self._home, self._entry)
        await self.switch()
        await self.hide()
        await start(self._home, self._entry)

    async def fork(self) -> None:
        shown = await self._act("get_conversation", answers=True, content="export")
        self.conversation_id = self._copy()
        await self._act("import_conversation", export=shown["export"])

    async def export(self) -> None:
        shown = await self._act("get_conversation", answers=True, content="export")
        self._last_export = shown.get("export", self._last_export)

    async def bring_back(self) -> None:
        if self._last_export:
            self.conversation_id = self._copy()
            await self._act("import_conversation", export=self._last_export)

    def _copy(self) -> str:
        self._copy_count += 1
        return f"copy {self._copy_count}"

    async def _act(self, action: str, *, answers: bool = False, **data: Any) -> dict[str, Any]:
        here = {"entity_id": AGENT, "conversation_id": self.conversation_id}
        services = self._home.services
        done = await services.async_call(DOMAIN, action, here | data, blocking=True, return_response=answers)
        return dict(done or {})


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
async def test_request_says_how_the_home_is_and_nothing_of_what_is_hidden(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, seed: int
) -> None:
    options = {CONF_PERSISTENCE: "all", CONF_TOOL_RESULTS: ("stub", "keep")[seed % 2], CONF_HISTORY_TOKENS: 1200}
    placement = (ContextPlacement.MESSAGE, ContextPlacement.SYSTEM)[seed // 2]
    more = {CONF_CONTEXT_PLACEMENT: placement, CONF_ROUTING: RoutingMode.MODEL_ONLY}
    entry = await set_up(options=options, **{CONF_STATES: True, **more})
    past = PastTurn("past", time.time() - 86_400, "consider it twice", "I did.")
    await memory_of(home).async_change(lambda memory: memory.add_turn(past))
    day = Day(home, entry, seed)
    await say("hello there", day.conversation_id)
    recalled: list[int] = []
    for _ in range(TURNS):
        await day.go_on()
        hidden = day.hidden
        lights = [state for light in LIGHTS if (state := home.states.get(light))]
        shown = {state.name: state.state for state in lights if state.name not in hidden}
        model_server.log.clear()
        switches = (call("HassTurnOn", name=day.random.choice(lights).name),)
        model_server.script(*day.random.choice([*LOOKS, switches]), words("I see."))
        await say("shall we consider it?", day.conversation_id)
        first = model_server.requests[0].body["messages"]

        listed, rest = states_in(first)
        assert listed.items() <= shown.items()
        assert {f"input boolean {state}" for name, state in shown.items() if name not in listed} == set(rest)
        assert "input boolean on" not in rest
        assert [name for name in hidden if f"{name}=" in json.dumps(first)] == []
        assert len({json.dumps(states_in(each.body["messages"])) for each in model_server.requests}) == 1
        recalled.append(json.dumps(first).count("consider it twice"))
    assert set(recalled) <= {0, 1}
    assert recalled[0] == 1


async def test_entity_that_is_hidden_in_the_middle_of_a_turn_is_in_no_later_result(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    await set_up(**{CONF_STATES: True, CONF_MEMORY: "off"})

    @callback
    def hide(_event: Any) -> None:
        async_expose_entity(home, "conversation", "input_boolean.kitchen", should_expose=False)

    async_track_state_change_event(home, "input_boolean.hall", hide)
    model_server.script(call("HassTurnOn", name="hall light"), call("get_states"), words("Done."))
    await say("please do it")
    results = [each["content"] for each in model_server.requests[-1].body["messages"] if each["role"] == "tool"]
    assert "kitchen" not in json.dumps(results)

    await say("hello there")
    assert "kitchen" not in json.dumps(model_server.requests[-1].body)
