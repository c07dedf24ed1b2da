"""Asking the model for a summary of evicted exchanges.

The request repeats the one that the provider knows, up to the end of the passage, and appends the instruction, so that
the provider's cache serves it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing

from ..providers import DeadlineExceeded, Event, Incomplete, ReasoningDelta, Request, TextDelta, ToolCallDone
from ..window import Message, SummaryInput
from .answer_stream import AnswerStream
from .attempts import OnAttempt, OpenAttempt, Purpose
from .deadlines import TurnLimits
from .errors import NoSummary
from .ports import Question
from .speech_filter import SpeechFilter

# English prose has three words to four tokens.
_WORDS_PER_TOKEN = 0.75
# Models are poor at counting their own words, and a text over the limit is cut.
_AIM = 0.6
# A longer summary is cut here; if the provider cut it, there would be none at all.
_MOST = 2

_INSTRUCTION = (
    "[Summarize the conversation above for yourself: it is about to be removed, and your summary takes its place. "
    "Keep what may matter later: names, facts, preferences, decisions, what was promised and what is still open. "
    "Leave out small talk, and the states of devices, which you can look up. Write plain text in the language of the "
    "conversation, at most {words} words, and nothing else. Call no tools.{earlier}]"
)
_EARLIER = " Keep what still matters of your earlier summary: {text}"


async def ask_for_summary(
    question: Question, passage: SummaryInput, tokens: int, limits: TurnLimits, on_attempt: OnAttempt
) -> str:
    """Return a summary of a passage and of the previous summary. The model is asked for less than this many tokens.

    It is asked once more if its reasoning used up the limit. `on_attempt` gets each request when it has ended. Raises
    `ProviderError`, and `NoSummary` if the answer is empty or a tool call.
    """
    earlier = _EARLIER.format(text=passage.earlier) if passage.earlier else ""
    instruction = _INSTRUCTION.format(words=int(tokens * _AIM * _WORDS_PER_TOKEN), earlier=earlier)
    messages = (*passage.messages(question.excluded_tags), Message.user(instruction))
    try:
        async with asyncio.timeout(limits.turn):
            request = _request(question, messages, tokens)
            try:
                return await _answer(question, request, limits, on_attempt)
            except Incomplete:
                again = _request(question, messages, tokens)
                if again.answer_limit == request.answer_limit:
                    raise
                return await _answer(question, again, limits, on_attempt)
    except TimeoutError as err:
        raise DeadlineExceeded(f"no whole summary in {limits.turn:g} seconds") from err


def _request(question: Question, messages: tuple[Message, ...], tokens: int) -> Request:
    return question.request(messages, question.tools, max_answer_tokens=_MOST * tokens)


async def _answer(question: Question, request: Request, limits: TurnLimits, on_attempt: OnAttempt) -> str:
    model = question.model
    async with model.limit.permit():
        with OpenAttempt(model, request, Purpose.SUMMARY, on_attempt) as attempt:
            async with AnswerStream(model, request, limits) as stream, aclosing(stream.events(None)) as events:
                text = await _text(events, SpeechFilter([tool.name for tool in request.tools]), attempt)
            if not text:
                raise NoSummary("a summary without a word")
            return text


async def _text(events: AsyncIterator[Event], speech: SpeechFilter, attempt: OpenAttempt) -> str:
    text = ""
    async for event in events:
        attempt.on_event(event)
        match event:
            case TextDelta(piece):
                text += _speech_in(speech.feed(piece), attempt)
            case ReasoningDelta():
                attempt.on_delta(event)
            case ToolCallDone():
                raise NoSummary("a tool call instead of a summary")
    return (text + _speech_in(speech.flush(), attempt)).strip()


def _speech_in(deltas: Iterable[TextDelta | ReasoningDelta], attempt: OpenAttempt) -> str:
    speech = ""
    for delta in deltas:
        attempt.on_delta(delta)
        speech += delta.text if isinstance(delta, TextDelta) else ""
    return speech
