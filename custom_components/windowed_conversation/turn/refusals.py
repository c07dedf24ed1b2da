"""Requests that a model refuses, most often for their length: asking again with less of the window."""

from dataclasses import replace
from itertools import count

from ..providers import BadRequest, ContextOverflow, ProviderError
from ..window import Window
from .budget import less_history, limited, room
from .deadlines import Limits
from .model_turn import ask_model
from .ports import Model, Question, Reply
from .progress import Progress

# How much of the history each further try keeps after a request was too long, unless something shows the model's size.
# The last one sends the newest exchange alone.
_SHARES = (2 / 3, 1 / 2, 0.0)

# The one try after a refusal without a known reason has to show whether it was the length.
_ONLY_SHARE = (0.0,)


async def ask_for_less(window: Window, question: Question, limits: Limits, reply: Reply, progress: Progress) -> None:
    """Ask a model, and again with less of the window while it refuses a request for its length.

    Each request is smaller than the one before. If the server gave no known reason and a smaller request does not help,
    raises the error of the first refusal.
    """
    progress.refused = None
    unexplained: ProviderError | None = None
    for tries in count():
        try:
            await ask_model(window, question, limits, reply, progress)
        except ProviderError as err:
            if progress.first_token is not None:
                raise
            if unexplained is not None and err.is_unexplained:
                question.model.size.doubt()
                raise unexplained from err
            shares = _shares(err, question.model, progress)
            if len(shares) <= tries:
                raise
            smaller = _smaller(window, question, progress, shares[tries], is_last=tries == len(_SHARES) - 1)
            if smaller is None:
                raise
            unexplained = err if err.is_unexplained else None
            question = smaller
        else:
            return


def _shares(error: ProviderError, model: Model, progress: Progress) -> tuple[float, ...]:
    """Return the share of the history that each further try keeps; empty if the length was not the reason.

    Without a known reason the length was not it if the model has just served as much. Raises an explained `BadRequest`
    then.
    """
    if isinstance(error, ContextOverflow):
        if error.context_tokens is not None:
            model.size.on_named(error.context_tokens)
        return _SHARES
    if not error.is_unexplained:
        return ()
    if model.size.is_larger(progress.request_tokens):
        return _ONLY_SHARE
    if isinstance(error, BadRequest):
        raise BadRequest(str(error)) from error
    return ()


def _smaller(window: Window, question: Question, progress: Progress, share: float, *, is_last: bool) -> Question | None:
    """Return the question with less of the window after a refusal, or None if nothing can be removed."""
    model, refused, stats = question.model, progress.request_tokens, window.stats()
    newest = stats.current_tokens - sum(exchange.tokens for exchange in window.exchanges())
    others = stats.prefix_tokens + model.budget.schema_tokens + newest
    if window.has_tool_calls and newest > refused // 2:
        return _shorter_results(window, question, progress)
    if refused <= others:
        return None
    progress.refused = refused if progress.refused is None else min(refused, progress.refused)
    context = None if is_last else model.size.target(refused)
    kept = less_history(refused - others, others, context, share)
    return replace(question, model=replace(model, budget=replace(model.budget, sent_tokens=newest + kept)))


def _shorter_results(window: Window, question: Question, progress: Progress) -> Question | None:
    """Return the question with shorter tool results of this turn, or None if they cannot be shortened."""
    model, refused, stats = question.model, progress.request_tokens, window.stats()
    context = model.size.target(refused) or int(refused * _SHARES[0])
    budget = limited(model.budget, context)
    window.limit(room(budget, stats.prefix_tokens))
    if window.stats().current_tokens >= stats.current_tokens:
        return None
    progress.refused = refused if progress.refused is None else min(refused, progress.refused)
    return replace(question, model=replace(model, budget=budget))
