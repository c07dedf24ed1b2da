"""Finds the sentences that Home Assistant handles correctly by its own templates, but an agent does not keep local."""

from dataclasses import dataclass

from homeassistant.components.conversation import HOME_ASSISTANT_AGENT

from .entities import Json
from .homes import Home, Seen
from .judge import Heard, Say, recognise, sayer
from .official import Drawn, draw, timer_names
from .sets import LOCAL, Case


@dataclass(frozen=True, slots=True)
class Kept:
    """The number of sentences that Home Assistant handles correctly, and those that the agent handles differently."""

    right: int
    lost: tuple[str, ...]


async def kept(home: Home, file: Json, say: Say, count: int) -> Kept:
    """Compare the outcomes of the same sentences with Home Assistant's own agent and with another agent."""
    own = sayer(home, HOME_ASSISTANT_AGENT)
    timers = tuple(timer_names(file)[:1])
    right, lost = 0, []
    for drawn in draw(home.plan, file, count):
        case = Case(drawn.sentence, LOCAL, drawn.intent, home.plan.language, initial_timers=timers)
        if not await _is_recognized(home, case, drawn):
            continue
        heard, *did = await _effect(home, case, own)
        if heard.needs_model or heard.is_error:
            continue
        right += 1
        answered, *done = await _effect(home, case, say)
        if answered.needs_model or done != did:
            lost.append(f"{drawn.intent} {dict(drawn.slots)} {drawn.sentence!r}: {answered.speech!r}")
    return Kept(right, tuple(lost))


async def _is_recognized(home: Home, case: Case, drawn: Drawn) -> bool:
    """Return whether Home Assistant recognises the sentence as the intent and slots that it was drawn from."""
    result = await recognise(home, case)
    if result is None or result.intent.name != drawn.intent:
        return False
    return all(
        (entity.text or str(entity.value)).strip().casefold() == value.casefold()
        for name, value in drawn.slots.items()
        if value and (entity := result.entities.get(name))
    )


async def _effect(home: Home, case: Case, say: Say) -> tuple[Heard, Seen, list[str], int]:
    """Return the answer and the effects of a sentence in the home as it was built."""
    await home.restore({}, case.initial_timers)
    heard = await say(case)
    await home.hass.async_block_till_done()
    return heard, home.seen(), home.announcements, len(home.timers.now())
