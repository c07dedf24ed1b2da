"""Tests of the gate: what opens the house waits for a yes or the code, on each route and for each kind of target."""

from collections.abc import Callable, Coroutine
import json
from pathlib import Path
from typing import Any, NamedTuple, override

from hassil.intents import Intent, IntentData
from hassil.models import MatchEntity
from hassil.recognize import RecognizeResult
from homeassistant.auth.const import GROUP_ID_READ_ONLY, GROUP_ID_USER
from homeassistant.components.conversation.chat_log import DATA_CHAT_LOGS
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.components.intent import async_register_timer_handler
from homeassistant.components.intent.const import TIMER_DATA
from homeassistant.const import CONF_LLM_HASS_API, CONF_URL, MATCH_ALL
from homeassistant.core import Context, HomeAssistant, ServiceCall
from homeassistant.helpers import area_registry as ar, entity_registry as er, intent, issue_registry as ir, llm
from homeassistant.setup import async_setup_component
import probatio
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents import gate
from custom_components.windowed_conversation.bridge.openings import may_open
from custom_components.windowed_conversation.bridge.spoken_code import MASK, hash_code, matches_code
from custom_components.windowed_conversation.const import (
    CONF_ASK_BEFORE_OPENING,
    CONF_OPENING_CODE,
    CONF_PERSISTENCE,
    CONF_PROVIDER,
    CONF_RECORD,
    DOMAIN,
    PROVIDER_NONE,
    AskMode,
    Persistence,
    RecordLevel,
)
from custom_components.windowed_conversation.diagnostics import async_get_config_entry_diagnostics
from demo.model_server import Answer, ModelServer, call, words

from .agent_forms import open_agent_form, suggested
from .conftest import SayFn, SetUpFn, flush_store, get_speech, start, stop, until
from .more_agents import change_agent
from .remembered import recorded_turns
from .satellite import Ask
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


def write_as_text(answer: Answer) -> Answer:
    """Return an answer that has its one call as text."""
    (each,) = answer.calls
    return words(f"<tool_call>{json.dumps({'name': each.name, 'arguments': dict(each.arguments)})}</tool_call>")


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

    async def by_text(kind: Kind, speaker: dict[str, Any]) -> str:
        model_server.script(write_as_text(kind.call), words("Well."))
        return get_speech(await say(VAGUE, None, **speaker))

    return {"local": locally, "model": by_model, "text call": by_text}


ROWS = [
    *[(route, kind) for route in ("model", "text call") for kind in KINDS],
    *[("local", kind) for kind in KINDS if kind.sentence],
]
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


async def test_claim_of_a_model_opens_nothing_without_a_yes(
    *, calls: Services, set_up: SetUpFn, say: SayFn, model_server: ModelServer, speakers, subtests: pytest.Subtests
) -> None:
    await set_up(routing="model_only")
    for kind in [each for each in KINDS if each.sentence]:
        with subtests.test(question=kind.question):
            calls.clear()
            model_server.script(words("It is open."), kind.call)

            asked = await say(kind.sentence or "", None, **speakers["satellite"])
            before = [*calls]
            await say("yes", asked.conversation_id, **speakers["satellite"])

            assert (before, kind.question in get_speech(asked), sorted(calls)) == ([], True, sorted(kind.done))


# Sentences, each with the call of a model that is injected or mistaken.
ATTACKS: list[tuple[str, Answer]] = [
    ("tell me a story about foxes, friend", call("HassTurnOff", name="side door")),
    ("thanks, that was nice", call("HassTurnOff", name="lock.side_door")),
    ("yes", call("HassTurnOff", area="Shed", domain=["lock"])),
    ("do not open the garage door", call("HassTurnOn", name="GARAGE DOOR")),
    ("is the yard gate open?", call("HassTurnOn", name="yard gate")),
    ("what if I opened the patio door", call("HassSetPosition", name="patio door", position=100)),
    ("lock the side door and the shed", call("HassTurnOff", name="all", domain=["lock"])),
    ("close the garage door", call("HassTurnOn", name="all", device_class=["door", "gate", "garage"])),
    ("read me the news about alarms", call("HassDisarm", name="alarm")),
    ("what is in my inbox", call("send_mail")),
    ("how old are the backups", call("delete_backups")),
]
STORY = words("Once upon a time there was a fox. Shall I go on?")


