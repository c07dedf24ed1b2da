"""Tests for the registry of windows: which ones are dropped first, which turns wait, and how idle ones end."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
import gc
from math import inf, nan
import tracemalloc
from typing import Any

import pytest

from custom_components.windowed_conversation.window import (
    EstimatedCounter,
    Message,
    Window,
    WindowBusy,
    WindowPolicy,
    WindowRegistry,
    WindowStats,
)
from custom_components.windowed_conversation.window.exchange import EvictionCounts, Snapshot

from .turns import begin_turn

pytestmark = pytest.mark.usefixtures("idle_clock")


class Clock:
    """A clock in seconds that tests advance by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def create(key: str) -> Window:
    return Window(key, WindowPolicy(), EstimatedCounter())


def get_traced_bytes() -> int:
    """Return the number of bytes allocated by Python since tracing began."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(clock: Clock) -> WindowRegistry:
    return WindowRegistry(create, max_windows=3, idle_seconds=60, clock=clock)


def elsewhere(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Run a coroutine as a task with an empty context, so that it does not belong to the test's turn."""
    return asyncio.create_task(work, context=Context())


def elsewhere_at_once(work: Coroutine[Any, Any, Any]) -> None:
    """Run a coroutine as a task with an empty context, immediately and up to its first wait."""
    asyncio.eager_task_factory(asyncio.get_running_loop(), work, context=Context())


async def use(registry: WindowRegistry, key: str, within: float | None = None) -> None:
    async with begin_turn(registry, key, timeout=within) as window:
        window.add_exchange((Message.user("hello"),))


async def take_turns(registry: WindowRegistry, *keys: str) -> None:
    for key in keys:
        await use(registry, key)


async def settle() -> None:
    """Let all tasks run as far as they can."""
    for _ in range(10):
        await asyncio.sleep(0)


def ids(registry: WindowRegistry) -> list[str]:
    return [window.conversation_id for window in registry.loaded_windows().values()]


async def test_window_is_made_for_a_new_key_and_found_again(registry: WindowRegistry) -> None:
    async with begin_turn(registry, "a") as first:
        pass
    async with begin_turn(registry, "a") as second:
        assert second is first


async def test_windows_that_have_ended_are_dropped_before_older_ones(clock: Clock) -> None:
    registry = WindowRegistry(create, reopen_seconds=5, is_lasting=lambda key: key == "a", max_windows=3, clock=clock)
    await take_turns(registry, "a", "b", "c")
    clock.now += 10
    await take_turns(registry, "d", "e")
    assert ids(registry) == ["e", "d", "a"]

    await take_turns(registry, "f")

    assert ids(registry) == ["f", "e", "d"]


async def test_last_use_of_a_window_is_the_end_of_its_last_turn(registry: WindowRegistry, clock: Clock) -> None:
    async with begin_turn(registry, "a"):
        clock.now += 5
        assert registry.idle_seconds("a") == 5

    clock.now += 2

    assert registry.idle_seconds("a") == 2


async def test_turns_have_a_window_in_the_order_in_which_they_came(registry: WindowRegistry) -> None:
    order: list[int] = []

    async def turn(number: int) -> None:
        async with begin_turn(registry, "a"):
            await asyncio.sleep(0)
            order.append(number)

    await asyncio.gather(*(turn(number) for number in range(20)))
    assert order == list(range(20))


async def test_100_turns_at_once_on_10_windows_lose_nothing_and_do_not_mix(clock: Clock) -> None:
    registry = WindowRegistry(create, clock=clock)

    async def turn(number: int) -> None:
        async with begin_turn(registry, str(number % 10)) as window:
            window.open(f"question {number}")
            # turns of different windows take different times, so that they overtake each other
            for _ in range(1 + number % 7):
                await asyncio.sleep(0)
            window.add(Message.assistant(f"answer {number}"))
            await asyncio.sleep(0)
            window.close()

    await asyncio.gather(*(turn(number) for number in range(100)))
    heard = {w.conversation_id: [m.content for m in w.messages()] for w in registry.loaded_windows().values()}
    assert heard == {
        str(key): [f"{kind} {number}" for number in range(key, 100, 10) for kind in ("question", "answer")]
        for key in range(10)
    }


