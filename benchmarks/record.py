"""The record of turns: its size on disk, the time to write it, and the loss of turns while its file is unavailable.

    .venv/test/bin/python -m benchmarks.record [--quick]

1. A week at level *whole*, 200 turns a day: the size of the files, including indexes and log, before and after the
texts expired, and whether any of the texts remain in the files.

2. The event loop's time for `StoreWriter.put`, and the writer thread's time for 5,000 turns that are queued when it
starts.

3. The folder of the file is moved away for 60 seconds (5 with `--quick`) while turns are put: the number of turns that
are finally stored.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
import random
import tempfile
import time
from types import SimpleNamespace
from typing import cast

from custom_components.windowed_conversation.agents.record import TurnText, add_request_sums, build_turn_record
from custom_components.windowed_conversation.memory.core import Memory
from custom_components.windowed_conversation.providers import Provider, Request, ToolSchema, Usage
from custom_components.windowed_conversation.record import (
    EMPTY_TURN,
    RECORD,
    RecordedTurns,
    TurnListQuery,
    TurnRecord,
    expire_turns,
    store_turn,
)
from custom_components.windowed_conversation.store import StoreWriter, WriteJob
from custom_components.windowed_conversation.turn.attempts import Attempt, AttemptResult, Purpose
from custom_components.windowed_conversation.turn.limits import Budget
from custom_components.windowed_conversation.turn.model import BilledRequest, Model
from custom_components.windowed_conversation.window import Message, ToolCall, WindowPolicy

_DAY_SECONDS = 86_400.0
_TURNS_PER_DAY = 200
_QUEUED_TURNS = 5_000
_CLOSE_TIMEOUT = 120.0
# Turns per second while the file is unavailable.
_TURNS_PER_SECOND = 50
# The number of exchanges in a request, about as many as fit into 8,000 tokens.
_WINDOW_EXCHANGES = 60
_TOOL_COUNT = 20
_TOOL_TURN_INTERVAL = 4
_SYSTEM_PROMPT = "You are a voice assistant for Home Assistant. Answer in one sentence of plain text. " * 60
_VOCABULARY = (
    "light",
    "kitchen",
    "warm",
    "seven",
    "the",
    "window",
    "of",
    "is",
    "on",
    "please",
    "turn",
    "garden",
    "heating",
)
_LANGUAGES = ("en", "de")


def iter_record_builders(number: int, ends_at: float, seed: int = 0) -> Iterator[Callable[[], TurnRecord]]:
    """Yield functions that build complete turn records, spread evenly over the week before `ends_at`.

    Every fourth turn has a tool call and therefore two requests.
    """
    # No request is sent to this provider.
    provider = cast("Provider", SimpleNamespace(name="openai_responses"))
    source, model = random.Random(seed), Model("agent", provider, "gpt-5-mini", Budget(WindowPolicy()))
    parameters = {"properties": {"name": {"type": "string", "description": "The name of a device. " * 5}}}
    tools = tuple(
        ToolSchema(f"HassTool{each}", "What it does at home. " * 8, parameters) for each in range(_TOOL_COUNT)
    )
    history: list[Message] = []
    for each in range(number):
        at = ends_at - 7 * _DAY_SECONDS * (number - each) / number
        said, answer = (_generate_text(source, length) for length in (12, 30))
        history.append(Message.user(f"[CONTEXT: time: {at:.0f}; area: Kitchen]\n\n{said}"))
        attempts = []
        if each % _TOOL_TURN_INTERVAL == 0:
            call = ToolCall(f"call_{each}", "HassTool1", {"name": said})
            attempts.append(_build_attempt(model, history, tools, (call,)))
            history += [
                Message.assistant(tool_calls=(call,)),
                Message.tool(call.id, call.name, _generate_text(source, 80)),
            ]
        attempts.append(_build_attempt(model, history, tools))
        history.append(Message.assistant(answer))
        del history[: -2 * _WINDOW_EXCHANGES]
        statistics: TurnRecord = {
            **EMPTY_TURN,
            "turn_id": f"{each:08}",
            "time": at,
            "agent": "agent",
            "route": "model",
            "outcome": "answered",
            "conversation_id": "conversation",
        }
        yield partial(
            build_turn_record, add_request_sums(statistics, attempts), tuple(attempts), 0.0, TurnText(said, answer)
        )


def _build_attempt(
    model: Model, history: list[Message], tools: tuple[ToolSchema, ...], calls: tuple[ToolCall, ...] = ()
) -> Attempt:
    request = Request(model.name, (Message.system(_SYSTEM_PROMPT), *history), tools)
    billed = BilledRequest(model, request, Usage(8_000, 7_000, 40))
    return Attempt(
        model,
        request,
        Purpose.ANSWER,
        AttemptResult.ANSWERED,
        0.0,
        1.0,
        0.5,
        billed_request=billed,
        finish_reason="stop",
        tool_calls=calls,
    )


def _write(build: Callable[[], TurnRecord]) -> WriteJob:
    return WriteJob(partial(store_turn, build=build))


def _generate_text(source: random.Random, words: int) -> str:
    return " ".join(f"{source.choice(_VOCABULARY)}{source.randrange(100)}" for _ in range(words))


def _open_memory(path: Path) -> Memory:
    return Memory(path, _LANGUAGES, rooms=(RECORD,))


def _measure_megabytes(path: Path) -> float:
    return sum(each.stat().st_size for each in path.parent.iterdir()) / 1e6


def measure_week(folder: Path) -> None:
    """Print the size of a week of complete turns, before and after their texts expired."""
    path, now = folder / "memory.db", time.time()
    memory = _open_memory(path)
    for each in iter_record_builders(7 * _TURNS_PER_DAY, now):
        memory.add([_write(each)])
    memory.checkpoint()
    print(f"a week of {_TURNS_PER_DAY} turns a day, whole: {_measure_megabytes(path):.1f} MB")
    last = RecordedTurns(memory.database).get_turn(f"{7 * _TURNS_PER_DAY - 1:08}")
    assert last is not None
    said = last["said"].encode()
    assert said in path.read_bytes()
    began = time.perf_counter()
    with memory.database.write_transaction() as connection:
        expire_turns(connection, {}, now - 90 * _DAY_SECONDS, now + 1.0)
    expired = memory.forget_expired({}, now - 90 * _DAY_SECONDS)
    took = time.perf_counter() - began
    left = b"".join(each.read_bytes() for each in path.parent.iterdir())
    found = said in left or any(word.encode() in left for word in ("[CONTEXT", "Kitchen", "HassTool19"))
    rows = len(list(RecordedTurns(memory.database).export(TurnListQuery())))
    print(
        f"after its words have expired, in {took:.2f} s: {_measure_megabytes(path):.1f} MB, {rows} turns with figures"
    )
    print(f"erased: {expired.is_erased}; words found in the files: {found}")
    memory.close()


def measure_stop(folder: Path) -> None:
    """Print the time of `StoreWriter.put`, and the writer thread's time for the queued turns."""
    waiting = [_write(each) for each in iter_record_builders(_QUEUED_TURNS, time.time())]
    writer = StoreWriter(folder / "memory.db", _open_memory)
    began = time.perf_counter()
    for each in waiting:
        writer.put(each)
    took = (time.perf_counter() - began) / _QUEUED_TURNS
    print(f"put: {took * 1e6:.1f} us")
    began = time.perf_counter()
    writer.start()
    closed = writer.close(_CLOSE_TIMEOUT)
    counts = writer.counts
    print(
        f"{_QUEUED_TURNS} turns that waited at the stop: {counts.rows_written} written, {counts.dropped} dropped, "
        f"in {time.perf_counter() - began:.2f} s, closed: {closed}"
    )


