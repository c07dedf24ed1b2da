"""Tests of the gate: what opens the house waits for a yes, on each route and for each kind of target."""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, override

from homeassistant.auth.const import GROUP_ID_READ_ONLY, GROUP_ID_USER
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.components.intent import async_register_timer_handler
from homeassistant.components.intent.const import TIMER_DATA
from homeassistant.const import CONF_LLM_HASS_API
from homeassistant.core import Context, HomeAssistant, ServiceCall
from homeassistant.helpers import area_registry as ar, entity_registry as er, intent, llm
from homeassistant.setup import async_setup_component
import probatio
import pytest

from custom_components.windowed_conversation.agents import gate
from custom_components.windowed_conversation.const import (
    CONF_ASK_BEFORE_OPENING,
    CONF_PROVIDER,
    PROVIDER_NONE,
    AskMode,
)
from demo.model_server import Answer, ModelServer, call, words

from .conftest import SayFn, SetUpFn, get_speech, start, stop, until
from .states import add_satellite

ENTITIES: dict[str, tuple[str, dict[str, Any]]] = {
    "lock.side_door": ("locked", {"friendly_name": "side door"}),
    "lock.shed": ("locked", {"friendly_name": "shed"}),
    "cover.garage": ("closed", {"friendly_name": "garage door", "device_class": "garage", "current_position": 0}),
    "cover.yard": ("closed", {"friendly_name": "yard gate", "device_class": "gate", "current_position": 0}),
    "cover.patio": ("closed", {"friendly_name": "patio door", "device_class": "door", "current_position": 50}),
    "cover.all": ("closed", {"friendly_name": "entrance group", "entity_id": ["cover.garage", "cover.yard"]}),
    "cover.blind": ("closed", {"friendly_name": "kitchen blind", "device_class": "blind", "current_position": 0}),
}
SERVICES = (
    "lock.lock",
    "lock.unlock",
    "cover.open_cover",
    "cover.close_cover",
    "cover.set_cover_position",
    "alarm_control_panel.alarm_disarm",
)
CODE = "739251"
QUESTION = "Shall I unlock side door?"

type Services = list[tuple[str, str]]


class RiskyTool(llm.Tool):
    """A tool that deletes something, and says so."""

    name = "test__delete_backups"
    title = "Delete backups"
    parameters = probatio.Schema({})
    integration = "test"
    annotations = llm.ToolAnnotations(destructive=True, open_world=False)

    def __init__(self, calls: Services) -> None:
        self._calls = calls

    @override
    async def async_call(self, hass: HomeAssistant, tool_input: llm.ToolInput, llm_context: llm.LLMContext) -> Any:
        self._calls.append(("test.delete", "backups"))
        return llm.ToolResult(data={"deleted": True})


class SendingTool(RiskyTool):
    """A tool that acts outside the home, and says so."""

    name = "test__send_mail"
    title = "Send mail"
    annotations = llm.ToolAnnotations(destructive=False, open_world=True)


class ReadingTool(RiskyTool):
    """A tool that looks something up outside the home."""

    name = "test__look_up"
    annotations = llm.ToolAnnotations(read_only=True, open_world=True)


class API(llm.API):
    """An LLM API with these tools."""

    @override
    async def async_get_api_instance(self, llm_context: llm.LLMContext) -> llm.APIInstance:
        tools = [each(self.hass.data["calls"]) for each in (RiskyTool, SendingTool, ReadingTool)]
        return llm.APIInstance(self, "", llm_context, [llm.IntentTool("test__HassDisarm", DISARM), *tools])


DISARM = intent.ServiceIntentHandler("HassDisarm", "alarm_control_panel", "alarm_disarm")


