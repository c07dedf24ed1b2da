"""Tests of permissions: nothing outside one happens on any route, and no request shows it."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
import json
from typing import Any, override

from homeassistant.auth.const import GROUP_ID_ADMIN
from homeassistant.components.conversation import ConversationResult
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.components.intent import async_register_timer_handler
from homeassistant.components.intent.const import TIMER_DATA
from homeassistant.const import CONF_LLM_HASS_API
from homeassistant.core import Context, HomeAssistant, ServiceCall
from homeassistant.helpers import area_registry as ar, device_registry as dr, entity_registry as er, intent, llm
from homeassistant.setup import async_setup_component
import pytest

from custom_components.windowed_conversation.const import (
    CONF_ASK_BEFORE_OPENING,
    CONF_DEVICE_OWNERS,
    CONF_FALLBACK_AGENTS,
    CONF_PROVIDER,
    CONF_SCOPE,
    CONF_STATES,
    PROVIDER_NONE,
    AskMode,
)
from custom_components.windowed_conversation.memory.turn.speaker import Permission
from custom_components.windowed_conversation.turn.routing import Scope
from demo.model_server import Answer, ModelServer, call, words

from .conftest import SayFn, SetUpFn, get_speech, until
from .states import add_satellite
from .test_gate import API, DISARM, VAGUE, Services

# Entities with their areas, states and attributes.
ENTITIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "light.stove": ("Kitchen", "off", {"friendly_name": "stove light"}),
    "light.bed": ("Bedroom", "off", {"friendly_name": "bed light"}),
    "light.nowhere": ("", "off", {"friendly_name": "lost light"}),
    "light.lamps": ("Kitchen", "off", {"friendly_name": "all lamps", "entity_id": ["light.stove", "light.bed"]}),
    "light.counters": ("", "off", {"friendly_name": "counter lamps", "entity_id": ["light.stove"]}),
    "lock.pantry": ("Kitchen", "locked", {"friendly_name": "pantry lock"}),
    "lock.front": ("Bedroom", "locked", {"friendly_name": "front lock"}),
    "cover.garage": ("Bedroom", "closed", {"friendly_name": "garage door", "device_class": "garage"}),
    "cover.blind": ("Kitchen", "closed", {"friendly_name": "kitchen blind", "device_class": "blind"}),
    "cover.all": ("Kitchen", "closed", {"friendly_name": "front group", "entity_id": ["cover.garage"]}),
    "alarm_control_panel.home": ("Bedroom", "armed_away", {"friendly_name": "house alarm"}),
    "scene.evening": ("", "", {"friendly_name": "evening", "entity_id": ["light.stove"]}),
    "scene.night": ("Kitchen", "", {"friendly_name": "night", "entity_id": ["light.stove", "lock.front"]}),
    "scene.secret": ("Kitchen", "", {"friendly_name": "secret"}),
    "script.leave": ("Kitchen", "off", {"friendly_name": "leave now"}),
    "automation.party": ("Kitchen", "off", {"friendly_name": "party"}),
}
SERVICES = [
    *[f"{domain}.{name}" for domain in ("light", "scene", "script", "automation") for name in ("turn_on", "turn_off")],
    *["lock.lock", "lock.unlock", "cover.open_cover", "cover.close_cover", "alarm_control_panel.alarm_disarm"],
]
# The names that nobody may see who has a permission.
HIDDEN = {
    Permission.NO_LOCKS: {"pantry lock", "front lock", "garage door", "house alarm"},
    Permission.OWN_AREA: {"bed light", "lost light", "front lock", "garage door", "house alarm"},
    Permission.TALK: {each[2]["friendly_name"] for each in ENTITIES.values()} - {"party"},
}
SENTENCES = {
    Permission.NO_LOCKS: "I may not operate locks, doors, or alarms for you.",
    Permission.OWN_AREA: "For you, I may only control this room.",
    Permission.TALK: "I may only talk with you, not control anything.",
}
NOT_TALK = frozenset({Permission.NO_LOCKS, Permission.OWN_AREA})
LOCKS_ONLY = frozenset({Permission.NO_LOCKS})
OWN = frozenset({Permission.OWN_AREA})
NOBODY = frozenset[Permission]()


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its sentence for Home Assistant, the call of a model, and the permissions that allow it."""

    sentence: str | None
    call: Answer | None
    allowed: frozenset[Permission]


