"""The error of the token count relative to o200k_base, before and after calibration on five turns.

    .venv/test/bin/python -m benchmarks.counting

Each row is a conversation of eight turns after the same system prompt and tool schemas. The simulated provider counts
with o200k_base and reports the result as usage. Calibration stops after five turns. The columns are signed errors of:

- the sixth request, by the plain estimate and calibrated;
- its history alone, without the fixed part, which is easy to count: by the plain estimate, calibrated, and by a
  window that counted each message only once, with the calibration of that moment;
- a window of 4,000 tokens just before its first trim, where its count matters for the first time; the eight turns
  are repeated until then;
- the text of the last three turns, not used for calibration, by the factor of its kind; one to a few hundred tokens.

The second table is about live contexts, which are cut to a limit by their token count, on twenty days of
`counting_day`: the largest errors in the first three hours of a day, and in the later ones.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import cycle
import json
from pathlib import Path
import random
from typing import NamedTuple

from benchmarks.counting_day import SHARES, worst_by_hour
from custom_components.windowed_conversation.window import (
    CalibratedCounter,
    Calibration,
    Calibrator,
    Message,
    Role,
    ToolCall,
    Window,
    WindowPolicy,
    estimate_request,
)
from custom_components.windowed_conversation.window.tokens import TextKind, frame_tokens, message_text, tool_text
from tests.exact_tokens import exact_count

_TEXTS = Path(__file__).with_name("counting_texts.json")
_CALIBRATED_TURNS = 5
_NEVER_FULL_AT, _FULL_AT = 8_000, 4_000
_DAYS = 20
_GOAL, _GOAL_OF_CONTEXTS = 0.03, 0.1

_SYSTEM = """You are Ada, a voice assistant for Home Assistant. Answer in plain text, in the language of the user, and
keep it simple and to the point. When you control the home, always use the tools; never say that something was done
when no tool did it. When there is more than one device of a name, ask which of them is meant.
An overview of the areas and the devices in this home:
""" + "\n".join(
    f"- names: {area} {what}\n  domain: {domain}\n  areas: {area}"
    for area in ("Kitchen", "Living room", "Bedroom", "Bathroom", "Office", "Hall")
    for what, domain in (("ceiling light", "light"), ("thermostat", "climate"), ("window", "binary_sensor"))
)
_TARGET = {"name": {"type": "string"}, "area": {"type": "string"}, "floor": {"type": "string"}}
_SCHEMAS = [
    tool_text(name, description, {"type": "object", "properties": _TARGET, "required": []})
    for name, description in (
        ("HassTurnOn", "Turns on, opens or presses a device or an entity."),
        ("HassTurnOff", "Turns off or closes a device or an entity."),
        ("HassClimateSetTemperature", "Sets the target temperature of a climate device or an entity."),
        ("GetLiveContext", "Provides real-time information about the current state of devices, sensors and areas."),
    )
]

type Turn = tuple[Message, ...]
type Exact = Callable[[str], int]


class Row(NamedTuple):
    """Errors as shares: of a request, its history, a full window, and text that was not used for calibration."""

    what: str
    request: tuple[float, float]
    history: tuple[float, float, float]
    full: tuple[float]
    unseen: tuple[float, float]


def _states(random_: random.Random) -> str:
    """Return the states of some entities as JSON, in Home Assistant's format."""
    return json.dumps(
        [
            {
                "entity_id": f"sensor.{area}_{kind}",
                "state": str(round(random_.uniform(0, 100), 1)),
                "attributes": {"unit_of_measurement": unit, "device_class": kind, "friendly_name": f"{area} {kind}"},
                "last_changed": f"2026-11-21T{random_.randint(10, 23)}:15:30.{random_.randrange(10**6):06}+00:00",
            }
            for area in random_.sample(["kitchen", "living_room", "bedroom", "bathroom", "office", "hall"], 4)
            for kind, unit in (("temperature", "°C"), ("humidity", "%"), ("power", "W"))
        ],
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _conversations() -> Iterator[tuple[str, TextKind, list[Turn]]]:
    """Yield the label of each conversation, the kind of text whose count is judged, and the turns."""
    texts = json.loads(_TEXTS.read_text("utf-8"))
    for language, exchanges in texts.items():
        yield language, TextKind.PROSE, [(Message.user(asked), Message.assistant(said)) for asked, said in exchanges]
    random_ = random.Random(3)
    turns: list[Turn] = []
    for number, (asked, said) in enumerate(texts["English"]):
        call = ToolCall(f"call-{number}", "GetLiveContext", {"area": "kitchen"})
        result = Message.tool(call.id, call.name, _states(random_))
        turns.append((Message.user(asked), Message.assistant(tool_calls=(call,)), result, Message.assistant(said)))
    yield "states as JSON", TextKind.TOOLS, turns


def _reported(messages: tuple[Message, ...], exact: Exact) -> int:
    return sum(map(exact, _SCHEMAS)) + sum(frame_tokens(m) + exact(message_text(m)) for m in messages)


def _take(window: Window, calibrator: Calibrator, turn: Turn, exact: Exact) -> None:
    """Add a turn to the window, and calibrate with each of its requests."""
    question, *others = turn
    window.open(question.content)
    for message in others:
        if message.role is Role.ASSISTANT:
            request = window.messages()
            calibrator.learn(estimate_request(request, _SCHEMAS), _reported(request, exact))
        window.add(message)
    window.close()


def _new_window(history_tokens: int, calibrator: Calibrator) -> Window:
    window = Window("conversation", WindowPolicy(history_tokens), CalibratedCounter(calibrator))
    window.set_system(_SYSTEM)
    return window


def _window_error(window: Window, exact: Exact) -> float:
    messages = window.messages()
    return window.stats().current_tokens / (_reported(messages, exact) - _reported(messages[:1], exact)) - 1


def _full_window_error(turns: list[Turn], exact: Exact) -> float:
    calibrator = Calibrator()
    window = _new_window(_FULL_AT, calibrator)
    error = 0.0
    for turn in cycle(turns):
        _take(window, calibrator, turn, exact)
        if window.stats().trims:
            break
        error = _window_error(window, exact)
    return error


def _row(what: str, kind: TextKind, turns: list[Turn], exact: Exact) -> Row:
    calibrator = Calibrator()
    window = _new_window(_NEVER_FULL_AT, calibrator)
    for turn in turns[:_CALIBRATED_TURNS]:
        _take(window, calibrator, turn, exact)
    calibration = calibrator.calibration
    window.open(turns[_CALIBRATED_TURNS][0].content)
    request = window.messages()
    fixed = estimate_request(request[:1], _SCHEMAS)
    estimate, reported = estimate_request(request, _SCHEMAS), _reported(request, exact)
    exact_history = reported - _reported(request[:1], exact)

    unseen = [
        m for turn in turns[_CALIBRATED_TURNS:] for m in turn if (m.role is Role.TOOL) == (kind is TextKind.TOOLS)
    ]
    texts = estimate_request(unseen).texts
    exact_texts = sum(exact(message_text(message)) for message in unseen)
    return Row(
        what,
        _errors(lambda by: by.tokens(estimate), calibration, reported),
        (
            *_errors(lambda by: by.tokens(estimate) - by.tokens(fixed), calibration, exact_history),
            _window_error(window, exact),
        ),
        (_full_window_error(turns, exact),),
        _errors(lambda by: by.as_dict()[kind] * texts, calibration, exact_texts),
    )


def _errors(count: Callable[[Calibration], float], calibration: Calibration, exact: int) -> tuple[float, float]:
    """Return the signed errors of a count, as shares: by the plain estimate, and calibrated."""
    return count(Calibration()) / exact - 1, count(calibration) / exact - 1


@cache
def _exact(text: str) -> int:
    return exact_count("o200k_base", text)


def _live_contexts(share: float) -> tuple[float, float]:
    """Return the largest errors over all days: in the first three hours, and in the later ones."""
    days = [worst_by_hour(day, share, _exact) for day in range(_DAYS)]
    return max((error for day in days for error in day[:3]), key=abs), max((e for d in days for e in d[3:]), key=abs)


def main() -> None:
    """Print the tables, and exit with 1 if a goal is missed."""
    rows = [_row(what, kind, turns, _exact) for what, kind, turns in _conversations()]
    print("errors against o200k_base    sixth request         its history            full    unseen text")
    print("                            before   after    before   after  window  window   before   after")
    for row in rows:
        errors = "  ".join("".join(f"{error:+8.1%}" for error in column) for column in row[1:])
        print(f"{row.what:<26}{errors}")
    worst = max(abs(after) for row in rows for after in (row.request[1], row.history[1], *row.full))
    print(f"goal: a request, its history and a full window within {_GOAL:.0%}; worst {worst:.1%}\n")
    contexts = {share: _live_contexts(share) for share in SHARES}
    print("live contexts of 20 days, worst        hours 1 to 3   later")
    for share, (early, late) in contexts.items():
        print(f"tools billed at {share:4.0%} of their schemas    {early:+11.1%}{late:+8.1%}")
    worst_late = max(abs(late) for _, late in contexts.values())
    print(f"goal: later within {_GOAL_OF_CONTEXTS:.0%}; worst {worst_late:.1%}")
    if worst > _GOAL or worst_late > _GOAL_OF_CONTEXTS:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
