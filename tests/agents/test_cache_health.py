"""Tests for the prompt cache check: whether the cache served enough and, if not, which part of the prompt changed."""

from collections.abc import Callable
from dataclasses import replace
import gc
from typing import Any, cast
import weakref

import pytest

from custom_components.windowed_conversation.agents.prompt_cache import (
    CACHE_LIFETIME_SECONDS,
    UNEXPLAINED_MISS_LIMIT,
    CacheUse,
    CacheWatch,
    PromptFingerprints,
    PromptPart,
)
from custom_components.windowed_conversation.providers.events import Provider, Request, ToolSchema, Usage
from custom_components.windowed_conversation.turn.limits import Budget
from custom_components.windowed_conversation.turn.model import BilledRequest, Model
from custom_components.windowed_conversation.window import (
    Attachment,
    EstimatedCounter,
    Message,
    ToolCall,
    Window,
    WindowPolicy,
)
from custom_components.windowed_conversation.window.tokens import CalibratedCounter, Calibrator

COUNTER = CalibratedCounter(Calibrator())
PROMPT = PromptFingerprints(instructions_hash=1, entities_hash=2)
OTHER_INSTRUCTIONS = replace(PROMPT, instructions_hash=3)
OTHER_ENTITIES = replace(PROMPT, entities_hash=3)
VOLATILE = replace(PROMPT, is_volatile=True)
TOOL = ToolSchema("turn_on", "Turn something on.", {"type": "object"})
OTHER_TOOL = replace(TOOL, description="Turn something on or off.")
SYSTEM = "the lamp in the kitchen is called kitchen lamp; " * 1000

type Turn = Callable[..., CacheUse | None]


def billed(request: Request, usage: Usage, at: float) -> BilledRequest:
    """Return a request with its usage, at `at` seconds on the monotonic clock. No request is sent to a server."""
    nobody = cast("Provider", None)
    model = Model("agent", nobody, name=request.model, budget=Budget(WindowPolicy()))
    return BilledRequest(model, request, usage, at)


@pytest.fixture
def window() -> Window:
    window = Window("conversation", WindowPolicy(history_tokens=100_000), EstimatedCounter())
    window.set_system_prompt(SYSTEM)
    return window


@pytest.fixture
def watch() -> CacheWatch:
    return CacheWatch()


@pytest.fixture
def run_turn(watch: CacheWatch, window: Window) -> Turn:
    """Return a function that takes a turn and returns the cache collapse known after it, or None.

    The turn has one request for each value in `cached`, which is the number of cached input tokens to report.
    `at` is the time of the requests in seconds. Every request offers `tools`, unless `next_tools` is given for all but
    the first; the last `without_calls` requests allow no tool calls.
    """

    def run_turn(
        *cached: int,
        at: float,
        prompt: PromptFingerprints = PROMPT,
        tools: tuple[ToolSchema, ...] = (TOOL,),
        next_tools: tuple[ToolSchema, ...] | None = None,
        without_calls: int = 0,
        model: str = "model",
        text: str = "what is on?",
        input_tokens: int = 10_000,
        cleared: int = 0,
    ) -> CacheUse | None:
        window.open(text)
        reported = []
        for place, tokens in enumerate(cached):
            offered = tools if next_tools is None or not place else next_tools
            request = Request(model, window.messages(), offered, may_call=place < len(cached) - without_calls)
            reported.append(billed(request, Usage(input=input_tokens, cached=tokens, cleared=cleared), at))
        window.add(Message.assistant("The lamp."))
        window.close()
        watch.on_turn(window, reported, prompt, COUNTER)
        return watch.collapse

    return run_turn


def after(seconds: float, *cached: int, **more: Any) -> Callable[[Turn], CacheUse | None]:
    """Return a function that calls the `run_turn` fixture with these arguments, at the time `seconds`."""
    return lambda turn: turn(*cached, at=seconds, **more)