@pytest.fixture
def calls(home: HomeAssistant) -> Services:
    """Add doors, locks and an alarm, and return the list of the services that reach them."""
    calls: Services = []

    async def on_call(service: ServiceCall) -> None:
        calls.append((f"{service.domain}.{service.service}", service.data["entity_id"]))

    for name in SERVICES:
        domain, _, service = name.partition(".")
        home.services.async_register(domain, service, on_call)
    shed = ar.async_get(home).async_create("Shed")
    er.async_get(home).async_get_or_create("lock", "test", "shed", suggested_object_id="shed", original_name="shed")
    er.async_get(home).async_update_entity("lock.shed", area_id=shed.id)
    for entity_id, (state, attributes) in ENTITIES.items():
        home.states.async_set(entity_id, state, attributes)
        async_expose_entity(home, "conversation", entity_id, should_expose=True)
    home.states.async_set("alarm_control_panel.home", "armed_away", {"friendly_name": "alarm"})
    async_expose_entity(home, "conversation", "alarm_control_panel.home", should_expose=True)
    intent.async_register(home, DISARM)
    home.data["calls"] = calls
    llm.async_register_api(home, API(hass=home, id="test", name="Test"))
    return calls


class Kind(NamedTuple):
    """A kind of target: what opens it on the local route and on the model's, the question, and what a yes calls."""

    sentence: str | None
    call: Answer
    question: str
    done: Services


KINDS = [
    Kind("unlock the side door", call("HassTurnOff", name="side door"), QUESTION, [("lock.unlock", "lock.side_door")]),
    Kind(
        "unlock the shed in the shed",
        call("HassTurnOff", area="Shed", domain=["lock"]),
        "Shall I unlock shed?",
        [("lock.unlock", "lock.shed")],
    ),
    Kind(
        "open the garage door",
        call("HassTurnOn", name="garage door"),
        "Shall I open garage door?",
        [("cover.open_cover", "cover.garage")],
    ),
    Kind(
        "open the yard gate",
        call("HassTurnOn", name="yard gate", domain=["cover"]),
        "Shall I open yard gate?",
        [("cover.open_cover", "cover.yard")],
    ),
    Kind(
        "open the patio door",
        call("HassTurnOn", name="patio door"),
        "Shall I open patio door?",
        [("cover.open_cover", "cover.patio")],
    ),
    Kind(
        "open the entrance group",
        call("HassTurnOn", name="entrance group"),
        "Shall I open entrance group?",
        [("cover.open_cover", "cover.all")],
    ),
    Kind(
        "set the patio door to 80%",
        call("HassSetPosition", name="patio door", position=80),
        "Shall I open patio door?",
        [("cover.set_cover_position", "cover.patio")],
    ),
    Kind(
        None,
        call("HassTurnOff", name="all", domain=["lock"]),
        "Shall I unlock side door and shed?",
        [("lock.unlock", "lock.side_door"), ("lock.unlock", "lock.shed")],
    ),
    Kind(
        None,
        call("HassTurnOn", name="all", device_class=["door", "gate", "garage"]),
        "Shall I open garage door, yard gate and patio door?",
        [("cover.open_cover", f"cover.{name}") for name in ("garage", "yard", "patio")],
    ),
    Kind(
        None,
        call("HassDisarm", name="alarm"),
        "Shall I disarm alarm?",
        [("alarm_control_panel.alarm_disarm", "alarm_control_panel.home")],
    ),
    Kind(None, call("delete_backups"), "Shall I really do this: Delete backups?", [("test.delete", "backups")]),
    Kind(None, call("send_mail"), "Shall I really do this: Send mail?", [("test.delete", "backups")]),
]
VAGUE = "would you be so kind and let me in somewhere"


type Act = Callable[[Kind, dict[str, Any]], Coroutine[Any, Any, str]]