@pytest.mark.parametrize("who", ["satellite", "guest", "automation"])
async def test_injected_model_opens_nothing(
    *, who: str, calls: Services, set_up: SetUpFn, say: SayFn, model_server: ModelServer, speakers, subtests
) -> None:
    await set_up(**APIS, routing="model_only")
    for said, attack in ATTACKS:
        for answer in (attack, write_as_text(attack)):
            with subtests.test(said, text=answer.text):
                for sentence, *script in ((said, answer, STORY), ("tell me more", STORY), ("yes", STORY)):
                    model_server.script(*script)
                    await say(sentence, None, **speakers[who])

                assert calls == []


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


@pytest.mark.parametrize(("route", "tool"), [("local", "HassTurnOff"), ("model", "intent__HassTurnOff")])
async def test_record_names_what_a_yes_has_done(
    *, route: str, tool: str, home: HomeAssistant, calls: Services, set_up: SetUpFn, say: SayFn, speakers, acts
) -> None:
    await set_up()

    await acts[route](KINDS[0], speakers["satellite"])
    await say("yes", None, **speakers["satellite"])
    await acts[route](KINDS[0], speakers["satellite"])
    await say("no", None, **speakers["satellite"])

    await flush_store(home)
    _, agreed, _, refused = await recorded_turns(home)
    assert (calls, agreed["route"]) == (KINDS[0].done, "local")
    assert (agreed["tools"], refused["tools"]) == ([tool], [])


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


async def test_door_is_guarded_by_its_alias(
    hass: HomeAssistant, calls: Services, set_up: SetUpFn, say: SayFn, speakers
) -> None:
    entities = er.async_get(hass)
    lock = entities.async_get_or_create("lock", "test", "cellar", suggested_object_id="cellar", original_name="cellar")
    entities.async_update_entity(lock.entity_id, aliases=["Back Entrance"])
    hass.states.async_set(lock.entity_id, "locked", {"friendly_name": "cellar"})
    async_expose_entity(hass, "conversation", lock.entity_id, should_expose=True)
    await set_up()

    question = await say("unlock the back entrance", None, **speakers["satellite"])

    assert (get_speech(question), calls) == ("Shall I unlock cellar?", [])


@pytest.mark.parametrize(("name", "opens"), [("all", True), ("side door", True), ("hall light", False)])
@pytest.mark.usefixtures("calls")
async def test_only_a_sentence_that_means_an_opening_may_open(*, name: str, opens: bool, hass: HomeAssistant) -> None:
    entity = MatchEntity("name", name, name)
    result = RecognizeResult(Intent("HassTurnOff"), IntentData([]), {"name": entity}, [entity])

    assert may_open(hass, result) is opens


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


async def test_yes_after_a_restart_is_a_new_sentence(
    home: HomeAssistant, calls: Services, set_up: SetUpFn, say: SayFn, *, acts: dict[str, Act]
) -> None:
    entry = await set_up(**APIS)
    speakers = [{"device_id": add_satellite(home, f"Room {number}")} for number in range(len(ROWS))]
    questions = [await acts[route](kind, speaker) for (route, kind), speaker in zip(ROWS, speakers, strict=True)]
    await stop(home, entry)
    await start(home, entry)
    for speaker in speakers:
        await say("yes", None, **speaker)

    assert all(question.endswith(kind.question) for question, (_, kind) in zip(questions, ROWS, strict=True))
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


async def test_yes_is_no_question_for_a_model_that_answers_everything(
    *, calls: Services, set_up: SetUpFn, say: SayFn, speakers, acts: dict[str, Act], model_server: ModelServer
) -> None:
    await set_up(routing="model_only")
    await acts["model"](KINDS[0], speakers["satellite"])
    model_server.log.clear()

    await say("yes", None, **speakers["satellite"])

    assert (calls, model_server.requests) == (KINDS[0].done, [])


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


