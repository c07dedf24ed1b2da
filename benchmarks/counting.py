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

from benchmarks.counting_day import BILLED_SHARES, measure_worst_errors
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
from custom_components.windowed_conversation.window.tokens import (
    TextKind,
    format_counted_text,
    format_tool_definition,
    frame_tokens,
)
from tests.exact_tokens import exact_count

_TEXTS_FILE = Path(__file__).with_name("counting_texts.json")
_CALIBRATION_TURNS = 5
_LARGE_WINDOW_TOKENS, _SMALL_WINDOW_TOKENS = 8_000, 4_000
_DAY_COUNT = 20
_MAX_ERROR, _MAX_CONTEXT_ERROR = 0.04, 0.05

_SYSTEM = """You are Ada, a voice assistant for Home Assistant. Answer in plain text, in the language of the user, and
keep it simple and to the point. When you control the home, always use the tools; never say that something was done
when no tool did it. When there is more than one device of a name, ask which of them is meant.
An overview of the areas and the devices in this home:
""" + "\n".join(
    f"- names: {area} {what}\n  domain: {domain}\n  areas: {area}"
    for area in ("Kitchen", "Living room", "Bedroom", "Bathroom", "Office", "Hall")
    for what, domain in (("ceiling light", "light"), ("thermostat", "climate"), ("window", "binary_sensor"))
)
_TARGET_PROPERTIES = {"name": {"type": "string"}, "area": {"type": "string"}, "floor": {"type": "string"}}
_TOOL_TEXTS = [
    format_tool_definition(name, description, {"type": "object", "properties": _TARGET_PROPERTIES, "required": []})
    for name, description in (
        ("HassTurnOn", "Turns on, opens or presses a device or an entity."),
        ("HassTurnOff", "Turns off or closes a device or an entity."),
        ("HassClimateSetTemperature", "Sets the target temperature of a climate device or an entity."),
        ("GetLiveContext", "Provides real-time information about the current state of devices, sensors and areas."),
    )
]

type Turn = tuple[Message, ...]
type ExactCount = Callable[[str], int]


class ErrorRow(NamedTuple):
    """Errors as shares: of a request, its history, a full window, and text that was not used for calibration."""

    conversation_name: str
    request_errors: tuple[float, float]
    history_errors: tuple[float, float, float]
    full_window_error: tuple[float]
    unseen_text_errors: tuple[float, float]


def _build_states_json(random_: random.Random) -> str:
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


def _iter_conversations() -> Iterator[tuple[str, TextKind, list[Turn]]]:
    """Yield the label of each conversation, the kind of text whose count is judged, and the turns."""
    texts = json.loads(_TEXTS_FILE.read_text("utf-8"))
    for language, exchanges in texts.items():
        yield language, TextKind.PROSE, [(Message.user(asked), Message.assistant(said)) for asked, said in exchanges]
    random_ = random.Random(3)
    turns: list[Turn] = []
    for number, (asked, said) in enumerate(texts["English"]):
        call = ToolCall(f"call-{number}", "GetLiveContext", {"area": "kitchen"})
        result = Message.tool(call.id, call.name, _build_states_json(random_))
        turns.append((Message.user(asked), Message.assistant(tool_calls=(call,)), result, Message.assistant(said)))
    yield "states as JSON", TextKind.TOOLS, turns


def _count_reported_tokens(messages: tuple[Message, ...], exact: ExactCount) -> int:
    return sum(map(exact, _TOOL_TEXTS)) + sum(frame_tokens(m) + exact(format_counted_text(m)) for m in messages)


def _take_turn(window: Window, calibrator: Calibrator, turn: Turn, exact: ExactCount) -> None:
    """Add a turn to the window, and calibrate with each of its requests."""
    question, *others = turn
    window.open(question.content)
    for message in others:
        if message.role is Role.ASSISTANT:
            request = window.messages()
            calibrator.learn(estimate_request(request, _TOOL_TEXTS), _count_reported_tokens(request, exact))
        window.add(message)
    window.close()


def _create_window(history_tokens: int, calibrator: Calibrator) -> Window:
    window = Window("conversation", WindowPolicy(history_tokens), CalibratedCounter(calibrator))
    window.set_system_prompt(_SYSTEM)
    return window