@pytest.fixture
async def speakers(home: HomeAssistant) -> dict[str, dict[str, Any]]:
    """Return those who speak: two users, a guest who may only look, two satellites, and an automation."""

    async def person(name: str, group: str) -> dict[str, Any]:
        return {"context": Context(user_id=(await home.auth.async_create_user(name, group_ids=[group])).id)}

    return {
        "Ada": await person("Ada", GROUP_ID_USER),
        "guest": await person("Leo", GROUP_ID_READ_ONLY),
        "other guest": await person("Kim", GROUP_ID_READ_ONLY),
        "satellite": {"device_id": add_satellite(home, "Hall")},
        "other satellite": {"device_id": add_satellite(home, "Attic")},
        "automation": {},
    }


@pytest.fixture
def acts(say: SayFn, model_server: ModelServer) -> dict[str, Act]:
    """Return a function for each route that lets somebody ask for a target, and returns the answer."""

    async def locally(kind: Kind, speaker: dict[str, Any]) -> str:
        return get_speech(await say(kind.sentence or "", None, **speaker))

    async def by_model(kind: Kind, speaker: dict[str, Any]) -> str:
        model_server.script(kind.call, words("Well."))
        return get_speech(await say(VAGUE, None, **speaker))

    return {"local": locally, "model": by_model}


ROWS = [("model", kind) for kind in KINDS] + [("local", kind) for kind in KINDS if kind.sentence]
APIS = {CONF_LLM_HASS_API: ["assist", "test"]}


async def test_known_user_is_not_asked(
    calls: Services, set_up: SetUpFn, speakers, acts: dict[str, Act], subtests: pytest.Subtests
) -> None:
    await set_up(**APIS)
    for route, kind in ROWS:
        with subtests.test(route=route, question=kind.question):
            calls.clear()

            answer = await acts[route](kind, speakers["Ada"])

            assert (sorted(calls), kind.question in answer) == (sorted(kind.done), False)


@pytest.mark.parametrize("who", ["satellite", "guest"])
async def test_unknown_speaker_and_guest_are_asked_and_a_yes_does_it(
    *, who: str, calls: Services, set_up: SetUpFn, say: SayFn, speakers, acts: dict[str, Act], subtests: pytest.Subtests
) -> None:
    await set_up(**APIS)
    for route, kind in ROWS:
        with subtests.test(route=route, question=kind.question):
            calls.clear()

            question = await acts[route](kind, speakers[who])
            before = [*calls]
            answer = await say("yes please", None, **speakers[who])

            assert question.endswith(kind.question)
            assert (before, sorted(calls)) == ([], sorted(kind.done))
            assert not answer.continue_conversation


async def test_automation_without_a_user_is_refused(
    *,
    calls: Services,
    set_up: SetUpFn,
    say: SayFn,
    speakers,
    acts: dict[str, Act],
    model_server,
    subtests: pytest.Subtests,
) -> None:
    await set_up(**APIS)
    for route, kind in ROWS:
        with subtests.test(route=route, question=kind.question):
            await acts[route](kind, speakers["automation"])
            await say("yes", None)

            assert calls == []


@pytest.mark.parametrize("who", ["satellite", "automation", "guest"])
async def test_nobody_is_asked_if_the_option_says_never(
    *, who: str, calls: Services, set_up: SetUpFn, speakers, acts: dict[str, Act], subtests: pytest.Subtests
) -> None:
    await set_up(**APIS, **{CONF_ASK_BEFORE_OPENING: AskMode.NEVER})
    for route, kind in ROWS:
        with subtests.test(route=route, question=kind.question):
            calls.clear()

            await acts[route](kind, speakers[who])

            assert sorted(calls) == sorted(kind.done)


async def test_known_user_is_asked_if_the_option_says_always(
    calls: Services, set_up: SetUpFn, say: SayFn, speakers, acts: dict[str, Act]
) -> None:
    await set_up(**{CONF_ASK_BEFORE_OPENING: AskMode.ALWAYS})

    question = await acts["local"](KINDS[0], speakers["Ada"])
    before = [*calls]
    await say("yes", None, **speakers["Ada"])

    assert (question, before, calls) == (QUESTION, [], KINDS[0].done)


