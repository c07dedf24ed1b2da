"""Other people's memories and forgotten ones reach no model, and nobody who may not see them."""

from functools import partial
from typing import Any

from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.const import CONF_STATES
from custom_components.windowed_conversation.turn.context import ContextPlacement
from custom_components.windowed_conversation.turn.scope import Scope
from demo.model_server import ModelServer

from .conftest import Say, SetUp
from .private_house import (
    ADAS_OPEN,
    ALL,
    ALONE,
    FACTS,
    HOMES,
    KNOWN,
    NOTHING,
    SHARED,
    Case,
    House,
    Look,
    answered,
    furnish,
    inside_a_turn,
    wrong,
)


def requests(who: str, scope: Scope) -> Look:
    return lambda house: house.sent(who, scope=scope)


REQUESTS = tuple(
    Case(f"{who} asks an agent with the scope {scope}", requests(who, scope), known)
    for scope, speakers in KNOWN.items()
    for who, known in speakers.items()
)


def tool(who: str, name: str, scope: Scope) -> Look:
    return lambda house: house.used(who, name, scope, query="locker")


def known_by_words(who: str, scope: Scope) -> Look:
    return lambda house: house.say(who, "what do you know about me?", scope)


def api(who: str) -> Look:
    return lambda house: house.found_by_others(who)


TOOLS = (
    *(
        Case(f"the model looks up for {who} with the scope {scope}", tool(who, "recall", scope), KNOWN[scope][who])
        for scope in (Scope.CONVERSATION, Scope.AGENT)
        for who in ("Ada", "Grace", "guest", "satellite", "Ada's satellite")
    ),
    *(
        Case(f"{who} asks what is known with the scope {scope}", known_by_words(who, scope), KNOWN[scope][who] & FACTS)
        for scope in (Scope.CONVERSATION, Scope.AGENT)
        for who in ("Ada", "Grace", "satellite", "Ada's satellite")
    ),
    *(
        Case(
            f"the model asks {who} what to forget with the scope {scope}",
            tool(who, "forget", scope),
            KNOWN[scope][who] & FACTS,
        )
        for scope, who in ((Scope.CONVERSATION, "Grace"), (Scope.AGENT, "Ada"))
    ),
    *(
        Case(f"another agent looks up for {who}", api(who), SHARED[who])
        for who in ("Ada", "Grace", "guest", "service", "automation", "removed user")
    ),
    Case("another agent looks up at Ada's satellite", api("Ada's satellite"), HOMES),
)


def looked_up(who: str, tool: str, **arguments: Any) -> Look:
    return lambda house: house.used(who, tool, Scope.AGENT, **arguments)


STATES = tuple(
    Case(f"the model looks up {what} for {who}", looked_up(who, name, **arguments), NOTHING)
    for who in ("Ada", "guest", "satellite")
    for what, name, arguments in (
        ("all states", "get_states", {}),
        ("a hidden lamp", "get_states", {"names": ["hawk lamp", "light.hawk"]}),
        ("all lights", "get_states", {"domains": ["light"]}),
        ("what a hidden lamp was", "get_history", {"name": "hawk lamp"}),
    )
)


def action(name: str, who: str, *, of: str | None = None, **data: Any) -> Look:
    async def look(house: House) -> object:
        named = {} if of is None else {"person": house.context(of).user_id}
        return await answered(house.act(name, who, **data, **named))

    return look


recalls = partial(action, "recall", query="locker")
lists = partial(action, "list_memories", kinds=ALL)
exports = partial(action, "export_memories")
would_forget = partial(action, "forget", query="locker", dry_run=True)

ACTIONS = (
    *(Case(f"{who} recalls", recalls(who), ALONE[who]) for who in ("Ada", "Grace", "guest", "automation")),
    *(Case(f"{who} lists", lists(who), ALONE[who]) for who in ("Ada", "Grace", "guest", "automation")),
    *(Case(f"{who} exports", exports(who), ALONE[who]) for who in ("Grace", "guest")),
    Case("Ada exports, with what is no longer true", exports("Ada"), ALONE["Ada"] | {"dodo"}),
    *(Case(f"{who} would forget", would_forget(who), ALONE[who]) for who in ("Ada", "Grace", "automation")),
    *(
        Case(f"{who} {does} what is Ada's", look(who, of="Ada"), HOMES | ADAS_OPEN)
        for who in ("admin", "automation")
        for does, look in (("recalls", recalls), ("lists", lists), ("would forget", would_forget))
    ),
    *(
        Case(f"a script in a turn {does} what is Ada's", inside_a_turn(look("Ada")), HOMES | ADAS_OPEN)
        for does, look in (("recalls", recalls), ("lists", lists), ("would forget", would_forget))
    ),
    *(
        Case(f"{who} {does} what is Ada's", look(who, of="Ada"), NOTHING)
        for who in ("Grace", "guest")
        for does, look in (("recalls", recalls), ("lists", lists), ("exports", exports), ("would forget", would_forget))
    ),
    Case("a script in a turn exports what is Ada's", inside_a_turn(exports("Ada")), NOTHING),
    Case("admin exports what is Ada's", exports("admin", of="Ada"), NOTHING),
    Case("automation exports everything", exports("automation", everyone=True), NOTHING),
)


@pytest.mark.parametrize("placement", ContextPlacement)
async def test_request_has_what_the_speaker_may_know(
    home: HomeAssistant, set_up: SetUp, say: Say, model_server: ModelServer, placement: ContextPlacement
) -> None:
    house = await furnish(home, set_up, say, model_server, placement)
    assert await wrong(house, REQUESTS) == {}


@pytest.mark.parametrize("placement", ContextPlacement)
async def test_request_with_states_has_what_the_speaker_may_know(
    home: HomeAssistant, set_up: SetUp, say: Say, model_server: ModelServer, placement: ContextPlacement
) -> None:
    house = await furnish(home, set_up, say, model_server, placement, **{CONF_STATES: True})
    assert await wrong(house, (*REQUESTS, *STATES)) == {}


async def test_tools_and_words_tell_what_the_speaker_may_know(
    home: HomeAssistant, set_up: SetUp, say: Say, model_server: ModelServer
) -> None:
    house = await furnish(home, set_up, say, model_server, ContextPlacement.MESSAGE)
    assert await wrong(house, TOOLS) == {}


async def test_actions_show_what_their_caller_may_see(
    home: HomeAssistant, set_up: SetUp, say: Say, model_server: ModelServer
) -> None:
    house = await furnish(home, set_up, say, model_server, ContextPlacement.MESSAGE)
    assert await wrong(house, ACTIONS) == {}