async def test_turn_that_waits_too_long_hears_that_the_window_is_busy(registry: WindowRegistry) -> None:
    async with begin_turn(registry, "a"):
        with pytest.raises(WindowBusy):
            await elsewhere(use(registry, "a", within=0.01))


async def test_turn_that_is_cancelled_while_it_waits_lets_the_next_one_in(registry: WindowRegistry) -> None:
    async with begin_turn(registry, "a"):
        cancelled, waiting = elsewhere(use(registry, "a")), elsewhere(use(registry, "a"))
        await settle()
        cancelled.cancel()
        await settle()
    await asyncio.wait_for(waiting, 1)
    assert cancelled.cancelled()
    assert registry.drop("a")


async def test_turn_that_is_cancelled_just_as_its_wait_ends_lets_the_next_one_in(registry: WindowRegistry) -> None:
    async with begin_turn(registry, "a"):
        cancelled, waiting = elsewhere(use(registry, "a")), elsewhere(use(registry, "a"))
        await settle()
    cancelled.cancel()
    await asyncio.wait_for(waiting, 1)
    assert registry.drop("a")


async def test_turn_that_is_cancelled_at_work_frees_the_window(registry: WindowRegistry) -> None:
    async def turn() -> None:
        async with begin_turn(registry, "a"):
            await asyncio.sleep(60)

    working = elsewhere(turn())
    await settle()
    working.cancel()
    await use(registry, "a", within=1)
    assert registry.drop("a")


