"""Requests outside of turns: summaries, compactions, search words, and the provider's token count."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
import re
from typing import Any

from ...providers import (
    AnswerDone,
    DeadlineExceeded,
    Event,
    Incomplete,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCallDone,
    count_request_tokens,
)
from ...turn.attempts import AnswerStream, AttemptCallback, OpenAttempt, Purpose
from ...turn.errors import NoSummary, TokenCountUnsupported
from ...turn.model import Question
from ...turn.speech.speech_filter import SpeechFilter
from ...turn.tool_names import unwrap_call
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
    question: Question, passage: SummaryInput, tokens: int, turn_timeout: float, on_attempt: AttemptCallback
) -> str:
    """Return a summary of a passage and of the previous summary. The target length is below `tokens`.

    The request is sent again once if reasoning used up the limit. `on_attempt` is called when each request has ended.
    Raises `ProviderError`, and `NoSummary` if the answer is empty or a tool call.
    """
    earlier = _EARLIER_INSTRUCTION.format(text=passage.earlier_summary) if passage.earlier_summary else ""
    instruction = _INSTRUCTION.format(words=int(tokens * _TARGET_SHARE * _WORDS_PER_TOKEN), earlier=earlier)
    messages = (*passage.messages, Message.user(instruction))
    build = partial(question.build_request, messages, question.tools, max_answer_tokens=_OUTPUT_LIMIT_FACTOR * tokens)
    async with limit_time(turn_timeout, "no whole summary"):
        request = build()
        try:
            return (await fetch_answer(question, request, Purpose.SUMMARY, turn_timeout, on_attempt)).content
        except Incomplete:
            again = build()
            if again.answer_limit == request.answer_limit:
                raise
            return (await fetch_answer(question, again, Purpose.SUMMARY, turn_timeout, on_attempt)).content


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
    turn_timeout: float,
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
    async with limit_time(turn_timeout, "no search words"):
        answer = await fetch_answer(question, request, Purpose.SEARCH_WORDS, turn_timeout, on_attempt)
    found = {int(number): words for number, words in _SEARCH_WORDS_LINE_PATTERN.findall(answer.content)}
    return {place: _parse_notes(found[place + 1], fact) for place, fact in enumerate(facts) if place + 1 in found}


def _format_open_fact(number: int, fact: OpenFact) -> str:
    return "\n".join([f"{number}: {fact.text}", *[f"   [{row}] {text}" for row, text in fact.earlier_texts.items()]])


def _parse_notes(line: str, fact: OpenFact) -> FactNotes:
    replaced = _REPLACED_FACT_PATTERN.search(line)
    row = int(replaced[1]) if replaced else None
    return FactNotes(_REPLACED_FACT_PATTERN.sub("", line), row if row in fact.earlier_texts else None)


async def fetch_answer(
    question: Question, request: Request, purpose: Purpose, turn_timeout: float, on_attempt: AttemptCallback
) -> Message:
    """Return the answer to a request, which has a text or, in a task, calls. Raises `ProviderError` and `NoSummary`."""
    model = question.model
    async with model.request_limiter:
        with OpenAttempt(model, request, purpose, on_attempt) as attempt:
            stream = AnswerStream(attempt, turn_timeout)
            async with aclosing(stream), aclosing(stream.iter_events(None)) as events:
                answer = await _read_answer(events, SpeechFilter([tool.name for tool in request.tools]), attempt)
            if not answer.content and not answer.tool_calls:
                raise NoSummary("a summary without a word")
            return answer


async def _read_answer(events: AsyncIterator[Event], speech: SpeechFilter, attempt: OpenAttempt) -> Message:
    request, text, native = attempt.request, "", None
    may_call = attempt.purpose is Purpose.TASK and request.may_call and bool(request.tools)
    async for event in events:
        attempt.on_event(event)
        match event:
            case TextDelta(piece):
                text += _join_speech(speech.feed(piece), attempt)
            case ReasoningDelta():
                attempt.on_delta(event)
            case ToolCallDone() if may_call:
                attempt.on_delta(event)
                attempt.tool_calls.append(unwrap_call(event.call, request.deferred_tools))
            case ToolCallDone():
                raise NoSummary("a tool call instead of a summary")
            case AnswerDone():
                native = event.native_value if event.turn_value is None else event.turn_value
    text = (text + _join_speech(speech.flush(), attempt)).strip()
    calls, provider = tuple(attempt.tool_calls), attempt.model.provider.name
    residue = None if native is None or not calls else NativeData(provider, request.model, native)
    return replace(Message.assistant(text, tool_calls=calls), native=residue)


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