SERVED = after(0, 9900)
CHANGED = {"prompt": OTHER_INSTRUCTIONS}
# The turns to take one after another, and for each turn whether a collapse is known after it.
CASE_BY_NAME: dict[str, tuple[list[Callable[[Turn], CacheUse | None]], list[bool]]] = {
    "a first request has nothing to be compared with": ([after(0, 0)], [False]),
    "a cache that serves is none": ([after(0, 0), after(60, 9900)], [False, False]),
    "a change that costs nothing is none": ([SERVED, after(60, 9900, prompt=OTHER_ENTITIES)], [False, False]),
    "a provider that cleared a part by itself tells nothing": (
        [SERVED, after(60, 0, cleared=1000, **CHANGED)],
        [False, False],
    ),
    "nobody can tell after the life time of a cache": (
        [SERVED, after(CACHE_LIFETIME_SECONDS + 1, 0, **CHANGED)],
        [False, False],
    ),
    "a cache lives for its whole life time": ([SERVED, after(CACHE_LIFETIME_SECONDS, 0, **CHANGED)], [False, True]),
    "a server that never reports a cache has none": ([after(0, 0), after(60, 0, **CHANGED)], [False, False]),
    "a prefix shorter than any that was cached is not expected": (
        [SERVED, after(60, 0, input_tokens=4000, **CHANGED)],
        [False, False],
    ),
    "a prefix that every provider caches is expected": (
        [SERVED, after(60, 0, input_tokens=4200, **CHANGED)],
        [False, True],
    ),
    "the shortest prefix that was ever cached counts": (
        [after(0, 3000), after(30, 9900), after(60, 0, input_tokens=4000, **CHANGED)],
        [False, False, True],
    ),
    "another model has a cache of its own": (
        [SERVED, after(30, 9900, model="another"), after(60, 0, **CHANGED)],
        [False, False, False],
    ),
    "a request that may make no call is omitted": (
        [after(0, 9900, 9900, 0, without_calls=1), after(60, 9900)],
        [False, False],
    ),
    "one in the middle of a turn is known": ([after(0, 9900, 0, next_tools=(OTHER_TOOL,))], [True]),
    "a turn without usage says nothing": ([SERVED, after(60)], [False, False]),
    "one is over when a turn is served": (
        [SERVED, after(60, 0, **CHANGED), after(120, 9900, **CHANGED)],
        [False, True, False],
    ),
    "one is not over when only the same turn is served further": (
        [SERVED, after(60, 0, 9900, **CHANGED)],
        [False, True],
    ),
    "one is not over when nobody can tell": (
        [SERVED, after(60, 0, **CHANGED), after(60 + 2 * CACHE_LIFETIME_SECONDS, 0)],
        [False, True, True],
    ),
    "one is not over when nobody can tell of a turn's first request": (
        [SERVED, after(60, 0, **CHANGED), after(60 + 2 * CACHE_LIFETIME_SECONDS, 0, 9900)],
        [False, True, True],
    ),
    "a miss that nothing explains is not the fault of the change before": (
        [SERVED, after(1, 0, **CHANGED), after(2, 0, **CHANGED)],
        [False, True, False],
    ),
    "one that nothing explains lasts until a turn is served": (
        [after(0, 9900, *[0] * UNEXPLAINED_MISS_LIMIT), after(1, 0), after(2, 9900), after(3, 0)],
        [True, True, False, False],
    ),
    "one is over when the prompt is to change": (
        [SERVED, after(1, 0, **CHANGED), after(2, 0, prompt=VOLATILE)],
        [False, True, False],
    ),
    "a prompt that is no longer to change has nothing to be compared with": (
        [SERVED, after(1, 0, prompt=VOLATILE), after(2, 0, **CHANGED), after(3, 0, prompt=PROMPT)],
        [False, False, False, True],
    ),
}


@pytest.mark.parametrize(("turns", "collapses"), CASE_BY_NAME.values(), ids=CASE_BY_NAME)
def test_collapse_is_known_after_these_turns(
    run_turn: Turn, turns: list[Callable[[Turn], CacheUse | None]], collapses: list[bool]
) -> None:
    assert [take(run_turn) is not None for take in turns] == collapses


def test_cache_that_goes_on_missing_is_a_collapse_that_nothing_explains(run_turn: Turn) -> None:
    run_turn(9900, at=0)

    collapse = [run_turn(0, at=at) for at in range(1, UNEXPLAINED_MISS_LIMIT + 1)][-1]

    assert collapse is not None
    assert (collapse.cached_tokens, collapse.changed_parts) == (0, ())
    assert collapse.expected == pytest.approx(10_000, rel=0.01)


def test_request_that_finds_what_the_same_turn_has_written_ends_no_row_of_misses(run_turn: Turn) -> None:
    run_turn(9900, at=0)

    found = [run_turn(0, 9900, at=at) for at in range(1, UNEXPLAINED_MISS_LIMIT + 1)]

    assert [collapse is not None for collapse in found] == [False] * (UNEXPLAINED_MISS_LIMIT - 1) + [True]