COMMANDS = [
    Command("turn on the stove light", call("HassTurnOn", name="stove light"), NOT_TALK),
    Command("turn on the cooker", call("HassTurnOn", name="cooker"), NOT_TALK),
    Command("turn on the bed light", call("HassTurnOn", name="bed light"), LOCKS_ONLY),
    Command("turn on the bed light", call("HassTurnOn", name="light.bed"), LOCKS_ONLY),
    Command("turn on the lost light", call("HassTurnOn", name="lost light"), LOCKS_ONLY),
    Command("turn on all lamps", call("HassTurnOn", name="all lamps"), LOCKS_ONLY),
    Command("turn on the counter lamps", call("HassTurnOn", name="counter lamps"), NOT_TALK),
    Command("turn on the lights in the bedroom", call("HassTurnOn", area="Bedroom", domain=["light"]), LOCKS_ONLY),
    Command("turn off all the lights", call("HassTurnOff", name="all", domain=["light"]), LOCKS_ONLY),
    Command("lock the pantry lock", call("HassTurnOn", name="pantry lock"), OWN),
    Command("unlock the pantry lock", call("HassTurnOff", name="pantry lock"), OWN),
    Command("unlock the larder", call("HassTurnOff", name="larder"), OWN),
    Command("unlock the front lock", call("HassTurnOff", name="front lock"), NOBODY),
    Command("lock the front lock", call("HassTurnOn", name="lock.front"), NOBODY),
    Command(None, call("HassTurnOff", name="all", domain=["lock"]), NOBODY),
    Command(None, call("HassTurnOff", area="Bedroom"), NOBODY),
    Command(None, call("HassTurnOff", name="all", domain=["light", "lock"]), NOBODY),
    Command("open the garage door", call("HassTurnOn", name="garage door"), NOBODY),
    Command("open the front group", call("HassTurnOn", name="front group"), NOBODY),
    Command("open the kitchen blind", call("HassTurnOn", name="kitchen blind"), NOT_TALK),
    Command("turn on evening", call("HassTurnOn", name="evening"), NOT_TALK),
    Command("turn on night", call("HassTurnOn", name="night", domain=["scene"]), NOBODY),
    Command("turn on secret", call("HassTurnOn", name="secret"), NOBODY),
    Command("run leave now", call("HassTurnOn", name="leave now"), NOBODY),
    Command(None, call("HassTurnOn", name="party"), NOBODY),
    Command(None, call("leave"), NOBODY),
    Command(None, call("HassDisarm", name="house alarm"), NOBODY),
    Command(None, call("delete_backups"), NOBODY),
    Command(None, call("send_mail"), NOBODY),
    Command("good night everybody", None, NOBODY),
]


@dataclass(slots=True)
class Home:
    """A home whose satellite in the kitchen has a permission; `calls` are the services that were called."""

    home: HomeAssistant
    set_up: SetUpFn
    say_fn: SayFn
    model_server: ModelServer
    device: str
    calls: Services

    async def begin(self, *rows: dict[str, Any], **more: Any) -> None:
        """Set up an agent that never asks before it opens, with these rows of the table."""
        options = {CONF_DEVICE_OWNERS: list(rows)}
        agent = {CONF_ASK_BEFORE_OPENING: AskMode.NEVER, CONF_LLM_HASS_API: ["assist", "test"], **more}
        await self.set_up(options=options, **agent)

    async def say(self, text: str, **more: Any) -> str:
        """Say something to the satellite, unless `more` says who speaks."""
        self.calls.clear()
        result: ConversationResult = await self.say_fn(text, None, **(more or {"device_id": self.device}))
        return get_speech(result)

    async def let_model(self, answer: Answer, **more: Any) -> str:
        """Let the model call a tool. Return the results that it has got."""
        self.model_server.log.clear()
        self.model_server.script(answer, words("Well."))
        await self.say(VAGUE, **more)
        messages = self.model_server.requests[-1].body["messages"]
        return " ".join(each["content"] for each in messages if each["role"] == "tool")


type Act = Callable[[Home, Command], Coroutine[Any, Any, str]]


