"""One input from start to end: route it, answer it, and leave the window whole.

A failed turn leaves the window as it was before or, if a tool may have run, with an exchange that says so. The caller
waits for earlier turns of the conversation.
"""

import asyncio
from functools import partial
import time

from ..providers import DeadlineExceeded, ProviderError
from ..window import Message
from .asking import try_models
from .context import as_typed
from .errors import LocalAnswerFailed, NothingSaid, TurnError
from .progress import LocalMessages, Turn
from .routing import Decision, Reason, Route, after_failure, situation


async def run_turn(turn: Turn) -> None:
    """Answer one input. A known error is left in the turn's `error`, anything else is in its `fault` and raised."""
    try:
        await _answer(turn)
    except (ProviderError, TurnError) as err:
        turn.error = err
    except BaseException as fault:
        turn.fault = fault
        raise
    finally:
        turn.duration = time.monotonic() - turn.started


async def _answer(turn: Turn) -> None:
    """Answer by the first route that can. Raises `ProviderError` and `TurnError`."""
    if not turn.text:
        raise NothingSaid("the input is blank")
    if turn.decision.route is Route.LOCAL:
        now = time.time()
        answer = await turn.handlers.answer_locally(situation(turn.window, now))
        if not isinstance(answer, Reason):
            turn.handlers.defer(partial(_record, turn, now, answer))
            return
        if turn.decision.reason is Reason.LOCAL_ONLY:
            raise LocalAnswerFailed("nothing local understood it")
        turn.decision = Decision(Route.LLM, answer)
    await _answer_by_model(turn)


def _record(turn: Turn, created: float, answer: LocalMessages) -> None:
    if messages := answer():
        question = Message.user(as_typed(turn.text), created=created)
        turn.window.record((question, *messages), tags={f"route:{Route.LOCAL}"})


async def _answer_by_model(turn: Turn) -> None:
    window, deadline = turn.window, asyncio.timeout(turn.limits.turn)
    try:
        async with deadline:
            question = await turn.handlers.build_question()
            window.open(question.prefix + as_typed(turn.text))
            window.set_system(question.system)
            window.tag(f"route:{Route.LLM}")
            await try_models(turn, question)
            if turn.answered_by != question.model.agent:
                turn.decision = after_failure(turn.failures[0].error)
                window.tag(f"route:{Route.FALLBACK}")
            window.close()
    except TimeoutError as err:
        raise DeadlineExceeded(f"no whole answer in {turn.limits.turn:g} seconds") from err
    finally:
        if window.is_open:
            _break_off(turn)
        await _close_waiting(turn, (deadline.when() or 0.0) - asyncio.get_running_loop().time())


def _break_off(turn: Turn) -> None:
    """End an exchange whose answer is incomplete. It stays recorded only if tools may have acted."""
    if turn.tool_calls:
        turn.window.close_incomplete(turn.open_text, turn.open_calls)
    else:
        turn.window.abort()


async def _close_waiting(turn: Turn, seconds: float) -> None:
    """Close the requests that nobody heard. A server at home goes on loading its model if another agent answered.

    `seconds` is how long it may do so.
    """
    background = turn.handlers.background
    for stream in filter(None, (*turn.waiting, turn.resumed)):
        turn.abandon(stream)
        model = stream.model
        if background and turn.answered_by and model.is_at_home and not model.limit.is_loading:
            background(stream.load(seconds))
        else:
            await stream.aclose()
