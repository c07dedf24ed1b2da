"""What is kept of a turn: what was said and answered, who, where and when; no tool results and no context."""

import time

from ..memory import PastTurn
from ..turn.first_person import speaks_of_oneself
from ..turn.routing import Route
from .ended_turn import EndedTurn

# In characters: memory keeps less than that of each text.
_LONGEST = 16_000


def past_turn(agent_id: str, turn: EndedTurn) -> PastTurn | None:
    """Return what is kept of a turn, or None unless a model has answered it.

    Nothing is kept of what an unknown speaker says about themselves: the next one who asks may be somebody else.
    """
    outcome, speaker = turn.outcome, turn.speaker
    if outcome.decision.route is Route.LOCAL or outcome.error is not None or outcome.interrupted:
        return None
    if speaker.person is None and speaks_of_oneself(speaker.said, speaker.language):
        return None
    return PastTurn(
        conversation=turn.window.conversation_id,
        at=time.time(),
        said=speaker.said[:_LONGEST],
        answer=outcome.spoken[:_LONGEST],
        agent=agent_id,
        person=speaker.person,
        device=speaker.device,
        tools=_tools(turn),
    )


def _tools(turn: EndedTurn) -> tuple[str, ...]:
    """Return the names of the tools that the turn has called."""
    if not turn.outcome.tool_calls:
        return ()
    newest = turn.window.exchanges()[-1:]
    names = (call.name for exchange in newest for message in exchange.messages for call in message.tool_calls)
    return tuple(dict.fromkeys(names))
