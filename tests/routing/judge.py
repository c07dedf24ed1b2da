"""Sends the sentences of a set to an agent, and compares the outcome of each with the expected one."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hassil.recognize import RecognizeResult
from homeassistant.components.conversation import HOME_ASSISTANT_AGENT, ConversationInput, async_converse
from homeassistant.components.conversation.agent_manager import async_get_agent
from homeassistant.core import Context

from .entities import Json
from .homes import Home, Seen
from .sets import LOCAL, MODEL, Case, Set
from .stub import QUESTION, STATEMENT, Stub

# Error codes of Home Assistant's own agent for sentences that an agent with a model would pass to the model.
_APOLOGIES = ("no_intent_match", "no_valid_targets")


class Verdict(StrEnum):
    """The verdict on the answer to a sentence."""

    RIGHT_LOCAL = "right local"
    WRONG_LOCAL = "wrong local"
    NEEDLESS = "needless"
    RIGHTLY_TO_MODEL = "rightly to the model"


@dataclass(frozen=True, slots=True)
class Heard:
    """An agent's answer, and whether it needs a model: it sent a request to one, or has none and did not understand."""

    speech: str
    needs_model: bool
    is_error: bool = False

    @classmethod
    def of(cls, response: Json, *, asked: bool) -> Heard:
        """Create a Heard from Home Assistant's response dictionary; `asked` is whether the model got a request."""
        failed = response["response_type"] == "error"
        apologises = failed and response["data"]["code"] in _APOLOGIES
        return cls(response["speech"].get("plain", {}).get("speech") or "", asked or apologises, failed)


type Say = Callable[[Case], Awaitable[Heard]]


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A sentence with its verdict, and the reason for the verdict if it is not obvious."""

    case: Case
    verdict: Verdict
    reason: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether the sentence got a wrong local result."""
        return self.verdict is Verdict.WRONG_LOCAL

    def __str__(self) -> str:
        return f"{self.verdict}: [{self.case.language} {self.case.group}] {self.case.sentence!r} {self.reason}".rstrip()


type ConverseFn = Callable[[str, str, str], Awaitable[Json]]


def sayer(home: Home, agent_id: str, stub: Stub | None = None) -> Say:
    """Return a function that sends a sentence to the agent; `stub` is the agent's model server."""

    async def converse(text: str, conversation_id: str, language: str) -> Json:
        result = await async_converse(
            home.hass,
            text,
            conversation_id,
            Context(),
            language,
            agent_id,
            device_id=home.device_id,
            satellite_id=home.satellite_id,
        )
        return result.response.as_dict()

    return make_sender(converse, stub)


def make_sender(converse: ConverseFn, stub: Stub | None) -> Say:
    """Return a function that sends each sentence in a new conversation, after a model's answer if the case has one."""

    async def say(case: Case) -> Heard:
        # This is longer than the 26 characters of the ids that Home Assistant creates, so that it is not taken for one.
        conversation_id = f"a conversation of a test, after {case.after}: {case.sentence}"
        if case.after and stub:
            stub.answer = QUESTION if case.after == "question" else STATEMENT
            await converse("Hmm", conversation_id, case.language)
        before = stub.requests if stub else 0
        response = await converse(case.sentence, conversation_id, case.language)
        return Heard.of(response, asked=bool(stub and stub.requests > before))

    return say


async def judge_set(home: Home, one_set: Set, say: Say) -> list[JudgedCase]:
    """Send every sentence of a set, restoring the home as it was built before each."""
    return [await judge_case(home, case, say) for case in one_set.cases]


