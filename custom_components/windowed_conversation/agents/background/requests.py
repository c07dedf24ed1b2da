"""Requests outside of turns: summaries, compactions, search words, and the provider's token count."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
import json
import re
from typing import Any

from ...providers import (
    AnswerSchema,
    BadRequest,
    DeadlineExceeded,
    Event,
    Incomplete,
    RateLimited,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCallDone,
    count_request_tokens,
    fix_surrogates,
)
from ...turn.attempts import AnswerStream, AttemptCallback, OpenAttempt, Purpose
from ...turn.errors import EmptyAnswer, InvalidData, NoSummary, TokenCountUnsupported
from ...turn.limits import TurnLimits
from ...turn.model import Question
from ...turn.speech.speech_filter import SpeechFilter
from ...window import (
    MESSAGE_FRAME,
    Exchange,
    Message,
    NativeData,
    SummaryInput,
    TextCounter,
    TokenCounter,
    is_summary,
)

# English prose has about three words for each four tokens.
_WORDS_PER_TOKEN = 0.75

# The model is given this share of the limit as its target: models count their own words badly, and a text over the
# limit is cut.
_TARGET_SHARE = 0.6

# The output limit as a multiple of the summary's limit: this integration shortens a longer summary, but if the provider
# cut it off, there would be none at all.
_OUTPUT_LIMIT_FACTOR = 2

_INSTRUCTION = (
    "[Summarize the conversation above for yourself: it is about to be removed, and your summary takes its place. "
    "Keep what may matter later: names, facts, preferences, decisions, what was promised and what is still open. "
    "Leave out small talk, and the states of devices, which you can look up. Write plain text in the language of the "
    "conversation, at most {words} words, and nothing else. Call no tools.{earlier}]"
)
_SEARCH_WORDS_INSTRUCTION = (
    "People told these facts to their voice assistant. For each fact, write 8 to 12 other words by which somebody may "
    "ask for it later, in {languages}: synonyms, broader and narrower terms, the situation in which it is needed. "
    "Answer with one line for each fact: its number, a colon, and the words, separated by commas. Write nothing else."
)
_REPLACED_FACT_INSTRUCTION = (
    " Under some facts stand earlier ones, with numbers in brackets. If a fact makes one of them untrue, end the line "
    "of the fact with the word replaces and that number. What may be true as well is not replaced."
)
_REPLACED_FACT_PATTERN = re.compile(r"[^\w]*\breplaces\W{0,3}(\d{1,9})\W*$", re.IGNORECASE)
# 12 words in several languages are seldom more than 60 tokens.
_SEARCH_WORDS_TOKENS_PER_FACT = 80
_SEARCH_WORDS_LINE_PATTERN = re.compile(r"^[^\w\n]*(\d{1,3})[^\S\n]*[.:)][^\S\n*]*\**[^\S\n]*(\w.*)$", re.MULTILINE)
_REPAIR_INSTRUCTION = "[This answer cannot be used: {problem}. Answer again with the whole corrected JSON object only.]"
# In characters. A schema of hundreds of fields could have as many problems.
_MAX_PROBLEM_CHARS = 1000
# In lists and objects around a value. Home Assistant cannot send data with more than 254 in a response.
_MAX_DATA_DEPTH = 100
# Models put JSON into a code fence, or words around it.
_OBJECT_PATTERN = re.compile(r"\{.*\}", re.DOTALL)
_EARLIER_INSTRUCTION = " Keep what still matters of your earlier summary: {text}"


@asynccontextmanager
async def limit_time(seconds: float, problem: str) -> AsyncGenerator[None]:
    """Limit the time for the block. Raises `DeadlineExceeded` with this problem."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as err:
        raise DeadlineExceeded(f"{problem} in {seconds:g} seconds") from err


def collect_compaction_messages(passage: SummaryInput, exchanges: Iterable[Exchange]) -> tuple[Message, ...]:
    """Return a passage's messages followed by those of the current summary, if `exchanges` still has one.

    This is the order in which they were sent.
    """
    sent = {exchange.number for exchange in passage.exchanges}
    earlier = (exchange for exchange in exchanges if is_summary(exchange) and exchange.number not in sent)
    return (*passage.messages, *(message for exchange in earlier for message in exchange.messages))