def measure_unavailable_file(folder: Path, seconds: float) -> None:
    """Print the number of records that are lost while the folder of the file is moved away."""
    home = folder / "home"
    home.mkdir()
    writer = StoreWriter(home / "memory.db", _open_memory)
    writer.start()
    ends_at = time.monotonic() + seconds
    put = 0
    for put, each in enumerate(iter_record_builders(10**9, time.time()), 1):
        writer.put(_write(each))
        if put == 1:
            writer.drain(_CLOSE_TIMEOUT)
            home.rename(folder / "away")
        time.sleep(1 / _TURNS_PER_SECOND)
        if time.monotonic() > ends_at:
            break
    waited = writer.counts
    (folder / "away").rename(home)
    began = time.perf_counter()
    writer.drain(_CLOSE_TIMEOUT)
    took = time.perf_counter() - began
    writer.close(_CLOSE_TIMEOUT)
    memory = _open_memory(home / "memory.db")
    rows = len(list(RecordedTurns(memory.database).export(TurnListQuery())))
    memory.close()
    print(
        f"away for {seconds:.0f} s: {put} turns put, {waited.queued} waited, {waited.failures} tries failed; "
        f"{rows} are in the file, {writer.counts.dropped} dropped, {took:.2f} s to catch up"
    )


def main() -> None:
    """Run each measurement in its own temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="let the file be away for five seconds")
    seconds = 5.0 if parser.parse_args().quick else 60.0
    for measure in (measure_week, measure_stop, partial(measure_unavailable_file, seconds=seconds)):
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder))


if __name__ == "__main__":
    main()