async def judge_case(home: Home, case: Case, say: Say) -> JudgedCase:
    """Send a sentence in the home as it was built, except for the setup of the case."""
    await home.restore(case.setup, case.initial_timers)
    before = home.seen()
    heard = await say(case)
    await home.hass.async_block_till_done()
    if heard.needs_model:
        verdict = Verdict.NEEDLESS if case.route == LOCAL else Verdict.RIGHTLY_TO_MODEL
        acted = "" if home.seen() == before else "and yet it acted"
        return JudgedCase(case, Verdict.WRONG_LOCAL if acted else verdict, acted)
    wrong = "; ".join(_wrong(home, case, before, heard))
    if wrong or case.route == MODEL:
        what = wrong or f"said {heard.speech!r}"
        return JudgedCase(case, Verdict.WRONG_LOCAL, f"{what} ({await _in_words(home, case)})")
    return JudgedCase(case, Verdict.RIGHT_LOCAL)


def count(judged: Iterable[JudgedCase]) -> Mapping[Verdict, int]:
    """Return the number of cases of each verdict."""
    return Counter(each.verdict for each in judged)


def _wrong(home: Home, case: Case, before: Seen, heard: Heard) -> Iterator[str]:
    """Yield a description of each difference between the local result and the expected one."""
    if heard.is_error:
        yield f"an error: {heard.speech!r}"
    if case.says and not any(word.casefold() in heard.speech.casefold() for word in case.says):
        yield f"said {heard.speech!r}"
    after = home.seen()
    for entity_id, now in after.items():
        declared = case.changes.get(entity_id)
        if declared is None and now != before[entity_id]:
            yield f"{entity_id} changed to {', '.join(now[2]) or now[0]}"
        if declared is not None:
            yield from _differences(entity_id, declared, now, case.ignored.get(entity_id, ()))
    if case.announces is not None and "".join(home.announcements).casefold() != case.announces.casefold():
        yield f"announced {home.announcements}"
    if case.timers is not None and _timers(home) != [(name.casefold(), minutes) for name, minutes in case.timers]:
        yield f"timers {_timers(home)}"


def _timers(home: Home) -> list[tuple[str, int]]:
    """Return the name, or the delayed command, and the minutes of each timer.

    Minutes are rounded, because a second may pass before time is added to a timer.
    """
    timers = home.timers.now()
    return [((each.conversation_command or each.name or "").casefold(), round(each.seconds / 60)) for each in timers]


def _differences(
    entity_id: str, declared: Json, now: tuple[str, Mapping[str, Any], tuple[str, ...]], ignored: tuple[str, ...]
) -> Iterator[str]:
    state, attributes, items = now
    if "state" in declared and state != str(declared["state"]):
        yield f"{entity_id} is {state}"
    for name, value in (declared.get("attributes") or {}).items():
        if name not in ignored and not _same(attributes.get(name), value):
            yield f"{name} of {entity_id} is {attributes.get(name)}"
    if "items" in declared and [item.casefold() for item in items] != [item.casefold() for item in declared["items"]]:
        yield f"{entity_id} has {items}"


def _same(now: Any, declared: Any) -> bool:
    if isinstance(now, tuple):
        now = list(now)
    return bool(now == declared)


async def recognise(home: Home, case: Case) -> RecognizeResult | None:
    """Return Home Assistant's RecognizeResult for a sentence, from strict intents only, or None."""
    agent: Any = async_get_agent(home.hass)
    said = said_in(home, case.sentence, None, case.language)
    result: RecognizeResult | None = await agent.async_recognize_intent(said, strict_intents_only=True)
    return result


def said_in(home: Home, text: str, conversation_id: str | None, language: str) -> ConversationInput:
    """Return the ConversationInput for a text spoken to the first satellite."""
    return ConversationInput(
        text=text,
        context=Context(),
        conversation_id=conversation_id,
        device_id=home.device_id,
        satellite_id=home.satellite_id,
        language=language,
        agent_id=HOME_ASSISTANT_AGENT,
    )


async def _in_words(home: Home, case: Case) -> str:
    """Return a description of the intent and slots that Home Assistant strictly recognises in a sentence."""
    result = await recognise(home, case)
    if result is None:
        return "no intent"
    slots = ", ".join(f"{entity.name}={entity.text or entity.value!r}" for entity in result.entities_list)
    return f"{result.intent.name} {slots}".rstrip()