@pytest.fixture
async def kitchen_home(home: HomeAssistant, set_up: SetUpFn, say: SayFn, model_server: ModelServer) -> Home:
    """Return the home, with a trigger, a script, and services that are only noted."""
    calls: Services = []

    async def on_call(service: ServiceCall) -> None:
        ids = service.data.get("entity_id", "")
        calls.append((f"{service.domain}.{service.service}", ids if isinstance(ids, str) else ids[0]))

    trigger = {"alias": "bye", "triggers": {"trigger": "conversation", "command": "good night everybody"}}
    actions = {"actions": {"action": "lock.unlock", "data": {"entity_id": "lock.front"}}}
    assert await async_setup_component(home, "automation", {"automation": {**trigger, **actions}})
    scripts = {"leave": {"alias": "leave now", "description": "Leave.", "sequence": [actions["actions"]]}}
    assert await async_setup_component(home, "script", {"script": scripts})
    for name in SERVICES:
        domain, _, service = name.partition(".")
        home.services.async_register(domain, service, on_call)
    areas = {name: ar.async_get(home).async_create(name).id for name in ("Kitchen", "Bedroom")}
    registry = er.async_get(home)
    for entity_id, (area, state, attributes) in ENTITIES.items():
        domain, _, name = entity_id.partition(".")
        if registry.async_get(entity_id) is None:
            registry.async_get_or_create(domain, "test", name, suggested_object_id=name)
        registry.async_update_entity(entity_id, area_id=areas.get(area), name=attributes["friendly_name"])
        home.states.async_set(entity_id, state, attributes)
        async_expose_entity(home, "conversation", entity_id, should_expose=True)
    registry.async_update_entity("light.stove", aliases=[er.COMPUTED_NAME, "cooker"])
    registry.async_update_entity("lock.pantry", aliases=[er.COMPUTED_NAME, "larder"])
    intent.async_register(home, DISARM)
    home.data["calls"] = calls
    llm.async_register_api(home, API(hass=home, id="test", name="Test"))
    device = add_satellite(home, "Kitchen satellite")
    dr.async_get(home).async_update_device(device, area_id=areas["Kitchen"])
    async_register_timer_handler(home, device, lambda *_: None)
    return Home(home, set_up, say, model_server, device, calls)


@pytest.mark.parametrize("permission", list(SENTENCES))
async def test_nothing_outside_a_permission_happens_on_either_route(
    kitchen_home: Home, *, permission: Permission, subtests: pytest.Subtests
) -> None:
    await kitchen_home.begin({"device": kitchen_home.device, "permission": permission})
    for number, command in enumerate(COMMANDS):
        is_allowed = permission in command.allowed
        if command.sentence:
            with subtests.test("local", number=str(number), sentence=command.sentence):
                answer = await kitchen_home.say(command.sentence)
                assert (bool(kitchen_home.calls), answer == SENTENCES[permission]) == (is_allowed, not is_allowed)
        if command.call:
            with subtests.test("model", number=str(number)):
                results = await kitchen_home.let_model(command.call)
                assert bool(kitchen_home.calls) is is_allowed
                offered = {
                    each["function"]["name"] for each in kitchen_home.model_server.requests[0].body.get("tools", ())
                }
                called = command.call.calls[0].name
                is_refused = any(each.endswith(called) for each in offered) and not is_allowed
                assert (SENTENCES[permission] in results) is is_refused


class LargeAPI(API):
    """The same tools in a source that is too large for a request."""

    @override
    async def async_get_api_instance(self, llm_context: llm.LLMContext) -> llm.APIInstance:
        instance = await super().async_get_api_instance(llm_context)
        for tool in instance.tools:
            tool.description = "Does something to the home. " * 600
        return instance


# The name of a found tool, its arguments, and the permissions that allow it.
FOUND: list[tuple[str, dict[str, Any], frozenset[Permission]]] = [
    ("HassDisarm", {"name": "house alarm"}, NOBODY),
    ("delete_backups", {}, NOBODY),
    ("look_up", {}, LOCKS_ONLY),
]


@pytest.mark.parametrize("permission", [*SENTENCES, Permission.EVERYTHING])
async def test_tool_that_has_to_be_found_does_nothing_outside_a_permission(
    kitchen_home: Home, *, permission: Permission, subtests: pytest.Subtests
) -> None:
    llm.async_register_api(kitchen_home.home, LargeAPI(hass=kitchen_home.home, id="large", name="Large"))
    row = {"device": kitchen_home.device, "permission": permission}
    await kitchen_home.begin(row, **{CONF_LLM_HASS_API: ["assist", "large"]})
    for name, arguments, allowed in FOUND:
        with subtests.test(name=name):
            await kitchen_home.let_model(call("call_tool", name=name, arguments=arguments))
            assert bool(kitchen_home.calls) is (permission in {*allowed, Permission.EVERYTHING})


