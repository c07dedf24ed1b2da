"""Tests for memory requests in sentences and through tools, with a real Home Assistant and a real file."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
import threading
from types import SimpleNamespace
from typing import Any, cast

from homeassistant.auth.models import User
from homeassistant.components.conversation import ConversationInput, async_get_chat_log
from homeassistant.core import Context, HomeAssistant
from homeassistant.helpers import llm
from homeassistant.helpers.chat_session import async_get_chat_session
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents.config import AgentConfig
from custom_components.windowed_conversation.agents.gate import GateState, async_open_gate
from custom_components.windowed_conversation.agents.local_intents import LocalAnswerer
from custom_components.windowed_conversation.bridge.persons import async_find_speaker
from custom_components.windowed_conversation.bridge.tools import ToolSchemaCache, async_get_tools
from custom_components.windowed_conversation.const import DOMAIN, MEMORY_API_ID, AskMode
from custom_components.windowed_conversation.memory.bridge.answers import ForgetCallback, MemoryAnswerer
from custom_components.windowed_conversation.memory.bridge.sentences import async_load_sentences
from custom_components.windowed_conversation.memory.bridge.tools import MemoryAPI, make_recall_tool, make_tools
from custom_components.windowed_conversation.memory.core import LostRows, Memory, MemoryAccess
from custom_components.windowed_conversation.memory.turn.dialog import LastAnswer, MemoryDialog
from custom_components.windowed_conversation.memory.turn.remember_requests import MemoryReply
from custom_components.windowed_conversation.memory.turn.speaker import Speaker, SpeakerSource
from custom_components.windowed_conversation.turn.routing import RouteReason, Situation, WindowKey
from custom_components.windowed_conversation.window import Message

from .agent_forms import get_selectors, open_new
from .conftest import AGENT, SetUpFn

SAID = "By the way, my dentist is on Tuesday at four"
TEXT = "Anna's dentist is on Tuesday at four"
QUOTE = "my dentist is on Tuesday at four"
NOBODY = Speaker("", "en")


@pytest.fixture
async def folder(hass: HomeAssistant) -> AsyncIterator[Path]:
    """Yield a temporary folder, created in the executor because blocking calls are not allowed in the event loop."""
    made = await hass.async_add_executor_job(TemporaryDirectory)
    yield Path(made.name)
    await hass.async_add_executor_job(made.cleanup)


@pytest.fixture
async def memory(hass: HomeAssistant, folder: Path) -> AsyncIterator[Memory]:
    memory = await hass.async_add_executor_job(Memory, folder / "memory.db", ("en",))
    yield memory
    await hass.async_add_executor_job(memory.close)


@dataclass
class Access:
    """Access to a memory in the executor."""

    hass: HomeAssistant
    memory: Memory

    def async_allow_file(self) -> None:
        pass

    async def async_read[Result](self, read: Callable[[Memory], Result], default: Result) -> Result:
        return await self.hass.async_add_executor_job(read, self.memory)

    async def async_change[Result, *Arguments](
        self, work: Callable[[Memory, *Arguments], Result], *arguments: *Arguments
    ) -> Result:
        return await self.hass.async_add_executor_job(work, self.memory, *arguments)


@pytest.fixture
def access(hass: HomeAssistant, memory: Memory) -> MemoryAccess:
    return Access(hass, memory)


@pytest.fixture
async def anna(hass: HomeAssistant) -> User:
    return await hass.auth.async_create_user("Anna")


@pytest.fixture
def forgotten_rows() -> list[LostRows]:
    return []


@pytest.fixture
def forget(access: MemoryAccess, forgotten_rows: list[LostRows]) -> ForgetCallback:
    """Return a function that runs a deletion in memory and appends its result to `forgotten_rows`."""

    async def forget(work: Callable[[Memory], MemoryReply]) -> MemoryReply:
        done = await access.async_change(work)
        forgotten_rows.extend(filter(None, [done.forgotten_rows]))
        return done

    return forget


# The options of an agent that asks nobody.
_NO_GATE = SimpleNamespace(ask_before_opening=AskMode.NEVER, opening_code="")


@pytest.fixture
def last_answers() -> dict[str, LastAnswer]:
    return {}


@pytest.fixture
def say(home: HomeAssistant, access: MemoryAccess, forget: ForgetCallback, last_answers: dict[str, LastAnswer]):
    """Return a function that answers a sentence locally and returns the answer and the messages for the window."""

    async def say(
        text: str, user: User | None = None, language: str = "en"
    ) -> tuple[str, tuple[Message, ...]] | RouteReason:
        context = Context(user_id=user.id if user else None)
        await async_load_sentences(home, language)
        given = ConversationInput(text, context, None, None, None, language, AGENT)
        found = await async_find_speaker(home, given, ())
        speaker = found.for_window(WindowKey("talk", context.user_id))
        dialog = MemoryDialog(last_answers, "talk", speaker)
        dialog.take_last_answer()
        answers = MemoryAnswerer(home, access, speaker, forget, dialog)
        with async_get_chat_session(home) as session, async_get_chat_log(home, session, given) as log:
            gate = await async_open_gate(home, AGENT, cast("Any", _NO_GATE), GateState(), given, speaker=found)
            local = LocalAnswerer(home, given, log, gate, can_ask_model=True, model_has_tools=False, memory=answers)
            answer = await local.answer_input(Situation())
            return answer if isinstance(answer, RouteReason) else (local.answer_text, answer())

    return say


@pytest.fixture
def call(
    hass: HomeAssistant, access: MemoryAccess, anna: User, forget: ForgetCallback, last_answers: dict[str, LastAnswer]
):
    """Return a function that calls one of our agents' tools as a turn does, and returns the tool's result."""

    async def call(
        name: str,
        said: str = SAID,
        *,
        unknown: bool = False,
        by_device: bool = False,
        heard: str = "",
        **arguments: str,
    ) -> llm.ToolResult:
        person: dict[str, Any] = {} if unknown else {"person": anna.id, "name": "Anna", "is_alone": True}
        await async_load_sentences(hass, "en")
        speaker = Speaker(said, "en", **person, source=SpeakerSource.SATELLITE if by_device else SpeakerSource.LOGIN)
        dialog = MemoryDialog(last_answers, "talk", speaker)
        dialog.take_last_answer(heard)
        own = make_tools(access, speaker, forget, dialog, ("en",))
        api = await async_get_tools(hass, (), context_of(None), own)
        assert api is not None
        return await api.async_call_tool(llm.ToolInput(name, arguments))

    return call


def context_of(user: User | None) -> llm.LLMContext:
    context = Context(user_id=user.id if user else None)
    return llm.LLMContext(platform="test", context=context, language="en", assistant="conversation", device_id=None)


async def test_a_fact_is_remembered_told_and_forgotten_by_words(
    say, anna: User, memory: Memory, forgotten_rows: list[LostRows]
) -> None:
    remembered, exchange = await say("Remember that my dentist is on Tuesday.", anna)
    known, _ = await say("What do you know about me?", anna)
    gone, left = await say("Forget that my dentist is on Tuesday", anna)

    assert remembered == "Noted, only for you: my dentist is on Tuesday"
    assert [message.content for message in exchange] == [remembered]
    assert known == "About you: my dentist is on Tuesday"
    assert gone == "Done, I've deleted that: my dentist is on Tuesday"
    assert left == ()
    assert [each.facts for each in forgotten_rows] == [(1,)]
    assert memory.statistics().facts == 0


SPOKEN_FACTS = {
    "de-AT": ("Merk dir, dass ich Anna heiße", "Gemerkt, nur für dich: ich heiße Anna"),
    "nl": ("Onthoud dat ik Anna heet", "Genoteerd, alleen voor jou: ik heet Anna"),
    "fr": ("Rappelle-toi que la poubelle sort le vendredi", "pour tout le monde ici : la poubelle sort le vendredi"),
    "pt-BR": ("Lembra-te que o lixo sai na sexta-feira", "para todos aqui: o lixo sai na sexta-feira"),
}


async def test_what_is_remembered_is_read_back_in_the_speakers_language(
    say, anna: User, subtests: pytest.Subtests
) -> None:
    for language, (text, answer) in SPOKEN_FACTS.items():
        with subtests.test(language):
            speech, _ = await say(text, anna, language)

            assert answer in speech


async def test_a_memory_that_is_away_is_told(say, anna: User, memory: Memory) -> None:
    memory.close()

    assert (await say("Remember that the tea is green", anna))[
        0
    ] == "I can't use my memory right now. Please try again later."


async def test_other_sentences_are_home_assistants_and_the_models(say, anna: User) -> None:
    assert (await say("turn on kitchen light", anna))[0] == "Turned on the switch"
    assert await say("Remember to buy milk", anna) is RouteReason.NO_LOCAL_MATCH


async def test_a_tool_remembers_what_the_user_said(call, memory: Memory, anna: User) -> None:
    result = await call("remember", text=TEXT, quote=QUOTE)

    (fact,) = memory.get_facts(anna.id)
    assert result == llm.ToolResult(data={"remembered": TEXT, "for": "the user only"})
    assert (fact.text, fact.person, fact.private, fact.source, fact.quote) == (TEXT, anna.id, True, "tool", QUOTE)


async def test_tools_store_the_last_answer_in_the_event_loop(call, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, store = [], MemoryDialog.store_tool_reply

    def store_tool_reply(dialog: MemoryDialog, *reply: Any) -> Any:
        threads.append(threading.current_thread())
        return store(dialog, *reply)

    monkeypatch.setattr(MemoryDialog, "store_tool_reply", store_tool_reply)

    await call("remember", text=TEXT, quote=QUOTE)
    await call("forget", "forget my dentist", query="dentist on Tuesday")

    assert threads == [threading.main_thread()] * 2


WRONG_QUOTES = {
    "invented": (TEXT, "my dentist is on Wednesday", "quote_not_found"),
    "a tool's": ("The door code is 4711", "The door code is 4711", "quote_not_found"),
    "of something else": ("The door code is 4711", QUOTE, "quote_says_something_else"),
    "no words": ("...", QUOTE, "quote_says_something_else"),
}


async def test_a_tool_remembers_nothing_else(call, memory: Memory, subtests: pytest.Subtests) -> None:
    for kind, (text, quote, reason) in WRONG_QUOTES.items():
        with subtests.test(kind):
            facts = memory.statistics().facts

            result = await call("remember", text=text, quote=quote)

            assert (result.error, result.data["error"]) == (True, reason)
            assert memory.statistics().facts == facts


WRONG_ARGUMENTS: list[tuple[str, dict[str, str]]] = [
    ("remember", {"text": "x" * 301, "quote": QUOTE}),
    ("remember", {"text": TEXT}),
    ("recall", {"query": "x" * 301}),
    ("forget", {"query": ""}),
    ("forget", {"query": TEXT, "person": "ben"}),
]


async def test_a_tool_refuses_arguments_that_are_none(call, subtests: pytest.Subtests) -> None:
    for name, arguments in WRONG_ARGUMENTS:
        with subtests.test(tool=name, arguments=arguments):
            result = await call(name, **arguments)

            assert result.error


async def test_tools_recall_and_forget_what_was_remembered(
    call, memory: Memory, forgotten_rows: list[LostRows]
) -> None:
    await call("remember", text=TEXT, quote=QUOTE)

    recalled = await call("recall", "when is it?", query="when is my dentist appointment?")
    listed = await call("recall", "what do I have today?", query="", since="2000-01-01")
    gone = await call("forget", "forget my dentist", query="dentist on Tuesday")

    assert listed.data["recalled"] == recalled.data["recalled"]
    (line,) = recalled.data["recalled"]
    assert line.endswith(f', Anna: "{TEXT}"')
    assert gone.data == {"forgotten": [TEXT]}
    assert [each.facts for each in forgotten_rows] == [(1,)]
    assert memory.statistics().facts == 0


async def test_tool_forgets_nothing_of_who_is_known_by_the_device_before_their_yes(call, memory: Memory) -> None:
    await call("remember", text=TEXT, quote=QUOTE)

    asked = await call("forget", "forget my dentist", by_device=True, query="dentist on Tuesday")
    facts = memory.statistics().facts
    question = f"Shall I forget this: {TEXT}?"
    gone = await call("forget", "yes please", by_device=True, heard=question, query="dentist on Tuesday")

    assert (asked.error, asked.data["error"], facts) == (True, "memory_ask_fact", 1)
    assert asked.data["ask_about"] == [TEXT]
    assert gone.data == {"forgotten": [TEXT]}


async def test_yes_to_another_question_of_the_model_forgets_nothing(call, memory: Memory) -> None:
    await call("remember", text=TEXT, quote=QUOTE)

    await call("forget", "forget my dentist", by_device=True, query="dentist on Tuesday")
    heard = f"{TEXT}. Shall I go on?"
    again = await call("forget", "yes please", by_device=True, heard=heard, query="dentist on Tuesday")

    assert again.error
    assert memory.statistics().facts == 1


@pytest.mark.parametrize("reply", ["no", "what is the weather like?", "forget my dentist"])
async def test_tool_forgets_nothing_after_anything_but_a_yes(call, memory: Memory, reply: str) -> None:
    await call("remember", text=TEXT, quote=QUOTE)

    await call("forget", "forget my dentist", by_device=True, query="dentist on Tuesday")
    again = await call("forget", reply, by_device=True, query="dentist on Tuesday")

    assert again.error
    assert memory.statistics().facts == 1


async def test_tools_say_that_memory_is_away(call, memory: Memory) -> None:
    memory.close()

    assert (await call("recall", query="dentist")).data["error"] == "memory_unavailable"


async def test_own_tools_stand_beside_others_and_give_way_to_their_names(
    home: HomeAssistant, access: MemoryAccess, forget: ForgetCallback
) -> None:
    class Others(llm.API):
        async def async_get_api_instance(self, llm_context: llm.LLMContext) -> llm.APIInstance:
            return llm.APIInstance(self, "", llm_context, [make_recall_tool(access, Speaker("", "en"))])

    llm.async_register_api(home, Others(hass=home, id="others", name="Others"))
    own = make_tools(access, NOBODY, forget, MemoryDialog({}, "", NOBODY), ("en",))

    api = await async_get_tools(home, ("others",), context_of(None), own)

    assert api is not None
    assert [tool.name for tool in api.tools] == ["recall", "remember", f"{DOMAIN}__recall", "forget"]
    assert [schema.read_only for schema in ToolSchemaCache().convert_tools(api)] == [False, True, False, True]


async def test_the_schemas_of_the_tools_are_the_same_in_every_turn(
    hass: HomeAssistant, access: MemoryAccess, forget: ForgetCallback
) -> None:
    schemas = ToolSchemaCache()

    own = [
        make_tools(access, Speaker(said, "en"), forget, MemoryDialog({}, "", NOBODY), ("en",))
        for said in ("one", "two")
    ]
    turns = [schemas.convert_tools(await async_get_tools(hass, (), context_of(None), each)) for each in own]

    assert all(one is two for one, two in zip(*turns, strict=True))
    assert turns[0][2].parameters["required"] == ["text", "quote"]


async def test_other_agents_have_no_tools_where_there_is_no_memory(hass: HomeAssistant) -> None:
    llm.async_register_api(hass, MemoryAPI(hass, lambda _hass: None))

    api = await llm.async_get_api(hass, MEMORY_API_ID, context_of(None))

    assert (api.tools, api.api_prompt) == ([], "")


async def test_our_agents_are_never_given_what_other_agents_are(home: HomeAssistant, set_up: SetUpFn) -> None:
    entry = await set_up(llm_hass_api=["assist", MEMORY_API_ID])

    (subentry,) = entry.subentries.values()
    assert AgentConfig.from_entry(entry, subentry).llm_apis == ("assist",)


async def test_the_form_of_our_agents_does_not_offer_what_other_agents_are(
    home: HomeAssistant, entry: MockConfigEntry
) -> None:
    offered = get_selectors(await open_new(home, entry))["llm_hass_api"].config["options"]

    assert [each["value"] for each in offered] == ["assist"]
