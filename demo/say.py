"""`scripts/demo --say`: take the turns of conversations and print them as they happen.

turns.py defines how a turn is taken.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
import re
import textwrap
import time
from typing import Any

from demo import turns, voice
from demo.client import Client, Json
from demo.home import EXPOSED_ENTITY_IDS
from demo.people import OWNER_USERNAME, PersonClients
from demo.setup_agent import AGENT_NAME, find_sensor_ids
from demo.steps import DemoAction, Input, SpeakerChange, Step
from demo.turns import ToolCall, Turn
from demo.window import WindowPrinter

_LINE_CHARS = 90
_INDENT = " " * 9
_MAX_INPUT_CHARS = 500
# The routes, as named by the sensor, whose turns leave an exchange in the window.
_WINDOW_ROUTES = ("local", "model")
# Seconds to wait for the sensors with totals: they show the state on disk, which is written with a short delay.
_TOTALS_TIMEOUT = 10.0
# Seconds after the latency of the model, after which no answer of it is expected.
_LOCAL_ANSWER_SECONDS = 10.0
_WORD_PATTERN = re.compile(r"\n|[^\S\n]+|\S+")

SENSOR_KEYS = (
    "window_tokens",
    "window_utilization",
    "last_route",
    "turns_local",
    "turns_model",
    "input_tokens",
    "output_tokens",
    "turn_duration",
    "turn_cost",
    "total_cost",
)


class StepRunner:
    """Takes the steps: each person has their own conversation, and the outcome of each input is printed."""

    def __init__(
        self, people: PersonClients, watch: WindowPrinter, *, latency: float | None = None, pipeline: str | None = None
    ) -> None:
        """Store the speakers, the WindowPrinter, and the pipeline, or None for the preferred one.

        If the model is silent for `latency` seconds before each answer, the inputs are spoken to the satellite.
        """
        self._latency = latency
        self._pipeline = pipeline
        self._people = people
        self._window_printer = watch
        self._person = OWNER_USERNAME
        self._conversation_id_by_person: dict[str, str | None] = {}

    async def run_steps(self, steps: Iterable[Step]) -> bool:
        """Take all steps and return whether every turn succeeded."""
        known = await find_sensor_ids(self._people.owner)
        answered = _count_answered_turns(await self._people.owner.fetch_states(), known)
        taken = await self.take_steps(steps)
        failed = sum(bool(turn.error) for turn in taken)
        answered += len(taken) - failed
        states = await turns.wait_for_states(
            self._people.owner, lambda states: _count_answered_turns(states, known) >= answered, _TOTALS_TIMEOUT
        )
        _print_sensor_table(states, known)
        return not failed

    async def take_steps(self, steps: Iterable[Step]) -> list[Turn]:
        """Take the steps and return the turns."""
        known = await find_sensor_ids(self._people.owner)
        taken = []
        for step in steps:
            if isinstance(step, Input):
                taken.append(await self._take_input(step, known))
            else:
                await self._run_action(step)
        return taken

    async def _run_action(self, step: SpeakerChange | DemoAction) -> None:
        match step:
            case SpeakerChange(person):
                self._person = person
                print(f"\n--- {person} speaks")
                return
            case DemoAction.NEW_CONVERSATION:
                self._conversation_id_by_person[self._person] = None
        print(f"\n--- {step.value}", flush=True)
        if step is DemoAction.RESTART:
            await self._people.restart()

    async def _take_input(self, step: Input, known: dict[str, str]) -> Turn:
        client, person = await self._people.get_client(self._person), self._person
        if self._latency is not None:
            return await _speak_to_satellite(self._people.owner, step.text, self._latency)
        name = "You" if person == OWNER_USERNAME else person
        turn, route = await _take_and_print_turn(
            client,
            name,
            step.text,
            known,
            conversation_id=self._conversation_id_by_person.get(person),
            pipeline=self._pipeline,
        )
        self._conversation_id_by_person[person] = conversation_id = turn.conversation_id
        if conversation_id and route in _WINDOW_ROUTES:
            if step.is_important:
                await self._window_printer.tag_important(client, conversation_id)
            await self._window_printer.print_changes(client, conversation_id, asked_model=route == "model")
        return turn


async def _speak_to_satellite(client: Client, text: str, latency: float) -> Turn:
    """Speak an input to the satellite, and print each text that is heard there with its time."""

    def print_heard(heard: Json) -> None:
        print(f"{heard['after']:6.1f} s {heard['text'].strip()}", flush=True)

    began = time.monotonic()

    def is_answered(heard: list[Json]) -> bool:
        # a filler and the promise of an answer are heard before, and what Home Assistant answers itself, too
        is_late = bool(heard) and float(heard[-1]["after"]) >= latency
        return is_late or time.monotonic() - began > latency + _LOCAL_ANSWER_SECONDS

    print(f"\n{'You':<8} {text[:_MAX_INPUT_CHARS]}")
    turn = Turn(text)
    heard = await voice.ask_satellite(client, text, is_done=is_answered, watch=print_heard)
    turn.speech = heard[-1]["text"] if heard else ""
    turn.error = "" if heard else "nothing was heard"
    return turn


def _count_answered_turns(states: dict[str, Json], known: dict[str, str]) -> int:
    """Return the number of turns that the sensors have counted so far."""
    shown = (states.get(known.get(key, ""), {}).get("state", "") for key in ("turns_local", "turns_model"))
    return sum(int(count) for count in shown if count.isdecimal())


async def _take_and_print_turn(
    client: Client, name: str, text: str, known: dict[str, str], **fields: Any
) -> tuple[Turn, str]:
    print(f"\n{name:<8} {text[:_MAX_INPUT_CHARS]}{' ...' if len(text) > _MAX_INPUT_CHARS else ''}")
    before = await client.fetch_states()
    began = datetime.now(UTC)
    lines = _AnswerPrinter()
    turn = await turns.take_turn(client, text, watch=lines.on_event, **fields)
    lines.finish(turn)
    after = await turns.wait_for_turn(client, known.get("last_route", ""), began)
    last_route = after.get(known.get("last_route", ""), {"state": "unknown", "attributes": {}})
    route, recalled = last_route["state"], last_route["attributes"].get("recalled_tokens")
    words = f", first word after {turn.first_token:.2f} s" if turn.first_token is not None else ""
    print(f"Route    {route}{words}, complete after {turn.duration:.2f} s")
    if route == "model" and recalled:
        print(f"Memory   {recalled} tokens of what was said before came with the question")
    if turn.error and turn.error != turn.speech:
        print(f"Error    {turn.error}")
    for entity_id in EXPOSED_ENTITY_IDS:
        _print_state_change(before[entity_id], after[entity_id], is_target=entity_id in turn.target_entity_ids)
    return turn, route


def _print_state_change(before: Json, after: Json, *, is_target: bool) -> None:
    name, old, new = after["attributes"]["friendly_name"], turns.describe_state(before), turns.describe_state(after)
    if old != new:
        print(f"Home     {name}: {old} -> {new}")
    elif is_target:
        print(f"Home     {name}: {new}, as before")


class _AnswerPrinter:
    """Prints text and tool calls as they arrive."""

    def __init__(self) -> None:
        self._column = 0

    def on_event(self, kind: str, value: Any) -> None:
        """Print an event of a turn."""
        if kind == "text":
            self._print_text(value)
            return
        self._end_line()
        call: ToolCall = value
        if kind == "call":
            arguments = ", ".join(f"{name}={argument!r}" for name, argument in call.arguments.items())
            print(
                textwrap.shorten(
                    f"{call.name}({arguments})", _LINE_CHARS, initial_indent="Tool     ", placeholder=" ..."
                )
            )
        else:
            print(f"{_INDENT}{call.name} {'failed' if call.has_failed else 'is done'}")

    def finish(self, turn: Turn) -> None:
        """Print the remaining text that was not streamed, and end the line."""
        if not turn.pieces and turn.speech:
            self._print_text(turn.speech)
        self._end_line()

    def _print_text(self, text: str) -> None:
        if not self._column:
            self._write("Agent    ")
        for part in _WORD_PATTERN.findall(text):
            if part == "\n" or (part.isspace() and self._column > _LINE_CHARS):
                self._end_line()
                self._write(_INDENT)
            else:
                self._write(part)

    def _write(self, text: str) -> None:
        print(text, end="", flush=True)
        self._column += len(text)

    def _end_line(self) -> None:
        if self._column:
            print()
        self._column = 0


def _print_sensor_table(states: dict[str, Json], known: dict[str, str]) -> None:
    rows = [_format_sensor(states[known[key]]) for key in SENSOR_KEYS if known.get(key) in states]
    print("\nThe window, as its sensors tell it")
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        print(f"  {name:<{width}}  {value}")


def _format_sensor(state: Json) -> tuple[str, str]:
    attributes, value = state["attributes"], state["state"]
    name = attributes["friendly_name"].removeprefix(f"{AGENT_NAME} ")
    if value in {"unknown", "unavailable"}:
        return name, value
    if attributes.get("device_class") == "duration":
        value = f"{float(value):.2f}"
    return name, f"{value} {attributes.get('unit_of_measurement', '')}".rstrip()
