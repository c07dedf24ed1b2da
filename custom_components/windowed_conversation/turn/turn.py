"""One input from start to end: route it, answer it, and leave the window whole.

A failed turn leaves the window as it was before or, if a tool may have run, with an exchange that says so. The caller
waits for earlier turns of the conversation.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
import time
from typing import Any

from ..providers import DeadlineExceeded, ProviderError
from ..window import Message, Window
from .asking import ask_in_order
from .context import as_typed
from .deadlines import Limits
from .errors import LocalAnswerFailed, NothingSaid, TurnError
from .ports import LocalAnswers, ModelAccess, OnBilled, Reply
from .progress import Outcome, Progress
from .routing import Reason, Route, Routing, after_failure, after_local_miss, first_choice, situation


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways to answer an input, and the places where the answer goes.

    `after_turn` takes work that the answer need not wait for. `on_billed` gets each request's cost at once. `on_end`
    gets the outcome, also of an interrupted turn. `background` runs what goes on after the turn, if anything may.
    """

    local: LocalAnswers
    model: ModelAccess
    reply: Reply
    after_turn: Callable[[Callable[[], None]], None] = lambda work: work()
    on_billed: OnBilled = lambda billed: None
    on_end: Callable[[Outcome], None] = lambda outcome: None
    background: Callable[[Coroutine[Any, Any, None]], object] | None = None


async def run_turn(window: Window, text: str, routing: Routing, ways: Ways, limits: Limits) -> Outcome:
    """Answer one input. A known error is in the outcome's `error`."""
    progress = Progress(first_choice(routing, text), ways.on_billed)
    error: ProviderError | TurnError | None = None
    try:
        await _answer(window, text, ways, limits, progress)
    except (ProviderError, TurnError) as err:
        error = err
    except BaseException as fault:
        ways.on_end(progress.outcome(fault=fault))
        raise
    outcome = progress.outcome(error)
    ways.on_end(outcome)
    return outcome


async def _answer(window: Window, text: str, ways: Ways, limits: Limits, progress: Progress) -> None:
    """Answer by the first route that can. Raises `ProviderError` and `TurnError`."""
    if not text:
        raise NothingSaid("the input is blank")
    if progress.decision.route is Route.LOCAL:
        miss = await _answer_locally(window, text, ways)
        if miss is None:
            return
        if progress.decision.reason is Reason.LOCAL_ONLY:
            raise LocalAnswerFailed("nothing local understood it")
        progress.decision = after_local_miss(miss)
    if progress.decision.route is Route.LLM:
        await _answer_by_model(window, text, ways, limits, progress)


async def _answer_locally(window: Window, text: str, ways: Ways) -> Reason | None:
    """Answer without a model, or return the reason to ask one."""
    now = time.time()
    answer = await ways.local.answer(situation(window, now))
    if isinstance(answer, Reason):
        return answer
    ways.after_turn(partial(_record, window, Message.user(as_typed(text), created=now), answer))
    return None


def _record(window: Window, question: Message, answer: Callable[[], tuple[Message, ...]]) -> None:
    if messages := answer():
        window.record((question, *messages), tags={f"route:{Route.LOCAL}"})


async def _answer_by_model(window: Window, text: str, ways: Ways, limits: Limits, progress: Progress) -> None:
    deadline = asyncio.timeout(limits.turn)
    try:
        async with deadline:
            question = await ways.model.question()
            window.open(question.prefix + as_typed(text))
            window.set_system(question.system)
            window.tag(f"route:{Route.LLM}")
            await ask_in_order(window, question, limits, ways.reply, progress)
            if progress.answered_by != question.model.agent:
                progress.decision = after_failure(progress.failures[0].error)
                window.tag(f"route:{Route.FALLBACK}")
            window.close()
    except TimeoutError as err:
        raise DeadlineExceeded(f"no whole answer in {limits.turn:g} seconds") from err
    finally:
        if window.is_open:
            _break_off(window, progress)
        await _leave(progress, ways, (deadline.when() or 0.0) - asyncio.get_running_loop().time())


async def _leave(progress: Progress, ways: Ways, left: float) -> None:
    """Close the requests that nobody heard. A server at home goes on loading its model if another agent answered.

    `left` is how long it may, in seconds.
    """
    for stream in filter(None, (*progress.waiting, progress.resumed)):
        progress.abandon(stream)
        model = stream.model
        if ways.background and progress.answered_by and model.is_at_home and not model.limit.is_loading:
            ways.background(stream.load(left))
        else:
            await stream.aclose()


def _break_off(window: Window, progress: Progress) -> None:
    """End an exchange whose answer is incomplete. It stays recorded only if tools may have acted."""
    if progress.tool_calls:
        window.close_incomplete(progress.said, progress.called)
    else:
        window.abort()
