"""Tests that private memories, conversations and forgotten text reach no model and no person without access to them."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.const import CONF_STATES
from custom_components.windowed_conversation.turn.context import ContextPlacement
from custom_components.windowed_conversation.turn.routing import Scope
from demo.model_server import ModelServer, words

from .actions import act
from .conftest import SayFn, SetUpFn
from .private_house import (
    ADAS,
    ADAS_OPEN,
    ALL,
    ALONE,
    FACTS,
    GRACES_OPEN,
    HOMES,
    KNOWN,
    NO_WORDS,
    SHARED,
    Case,
    House,
    Probe,
    find_wrong_words,
    furnish,
    get_response_or_error,
    run_inside_turn,
)


def requests(who: str, scope: Scope) -> Probe:
    return lambda house: house.sent(who, scope=scope)


REQUESTS = tuple(
    Case(f"{who} asks an agent with the scope {scope}", requests(who, scope), known)
    for scope, speakers in KNOWN.items()
    for who, known in speakers.items()
)


def tool(who: str, name: str, scope: Scope) -> Probe:
    return lambda house: house.used(who, name, scope, query="locker")


def probe_known_facts(who: str, scope: Scope) -> Probe:
    return lambda house: house.say(who, "what do you know about me?", scope)


def api(who: str) -> Probe:
    return lambda house: house.found_by_others(who)


TOOLS = (
    *(
        Case(f"the model looks up for {who} with the scope {scope}", tool(who, "recall", scope), KNOWN[scope][who])
        for scope in (Scope.CONVERSATION, Scope.AGENT)
        for who in ("Ada", "Grace", "guest", "satellite", "Ada's satellite")
    ),
    *(
        Case(
            f"{who} asks what is known with the scope {scope}", probe_known_facts(who, scope), KNOWN[scope][who] & FACTS
        )
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


def probe_lookup(who: str, tool: str, **arguments: Any) -> Probe:
    return lambda house: house.used(who, tool, Scope.AGENT, **arguments)


STATES = tuple(
    Case(f"the model looks up {what} for {who}", probe_lookup(who, name, **arguments), NO_WORDS)
    for who in ("Ada", "guest", "satellite")
    for what, name, arguments in (
        ("all states", "get_states", {}),
        ("a hidden lamp", "get_states", {"names": ["hawk lamp", "light.hawk"]}),
        ("all lights", "get_states", {"domains": ["light"]}),
        ("what a hidden lamp was", "get_history", {"name": "hawk lamp"}),
    )
)


def action(name: str, who: str, *, of: str | None = None, **data: Any) -> Probe:
    async def look(house: House) -> object:
        named = {} if of is None else {"person": house.get_context(of).user_id}
        return await get_response_or_error(house.act(name, who, **data, **named))

    return look


recalls = partial(action, "recall", query="locker")
lists = partial(action, "recall", kinds=ALL)
exports = partial(action, "export_memories")
probe_forget = partial(action, "forget", query="locker", dry_run=True)

ACTIONS = (
    *(Case(f"{who} recalls", recalls(who), ALONE[who]) for who in ("Ada", "Grace", "guest", "automation")),
    *(Case(f"{who} lists", lists(who), ALONE[who]) for who in ("Ada", "Grace", "guest", "automation")),
    *(Case(f"{who} exports", exports(who), ALONE[who]) for who in ("Grace", "guest")),
    Case("Ada exports, with what is no longer true", exports("Ada"), ALONE["Ada"] | {"dodo"}),
    *(Case(f"{who} would forget", probe_forget(who), ALONE[who]) for who in ("Ada", "Grace", "automation")),
    *(
        Case(f"{who} {does} what is Ada's", look(who, of="Ada"), HOMES | ADAS_OPEN)
        for who in ("admin", "automation")
        for does, look in (("recalls", recalls), ("lists", lists), ("would forget", probe_forget))
    ),
    *(
        Case(f"a script in a turn {does} what is Ada's", run_inside_turn(look("Ada")), HOMES | ADAS_OPEN)
        for does, look in (("recalls", recalls), ("lists", lists), ("would forget", probe_forget))
    ),
    *(
        Case(f"{who} {does} what is Ada's", look(who, of="Ada"), NO_WORDS)
        for who in ("Grace", "guest")
        for does, look in (("recalls", recalls), ("lists", lists), ("exports", exports), ("would forget", probe_forget))
    ),
    Case("a script in a turn exports what is Ada's", run_inside_turn(exports("Ada")), NO_WORDS),
    Case("admin exports what is Ada's", exports("admin", of="Ada"), NO_WORDS),
    Case("automation exports everything", exports("automation", everyone=True), NO_WORDS),
)


SECRET, PLAIN = "my blue locker has a cobra in it", "consider that some blue locker has a viper in it"
COBRA, VIPER = frozenset({"cobra"}), frozenset({"viper"})
# Recall returns texts about this question first, and others only as far as there is room.
BLUE = "what about the blue locker?"


async def talk_with_ada(house: House, scope: Scope = Scope.CONVERSATION) -> None:
    await house.say("Ada", scope=scope, conversation_id="talk")


def probe_after_ada(who: str, scope: Scope) -> Probe:
    """Return a function that returns the requests when `who` continues a conversation under the id that Ada used."""

    async def look(house: House) -> object:
        await talk_with_ada(house, scope)
        return await house.sent(who, scope=scope, conversation_id="talk")

    return look


def probe_copy(who: str) -> Probe:
    """Return a function that returns the requests when `who` continues a copy that Ada made of her conversation."""

    async def look(house: House) -> object:
        await talk_with_ada(house)
        agent, talk = {"entity_id": house.agents[Scope.CONVERSATION]}, {"conversation_id": "talk", "content": "export"}
        exported = await act(house.home, "get_conversation", house.get_context("Ada"), **agent, **talk)
        await house.perform("import_conversation", "Ada", **agent, conversation_id="copy", export=exported["export"])
        return await house.sent(who, conversation_id="copy")

    return look


def probe_telling(teller: str, text: str, asker: str, scope: Scope = Scope.CONVERSATION) -> Probe:
    """Return a function that returns the requests when `asker` asks about something that `teller` told the agent."""

    async def look(house: House) -> object:
        await house.say(teller, text, scope, "told")
        return await house.sent(asker, BLUE, conversation_id="asked")

    return look


def probe_summary(teller: str, text: str, asker: str, scope: Scope = Scope.CONVERSATION) -> Probe:
    """Return a function that returns the requests when `asker` asks about `teller`'s summarized conversation."""

    async def look(house: House) -> object:
        await house.say(teller, text, scope, "told")
        await house.say(teller, "consider that it rains", scope, "told")
        kept = {"entity_id": house.agents[scope], "keep": 1}
        await house.act("summarize_conversation", teller, **kept)
        return await house.sent(asker, BLUE, conversation_id="asked")

    return look


