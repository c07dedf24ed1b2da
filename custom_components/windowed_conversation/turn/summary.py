"""Asking the model for a summary of evicted exchanges.

The request repeats the one that the provider knows, up to the end of the passage, and appends the instruction, so that
the provider's cache serves it.
"""

import asyncio

from ..providers import DeadlineExceeded, Request, TextDelta, ToolCallDone, Usage
from ..window import Message, Passage
from .deadlines import Limits, with_idle_timeout
from .errors import NoSummary
from .ports import Billed, OnBilled, Question
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
    question: Question, passage: Passage, tokens: int, limits: Limits, on_billed: OnBilled
) -> str:
    """Return a summary of a passage and of the previous summary. The model is asked for less than this many tokens.

    Raises `ProviderError`, and `NoSummary` if the answer is empty or a tool call.
    """
    earlier = _EARLIER.format(text=passage.earlier) if passage.earlier else ""
    instruction = _INSTRUCTION.format(words=int(tokens * _AIM * _WORDS_PER_TOKEN), earlier=earlier)
    messages = (*passage.messages(question.excluded_tags), Message.user(instruction))
    try:
        async with asyncio.timeout(limits.turn):
            request = question.request(messages, question.tools, max_answer_tokens=_MOST * tokens)
            return await _answer(question, request, limits, on_billed)
    except TimeoutError as err:
        raise DeadlineExceeded(f"no whole summary in {limits.turn:g} seconds") from err


async def _answer(question: Question, request: Request, limits: Limits, on_billed: OnBilled) -> str:
    speech, text = SpeechFilter(tool.name for tool in request.tools), ""
    async with (
        question.model.limit.permit(),
        with_idle_timeout(question.model.provider.stream(request), limits.idle_timeout) as events,
    ):
        async for event in events:
            match event:
                case TextDelta():
                    text += "".join(delta.text for delta in speech.feed(event) if isinstance(delta, TextDelta))
                case ToolCallDone():
                    raise NoSummary("a tool call instead of a summary")
                case Usage():
                    on_billed(Billed(question.model, request, event))
    text += "".join(delta.text for delta in speech.flush() if isinstance(delta, TextDelta))
    if not text.strip():
        raise NoSummary("a summary without a word")
    return text.strip()
