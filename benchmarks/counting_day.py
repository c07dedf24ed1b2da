"""A simulated day of four people at two satellites and two phones, and the usage that a server bills for its requests.

The beginning of a request differs by person and place: facts about the person, and the area of the satellite. The
server bills the tokens that o200k_base counts, four tokens per message, and a share of the tokens of the tool schemas.
The newest message of each request has a live context, which later requests no longer contain.
"""

from collections.abc import Callable, Iterator
import json
from pathlib import Path
from random import Random

from custom_components.windowed_conversation.window import (
    CalibratedCounter,
    Calibrator,
    Message,
    ToolCall,
    estimate_request,
)
from custom_components.windowed_conversation.window.tokens import (
    format_counted_text,
    format_tool_definition,
    frame_tokens,
)

_EXCHANGES = json.loads(Path(__file__).with_name("counting_texts.json").read_text("utf-8"))["English"]
# How a server may bill tool schemas: fewer tokens than their text has, exactly as many, or as many as JSON on the wire.
BILLED_SHARES = (0.55, 1.0, 1.4)
_CONTEXT_LIMITS = (150, 200, 300)

_AREA_NAMES = (
    "Kitchen", "Living room", "Bedroom", "Bathroom", "Office", "Hall", "Nursery", "Garage", "Cellar", "Workshop",
    "Terrace", "Attic",
)  # fmt: skip
_STATES_BY_NAME = {
    "ceiling light": ("on 78%", "on"),
    "lamp": ("on 20%", "off"),
    "window": ("open", "closed"),
    "blind": ("open 40%", "closed"),
    "temperature": ("20.5 °C", "18 °C"),
    "humidity": ("48%", "51%"),
    "socket power": ("312 W", "0.4 W"),
    "radiator": ("heat 20 °C set to 21 °C", "off 18 °C"),
    "front door": ("unlocked", "unavailable"),
}
_SYSTEM_PROMPT = (
    "You are a voice assistant for Home Assistant. Answer questions about the world truthfully.\n"
    + "".join(
        f"- names: {area} {name}\n  domain: light\n  areas: {area}\n"
        for area in _AREA_NAMES
        for name in _STATES_BY_NAME
    )
)
_TARGET_PROPERTIES = {
    key: {"type": "string", "description": f"The {key} of the device"} for key in ("name", "area", "floor", "domain")
}
_TOOL_TEXTS = [
    format_tool_definition(
        f"Hass{verb}{what}",
        f"{verb}s the {what.lower()} of an area.",
        {"type": "object", "properties": _TARGET_PROPERTIES},
    )
    for verb in ("Open", "Set", "Pause", "Find", "Start", "Stop")
    for what in ("Light", "Cover", "Volume", "Timer", "Vacuum", "List")
]
_PERSON_FACTS = (
    "likes the bedroom at 17 degrees at night.",
    "sees the physiotherapist every Monday at 18:00.",
    "is allergic to peanuts.",
    "said: the plumber is Mr Okafor, 0161 496 0021.",
    "does not want scouring powder on the black pans.",
    "takes the bins out on Thursdays.",
)
# One in ten states is marked as changed.
_CHANGE_MARKS = ("",) * 9 + (" (changed)",)
# The known speakers, and the number of facts about each. A fourth speaker, at a satellite, is unknown.
_FACT_COUNT_BY_PERSON = {"Anna": 6, "Ben": 4, "Mila": 1}
_SATELLITE_AREAS = ("Kitchen", "Living room")

type TokenCount = Callable[[str], int]


def _build_live_context(random: Random, limit: int, count: TokenCount) -> str:
    """Return the states of a home as a live context of at most `limit` tokens, as counted by `count`."""
    end = f" | not listed: {random.randint(2, 9)} light on, 40 measurements | rest off, closed, locked, clear"
    text = ""
    for area in random.sample(_AREA_NAMES, len(_AREA_NAMES)):
        listed = random.sample(sorted(_STATES_BY_NAME), random.randint(1, 5))
        names = [random.choice((name.capitalize(), f"{area} {name}")) for name in listed]
        states = [random.choice(_STATES_BY_NAME[name]) + random.choice(_CHANGE_MARKS) for name in listed]
        longer = f"{text} | {area}: {', '.join(map('='.join, zip(names, states, strict=True)))}".removeprefix(" | ")
        if count(longer + end) > limit:
            break
        text = longer
    return text + end


def measure_worst_errors(day: int, share: float, exact: TokenCount) -> list[float]:
    """Return the signed relative errors of the token counts of live contexts, one for each hour from 7 to 22.

    Each is the largest error over `_CONTEXT_LIMITS`, with three texts for each limit. `exact` is the server's token
    count.
    """
    random = Random(day)
    calibrator = Calibrator()
    counter = CalibratedCounter(calibrator)
    worst = []
    for _hour in range(7, 23):
        for _conversation in range(random.randint(1, 4)):
            for request in _iter_requests(random, counter.count):
                billed = sum(frame_tokens(message) + exact(format_counted_text(message)) for message in request)
                billed += round(share * sum(map(exact, _TOOL_TEXTS)))
                calibrator.learn(estimate_request(request, _TOOL_TEXTS), billed)
        worst.append(max((_measure_error(counter.count, limit, exact) for limit in _CONTEXT_LIMITS), key=abs))
    return worst


def _measure_error(count: TokenCount, limit: int, exact: TokenCount) -> float:
    texts = [_build_live_context(Random(number), limit, count) for number in range(3)]
    return sum(map(count, texts)) / sum(map(exact, texts)) - 1


def _iter_requests(random: Random, count: TokenCount) -> Iterator[tuple[Message, ...]]:
    """Yield the requests of one conversation of a random person at a random place."""
    person, known = random.choice([*_FACT_COUNT_BY_PERSON.items(), ("Someone", 0)])
    place = (
        f"You are in area {random.choice(_SATELLITE_AREAS)}.\n" if person == "Someone" or random.random() < 0.3 else ""
    )
    system = Message.system(_SYSTEM_PROMPT + place + "".join(f"- {person} {fact}\n" for fact in _PERSON_FACTS[:known]))
    history: list[Message] = []
    for number in range(random.choice((1, 1, 2, 6))):
        asked, answered = random.choice(_EXCHANGES)
        stamp = f"time: Monday 2026-11-23 08:{random.randint(10, 59)}; speaker: {person}"
        states = _build_live_context(random, random.choice((60, 200, 200)), count)
        turn = [Message.user(f"[CONTEXT: {stamp}; states: {states}]\n\n{asked}")]
        yield system, *history, *turn
        if random.random() < 0.3:
            call = ToolCall(f"call-{number}", "HassSetLight", {"name": "Lamp", "area": "Office"})
            result = Message.tool(call.id, call.name, '{"speech":{},"response_type":"action_done","data":{}}')
            turn += [Message.assistant(tool_calls=(call,)), result]
            yield system, *history, *turn
        history += [Message.user(f"[CONTEXT: {stamp}]\n\n{asked}"), *turn[1:], Message.assistant(answered)]