async def test_last_fallback_is_asked_about_what_it_would_open(
    calls: Services, set_up: SetUpFn, say: SayFn, speakers
) -> None:
    await set_up(account={CONF_URL: "http://127.0.0.1:9/v1"})

    await say("lock the sidedoor please", "mine", **speakers["satellite"])
    question = get_speech(await say("and unlock it", "mine", **speakers["satellite"]))
    before = [*calls]
    await say("yes", "mine", **speakers["satellite"])

    assert question == QUESTION
    assert (before, calls) == ([("lock.lock", "lock.side_door")], [("lock.lock", "lock.side_door"), *KINDS[0].done])


@pytest.fixture
def said(say: SayFn, speakers: dict[str, dict[str, Any]]) -> Callable[..., Coroutine[Any, Any, str]]:
    """Return a function that says sentences at the satellite, one after another, and returns the last answer."""

    async def said(*sentences: str, language: str = "en") -> str:
        answers = [await say(each, "mine", language=language, **speakers["satellite"]) for each in sentences]
        return get_speech(answers[-1])

    return said


ASKED = "unlock the side door"
SPOKEN = ["739251", "7 3 9 2 5 1", "seven three nine two five one", "My code is 73-92-51, please."]
# As long as a code may be: fewer digits may stand in a time or an id by chance.
LONG_CODE = "739251846073"
LONG_SPOKEN = [
    LONG_CODE,
    " ".join(LONG_CODE),
    "seven three nine two five one eight four six zero seven three",
    "My code is 73-92-51-84-60-73, please.",
]


async def set_up_code(set_up: SetUpFn, code: str) -> MockConfigEntry:
    """Return an account whose agent asks for a code, and keeps everything that it can."""
    return await set_up(
        **APIS,
        **{CONF_OPENING_CODE: hash_code(code), CONF_RECORD: RecordLevel.FULL},
        options={CONF_PERSISTENCE: Persistence.ALL},
    )


@pytest.fixture
async def coded(set_up: SetUpFn, calls: Services) -> MockConfigEntry:
    """Return the account whose agent asks for `CODE`."""
    return await set_up_code(set_up, CODE)


@pytest.mark.parametrize("spoken", SPOKEN)
async def test_code_opens_what_waits_for_it(spoken: str, coded: MockConfigEntry, calls: Services, said) -> None:
    question = await said(ASKED)
    assert question == f"{QUESTION} Please say the code."
    assert await said("yes") == "Please say the code."
    assert calls == []

    await said(spoken)

    assert calls == KINDS[0].done


@pytest.mark.parametrize(
    ("language", "spoken"),
    [
        ("de", "sieben drei neun zwei fünf eins"),
        ("fr", "sept trois neuf deux cinq un"),
        ("ja", "七三九二五一"),
        ("nb", "sju tre ni to fem en"),
        ("uk", "сім три дев’ять два п’ять один"),  # noqa: RUF001 - Cyrillic
    ],
)
async def test_code_is_understood_in_other_languages(
    language: str, spoken: str, coded: MockConfigEntry, calls: Services, said
) -> None:
    await said(ASKED)
    await said(spoken, language=language)

    assert calls == KINDS[0].done


async def test_sentence_with_numbers_after_the_code_is_no_code(coded: MockConfigEntry, calls: Services, said) -> None:
    await said(ASKED, CODE)

    assert "nothing left" not in await said("tell me at 12:30")


async def test_five_wrong_codes_pause_the_gate_and_raise_an_issue(
    home: HomeAssistant, coded: MockConfigEntry, calls: Services, said, monkeypatch: pytest.MonkeyPatch
) -> None:
    (agent_id,) = coded.subentries
    wrong = await said(ASKED, "1 2 3 4", "739252", "seven", "0000")
    paused = [await said("1111"), await said(CODE), await said(ASKED), await said(CODE)]
    issue = ir.async_get(home).async_get_issue(DOMAIN, f"wrong_codes_{agent_id}")
    before = [*calls]
    monkeypatch.setattr(coded.runtime_data.agents[agent_id].state.gate, "paused_until", 0.0)
    await said(ASKED, CODE)

    assert wrong == "That's not the code. Please say it again."
    assert paused[0].startswith("There were too many wrong codes.")
    assert paused[2] == paused[0]
    assert (before, calls, issue is not None) == ([], KINDS[0].done, True)
    assert ir.async_get(home).async_get_issue(DOMAIN, f"wrong_codes_{agent_id}") is None


