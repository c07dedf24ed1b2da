"""What a summary leaves in memory: the episode of the turns that it stands for."""

from collections.abc import Iterable

from ..bridge.persons import async_person
from ..memory import Summary
from ..turn.context import said_in
from ..turn.first_person import speaks_of_oneself
from ..turn.routing import Route
from ..turn.scope import Scope, WindowKey
from ..window import INCOMPLETE, QUESTION, Exchange, Passage
from .agent import Agent
from .memory import async_memory

# Memory keeps no turns with these tags.
_NOT_KEPT = frozenset({f"route:{Route.LOCAL}", INCOMPLETE})


async def async_keep_episode(agent: Agent, key: str, passage: Passage, text: str, language: str) -> None:
    """Give the summary of a passage to memory, which stores it if it has stored the turns that it stands for.

    So nothing that was forgotten, or said while memory was off, comes back in other words. The home's episodes contain
    nothing that an unknown speaker said about themselves, and nothing of a window that everybody shares: it is not
    known who said what there.
    """
    memory = async_memory(agent.hass)
    if not agent.config.memory or memory is None or agent.config.scope is Scope.AGENT:
        return
    window = WindowKey.parse(key)
    person = await async_person(agent.hass, window.user)
    shown = [each for each in passage.shown(agent.config.excluded_tags) if each.messages[0].content != QUESTION]
    if not shown or (person is None and _tells_of_speakers(shown, {language, agent.hass.config.language})):
        return
    memory.writer.put(
        Summary(
            conversation=window.conversation,
            since=min(each.messages[0].created or 0.0 for each in shown),
            said=tuple(_said(each) for each in shown if _NOT_KEPT.isdisjoint(each.tags)),
            text=text,
            earlier=passage.earlier,
            agent=agent.id,
            person=person and person.id,
        )
    )


def _tells_of_speakers(exchanges: Iterable[Exchange], languages: Iterable[str]) -> bool:
    """Return whether somebody spoke of themselves. The turns that memory keeps were looked at before."""
    said = [_said(each) for each in exchanges if not _NOT_KEPT.isdisjoint(each.tags)]
    return any(speaks_of_oneself(each, language) for each in said for language in languages)


def _said(exchange: Exchange) -> str:
    return said_in(exchange.messages[0].content)