@pytest.mark.parametrize("reason", [{"at": 2 * CACHE_LIFETIME_SECONDS}, {"at": 60, "prompt": OTHER_INSTRUCTIONS}])
def test_miss_that_has_a_reason_is_not_of_the_row_and_does_not_end_it(run_turn: Turn, reason: dict) -> None:
    run_turn(9900, *[0] * (UNEXPLAINED_MISS_LIMIT - 2), at=0)
    run_turn(0, **reason)

    before, collapse = run_turn(0, **reason), run_turn(0, **reason)

    assert before is None
    assert collapse is not None
    assert collapse.changed_parts == ()


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({"prompt": OTHER_INSTRUCTIONS}, (PromptPart.INSTRUCTIONS,)),
        ({"prompt": OTHER_ENTITIES}, (PromptPart.ENTITIES,)),
        ({"tools": (OTHER_TOOL,)}, (PromptPart.TOOLS,)),
        ({"tools": (TOOL, OTHER_TOOL)}, (PromptPart.TOOLS,)),
        ({"tools": (OTHER_TOOL,), "prompt": OTHER_ENTITIES}, (PromptPart.TOOLS, PromptPart.ENTITIES)),
    ],
)
def test_collapse_says_what_had_changed(run_turn: Turn, changes: dict, changed: tuple[PromptPart, ...]) -> None:
    run_turn(9900, at=0)

    collapse = run_turn(0, at=60, **changes)

    assert collapse is not None
    assert collapse.changed_parts == changed


@pytest.mark.parametrize(
    ("expected", "cached", "collapsed"),
    [
        (10_000, 8000, False),
        (10_000, 7999, True),
        (2000, 0, False),
        (2001, 0, True),
        (100_000, 95_000, False),
        (100_000, 94_999, True),
    ],
)
def test_collapse_is_more_than_5_percent_and_2000_tokens(expected: int, cached: int, *, collapsed: bool) -> None:
    assert CacheUse(expected, cached, ()).is_collapsed is collapsed


def test_history_is_expected_too(run_turn: Turn, window: Window) -> None:
    window.set_system_prompt("Be brief.")
    run_turn(9900, at=0, text=SYSTEM)

    collapse = run_turn(0, at=60, prompt=OTHER_INSTRUCTIONS)

    assert collapse is not None
    assert collapse.expected == pytest.approx(10_000, rel=0.01)


def test_tools_that_were_added_are_not_expected(run_turn: Turn) -> None:
    run_turn(4000, at=0)

    collapse = run_turn(0, at=60, tools=(TOOL, replace(TOOL, name="turn_off", description=SYSTEM)))

    assert collapse is not None
    assert collapse.expected == pytest.approx(5000, rel=0.02)


def test_result_that_became_one_line_is_not_expected(watch: CacheWatch, run_turn: Turn, window: Window) -> None:
    call = ToolCall("1", "turn_on", {})
    window.open("turn it on")
    window.add(Message.assistant("", tool_calls=(call,)))
    window.add(Message.tool(call.id, call.name, "the lamp is on, " * 3000))
    asked = billed(Request("model", window.messages(), (TOOL,)), Usage(input=20_000, cached=9900), 0)
    watch.on_turn(window, [asked], PROMPT, COUNTER)
    window.add(Message.assistant("It is on."))
    window.close()

    assert run_turn(9900, at=60, prompt=OTHER_INSTRUCTIONS) is None


def test_question_that_was_taken_back_is_not_expected(watch: CacheWatch, run_turn: Turn, window: Window) -> None:
    run_turn(9900, at=0)
    window.open("tell me of the sea " * 3000)
    asked = billed(Request("model", window.messages(), (TOOL,)), Usage(input=20_000, cached=9900), 30)
    watch.on_turn(window, [asked], PROMPT, COUNTER)
    window.abort()

    assert run_turn(9900, at=60, prompt=OTHER_INSTRUCTIONS) is None


def test_nothing_is_kept_of_a_window_that_is_gone(watch: CacheWatch) -> None:
    window = Window("gone", WindowPolicy(), EstimatedCounter())
    window.open("hello")
    request = Request("model", window.messages(), (TOOL,))
    watch.on_turn(window, [billed(request, Usage(), 0)], PROMPT, COUNTER)
    seen = weakref.ref(window)

    del window, request
    gc.collect()

    assert seen() is None


def test_price_of_a_picture_is_no_miss(watch: CacheWatch, window: Window) -> None:
    window.open("who is there?")
    picture = Attachment("image/jpeg", b"picture")
    first, seen = window.messages(), Message.tool("call", "look", "Front door", attachments=(picture,))
    before = billed(Request("model", first, (TOOL,)), Usage(input=10_000, cached=9_900), 0)
    looked = billed(Request("model", (*first, seen), (OTHER_TOOL,)), Usage(input=20_000, cached=9_900), 1)

    watch.on_turn(window, [before, looked], PROMPT, COUNTER)

    assert watch.collapse is None