NOT_AGREED = [
    ("satellite", "satellite", "no"),
    ("satellite", "satellite", "what can you do"),
    ("satellite", "other satellite", "yes"),
    ("satellite", "Ada", "yes"),
    ("guest", "other guest", "yes"),
    ("guest", "satellite", "yes"),
    ("guest", "automation", "yes"),
]


async def test_anything_but_a_yes_of_the_same_speaker_does_nothing(
    *, calls: Services, set_up: SetUpFn, say: SayFn, speakers, acts: dict[str, Act], subtests: pytest.Subtests
) -> None:
    await set_up(**APIS)
    for asker, other, reply in NOT_AGREED:
        for route, kind in ROWS:
            with subtests.test(asker=asker, other=other, reply=reply, route=route, question=kind.question):
                calls.clear()
                await acts[route](kind, speakers[asker])
                await say(reply, None, **speakers[other])
                done = [*calls]
                # the question is not open in the next row
                await say("no", None, **speakers[asker])

                assert done == []


async def test_yes_after_another_sentence_or_a_first_yes_is_a_new_sentence(
    *, calls: Services, set_up: SetUpFn, say: SayFn, speakers, acts: dict[str, Act], subtests: pytest.Subtests
) -> None:
    await set_up(**APIS)
    for route, kind in ROWS:
        with subtests.test(route=route, question=kind.question):
            calls.clear()
            await acts[route](kind, speakers["satellite"])
            await say("what can you do", None, **speakers["satellite"])
            await say("yes", None, **speakers["satellite"])
            without = [*calls]
            await acts[route](kind, speakers["satellite"])
            for _ in range(2):
                await say("yes", None, **speakers["satellite"])

            assert (without, sorted(calls)) == ([], sorted(kind.done))


async def test_yes_after_a_minute_is_a_new_sentence(
    *, calls: Services, set_up: SetUpFn, say: SayFn, speakers, acts: dict[str, Act], monkeypatch: pytest.MonkeyPatch
) -> None:
    await set_up(**APIS)
    monkeypatch.setattr(gate, "_REPLY_SECONDS", -1.0)
    for route, kind in ROWS:
        await acts[route](kind, speakers["satellite"])
        await say("yes", None, **speakers["satellite"])

    assert calls == []


@pytest.mark.parametrize("route", ["local", "model"])
async def test_yes_after_a_restart_is_a_new_sentence(
    *, route: str, home: HomeAssistant, calls: Services, set_up: SetUpFn, say: SayFn, speakers, acts: dict[str, Act]
) -> None:
    entry = await set_up()
    await acts[route](KINDS[0], speakers["satellite"])
    await stop(home, entry)
    await start(home, entry)
    await say("yes", None, **speakers["satellite"])

    assert calls == []


@pytest.mark.parametrize(
    ("sentence", "done"),
    [
        ("lock the side door", [("lock.lock", "lock.side_door")]),
        ("close the garage door", [("cover.close_cover", "cover.garage")]),
        ("open the kitchen blind", [("cover.open_cover", "cover.blind")]),
        ("set the patio door to 20%", [("cover.set_cover_position", "cover.patio")]),
    ],
)
async def test_what_opens_nothing_is_done_at_once(
    *, sentence: str, done: Services, calls: Services, set_up: SetUpFn, say: SayFn, speakers
) -> None:
    await set_up()

    await say(sentence, None, **speakers["satellite"])

    assert calls == done


async def test_tool_that_only_reads_runs_at_once(
    calls: Services, set_up: SetUpFn, say: SayFn, speakers, model_server: ModelServer
) -> None:
    await set_up(**APIS)
    model_server.script(call("look_up"), words("Here it is."))

    answer = get_speech(await say(VAGUE, None, **speakers["satellite"]))

    assert (answer, calls) == ("Here it is.", [("test.delete", "backups")])