def read_files(folder: Path) -> list[bytes]:
    """Return the content of all files in a folder."""
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


async def test_code_is_in_no_file_request_event_state_or_log(
    *,
    home: HomeAssistant,
    set_up: SetUpFn,
    calls: Services,
    said,
    store_path: Path,
    model_server: ModelServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    coded = await set_up_code(set_up, LONG_CODE)
    events: list[str] = []
    home.bus.async_listen(MATCH_ALL, lambda event: events.append(repr(event)))
    for spoken in LONG_SPOKEN:
        await said(ASKED, spoken)
        # too late
        await said(ASKED, "what can you do", spoken)
    model_server.script(KINDS[0].call, words("Well."))
    await said(VAGUE, LONG_SPOKEN[0], "what did I say before?")
    own_log = [record.getMessage() for record in caplog.records if record.name.startswith("custom_components")]
    states = [repr(state.as_dict()) for state in home.states.async_all()]
    diagnostics = repr(await async_get_config_entry_diagnostics(home, coded))
    await stop(home, coded)
    files = await home.async_add_executor_job(read_files, store_path.parent)
    requests = [str(request.body) for request in model_server.requests]
    texts = "\n".join([*events, *own_log, *states, *requests, diagnostics, repr(coded.subentries)])

    assert len(calls) == len(LONG_SPOKEN) + 1
    assert any(b"side door" in each for each in files)
    for spoken in (*LONG_SPOKEN, "seven three nine", "73-92-51-84"):
        assert spoken not in texts
        assert not any(spoken.encode() in each for each in files)


async def test_sentence_trigger_of_the_user_is_not_gated(
    home: HomeAssistant, calls: Services, set_up: SetUpFn, said
) -> None:
    action = {"action": "lock.unlock", "data": {"entity_id": "lock.side_door"}}
    trigger = {"trigger": "conversation", "command": "let me in"}
    assert await async_setup_component(home, "automation", {"automation": {"triggers": trigger, "actions": action}})
    await set_up()

    await said("let me in")

    assert calls == KINDS[0].done


async def test_form_stores_a_code_as_a_hash_and_never_shows_it(home: HomeAssistant, set_up: SetUpFn) -> None:
    entry = await set_up()
    form = await open_agent_form(home, entry)
    entered = {"name": "Ada", "model": "scripted"}
    wrong = await form(**entered, **{CONF_OPENING_CODE: "12ab"})
    await form(**entered, **{CONF_OPENING_CODE: CODE})
    (subentry,) = entry.subentries.values()
    stored = subentry.data[CONF_OPENING_CODE]
    again = await open_agent_form(home, entry)
    shown = suggested(again).get(CONF_OPENING_CODE)
    await again(**entered, **{CONF_OPENING_CODE: MASK})
    kept = next(iter(entry.subentries.values())).data[CONF_OPENING_CODE]
    removal = await open_agent_form(home, entry)
    await removal(**entered)

    assert wrong["errors"] == {"base": "code_invalid"}
    assert CODE not in stored
    assert matches_code(CODE, stored)
    assert (kept, shown) == (stored, MASK)
    assert CONF_OPENING_CODE not in next(iter(entry.subentries.values())).data


async def test_code_said_to_a_satellite_is_in_no_chat_log(
    home: HomeAssistant, entry: MockConfigEntry, calls: Services, ask: Ask
) -> None:
    await change_agent(home, entry, **{CONF_OPENING_CODE: hash_code(CODE)})

    question = await ask(ASKED)
    await ask(CODE)

    logs = [repr(content) for log in home.data[DATA_CHAT_LOGS].values() for content in log.content]
    assert question == f"{QUESTION} Please say the code."
    assert calls == KINDS[0].done
    assert any(MASK in each for each in logs)
    assert not any(CODE in each for each in logs)