async def ask_for_compaction(
    question: Question,
    messages: tuple[Message, ...],
    counter: TokenCounter,
    turn_timeout: float,
    on_attempt: AttemptCallback,
) -> NativeData | None:
    """Return the compaction that replaces these messages in requests, with its token count.

    Return None if compaction is off, or if the provider or its server does not support it. `on_attempt` is called when
    the request has ended. Raises `ProviderError`.
    """
    model = question.model
    if not model.settings.compaction:
        return None
    async with limit_time(turn_timeout, "nothing was compacted"), model.request_limiter:
        request = question.build_request(messages, ())
        with OpenAttempt(model, request, Purpose.COMPACTION, on_attempt) as attempt:
            compacted = await model.provider.compact(request)
            if compacted is None:
                attempt.discard()
            else:
                attempt.record_usage(compacted.usage)
    if compacted is None:
        return None
    texts = sum(MESSAGE_FRAME + counter.count(text) for text in compacted.user_texts)
    output = compacted.usage.output - compacted.usage.reasoning
    return NativeData(model.provider.name, model.name, compacted.native_value, texts + output)


async def ask_for_summary(
    question: Question, passage: SummaryInput, tokens: int, limits: TurnLimits, on_attempt: AttemptCallback
) -> str:
    """Return a summary of a passage and of the previous summary. The target length is below `tokens`.

    The request is sent again once if reasoning used up the limit. `on_attempt` is called when each request has ended.
    Raises `ProviderError`, and `NoSummary` if the answer is empty or a tool call.
    """
    earlier = _EARLIER_INSTRUCTION.format(text=passage.earlier_summary) if passage.earlier_summary else ""
    instruction = _INSTRUCTION.format(words=int(tokens * _TARGET_SHARE * _WORDS_PER_TOKEN), earlier=earlier)
    messages = (*passage.messages, Message.user(instruction))
    try:
        async with asyncio.timeout(limits.turn_timeout):
            request = _build_request(question, messages, tokens)
            try:
                return await _fetch_text(question, request, Purpose.SUMMARY, limits, on_attempt)
            except Incomplete:
                again = _build_request(question, messages, tokens)
                if again.answer_limit == request.answer_limit:
                    raise
                return await _fetch_text(question, again, Purpose.SUMMARY, limits, on_attempt)
    except TimeoutError as err:
        raise DeadlineExceeded(f"no whole summary in {limits.turn_timeout:g} seconds") from err


def _build_request(question: Question, messages: tuple[Message, ...], tokens: int) -> Request:
    return question.build_request(messages, question.tools, max_answer_tokens=_OUTPUT_LIMIT_FACTOR * tokens)


@dataclass(frozen=True, slots=True)
class OpenFact:
    """A fact that a model has to look at, and the texts of earlier ones that it may replace, by their ids."""

    text: str
    earlier_texts: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FactNotes:
    """The search words that a model wrote for a fact, and the id of the earlier fact that it replaces, if any."""

    search_words: str = ""
    replaced_id: int | None = None


async def ask_for_search_words(
    question: Question,
    facts: Sequence[OpenFact],
    languages: Sequence[str],
    limits: TurnLimits,
    on_attempt: AttemptCallback,
) -> dict[int, FactNotes]:
    """Return notes on facts by their places in `facts`; facts without any are missing.

    A replaced fact is one of those that were sent with the fact. `on_attempt` is called when the request has ended.
    Raises `ProviderError`, and `NoSummary` if there is no text.
    """
    instruction = _SEARCH_WORDS_INSTRUCTION.format(languages=", ".join(languages))
    if any(fact.earlier_texts for fact in facts):
        instruction += _REPLACED_FACT_INSTRUCTION
    messages = (
        Message.system(instruction),
        Message.user("\n".join([_format_open_fact(number, fact) for number, fact in enumerate(facts, 1)])),
    )
    request = question.build_request(messages, (), max_answer_tokens=_SEARCH_WORDS_TOKENS_PER_FACT * len(facts))
    # What people told their assistant is nothing to search the web for.
    request = replace(request, settings=replace(request.settings, web_search=None))
    try:
        async with asyncio.timeout(limits.turn_timeout):
            text = await _fetch_text(question, request, Purpose.SEARCH_WORDS, limits, on_attempt)
    except TimeoutError as err:
        raise DeadlineExceeded(f"no search words in {limits.turn_timeout:g} seconds") from err
    found = {int(number): words for number, words in _SEARCH_WORDS_LINE_PATTERN.findall(text)}
    return {place: _parse_notes(found[place + 1], fact) for place, fact in enumerate(facts) if place + 1 in found}


