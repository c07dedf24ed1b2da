"""What is kept of a turn: what was said and answered, who, where and when; no tool results and no context."""

import math
import time

from ..memory import PastTurn
from ..turn.context import said_in
from ..turn.first_person import speaks_of_oneself
from ..turn.routing import Route
from ..turn.scope import Scope
from ..window import QUESTION, Message
from .agent import Agent
from .ended_turn import EndedTurn

# In characters: memory keeps less than that of each text.
_LONGEST = 16_000


def past_turn(agent: Agent, turn: EndedTurn) -> PastTurn | None:
    """Return what memory stores of a turn, or None unless a model has answered it.

    What an unknown speaker says about themselves is not stored, nor an answer that may repeat it: the next unknown
    speaker may be somebody else.
    """
    outcome, speaker = turn.outcome, turn.speaker
    if outcome.decision.route is Route.LOCAL or outcome.error is not None or outcome.interrupted:
        return None
    if speaker.person is None and speaks_of_oneself(speaker.said, speaker.language):
        return None
    return PastTurn(
        conversation=turn.window.conversation_id,
        at=_newest(turn)[-1].created or time.time(),
        said=speaker.said[:_LONGEST],
        answer=outcome.spoken[:_LONGEST] if speaker.person is not None or _is_for_all(agent, turn) else "",
        agent=agent.id,
        person=speaker.person,
        device=speaker.device,
        tools=_tools(turn),
    )


def began_at(turn: EndedTurn) -> float:
    """Return when the input of a turn came that a model has answered, in seconds since the epoch."""
    return _newest(turn)[0].created or -math.inf


def _is_for_all(agent: Agent, turn: EndedTurn) -> bool:
    """Return whether an answer cannot repeat anything personal, because nobody spoke of themselves in the window.

    This is unknown, and so False, with a summary in the window, and in a window that everybody shares.
    """
    said = [said_in(each.messages[0].content) for each in turn.window.exchanges()]
    language = turn.speaker.language
    is_shared = agent.config.scope is Scope.AGENT
    return not is_shared and not any(each == QUESTION or speaks_of_oneself(each, language) for each in said)


def _newest(turn: EndedTurn) -> tuple[Message, ...]:
    return turn.window.exchanges()[-1].messages


def _tools(turn: EndedTurn) -> tuple[str, ...]:
    """Return the names of the tools that the turn has called."""
    if not turn.outcome.tool_calls:
        return ()
    names = (call.name for message in _newest(turn) for call in message.tool_calls)
    return tuple(dict.fromkeys(names))