async def test_model_learns_that_it_has_to_ask_and_several_doors_are_one_question(
    calls: Services, set_up: SetUpFn, say: SayFn, speakers, model_server: ModelServer
) -> None:
    await set_up()
    both = Answer(calls=(*KINDS[0].call.calls, *KINDS[2].call.calls))
    model_server.script(both, words("Shall I open side door and garage door?"))

    answer = await say(VAGUE, None, **speakers["satellite"])
    results = [each["content"] for each in model_server.requests[-1].body["messages"] if each["role"] == "tool"]
    await say("yes", None, **speakers["satellite"])

    assert get_speech(answer) == "Shall I open side door and garage door?"
    assert answer.continue_conversation
    assert all("Nothing was done" in each for each in results)
    assert sorted(calls) == sorted([*KINDS[0].done, *KINDS[2].done])


async def test_yes_to_another_question_of_the_model_opens_nothing_unheard(
    calls: Services, set_up: SetUpFn, say: SayFn, speakers, model_server: ModelServer
) -> None:
    await set_up()
    model_server.script(KINDS[0].call, words(f"{QUESTION} Just kidding. Do you like music?"))

    answer = get_speech(await say(VAGUE, None, **speakers["satellite"]))

    assert answer.endswith(f"Do you like music?\n\n{QUESTION}")


DELAYED = "unlock the side door in 1 second"


@pytest.mark.parametrize("who", ["satellite", "Ada"])
async def test_delayed_command_is_carried_out_when_its_time_has_come(
    *, who: str, home: HomeAssistant, calls: Services, set_up: SetUpFn, say: SayFn, speakers
) -> None:
    await set_up()
    await say(DELAYED, None, **speakers[who])
    await say("yes", None, **speakers["satellite"])
    await until(lambda: bool(calls))

    assert calls == KINDS[0].done


async def test_delayed_command_is_asked_about_when_it_is_said(
    *, home: HomeAssistant, calls: Services, set_up: SetUpFn, say: SayFn, speakers, model_server: ModelServer
) -> None:
    await set_up()
    async_register_timer_handler(home, speakers["satellite"]["device_id"], lambda *_: None)
    model_server.script(call("HassStartTimer", seconds=1, conversation_command="unlock the side door"), words("Well."))

    answers = [get_speech(await say(each, None, **speakers["satellite"])) for each in (DELAYED, VAGUE)]

    assert all(each.endswith(QUESTION) for each in answers)
    assert not home.data[TIMER_DATA].timers


@pytest.mark.parametrize("sentence", ["unlock the sidedoor", "unlock the side door and open the garage door"])
async def test_loose_match_without_a_model_is_asked_about(
    sentence: str, calls: Services, set_up: SetUpFn, say: SayFn, speakers
) -> None:
    await set_up(account={CONF_PROVIDER: PROVIDER_NONE})

    answer = get_speech(await say(sentence, None, **speakers["satellite"]))
    before = [*calls]
    await say("yes", None, **speakers["satellite"])

    assert (answer.startswith("Shall I "), before) == (True, [])
    assert KINDS[0].done[0] in calls


@pytest.fixture
def said(say: SayFn, speakers: dict[str, dict[str, Any]]) -> Callable[..., Coroutine[Any, Any, str]]:
    """Return a function that says sentences at the satellite, one after another, and returns the last answer."""

    async def said(*sentences: str, language: str = "en") -> str:
        answers = [await say(each, "mine", language=language, **speakers["satellite"]) for each in sentences]
        return get_speech(answers[-1])

    return said


ASKED = "unlock the side door"


async def test_sentence_trigger_of_the_user_is_not_gated(
    home: HomeAssistant, calls: Services, set_up: SetUpFn, said
) -> None:
    action = {"action": "lock.unlock", "data": {"entity_id": "lock.side_door"}}
    trigger = {"trigger": "conversation", "command": "let me in"}
    assert await async_setup_component(home, "automation", {"automation": {"triggers": trigger, "actions": action}})
    await set_up()

    await said("let me in")

    assert calls == KINDS[0].done