def _format_open_fact(number: int, fact: OpenFact) -> str:
    return "\n".join([f"{number}: {fact.text}", *[f"   [{row}] {text}" for row, text in fact.earlier_texts.items()]])


def _parse_notes(line: str, fact: OpenFact) -> FactNotes:
    replaced = _REPLACED_FACT_PATTERN.search(line)
    row = int(replaced[1]) if replaced else None
    return FactNotes(_REPLACED_FACT_PATTERN.sub("", line), row if row in fact.earlier_texts else None)


@dataclass(frozen=True, slots=True)
class DataDemand:
    """The data that an answer must have. `find_problem` returns the problem of some data as text, or None."""

    schema: AnswerSchema
    find_problem: Callable[[Any], str | None]


async def ask_for_text(
    question: Question, messages: tuple[Message, ...], limits: TurnLimits, on_attempt: AttemptCallback
) -> str:
    """Return the answer of an AI task as text.

    `on_attempt` is called when each request has ended. Raises `ProviderError`, and `EmptyAnswer`.
    """
    async with _limit_task(limits):
        return await _fetch_task_text(question, messages, None, limits, on_attempt)


async def ask_for_data(
    question: Question,
    messages: tuple[Message, ...],
    demand: DataDemand,
    limits: TurnLimits,
    on_attempt: AttemptCallback,
) -> Any:
    """Return the data of an AI task as the model wrote it, without the nulls of optional fields.

    If a server refuses the schema, it is sent as text. If the data has a problem, the model is asked once to correct
    it. `on_attempt` is called when each request has ended. Raises `ProviderError`, `EmptyAnswer` and `InvalidData`.
    """
    schema = demand.schema
    async with _limit_task(limits):
        try:
            text = await _fetch_task_text(question, messages, schema, limits, on_attempt)
        except BadRequest as err:
            if type(err) is not BadRequest:
                raise
            schema = replace(schema, in_prompt=True)
            text = await _fetch_task_text(question, messages, schema, limits, on_attempt)
        try:
            return _read_data(text, demand)
        except InvalidData as err:
            instruction = _REPAIR_INSTRUCTION.format(problem=str(err)[:_MAX_PROBLEM_CHARS])
            messages = (*messages, Message.assistant(text), Message.user(instruction))
            # a server may have ignored the schema
            schema = replace(schema, in_prompt=schema.in_prompt or not err.is_json)
            return _read_data(await _fetch_task_text(question, messages, schema, limits, on_attempt), demand)