def forget_secret(way: Callable[[House], Coroutine[Any, Any, object]]) -> Probe:
    """Return a function in which Ada tells a secret, asks about it, and has it forgotten by `way`."""

    async def forget(house: House) -> None:
        for text in ("consider that it rains", "consider that it snows"):
            await house.say("Ada", text, conversation_id="talk")
        await house.say("Ada", f"remember that {SECRET}", conversation_id="told")
        await house.say("Ada", f"by the way, {SECRET}", conversation_id="told")
        await house.say("Ada", BLUE, conversation_id="talk")
        await way(house)

    return forget


async def request_summary(house: House) -> object:
    """Request a summary of a conversation and return the requests."""
    house.model_server.log.clear()
    kept = {"entity_id": house.agents[Scope.CONVERSATION], "conversation_id": "talk", "keep": 1}
    await house.act("summarize_conversation", "Ada", **kept)
    return [request.body for request in house.model_server.requests]


async def show(content: str, who: str, house: House) -> object:
    shown = {"entity_id": house.agents[Scope.CONVERSATION], "conversation_id": "talk", "content": content}
    return await get_response_or_error(house.act("get_conversation", who, **shown))


async def probe_summary_for_all(house: House) -> object:
    """Return the requests of a satellite's turn after the summary of a shared window in which Ada has also spoken."""
    await house.say("Ada", "forget that some blue locker has a viper in it", Scope.AGENT)
    for text in ("consider that it rains", "consider that it snows"):
        await house.say("satellite", text, Scope.AGENT)
    house.model_server.script(words("They looked for a viper in some blue locker."))
    await house.act("summarize_conversation", "satellite", entity_id=house.agents[Scope.AGENT], keep=1)
    return await house.sent("satellite", BLUE)


def asks(who: str, what: str, look: Probe, found: frozenset[str] = NO_WORDS) -> Case:
    """Return a case in which `who` asks for `what` and must see `found`; what `who` may always see is optional."""
    return Case(f"{who} asks for {what}", look, found, either=ALONE[who])


async def probe_import(house: House) -> object:
    """Return the requests after an import of memories that were exported before the forgetting."""
    await house.act("import_memories", "admin", memories=house.exported)
    return await house.sent("Ada")


async def probe_import_and_list(house: House) -> object:
    await house.act("import_memories", "automation", memories=house.exported)
    return await house.act("recall", "Ada", kinds=ALL)