async def test_whoever_may_do_everything_does_all_of_it(kitchen_home: Home, subtests: pytest.Subtests) -> None:
    await kitchen_home.begin({"device": kitchen_home.device, "permission": Permission.EVERYTHING})
    for number, command in enumerate(COMMANDS):
        if command.sentence:
            with subtests.test("local", number=str(number), sentence=command.sentence):
                await kitchen_home.say(command.sentence)
                assert kitchen_home.calls
        if command.call:
            with subtests.test("model", number=str(number)):
                await kitchen_home.let_model(command.call)
                assert kitchen_home.calls


# A delayed command, and whether a permission allows it.
DELAYED = [
    ("turn on the stove light", NOT_TALK),
    ("turn on the bed light", LOCKS_ONLY),
    ("unlock the front lock", NOBODY),
    ("unlock the pantry lock", OWN),
    ("run leave now", NOBODY),
]


@pytest.mark.parametrize("permission", list(SENTENCES))
async def test_delayed_command_is_refused_when_it_is_said(
    kitchen_home: Home, *, permission: Permission, subtests: pytest.Subtests
) -> None:
    await kitchen_home.begin({"device": kitchen_home.device, "permission": permission})
    for sentence, allowed in [*DELAYED, ("good night everybody", NOBODY), ("tell me a story about foxes", NOBODY)]:
        with subtests.test("model", sentence=sentence):
            await kitchen_home.let_model(call("HassStartTimer", seconds=1, conversation_command=sentence))
            started = bool(kitchen_home.home.data[TIMER_DATA].timers)
            await until(lambda: not kitchen_home.home.data[TIMER_DATA].timers)
            assert started is (permission in allowed)
    for sentence, allowed in DELAYED:
        with subtests.test("local", sentence=sentence):
            answer = await kitchen_home.say(f"{sentence} in 1 second")
            await until(lambda: not kitchen_home.home.data[TIMER_DATA].timers)
            await kitchen_home.home.async_block_till_done(wait_background_tasks=True)
            is_allowed = permission in allowed
            assert (bool(kitchen_home.calls), answer == SENTENCES[permission]) == (is_allowed, not is_allowed)


@pytest.mark.parametrize("states", [True, False])
@pytest.mark.parametrize("permission", list(SENTENCES))
async def test_no_request_shows_what_the_speaker_may_not_see(
    kitchen_home: Home, *, permission: Permission, states: bool, subtests: pytest.Subtests
) -> None:
    await kitchen_home.begin({"device": kitchen_home.device, "permission": permission}, **{CONF_STATES: states})
    looks = [
        call("get_states"),
        call("get_states", names=["lock"]),
        call("GetLiveContext"),
        call("get_states", areas=["Bedroom"]),
    ]
    for number, look in enumerate(looks):
        with subtests.test(number=str(number)):
            await kitchen_home.let_model(look)
            shown = json.dumps([each.body for each in kitchen_home.model_server.requests]).casefold()
            assert {name for name in HIDDEN[permission] if name in shown} == set()
    with subtests.test("visible"):
        assert ("stove light" in shown) is (permission is not Permission.TALK)


async def test_conversation_that_everybody_shares_is_not_shown_to_a_speaker_with_limits(kitchen_home: Home) -> None:
    ada = await person(kitchen_home.home, "Ada")
    row = {"device": kitchen_home.device, "permission": Permission.OWN_AREA}
    await kitchen_home.begin(row, **{CONF_SCOPE: Scope.AGENT})
    await kitchen_home.say("the safe behind the heron is open, remind yourself", context=Context(user_id=ada))
    kitchen_home.model_server.log.clear()

    await kitchen_home.say("so what did I just tell you?")

    assert "heron" not in str(kitchen_home.model_server.requests[0].body)


@pytest.mark.parametrize("permission", list(SENTENCES))
async def test_question_about_what_may_not_be_seen_is_refused_at_home(
    kitchen_home: Home, *, permission: Permission
) -> None:
    await kitchen_home.begin({"device": kitchen_home.device, "permission": permission})

    assert await kitchen_home.say("is the front lock locked?") == SENTENCES[permission]


@pytest.mark.parametrize("permission", list(SENTENCES))
@pytest.mark.parametrize("sentence", ["unlock the frontlock", "unlock the front lock and turn on the bed light"])
async def test_loose_match_without_a_model_is_refused(
    kitchen_home: Home, *, permission: Permission, sentence: str
) -> None:
    row = {"device": kitchen_home.device, "permission": permission}
    await kitchen_home.begin(row, account={CONF_PROVIDER: PROVIDER_NONE})

    answer = await kitchen_home.say(sentence)

    assert (answer, kitchen_home.calls) == (SENTENCES[permission], [])


