"""Compaction: a provider shortens evicted exchanges in its own way, which only the same model can read."""

import asyncio
from collections.abc import Iterable

from ..providers import Compacts, DeadlineExceeded
from ..window import MESSAGE_OVERHEAD, Exchange, Message, Native, SummaryInput, TokenCounter, is_summary
from .attempts import OnAttempt, OpenAttempt, Purpose
from .deadlines import TurnLimits
from .ports import Question


def compaction_messages(
    passage: SummaryInput, exchanges: Iterable[Exchange], excluded_tags: frozenset[str]
) -> tuple[Message, ...]:
    """Return a passage's messages followed by those of the current summary, if `exchanges` still has one.

    That is the order in which they were sent.
    """
    sent = {exchange.number for exchange in passage.exchanges}
    earlier = (exchange for exchange in exchanges if is_summary(exchange) and exchange.number not in sent)
    return (*passage.messages(excluded_tags), *(message for exchange in earlier for message in exchange.messages))


async def compact(
    question: Question,
    messages: tuple[Message, ...],
    counter: TokenCounter,
    limits: TurnLimits,
    on_attempt: OnAttempt,
) -> Native | None:
    """Return the compaction that the model reads instead of these messages, with its tokens.

    None if compaction is off, or the provider or its server has none. `on_attempt` gets the request when it has ended.
    Raises `ProviderError`.
    """
    model = question.model
    if not (model.settings.compaction and isinstance(model.provider, Compacts)):
        return None
    try:
        async with asyncio.timeout(limits.turn), model.limit.permit():
            request = question.request(messages, ())
            with OpenAttempt(model, request, Purpose.COMPACTION, on_attempt) as attempt:
                compacted = await model.provider.compact(request)
                if compacted is None:
                    attempt.discard()
                else:
                    attempt.bill(compacted.usage)
    except TimeoutError as err:
        raise DeadlineExceeded(f"nothing was compacted in {limits.turn:g} seconds") from err
    if compacted is None:
        return None
    said = sum(MESSAGE_OVERHEAD + counter.count(text) for text in compacted.texts)
    written = compacted.usage.output - compacted.usage.reasoning
    return Native(model.provider.name, model.name, compacted.value, said + written)