def _read_data(text: str, demand: DataDemand) -> Any:
    """Return the data in an answer. Raises `InvalidData`."""
    found = _OBJECT_PATTERN.search(text)
    try:
        data = json.loads(found.group() if found else text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as err:
        raise InvalidData("it is not valid JSON", is_json=False) from err
    data = _clean_data(data, demand.schema.schema, _MAX_DATA_DEPTH)
    if problem := demand.find_problem(data):
        raise InvalidData(problem)
    return data


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _clean_data(value: Any, schema: Mapping[str, Any], depth: int) -> Any:
    """Return the value without null members that its schema does not require. OpenAI writes them for all of these.

    Unpaired halves of surrogate pairs are replaced. Raises `InvalidData` if the value has more levels than `depth`.
    """
    if isinstance(value, str):
        return fix_surrogates(value)
    if not isinstance(value, list | dict):
        return value
    if not depth:
        raise InvalidData("it has too many levels")
    if isinstance(value, list):
        return [_clean_data(each, schema.get("items", {}), depth - 1) for each in value]
    properties, required = schema.get("properties", {}), schema.get("required", ())
    return {
        fix_surrogates(name): _clean_data(each, properties.get(name, {}), depth - 1)
        for name, each in value.items()
        if each is not None or name in required
    }


@asynccontextmanager
async def _limit_task(limits: TurnLimits) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(limits.turn_timeout):
            yield
    except TimeoutError as err:
        raise DeadlineExceeded(f"no whole answer in {limits.turn_timeout:g} seconds") from err


async def _fetch_task_text(
    question: Question,
    messages: tuple[Message, ...],
    schema: AnswerSchema | None,
    limits: TurnLimits,
    on_attempt: AttemptCallback,
) -> str:
    """Return the text of an answer. A pause is waited for once, and a limit that reasoning used up is raised once."""
    model, may_wait = question.model, True
    tokens = model.settings.max_answer_tokens
    while True:
        request = replace(question.build_request(messages, (), max_answer_tokens=tokens), answer_schema=schema)
        await asyncio.sleep(model.pause.remaining_seconds)
        try:
            return await _fetch_text(question, request, Purpose.TASK, limits, on_attempt)
        except RateLimited as err:
            if err.retry_after is None or err.retry_after > limits.turn_timeout or not may_wait:
                raise
            model.pause.begin(err.retry_after)
            may_wait = False
        except Incomplete:
            again = question.build_request(messages, (), max_answer_tokens=tokens)
            if again.answer_limit == request.answer_limit:
                raise
        except NoSummary as err:
            raise EmptyAnswer("the answer has no text") from err


async def _fetch_text(
    question: Question, request: Request, purpose: Purpose, limits: TurnLimits, on_attempt: AttemptCallback
) -> str:
    model = question.model
    async with model.request_limiter.acquire_permit():
        with OpenAttempt(model, request, purpose, on_attempt) as attempt:
            stream = AnswerStream(attempt, limits)
            async with aclosing(stream), aclosing(stream.iter_events(None)) as events:
                text = await _read_summary_text(events, SpeechFilter([tool.name for tool in request.tools]), attempt)
            if not text:
                raise NoSummary("a summary without a word")
            return text


async def _read_summary_text(events: AsyncIterator[Event], speech: SpeechFilter, attempt: OpenAttempt) -> str:
    text = ""
    async for event in events:
        attempt.on_event(event)
        match event:
            case TextDelta(piece):
                text += _join_speech(speech.feed(piece), attempt)
            case ReasoningDelta():
                attempt.on_delta(event)
            case ToolCallDone():
                raise NoSummary("a tool call instead of a summary")
    return (text + _join_speech(speech.flush(), attempt)).strip()


def _join_speech(deltas: Iterable[TextDelta | ReasoningDelta], attempt: OpenAttempt) -> str:
    speech = ""
    for delta in deltas:
        attempt.on_delta(delta)
        speech += delta.text if isinstance(delta, TextDelta) else ""
    return speech


async def fetch_token_count(
    question: Question, messages: tuple[Message, ...], counter: TextCounter, deadline: float
) -> dict[str, Any]:
    """Return the tokens of a request with these messages and the question's tools: the provider's count, and ours.

    `difference` is in percent of the provider's count, or None if that is 0. `deadline` is in seconds. Raises
    `ProviderError`, and `TokenCountUnsupported` if the provider has no endpoint for it.
    """
    request = question.build_request(messages, question.tools)
    async with limit_time(deadline, "no count"), question.model.request_limiter:
        counted = await question.model.provider.count_tokens(request)
    if counted is None:
        raise TokenCountUnsupported("the provider does not count tokens")
    estimated = count_request_tokens(request, counter)
    difference = round(100 * (estimated - counted) / counted, 1) if counted else None
    return {"counted": counted, "estimated": estimated, "difference": difference}