async def test_talk_goes_on_with_any_permission(kitchen_home: Home, subtests: pytest.Subtests) -> None:
    await kitchen_home.begin({"device": kitchen_home.device, "permission": Permission.TALK})
    with subtests.test("model"):
        kitchen_home.model_server.script(words("Blue."))
        assert await kitchen_home.say("which colour is the sky?") == "Blue."
    with subtests.test("time"):
        assert await kitchen_home.say("what time is it") != SENTENCES[Permission.TALK]
    with subtests.test("memory"):
        assert "bins" in await kitchen_home.say("remember that the bins go out on Friday")


async def person(home: HomeAssistant, name: str) -> str:
    """Add an administrator and return their id."""
    return (await home.auth.async_create_user(name, group_ids=[GROUP_ID_ADMIN])).id


async def test_permission_of_a_person_counts_wherever_they_log_in(
    kitchen_home: Home, subtests: pytest.Subtests
) -> None:
    leo = await person(kitchen_home.home, "Leo")
    await kitchen_home.begin({"person": leo, "permission": Permission.NO_LOCKS})
    for text, is_done in (("unlock the front lock", False), ("turn on the bed light", True)):
        with subtests.test(text=text):
            await kitchen_home.say(text, context=Context(user_id=leo))
            assert bool(kitchen_home.calls) is is_done
    with subtests.test("others"):
        await kitchen_home.say("unlock the front lock")
        assert kitchen_home.calls


# The permission of the satellite and of Ada, whether her voice is trusted, and whether her command is done.
VOICES = [
    (Permission.NO_LOCKS, None, False, False),
    (Permission.NO_LOCKS, Permission.EVERYTHING, False, False),
    (Permission.NO_LOCKS, None, True, True),
    (Permission.NO_LOCKS, Permission.EVERYTHING, True, True),
    (None, Permission.TALK, False, False),
    (None, Permission.NO_LOCKS, True, False),
    (None, None, False, True),
]


@pytest.mark.parametrize(("place", "own", "trusted", "is_done"), VOICES)
async def test_voice_lifts_no_permission_of_the_satellite_unless_it_is_trusted(
    kitchen_home: Home, *, place: Permission | None, own: Permission | None, trusted: bool, is_done: bool
) -> None:
    ada = await person(kitchen_home.home, "Ada")
    row: dict[str, Any] = {"device": kitchen_home.device, "entity": "sensor.speaker", "trusted": trusted}
    rows = [{**row, **({"permission": place} if place else {})}]
    rows += [{"person": ada, "permission": own}] if own else []
    await kitchen_home.begin(*rows)
    kitchen_home.home.states.async_set("sensor.speaker", "Ada")

    await kitchen_home.say("unlock the front lock")

    assert bool(kitchen_home.calls) is is_done


async def test_yes_of_a_speaker_who_may_less_opens_nothing(kitchen_home: Home) -> None:
    ada = await person(kitchen_home.home, "Ada")
    row = {
        "device": kitchen_home.device,
        "entity": "sensor.speaker",
        "trusted": True,
        "permission": Permission.NO_LOCKS,
    }
    await kitchen_home.begin(row, **{CONF_ASK_BEFORE_OPENING: AskMode.ALWAYS})
    kitchen_home.home.states.async_set("sensor.speaker", "Ada")
    asked = await kitchen_home.say("unlock the front lock")
    kitchen_home.home.states.async_set("sensor.speaker", "unknown")

    answer = await kitchen_home.say("yes")

    assert (asked, answer) == ("Shall I unlock front lock?", SENTENCES[Permission.NO_LOCKS])
    assert (ada, kitchen_home.calls) == (ada, [])


async def test_agents_of_others_are_not_asked_for_a_speaker_with_a_permission(kitchen_home: Home) -> None:
    row = {"device": kitchen_home.device, "permission": Permission.NO_LOCKS}
    account = {"url": "http://127.0.0.1:9/v1"}
    await kitchen_home.begin(row, account=account, **{CONF_FALLBACK_AGENTS: ["conversation.home_assistant"]})

    answer = await kitchen_home.say("unlock the frontlock")

    assert (answer, kitchen_home.calls) == (SENTENCES[Permission.NO_LOCKS], [])