async def test_exchange_that_a_failed_turn_left_open_is_aborted(registry: WindowRegistry) -> None:
    async def turn() -> None:
        async with begin_turn(registry, "a") as window:
            window.open("what is 1 / 0?")
            window.add(Message.assistant(str(1 // 0)))

    await use(registry, "a")
    with pytest.raises(ZeroDivisionError):
        await turn()
    async with begin_turn(registry, "a") as window:
        assert len(window.messages()) == 1


async def test_window_that_holds_nothing_after_its_turn_is_dropped(registry: WindowRegistry) -> None:
    async with begin_turn(registry, "a"):
        pass

    registry.run_deferred_work()

    assert len(registry) == 0


async def test_window_that_holds_nothing_after_its_turn_is_not_loaded(registry: WindowRegistry) -> None:
    async with begin_turn(registry, "a"):
        pass

    assert await registry.load("a") is None


async def test_window_stays_when_its_first_exchange_is_recorded_after_the_turn(registry: WindowRegistry) -> None:
    async with begin_turn(registry, "a") as window:
        registry.defer_work("a", lambda: window.add_exchange((Message.user("hello"),)))

    registry.run_deferred_work()

    assert ids(registry) == ["a"]


async def test_window_that_holds_nothing_stays_for_the_turn_that_waits_for_it(registry: WindowRegistry) -> None:
    async with begin_turn(registry, "a") as window:
        waiting = elsewhere(use(registry, "a"))
        await settle()
    registry.run_deferred_work()
    await waiting

    assert [*registry.loaded_windows().values()] == [window]


@pytest.mark.parametrize(
    "way",
    [use, lambda registry, key: asyncio.create_task(use(registry, key))],
    ids=["by itself", "through a task"],
)
async def test_turn_that_leads_to_its_own_window_is_refused_at_once(
    registry: WindowRegistry, way: Callable[[WindowRegistry, str], Awaitable[None]]
) -> None:
    async with begin_turn(registry, "a"), begin_turn(registry, "b"):
        for key in ("a", "b"):
            with pytest.raises(WindowBusy):
                await way(registry, key)


async def test_task_that_outlives_its_turn_may_have_the_window_afterwards(registry: WindowRegistry) -> None:
    ended = asyncio.Event()

    async def summarise() -> None:
        await ended.wait()
        await use(registry, "a", within=1)

    async with begin_turn(registry, "a"):
        task = asyncio.create_task(summarise())
    ended.set()
    await task
    assert ids(registry) == ["a"]


async def test_least_recently_used_window_goes_first(registry: WindowRegistry) -> None:
    await take_turns(registry, "a", "b", "c", "a", "d")
    assert ids(registry) == ["d", "a", "c"]


async def test_windows_in_use_stay_beyond_the_limit_until_they_are_free() -> None:
    registry = WindowRegistry(create, max_windows=1)
    async with begin_turn(registry, "a") as window, begin_turn(registry, "b"):
        window.add_exchange((Message.user("hello"),))
        assert ids(registry) == ["b", "a"]
    assert ids(registry) == ["a"]


async def test_window_that_a_turn_waits_for_stays() -> None:
    registry = WindowRegistry(create, max_windows=1)
    async with begin_turn(registry, "a") as window:
        waiting = elsewhere(use(registry, "a"))
        await settle()
    await use(registry, "b")
    await waiting
    assert len(window.messages()) == 1


@pytest.mark.long
async def test_memory_is_bounded_with_twenty_thousand_ids(clock: Clock) -> None:
    registry = WindowRegistry(create, max_windows=100, clock=clock)
    tracemalloc.start()
    try:
        await take_turns(registry, *map(str, range(5000)))
        after_5000 = get_traced_bytes()
        await take_turns(registry, *map(str, range(5000, 20_000)))
        assert get_traced_bytes() < 1.1 * after_5000
    finally:
        tracemalloc.stop()


async def test_idle_windows_expire(registry: WindowRegistry, clock: Clock) -> None:
    await use(registry, "a")
    clock.now += 30
    await use(registry, "b")
    clock.now += 30
    assert (registry.expire_windows(), ids(registry)) == (1, ["b"])


async def test_window_in_use_does_not_expire(registry: WindowRegistry, clock: Clock) -> None:
    async with begin_turn(registry, "a"):
        clock.now += 600
        assert registry.expire_windows() == 0


async def test_windows_never_expire_when_idle_for_ever_is_allowed(registry: WindowRegistry, clock: Clock) -> None:
    registry.set_idle_seconds(inf)
    await use(registry, "a")
    clock.now += 1e9
    assert registry.expire_windows() == 0


async def test_shorter_idle_time_counts_at_once(registry: WindowRegistry, clock: Clock) -> None:
    await use(registry, "a")
    clock.now += 30
    registry.set_idle_seconds(30)
    assert len(registry) == 0


@pytest.mark.parametrize("limits", [{"max_windows": 0}, {"idle_seconds": 0}, {"idle_seconds": nan}])
def test_impossible_limits_are_refused_by_name(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        WindowRegistry(create, **limits)


async def test_dropped_window_is_forgotten(registry: WindowRegistry) -> None:
    await use(registry, "a")
    assert (registry.drop("a"), registry.get_loaded("a")) == (True, None)


async def test_window_in_use_cannot_be_dropped(registry: WindowRegistry) -> None:
    async with begin_turn(registry, "a") as window:
        with pytest.raises(WindowBusy):
            registry.drop("a")
        assert registry.get_loaded("a") is window


async def test_changed_policy_reaches_every_window(registry: WindowRegistry) -> None:
    await take_turns(registry, "a", "b")
    registry.set_policy(WindowPolicy(500))
    assert [window.policy.history_tokens for window in registry.loaded_windows().values()] == [500, 500]


async def test_changed_policy_reaches_windows_that_are_made_later(registry: WindowRegistry) -> None:
    registry.set_policy(WindowPolicy(500))
    await use(registry, "a")
    assert next(iter(registry.loaded_windows().values())).policy == WindowPolicy(500)


async def test_window_that_cannot_be_made_leaves_nothing_behind() -> None:
    def fail(key: str) -> Window:
        raise LookupError(key)

    registry = WindowRegistry(fail)
    with pytest.raises(LookupError):
        await use(registry, "a")
    assert len(registry) == 0


async def test_between_turns_nobody_else_has_the_window_and_it_is_no_use(registry: WindowRegistry) -> None:
    await take_turns(registry, "a", "b")
    window = registry.get_loaded("a")
    assert window is not None
    async with registry.hold_between_turns(window) as key:
        turn = elsewhere(use(registry, "a"))
        await settle()
        assert key == "a"
        assert not turn.done()
        assert ids(registry) == ["a", "b"]
    await turn

    await use(registry, "b")
    async with registry.hold_between_turns(window):
        pass
    assert ids(registry) == ["b", "a"]


async def test_between_turns_waits_for_the_turn_before_it(registry: WindowRegistry) -> None:
    order: list[str] = []

    async def wait(window: Window) -> None:
        async with registry.hold_between_turns(window):
            order.append("between")

    async with begin_turn(registry, "a") as window:
        waiting = elsewhere(wait(window))
        await settle()
        order.append("turn")
    await waiting
    assert order == ["turn", "between"]


async def test_window_that_was_dropped_has_no_turns(registry: WindowRegistry) -> None:
    await use(registry, "a")
    dropped = registry.get_loaded("a")
    assert dropped is not None
    registry.drop("a")
    await use(registry, "a")

    async with registry.hold_between_turns(dropped) as key:
        assert key is None


async def test_turn_cannot_wait_for_its_own_end(registry: WindowRegistry) -> None:
    async with begin_turn(registry, "a") as window:
        with pytest.raises(WindowBusy):
            await registry.hold_between_turns(window).__aenter__()
    await use(registry, "a", within=1)


@pytest.fixture
async def done(registry: WindowRegistry) -> list[str]:
    """Return a list to which the two tasks deferred by the last turn of "a" add their names when they finish."""
    done: list[str] = []
    await use(registry, "a")
    async with begin_turn(registry, "a"):
        registry.defer_work("a", lambda: done.append("first"))
        registry.defer_work("a", lambda: done.append("second"))
    return done


@pytest.mark.parametrize(
    "read",
    [
        lambda registry: registry.get_loaded("a"),
        lambda registry: registry.loaded_windows(),
        lambda registry: registry.snapshots(),
        lambda registry: registry.stats(),
        lambda registry: registry.unread_keys(),
        lambda registry: registry.idle_seconds("a"),
        lambda registry: (len(registry), "a" in registry),
    ],
    ids=["get_loaded", "loaded_windows", "snapshots", "stats", "unread_keys", "idle_seconds", "contains"],
)
def test_a_getter_runs_no_deferred_work(
    read: Callable[[WindowRegistry], object], registry: WindowRegistry, done: list[str]
) -> None:
    read(registry)

    assert done == []


@pytest.mark.parametrize(
    "use",
    [
        lambda registry: registry.run_deferred_work(),
        lambda registry: registry.set_policy(WindowPolicy(500)),
        lambda registry: registry.rewrite_windows(lambda _key, snapshot: snapshot),
        lambda registry: registry.drop("a"),
        lambda registry: registry.restore("a", Window("a", WindowPolicy(500), EstimatedCounter()).snapshot()),
    ],
    ids=["run_deferred_work", "set_policy", "rewrite_windows", "drop", "restore"],
)
def test_deferred_work_is_done_in_its_order_before_other_code_changes_the_window(
    use: Callable[[WindowRegistry], object], registry: WindowRegistry, done: list[str]
) -> None:
    use(registry)

    assert done == ["first", "second"]


async def test_deferred_work_is_done_before_other_code_has_the_window_between_turns(
    registry: WindowRegistry, done: list[str]
) -> None:
    window = registry.get_loaded("a")
    assert window is not None

    async with registry.hold_between_turns(window):
        assert done == ["first", "second"]


async def test_deferred_work_is_done_before_a_window_is_loaded(registry: WindowRegistry, done: list[str]) -> None:
    await registry.load("a")

    assert done == ["first", "second"]


@pytest.mark.parametrize("idle_for", [0, 1_000_000], ids=["the same window", "another window"])
async def test_deferred_work_is_done_before_the_next_turn(
    registry: WindowRegistry, clock: Clock, done: list[str], idle_for: float
) -> None:
    clock.now += idle_for

    async with begin_turn(registry, "a"):
        assert done == ["first", "second"]


RUN_ALL_CASES: dict[str, Callable[[WindowRegistry], object]] = {
    "run_deferred_work": lambda registry: registry.run_deferred_work(),
    "set_policy": lambda registry: registry.set_policy(WindowPolicy(500)),
}
DROPS: dict[str, Callable[[WindowRegistry], object]] = {
    "expire": lambda registry: registry.expire_windows(),
    "set_idle_seconds": lambda registry: registry.set_idle_seconds(1),
}


@pytest.mark.parametrize("run", (RUN_ALL_CASES | DROPS).values(), ids=RUN_ALL_CASES | DROPS)
async def test_deferred_work_may_lead_to_other_turns(
    run: Callable[[WindowRegistry], object], registry: WindowRegistry, clock: Clock
) -> None:
    turn = begin_turn(registry, "new")
    await take_turns(registry, "a", "b")
    registry.defer_work("a", lambda: elsewhere_at_once(turn.__aenter__()))
    clock.now += 1_000_000

    run(registry)

    assert "new" in registry
    await turn.__aexit__(None, None, None)


@pytest.mark.parametrize("run", RUN_ALL_CASES.values(), ids=RUN_ALL_CASES)
async def test_deferred_work_is_done_in_its_order_before_a_turn_that_it_leads_to(
    run: Callable[[WindowRegistry], object], registry: WindowRegistry
) -> None:
    order: list[str] = []

    async def turn() -> None:
        async with begin_turn(registry, "a"):
            order.append("turn")

    await take_turns(registry, "a", "b")
    registry.defer_work("a", lambda: elsewhere_at_once(turn()))
    registry.defer_work("a", lambda: order.append("second"))

    run(registry)

    assert order == ["second", "turn"]


async def test_window_that_expires_is_not_in_use_by_a_turn_that_the_end_of_another_leads_to(
    registry: WindowRegistry, clock: Clock
) -> None:
    turn = begin_turn(registry, "b")
    await take_turns(registry, "a", "b")
    registry.defer_work("a", lambda: elsewhere_at_once(turn.__aenter__()))
    clock.now += 1_000_000

    registry.expire_windows()

    assert ids(registry) == ["b"]
    await turn.__aexit__(None, None, None)


async def command(registry: WindowRegistry, text: str, gate: asyncio.Event | None = None) -> None:
    """Take a turn that does not need the window, and add its exchange."""
    with registry.reserve("a") as place:
        place.defer_work(lambda: place.window.add_exchange((Message.user(text), Message.assistant("done"))))
        if gate is not None:
            await gate.wait()


async def question(registry: WindowRegistry, text: str, gate: asyncio.Event, seen: list[list[str]]) -> None:
    """Take a turn that needs the window, and answer when the gate is opened."""
    async with begin_turn(registry, "a") as window:
        window.open(text)
        seen.append([message.content for message in window.messages() if message.content != "done"])
        await gate.wait()
        window.add(Message.assistant("done"))
        window.close()


async def test_turn_without_the_window_does_not_wait_and_comes_in_its_order(registry: WindowRegistry) -> None:
    gate, seen = asyncio.Event(), list[list[str]]()
    first = elsewhere(question(registry, "first", gate, seen))
    await settle()
    await elsewhere(command(registry, "one"))
    second = elsewhere(question(registry, "second", gate, seen))
    await settle()
    await elsewhere(command(registry, "two"))
    registry.run_deferred_work()

    gate.set()
    await asyncio.gather(first, second)
    registry.run_deferred_work()

    assert seen == [["first"], ["first", "one", "second"]]
    assert asked(registry.get_loaded("a")) == ["first", "one", "second", "two"]


async def test_exchange_after_an_open_one_is_in_the_snapshot_at_once(registry: WindowRegistry) -> None:
    gate, seen = asyncio.Event(), list[list[str]]()
    waiting = elsewhere(question(registry, "first", gate, seen))
    await settle()
    await elsewhere(command(registry, "one"))

    registry.run_deferred_work()

    (snapshot,) = [window.snapshot() for window in registry.loaded_windows().values()]
    assert [exchange.messages[0].content for exchange in snapshot.exchanges] == ["one"]
    gate.set()
    await waiting


async def test_commands_that_end_in_another_order_are_added_in_the_order_in_which_they_came(
    registry: WindowRegistry,
) -> None:
    gate = asyncio.Event()
    slow = elsewhere(command(registry, "slow", gate))
    await settle()
    await elsewhere(command(registry, "quick"))
    gate.set()
    await slow
    registry.run_deferred_work()

    assert asked(registry.get_loaded("a")) == ["slow", "quick"]


async def test_command_whose_turn_was_cancelled_lets_the_next_one_in(registry: WindowRegistry) -> None:
    cancelled = elsewhere(command(registry, "never", asyncio.Event()))
    await settle()
    waiting = elsewhere(use(registry, "a"))
    await settle()
    assert not waiting.done()

    cancelled.cancel()

    await asyncio.wait_for(waiting, 1)


async def test_command_that_leads_to_its_own_window_is_refused_at_once(registry: WindowRegistry) -> None:
    with registry.reserve("a"), pytest.raises(WindowBusy):
        await use(registry, "a")


async def test_command_does_not_wait_until_a_stored_window_is_read(shelved: WindowRegistry, shelf: Shelf) -> None:
    await command(shelved, "three")
    shelved.run_deferred_work()

    assert (shelf.read_keys, shelved.unread_keys()) == ([], ["a"])
    assert asked(await shelved.load("a")) == ["one", "two", "three"]


async def test_change_is_also_made_to_what_is_added_later(registry: WindowRegistry) -> None:
    gate, seen = asyncio.Event(), list[list[str]]()
    first = elsewhere(question(registry, "first", gate, seen))
    await settle()
    second = elsewhere(question(registry, "second", gate, seen))
    await settle()
    await elsewhere(command(registry, "secret"))

    registry.rewrite_windows(
        lambda _key, snapshot: snapshot._replace(
            exchanges=tuple(each for each in snapshot.exchanges if each.messages[0].content != "secret")
        )
    )
    gate.set()
    await asyncio.gather(first, second)
    registry.run_deferred_work()

    assert asked(registry.get_loaded("a")) == ["first", "second"]


def strip_exchanges(_key: str, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot of a window without its exchanges."""
    return snapshot._replace(exchanges=())


async def speak(registry: WindowRegistry, key: str, text: str = "hello") -> Window:
    async with begin_turn(registry, key) as window:
        window.add_exchange([Message.user(text), Message.assistant("hi")])
    return window


async def test_window_that_is_rewritten_to_nothing_is_gone(registry: WindowRegistry) -> None:
    await speak(registry, "one")
    kept = await speak(registry, "two")

    registry.rewrite_windows(lambda key, snapshot: strip_exchanges(key, snapshot) if key == "one" else snapshot)

    assert [*registry.loaded_windows().values()] == [kept]


async def test_window_that_a_turn_has_is_rewritten_before_the_next_turn(registry: WindowRegistry) -> None:
    before: list[int] = []

    async def follow() -> None:
        async with begin_turn(registry, "one") as window:
            before.append(window.stats().exchange_count)

    async with begin_turn(registry, "one") as window:
        waiting = elsewhere(follow())
        await asyncio.sleep(0)
        window.add_exchange([Message.user("hello"), Message.assistant("hi")])
        registry.rewrite_windows(strip_exchanges)
        assert window.stats().exchange_count == 1
        registry.defer_work("one", lambda: window.add_exchange([Message.user("late"), Message.assistant("hi")]))
    await waiting

    assert before == [0]


async def test_window_that_was_rewritten_meanwhile_is_no_longer_one_of_these(registry: WindowRegistry) -> None:
    window = await speak(registry, "one")
    found: list[str | None] = []

    async def look() -> None:
        async with registry.hold_between_turns(window) as key:
            found.append(key)

    async with begin_turn(registry, "one"):
        waiting = elsewhere(look())
        await asyncio.sleep(0)
        registry.rewrite_windows(strip_exchanges)
    await waiting

    assert found == [None]


class Shelf:
    """Stored windows by key. `read` waits for the event of the key in `read_gates`, if there is one."""

    def __init__(self) -> None:
        self.snapshots: dict[str, Snapshot | None] = {}
        self.read_gates: dict[str, asyncio.Event] = {}
        self.read_keys: list[str] = []

    async def read(self, key: str) -> Snapshot | None:
        self.read_keys.append(key)
        found = self.snapshots.get(key, Snapshot(""))
        if key in self.read_gates:
            await self.read_gates[key].wait()
        return found

    def put(self, key: str, *said: str) -> tuple[WindowStats, float]:
        """Store a window, and return its statistics and its idle time of ten seconds."""
        window = create(key)
        for text in ("evicted", *said):
            window.add_exchange((Message.user(text), Message.assistant("hi")))
        kept = window.exchanges()[1:]
        self.snapshots[key] = Snapshot("", None, kept, EvictionCounts(1, 2, 8, 1))
        return window.stats()._replace(exchange_count=len(kept), evicted_exchanges=1), 10.0


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def shelved(shelf: Shelf, clock: Clock) -> WindowRegistry:
    """Return a registry with the stored windows "a" and "b", which have not been read yet."""
    registry = WindowRegistry(create, read=shelf.read, max_windows=3, idle_seconds=60, clock=clock)
    registry.register_stored({"a": shelf.put("a", "one", "two"), "b": shelf.put("b", "three")})
    return registry


def asked(window: Window | None) -> list[str]:
    """Return the questions in a window."""
    assert window is not None
    return [exchange.messages[0].content for exchange in window.exchanges()]


def test_stored_windows_are_counted_and_listed_before_they_are_read(shelved: WindowRegistry, shelf: Shelf) -> None:
    shelved.set_policy(WindowPolicy(history_tokens=50))
    figures = shelved.stats()

    assert [*figures] == ["b", "a"]
    assert (figures["a"].exchange_count, figures["a"].evicted_exchanges, figures["a"].max_tokens) == (2, 1, 50)
    assert figures["a"].utilization == min(100.0, 2 * figures["a"].current_tokens)
    assert (len(shelved), "a" in shelved, "c" in shelved) == (2, True, False)
    assert (shelved.loaded_windows(), shelved.get_loaded("a"), shelf.read_keys) == ({}, None, [])


async def test_stored_window_is_read_once_when_a_turn_first_needs_it(shelved: WindowRegistry, shelf: Shelf) -> None:
    for text in ("three", "four"):
        await speak(shelved, "a", text)

    (window,) = shelved.loaded_windows().values()
    async with shelved.hold_between_turns(window) as key, shelved.hold_between_turns(create("a")) as no_key:
        assert (key, no_key) == ("a", None)
    assert asked(window) == ["one", "two", "three", "four"]
    assert [exchange.number for exchange in window.exchanges()] == [2, 3, 4, 5]
    assert (window.stats().evicted_exchanges, shelved.stats()["a"], shelf.read_keys) == (1, window.stats(), ["a"])


async def test_stored_window_that_is_looked_at_is_no_use_of_it(shelved: WindowRegistry, shelf: Shelf) -> None:
    window, same = await asyncio.gather(shelved.load("a"), shelved.load("a"))

    assert asked(window) == ["one", "two"]
    assert (window is same, shelf.read_keys, [*shelved.stats()]) == (True, ["a"], ["b", "a"])
    assert await shelved.load("c") is None


async def test_turn_looks_at_its_own_window_without_waiting_for_itself(shelved: WindowRegistry, shelf: Shelf) -> None:
    shelf.snapshots["a"] = None
    async with begin_turn(shelved, "a"):
        assert await shelved.load("a") is None


async def test_what_was_said_in_a_window_that_could_not_be_read_is_known(shelved: WindowRegistry, shelf: Shelf) -> None:
    shelf.snapshots["a"] = None
    await speak(shelved, "a", "three")

    assert shelved.unread_keys() == ["a"]
    assert [(key, len(snapshot.exchanges)) for key, snapshot in shelved.snapshots().items()] == [("a", 1)]


async def test_window_that_cannot_be_read_takes_turns_and_gets_them_when_it_can(
    shelved: WindowRegistry, shelf: Shelf
) -> None:
    stored, shelf.snapshots["a"] = shelf.snapshots["a"], None
    async with begin_turn(shelved, "a") as window:
        window.open("three")
        window.add_sources({"fact:7"})
        window.add(Message.assistant("hi"))
        window.close()
    await speak(shelved, "a", "four")
    assert (await shelved.load("a"), shelved.stats()["a"].exchange_count) == (None, 2)
    shelf.snapshots["a"] = stored

    window = await speak(shelved, "a", "five")

    assert asked(window) == ["one", "two", "three", "four", "five"]
    assert [exchange.number for exchange in window.exchanges()] == [2, 3, 4, 5, 6]
    assert window.exchanges()[2].sources == {"fact:7"}
    assert shelf.read_keys == ["a"] * 4


async def test_what_was_said_is_added_also_to_a_window_without_numbers(shelved: WindowRegistry, shelf: Shelf) -> None:
    stored, shelf.snapshots["a"] = shelf.snapshots["a"], None
    await speak(shelved, "a", "three")
    assert stored is not None
    shelf.snapshots["a"] = stored._replace(exchanges=tuple(each.with_number(0) for each in stored.exchanges))

    assert asked(await shelved.load("a")) == ["one", "two", "three"]


async def test_registry_that_reads_nothing_begins_anew(registry: WindowRegistry, shelf: Shelf) -> None:
    registry.register_stored({"a": shelf.put("a", "one")})

    assert asked(await speak(registry, "a", "two")) == ["two"]


def test_stored_windows_are_older_than_those_in_working_memory(registry: WindowRegistry, shelf: Shelf) -> None:
    registry.restore("new", create("new").snapshot())

    registry.register_stored({key: shelf.put(key, "one") for key in "abc"})

    assert [*registry.stats()] == ["new", "c", "b"]
    assert registry.idle_seconds("b") == 10


async def test_windows_that_are_stored_no_more_are_gone_and_figures_follow(
    shelved: WindowRegistry, shelf: Shelf
) -> None:
    await shelved.load("a")

    shelved.register_stored({"a": shelf.put("a"), "b": shelf.put("b", "three", "four"), "c": shelf.put("c")})
    assert {key: each.exchange_count for key, each in shelved.stats().items()} == {"a": 2, "b": 2, "c": 0}
    shelved.register_stored({})

    assert [*shelved.stats()] == ["a"]


async def test_what_was_said_stays_of_a_window_that_is_stored_no_more(shelved: WindowRegistry, shelf: Shelf) -> None:
    shelf.snapshots["a"] = None
    await speak(shelved, "a", "three")

    shelved.register_stored({})

    assert asked(shelved.get_loaded("a")) == ["three"]


async def reading(shelved: WindowRegistry, shelf: Shelf, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Start a task that reads "a", and return it while it waits for the result of the read."""
    shelf.read_gates["a"] = asyncio.Event()
    task = elsewhere(work)
    await settle()
    return task


READS: dict[str, tuple[Callable[[WindowRegistry], Coroutine[Any, Any, Any]], list[str]]] = {
    "a look": (lambda registry: registry.load("a"), []),
    "a turn": (lambda registry: speak(registry, "a", "three"), ["three"]),
}


@pytest.mark.parametrize(("work", "said"), READS.values(), ids=READS)
async def test_window_that_is_deleted_while_it_is_read_does_not_come_back(
    work: Callable[[WindowRegistry], Coroutine[Any, Any, Any]], said: list[str], shelved: WindowRegistry, shelf: Shelf
) -> None:
    task = await reading(shelved, shelf, work(shelved))

    shelved.register_stored({})
    shelf.read_gates["a"].set()
    await task

    assert [text for window in shelved.loaded_windows().values() for text in asked(window)] == said


@pytest.mark.parametrize(("work", "said"), READS.values(), ids=READS)
async def test_window_that_is_rewritten_while_it_is_read_does_not_come_back_as_it_was(
    work: Callable[[WindowRegistry], Coroutine[Any, Any, Any]], said: list[str], shelved: WindowRegistry, shelf: Shelf
) -> None:
    task = await reading(shelved, shelf, work(shelved))

    shelved.rewrite_windows(lambda key, snapshot: snapshot._replace(exchanges=snapshot.exchanges[1:]))
    shelf.read_gates["a"].set()
    await task

    assert asked(shelved.get_loaded("a")) == ["two", *said]


async def test_what_was_said_to_a_window_that_cannot_be_read_is_rewritten(
    shelved: WindowRegistry, shelf: Shelf
) -> None:
    stored, shelf.snapshots["a"] = shelf.snapshots["a"], None
    await speak(shelved, "a", "three")

    shelved.rewrite_windows(strip_exchanges)
    shelf.snapshots["a"] = stored

    assert asked(await shelved.load("a")) == ["one", "two"]