WAYS: dict[str, Probe] = {
    "by words": forget_secret(lambda house: house.say("Ada", f"forget that {SECRET}")),
    "by an action": forget_secret(lambda house: house.act("forget", "Ada", query="cobra")),
    "by a tool": forget_secret(lambda house: house.used("Ada", "forget", said=f"please erase {SECRET}", query=SECRET)),
}
# The summary is the last one, because it replaces messages of the conversation that the others look at.
LOOKS: dict[str, Probe] = {
    "goes on": lambda house: house.sent("Ada", conversation_id="talk"),
    "begins anew": lambda house: house.sent("Ada", conversation_id="new"),
    "shows it": partial(show, "messages", "Ada"),
    "has it summarized": request_summary,
}
CONVERSATIONS = (
    *(
        # Forgetting may also remove memories that were recalled before.
        Case(f"Ada {what} after she had it forgotten {how}", look, ADAS & FACTS, either=HOMES | ADAS, before=way)
        for how, way in WAYS.items()
        for what, look in LOOKS.items()
    ),
    *(
        Case(f"{who} Ada's conversation", look, words, before=talk_with_ada)
        for who, look, words in (
            ("a script in a turn shows", run_inside_turn(partial(show, "messages", "automation")), NO_WORDS),
            ("Grace shows", partial(show, "messages", "Grace"), NO_WORDS),
            ("Grace exports", partial(show, "export", "Grace"), NO_WORDS),
            ("admin shows", partial(show, "messages", "admin"), NO_WORDS),
            # Recalled memories are never stored in a conversation.
            ("Ada shows", partial(show, "messages", "Ada"), (HOMES | ADAS) & FACTS),
        )
    ),
    *(
        Case(f"{who} goes on with Ada's conversation with the scope {scope}", probe_after_ada(who, scope), ALONE[who])
        for scope in (Scope.CONVERSATION, Scope.DEVICE, Scope.USER)
        for who in ("Grace", "satellite")
    ),
    Case("Grace speaks after Ada in the window of all", probe_after_ada("Grace", Scope.AGENT), HOMES | GRACES_OPEN),
    Case("Ada goes on with her copy", probe_copy("Ada"), HOMES | ADAS),
    *(Case(f"{who} goes on with Ada's copy", probe_copy(who), ALONE[who]) for who in ("Grace", "satellite")),
    asks("Ada", "what she told", probe_telling("Ada", SECRET, "Ada"), COBRA),
    asks("Ada", "what was told at her satellite", probe_telling("Ada's satellite", SECRET, "Ada"), COBRA),
    asks("satellite", "what one told of the home", probe_telling("satellite", PLAIN, "satellite"), VIPER),
    *(asks(who, "what Ada told", probe_telling("Ada", SECRET, who)) for who in ("Grace", "guest", "satellite")),
    *(
        asks("satellite", f"what {who} told of themselves", probe_telling(who, SECRET, "satellite"))
        for who in ("satellite", "service", "Ada's satellite", "guest")
    ),
    asks("service", "what the service told of itself", probe_telling("service", SECRET, "service")),
    asks("Grace", "what Ada told all", probe_telling("Ada", f"remember that {SECRET}", "Grace", Scope.AGENT)),
    *(
        asks("satellite", f"what {who} had remembered", probe_telling(who, f"remember that {SECRET}", "satellite"))
        for who in ("satellite", "service", "Ada")
    ),
    asks("Ada", "what was summarized for her", probe_summary("Ada", PLAIN, "Ada"), VIPER),
    *(asks(who, "what was summarized for Ada", probe_summary("Ada", PLAIN, who)) for who in ("Grace", "satellite")),
    asks("Grace", "what was summarized for all", probe_summary("Ada", PLAIN, "Grace", Scope.AGENT)),
    asks("satellite", "what was summarized for all", probe_summary_for_all),
    Case("Ada asks after an old export was imported", probe_import, HOMES | ADAS),
    Case("Ada lists after an old export was imported", probe_import_and_list, HOMES | ADAS),
)


@pytest.mark.parametrize("placement", ContextPlacement)
async def test_request_has_what_the_speaker_may_know(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, placement: ContextPlacement
) -> None:
    house = await furnish(home, set_up, say, model_server, placement)
    assert await find_wrong_words(house, REQUESTS) == {}


@pytest.mark.long
@pytest.mark.parametrize("placement", ContextPlacement)
async def test_request_with_states_has_what_the_speaker_may_know(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, placement: ContextPlacement
) -> None:
    house = await furnish(home, set_up, say, model_server, placement, **{CONF_STATES: True})
    assert await find_wrong_words(house, (*REQUESTS, *STATES)) == {}


async def test_tools_and_words_tell_what_the_speaker_may_know(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    house = await furnish(home, set_up, say, model_server, ContextPlacement.MESSAGE)
    assert await find_wrong_words(house, TOOLS) == {}


async def test_actions_show_what_their_caller_may_see(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer
) -> None:
    house = await furnish(home, set_up, say, model_server, ContextPlacement.MESSAGE)
    assert await find_wrong_words(house, ACTIONS) == {}


@pytest.mark.parametrize("placement", ContextPlacement)
async def test_what_becomes_of_a_conversation_is_its_owners(
    home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer, placement: ContextPlacement
) -> None:
    house = await furnish(home, set_up, say, model_server, placement)
    assert await find_wrong_words(house, CONVERSATIONS) == {}
