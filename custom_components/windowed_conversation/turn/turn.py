"""One input from start to end: route it, answer it locally or ask a model, and leave the window complete."""

import asyncio
from functools import partial
import sys
import time

from ..providers import AnswerRefused, DeadlineExceeded, ProviderError
from ..window import Message
from .asking import ask_question, close_late_streams
from .context import mark_typed_prefixes
from .errors import EmptyInput, LocalAnswerFailed, TurnError
from .routing import Route, RouteDecision, RouteReason, build_situation, decide_fallback_route
from .state import LocalMessagesBuilder, ModelRun, Turn


async def run_turn(turn: Turn) -> None:
    """Answer one input.

    A known error is stored in `turn.error`; any other exception is stored in `turn.interruption` and raised again.
    """
    try:
        await _answer_turn(turn)
    except (ProviderError, TurnError) as err:
        turn.error = err
    except BaseException as fault:
        turn.interruption = fault
        raise
    finally:
        turn.duration_seconds = time.monotonic() - turn.started_at


async def _answer_turn(turn: Turn) -> None:
    if not turn.text:
        raise EmptyInput("the input is blank")
    if turn.decision.reason is RouteReason.ECHO:
        return
    if turn.decision.route is Route.LOCAL:
        now = time.time()
        answer = await turn.host.answer_locally(build_situation(turn.window, now))
        if not isinstance(answer, RouteReason):
            turn.host.defer(partial(_record_local_exchange, turn, now, answer))
            return
        if turn.decision.reason is RouteReason.LOCAL_ONLY:
            raise LocalAnswerFailed("nothing local understood it")
        turn.decision = RouteDecision(Route.MODEL, answer)
    await _answer_with_model(turn)


def _record_local_exchange(turn: Turn, created: float, answer: LocalMessagesBuilder) -> None:
    if messages := answer():
        question = Message.user(mark_typed_prefixes(turn.text), created=created)
        turn.host.get_window().add_exchange((question, *messages), tags={f"route:{Route.LOCAL}"})


async def _answer_with_model(turn: Turn) -> None:
    waits_since = time.monotonic()
    window = turn.window = await turn.host.enter_window()
    turn.started_at += time.monotonic() - waits_since
    deadline = turn.deadline = asyncio.timeout(turn.turn_timeout)
    try:
        async with deadline:
            question = await turn.host.build_question()
            run = turn.run = ModelRun(turn, question, question.model.agent_id)
            window.open(question.stamp_prefix + mark_typed_prefixes(turn.text))
            window.set_system_prompt(question.system_prompt)
            window.add_tags(f"route:{Route.MODEL}")
            await ask_question(run)
            if turn.answered_by != question.model.agent_id:
                turn.decision = decide_fallback_route(turn.failures[0].error)
                window.add_tags(f"route:{Route.FALLBACK}")
            window.close()
    except TimeoutError as err:
        raise DeadlineExceeded(f"no whole answer in {turn.turn_timeout:g} seconds") from err
    finally:
        turn.deadline = None
        if window.is_open:
            _end_incomplete_exchange(turn)
        if turn.run is not None and turn.run.late_streams:
            await close_late_streams(turn.run, (deadline.when() or 0.0) - asyncio.get_running_loop().time())


def _end_incomplete_exchange(turn: Turn) -> None:
    """End an exchange whose answer is incomplete.

    It stays in the window only if tools may have run, if the user has received text, or if the turn was interrupted
    after the user was promised an answer. Refused text does not stay: a provider may refuse each request that has it.
    """
    error, run = sys.exception(), turn.run
    is_broken_promise = turn.is_in_background and isinstance(error, asyncio.CancelledError)
    has_heard_text = not isinstance(error, AnswerRefused) and bool(turn.sent_text.strip())
    if run is not None and (turn.tool_calls or has_heard_text or is_broken_promise):
        turn.window.close_incomplete(run.unstored_text, run.unstored_calls)
    else:
        turn.window.abort()