def _measure_window_error(window: Window, exact: ExactCount) -> float:
    messages = window.messages()
    return (
        window.stats().current_tokens
        / (_count_reported_tokens(messages, exact) - _count_reported_tokens(messages[:1], exact))
        - 1
    )


def _measure_full_window_error(turns: list[Turn], exact: ExactCount) -> float:
    calibrator = Calibrator()
    window = _create_window(_SMALL_WINDOW_TOKENS, calibrator)
    error = 0.0
    for turn in cycle(turns):
        _take_turn(window, calibrator, turn, exact)
        if window.stats().trims:
            break
        error = _measure_window_error(window, exact)
    return error


def _build_row(what: str, kind: TextKind, turns: list[Turn], exact: ExactCount) -> ErrorRow:
    calibrator = Calibrator()
    window = _create_window(_LARGE_WINDOW_TOKENS, calibrator)
    for turn in turns[:_CALIBRATION_TURNS]:
        _take_turn(window, calibrator, turn, exact)
    calibration = calibrator.calibration
    window.open(turns[_CALIBRATION_TURNS][0].content)
    request = window.messages()
    fixed = estimate_request(request[:1], _TOOL_TEXTS)
    estimate, reported = estimate_request(request, _TOOL_TEXTS), _count_reported_tokens(request, exact)
    exact_history = reported - _count_reported_tokens(request[:1], exact)

    unseen = [
        m for turn in turns[_CALIBRATION_TURNS:] for m in turn if (m.role is Role.TOOL) == (kind is TextKind.TOOLS)
    ]
    texts = estimate_request(unseen).text_tokens
    exact_texts = sum(exact(format_counted_text(message)) for message in unseen)
    return ErrorRow(
        what,
        _measure_errors(lambda by: by.predict_tokens(estimate), calibration, reported),
        (
            *_measure_errors(
                lambda by: by.predict_tokens(estimate) - by.predict_tokens(fixed), calibration, exact_history
            ),
            _measure_window_error(window, exact),
        ),
        (_measure_full_window_error(turns, exact),),
        _measure_errors(lambda by: by.as_dict()[kind] * texts, calibration, exact_texts),
    )


def _measure_errors(count: Callable[[Calibration], float], calibration: Calibration, exact: int) -> tuple[float, float]:
    """Return the signed errors of a count, as shares: by the plain estimate, and calibrated."""
    return count(Calibration()) / exact - 1, count(calibration) / exact - 1


@cache
def _count_exact(text: str) -> int:
    return exact_count(text)


def _measure_live_contexts(share: float) -> tuple[float, float]:
    """Return the largest errors over all days: in the first three hours, and in the later ones."""
    days = [measure_worst_errors(day, share, _count_exact) for day in range(_DAY_COUNT)]
    return max((error for day in days for error in day[:3]), key=abs), max((e for d in days for e in d[3:]), key=abs)


def main() -> None:
    """Print the tables, and exit with 1 if a goal is missed."""
    rows = [_build_row(what, kind, turns, _count_exact) for what, kind, turns in _iter_conversations()]
    print("errors against o200k_base    sixth request         its history            full    unseen text")
    print("                            before   after    before   after  window  window   before   after")
    for row in rows:
        errors = "  ".join("".join(f"{error:+8.1%}" for error in column) for column in row[1:])
        print(f"{row.conversation_name:<26}{errors}")
    worst = max(
        abs(after) for row in rows for after in (row.request_errors[1], row.history_errors[1], *row.full_window_error)
    )
    print(f"goal: a request, its history and a full window within {_MAX_ERROR:.0%}; worst {worst:.1%}\n")
    contexts = {share: _measure_live_contexts(share) for share in BILLED_SHARES}
    print("live contexts of 20 days, worst        hours 1 to 3   later")
    for share, (early, late) in contexts.items():
        print(f"tools billed at {share:4.0%} of their schemas    {early:+11.1%}{late:+8.1%}")
    worst_late = max(abs(late) for _, late in contexts.values())
    print(f"goal: later within {_MAX_CONTEXT_ERROR:.0%}; worst {worst_late:.1%}")
    if worst > _MAX_ERROR or worst_late > _MAX_CONTEXT_ERROR:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
